"""What mailboxes do to their accounts: too many letters that come back pause one, and a mailbox
that cannot be read is told of; neither may wait for the next commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from paceline.core.instants import MINUTE, Instant
from paceline.core.policy import Policy
from paceline.engine.ports import Alert
from paceline.engine.ports.audit import Watched
from paceline.sim.checks.care import SAMPLES
from paceline.sim.checks.evidence import Evidence, Violation, words
from paceline.sim.checks.messages import UNDER_WAY_US
from paceline.sim.checks.time import day_of
from paceline.sim.mailboxes import REFUSED
from paceline.sim.post import Answered
from paceline.sim.register import Entry
from paceline.sim.witness import Seen

CARELESS = "never careless"
UNTOLD = "never untold"

IN_SERVICE = ("active", "limit_reached", "cooling_down")
"""States from which an account goes on by itself."""
TELL_AFTER_US = 15 * MINUTE
MIDNIGHT_US = MINUTE
"""So close to a midnight nobody outside can tell which day a letter counts for."""


# ---------------------------------------------------------------------- too many bounces


def careless(evidence: Evidence) -> Iterator[Violation]:
    """A day on which too many letters come back, however late they do, pauses their account in the
    commit that takes the last of them in, and tells of it; and nothing starts from it until
    somebody lets it go on."""
    post = evidence.post
    if post is None:
        return
    days = _Days(evidence)
    for before, entry in pairwise(post.entries):
        for account_id, name in evidence.accounts.items():
            late = days.take_in(entry, account_id)
            if late and before.accounts.get(account_id) in IN_SERVICE:
                yield from days.judge(entry, account_id, name)
    for account_id, name in evidence.accounts.items():
        for since_at, until_at in _pauses(evidence, account_id):
            for call in evidence.by_account.get(name, ()):
                if since_at + UNDER_WAY_US < call.at < until_at and call.part == 0:
                    text = f"{call.key} started, but {name} is paused since {since_at}"
                    yield Violation(CARELESS, text, call.at, words(call))


class _Days:
    """Bounces and letters by account and day."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._at_once = {
            int(effect.key.rsplit("-", 2)[1])
            for effect in evidence.effects
            if effect.kind == "send" and effect.answer == "bounced"
        }
        self._bounced: dict[int, list[tuple[Instant, bool]]] = {}
        """By account, when, and whether it had been taken at first."""

    def take_in(self, entry: Entry, account_id: int) -> bool:
        """Whether some of it came back later."""
        theirs = [
            number
            for number in entry.bounced
            if self._evidence.by_id[number].account_id == account_id
        ]
        noted = self._bounced.setdefault(account_id, [])
        noted += [(entry.at, number not in self._at_once) for number in theirs]
        return any(number not in self._at_once for number in theirs)

    def judge(self, entry: Entry, account_id: int, name: str) -> Iterator[Violation]:
        policy = self._policy(name)
        most = policy.bounce_pause if policy is not None else None
        if policy is None or most is None or _near_midnight(entry.at, policy.day_zone):
            return
        today = day_of(entry.at, policy.day_zone)
        bounced = [
            late for at, late in self._bounced[account_id] if day_of(at, policy.day_zone) == today
        ]
        fewest, most_sent = self._letters(entry, name, policy)
        # Where more came back than were sent that day, those are the day's letters.
        fewest, most_sent = (max(count, bounced.count(True)) for count in (fewest, most_sent))
        paused = entry.accounts[account_id] == "paused"
        share = f"{len(bounced)} of {fewest} to {most_sent} letters came back that day"
        if paused:
            told = any(
                one.kind == "account.bounces" and one.account_id == account_id
                for one in _opened(entry)
            )
            if not told:
                yield Violation(UNTOLD, f"{name} is paused, and nobody is told", entry.at, (name,))
            if most_sent < SAMPLES or len(bounced) * 10_000 <= most.basis_points * fewest:
                yield Violation(CARELESS, f"{name} is paused, but {share}", entry.at, (name,))
        elif fewest >= SAMPLES and len(bounced) * 10_000 > most.basis_points * most_sent:
            text = f"{name} goes on, but {share}: more than {most}"
            yield Violation(CARELESS, text, entry.at, (name,))

    def _policy(self, name: str) -> Policy | None:
        calls = self._evidence.by_account.get(name, ())
        policies = (self._evidence.policy_of(call) for call in reversed(calls))
        return next((policy for policy in policies if policy is not None), None)

    def _letters(self, entry: Entry, name: str, policy: Policy) -> tuple[int, int]:
        """How many letters that day has at least and at most: of some nobody outside can tell
        whether they are in doubt or refused."""
        today = day_of(entry.at, policy.day_zone)
        calls = [
            call
            for call in self._evidence.by_account[name]
            if call.at <= entry.at and day_of(call.clock_at, policy.day_zone) == today
        ]
        sure = [call for call in calls if self._counts(call, policy)]
        return len(sure), len(calls)

    def _counts(self, call: Seen, policy: Policy) -> bool:
        if _near_midnight(call.clock_at, policy.day_zone):
            return False
        return self._evidence.was_taken(call) or call.delivery_id in self._at_once


def _near_midnight(at: Instant, zone: str) -> bool:
    return day_of(at - MIDNIGHT_US, zone) != day_of(at + MIDNIGHT_US, zone)


def _pauses(evidence: Evidence, account_id: int) -> Iterator[tuple[Instant, Instant]]:
    """From when to when an account was paused."""
    assert evidence.post is not None
    since_at: Instant | None = None
    for entry in evidence.post.entries:
        paused = entry.accounts.get(account_id) == "paused"
        if paused and since_at is None:
            since_at = entry.at
        elif not paused and since_at is not None:
            yield since_at, entry.at
            since_at = None
    if since_at is not None:
        yield since_at, evidence.ended_at


# ---------------------------------------------------------------------- mailboxes that fail


def untold(evidence: Evidence) -> Iterator[Violation]:
    """A mailbox that refuses us is told of at once, one that is away after a quarter of an hour;
    and when it can be read again, that is over."""
    post = evidence.post
    if post is None:
        return
    for account_id, name in evidence.accounts.items():
        box = post.boxes.get(name)
        if box is None:
            continue
        stretch = _Stretch(name, evidence.spread_us)
        for before, entry in pairwise(post.entries):
            was, now = before.watches.get(account_id), entry.watches.get(account_id)
            if now is None:
                continue
            alert = next((one for one in _opened(entry) if _is_about(one, account_id)), None)
            yield from stretch.turn(entry, was, now, alert, box.answered)
        if stretch.alert is not None:
            text = f"the mailbox of {name} is told to fail to the end"
            yield Violation(UNTOLD, text, evidence.ended_at, (name,))


def _opened(entry: Entry) -> list[Alert]:
    return [alert for alert in entry.alerts.values() if alert.cleared_at is None]


def _is_about(alert: Alert, account_id: int) -> bool:
    return alert.kind == "mailbox.failing" and alert.account_id == account_id


@dataclass
class _Stretch:
    """One mailbox, and for how long it has been failing."""

    account: str
    spread_us: int
    since_at: Instant | None = None
    refused: bool = False
    alert: Alert | None = None

    def turn(
        self,
        entry: Entry,
        was: Watched | None,
        now: Watched,
        alert: Alert | None,
        answered: list[Answered],
    ) -> Iterator[Violation]:
        before, self.alert = self.alert, alert
        if not now.problem:
            self.since_at, self.refused = None, False
            if alert is not None:
                yield self._violation("can be read, and is told to fail", entry.at)
            return
        if self.since_at is None:
            self.since_at = entry.at
        self.refused = self.refused or now.problem == REFUSED
        failed_for_us = entry.at - self.since_at
        if before is not None and alert is None:
            yield self._violation("is not told to fail any more, and still does", entry.at)
        if alert is None and was is not None and was.held and not now.held:
            late = failed_for_us >= TELL_AFTER_US + self.spread_us
            if (late or now.problem == REFUSED) and self._has_failed(entry, answered):
                yield self._violation(f"fails ({now.problem}), and nobody is told", entry.at)
        early = failed_for_us + self.spread_us < TELL_AFTER_US
        if before is None and alert is not None and early and not self.refused:
            yield self._violation("is told to fail, and has hardly begun to", entry.at)

    def _has_failed(self, entry: Entry, answered: list[Answered]) -> bool:
        """Whether the process that has let go of it was not let in: it may as well have read it,
        and then not been able to write that down."""
        theirs = [one for one in answered if one.by is entry.by and one.at <= entry.at]
        return bool(theirs) and bool(theirs[-1].trouble)

    def _violation(self, what: str, at: Instant) -> Violation:
        return Violation(UNTOLD, f"the mailbox of {self.account} {what}", at, (self.account,))


__all__ = ["careless", "untold"]
