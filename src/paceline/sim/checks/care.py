"""Never careless: what follows from failures, counted from the ledger as it grew.

The ledger has no order of its own in which it was written, so it is read along with every call
(``Look``). Whatever is seen for the first time together, the checker orders in favour of the
engine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date

from paceline.core.grammar import Percent
from paceline.core.instants import Instant
from paceline.core.policy import Policy
from paceline.engine.ports import LedgerRow
from paceline.sim.checks.evidence import Evidence, Violation, lasting_us, words
from paceline.sim.checks.time import day_of
from paceline.sim.witness import Look, Seen

PROMISE = "never careless"
FAILED = ("rejected", "bounced", "transient")
SAMPLES = 20
"""As long as fewer were settled on a day, nothing can be said of its bounces."""
RECENT = 100
"""So many settled attempts tell whether to go slower."""

Place = tuple[int, int]
"""An account and a run."""

Attempts = list[bool | None]
"""Whether each failed; None for one that did not, and of which its lane may not know."""


def careless(evidence: Evidence) -> Iterator[Violation]:
    """Too many failures end a campaign's or an account's sending until somebody lets it go on, and
    fewer slow it down."""
    if not evidence.looks:
        return
    judge = _Judge(evidence)
    # Every call made the witness look, and then only was it made itself.
    for look, call in zip(evidence.looks, evidence.calls, strict=True):
        judge.take_in(look)
        # What was let go on since the last look may have been let go on after what is new.
        judge.release_until(look.at)
        yield from judge.judge(call)


@dataclass(slots=True)
class _Judge:
    evidence: Evidence
    settled: dict[Place, Attempts] = field(default_factory=lambda: defaultdict(list))
    """Of each account and run, whether each attempt failed."""
    days: dict[tuple[int, date], Attempts] = field(default_factory=lambda: defaultdict(list))
    """Of each account and day, whether what it sent came back."""
    unsure: set[tuple[int, date]] = field(default_factory=set)
    """Of which nobody can tell from here which letter was the one that made them enough."""
    silent_runs: dict[int, str] = field(default_factory=dict)
    silent_accounts: dict[int, str] = field(default_factory=dict)
    excused: set[tuple[int, int, int]] = field(default_factory=set)
    """Intents that may have been there before the silence."""
    intents: set[tuple[int, int, int]] = field(default_factory=set)
    released: int = 0
    before: dict[str, Seen] = field(default_factory=dict)

    def release_until(self, at: Instant) -> None:
        releases = self.evidence.releases
        while self.released < len(releases) and releases[self.released].at <= at:
            release = releases[self.released]
            self.released += 1
            for run_id, run in self.evidence.runs.items():
                if run.campaign == release.campaign:
                    self.silent_runs.pop(run_id, None)
                    self._forget(run_id)
            for account_id, name in self.evidence.accounts.items():
                if name == release.account:
                    self.silent_accounts.pop(account_id, None)

    def _forget(self, run_id: int) -> None:
        for place, attempts in self.settled.items():
            if place[1] == run_id:
                _begin_anew(attempts)

    def take_in(self, look: Look) -> None:
        for row in look.rows:
            if row.kind == "intent":
                self.intents.add((row.delivery_id, row.part, row.attempt))
        for row in look.rows:
            policy = self.evidence.policies.get(row.policy_id)
            if policy is None:
                continue
            late = row.generation < look.generations.get(row.account_id, 0)
            if late or row.kind == "resolution":
                # What became of it was written by somebody else than its lane.
                self.unsure.add(_day(row, policy))
            if row.kind == "outcome":
                self._count(row, policy, late=late)

    def _count(self, row: LedgerRow, policy: Policy, *, late: bool) -> None:
        failed = row.outcome in FAILED
        # Where the lane had a new owner by then, who counts from what was there before, a failure
        # is left out and anything else only counts for the engine.
        if late and failed:
            return
        mark = None if late else failed
        if failed or row.outcome == "accepted":
            attempts = self.settled[row.account_id, row.run_id]
            attempts.append(mark)
            self._look_at_breaker(row, policy, attempts)
        if row.outcome in ("accepted", "bounced"):
            day = self.days[_day(row, policy)]
            day.append(None if late else row.outcome == "bounced")
            self._look_at_bounces(row, policy, day)

    def _look_at_breaker(self, row: LedgerRow, policy: Policy, attempts: Attempts) -> None:
        breaker = policy.breaker
        if breaker is None:
            return
        recent = attempts[-breaker.window :]
        if _sure(recent) >= breaker.samples and _exceeds(recent, breaker.above):
            why = f"{recent.count(True)} of its last {len(recent)} failed"
            if self.evidence.runs[row.run_id].kind == "direct":
                self._silence(self.silent_accounts, row.account_id, why)
            else:
                self._silence(self.silent_runs, row.run_id, why)
            _begin_anew(attempts)

    def _look_at_bounces(self, row: LedgerRow, policy: Policy, day: Attempts) -> None:
        most = policy.bounce_pause
        # One more that arrived makes the share smaller, but for the one that makes them enough.
        enough = len(day) == SAMPLES and _day(row, policy) not in self.unsure
        if most is None or not (row.outcome == "bounced" or enough):
            return
        if _sure(day) >= SAMPLES and _exceeds(day, most):
            why = f"{day.count(True)} of {len(day)} bounced that day"
            self._silence(self.silent_accounts, row.account_id, why)

    def _silence(self, silent: dict[int, str], whose: int, why: str) -> None:
        silent.setdefault(whose, why)
        self.excused |= self.intents

    def judge(self, call: Seen) -> Iterator[Violation]:
        facts = call.facts
        if facts is None:
            return
        if (call.delivery_id, call.part, facts.attempts) not in self.excused and call.part == 0:
            for silent, whose, name in (
                (self.silent_runs, facts.run_id, self.evidence.runs[facts.run_id].campaign),
                (self.silent_accounts, facts.account_id, call.account),
            ):
                if whose in silent:
                    text = f"{call.key} started, but of {name} {silent[whose]}"
                    yield Violation(PROMISE, text, call.at, words(call))
        yield from self._at_full_pace(call)

    def _at_full_pace(self, call: Seen) -> Iterator[Violation]:
        """While errors are high the drawn gap is stretched, as far as its bounds allow."""
        policy, facts = self.evidence.policy_of(call), call.facts
        if facts is None or facts.reply:
            return
        before = self.before.get(call.account)
        self.before[call.account] = call
        if policy is None or policy.adaptive is None or before is None or call.part > 0:
            return
        adaptive = policy.adaptive
        recent = self.settled[facts.account_id, facts.run_id][-RECENT:]
        if not _exceeds(recent, adaptive.above):
            return
        needed_us = min(int(before.gap_us * adaptive.slow_by), adaptive.between.high_us)
        if lasting_us(before, call) < needed_us:
            failed = f"{recent.count(True)} of {len(recent)} failed"
            text = (
                f"{call.key} went {lasting_us(before, call)} us after {before.key} on "
                f"{call.account}, where {failed}: not {needed_us} us"
            )
            yield Violation(PROMISE, text, call.at, words(call))


def _begin_anew(attempts: Attempts) -> None:
    """Failures are forgiven. What went well may count still, where only an operator had paused."""
    attempts[:] = [None for failed in attempts if not failed]


def _day(row: LedgerRow, policy: Policy) -> tuple[int, date]:
    return row.account_id, day_of(row.intent_at, policy.day_zone)


def _sure(attempts: Attempts) -> int:
    return len(attempts) - attempts.count(None)


def _exceeds(attempts: Attempts, share: Percent) -> bool:
    return attempts.count(True) * 10_000 > share.basis_points * len(attempts)
