"""What a reminder's runs send: within their window, to whom they can, each part once, in turn, and
nothing from an account that its provider has thrown out.

Judged from the provider's log, from what people ordered, and from the order of the commits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from paceline.core.instants import MINUTE, Instant
from paceline.core.states import DeliveryState
from paceline.engine.ports import LedgerRow
from paceline.providers.sandbox.provider import group_id
from paceline.providers.sandbox.settings import SandboxSettings, read_settings
from paceline.sim.checks.evidence import Evidence, Violation, words
from paceline.sim.checks.firings import before_window, closes_at, in_force, in_window
from paceline.sim.checks.time import day_of
from paceline.sim.diary import Annals, Entry
from paceline.sim.reminding import Reminding

ASTRAY = "never astray"
TURN = "never ahead of its turn"
THROWN_OUT = "never from the thrown out"

UNDER_WAY = ("waiting", "running")
STOPPED = ("suspended", "cooling_down", "paused")
CLOSED = "delivery window closed"
FAR: Instant = 1 << 62


@dataclass(frozen=True)
class Fired:
    """A run as it began, and what its reminder was then."""

    entry: Entry
    reminding: Reminding
    day_at: Instant
    """An instant of the day on which its window is."""

    @cached_property
    def closes_at(self) -> Instant:
        skips = self.reminding.raw["at_close"] == "skip"
        return closes_at(self.reminding, self.day_at) if skips else FAR

    def rank(self, at: Instant, *, begun: bool) -> tuple[int, bool, Instant, int]:
        """Whoever comes first goes first: what has begun goes on to its end."""
        return -self.reminding.raw["priority"], not begun, self.closes_on(at), self.entry.run.id

    def closes_on(self, at: Instant) -> Instant:
        """When its window closes for good, or on the day of an instant, where it goes on the next
        day; a window of the whole day never closes then."""
        if self.closes_at != FAR or self.reminding.raw["window"] == "0-24":
            return self.closes_at
        return closes_at(self.reminding, at)

    def astray_at(self, at: Instant) -> str | None:
        """Why nothing of it may start at an instant; None if it may."""
        reminding = self.reminding
        early = reminding.raw.get("before_open") == "send" and before_window(reminding, at)
        if not in_window(reminding, at) and not early:
            return f"outside its window {reminding.raw['window']}"
        same_day = day_of(at, reminding.zone) == day_of(self.day_at, reminding.zone)
        return None if same_day or self.closes_at == FAR else "on another day"


def fired(annals: Annals) -> dict[int, Fired]:
    """Every run of a reminder by its number."""
    terms, ordered = annals.book.terms, annals.book.by_hand.values()
    by_hand = dict(fired for keys in ordered for fired in keys.values())
    return {
        entry.run.id: Fired(
            entry,
            in_force(terms[entry.run.campaign], entry.page).reminding,
            entry.run.fired_for or by_hand.get(entry.run.id, entry.at),
        )
        for entry in annals.entries
        if entry.new
    }


# ---------------------------------------------------------------------- when, and to whom


def out_of_window(evidence: Evidence) -> Iterator[Violation]:
    """No delivery of a run starts outside the window that its reminder had when it fired, and of
    one that ends with its window none on another day; by the caller's clock."""
    if evidence.annals is None:
        return
    runs = fired(evidence.annals)
    for call in evidence.calls:
        run = None if call.facts is None else runs.get(call.facts.run_id)
        what = None if run is None or call.part > 0 else run.astray_at(call.clock_at)
        if run is not None and what is not None:
            text = f"{call.key} of {run.reminding.name} started at {call.clock_at}, {what}"
            yield Violation("never out of hours", text, call.at, words(call))


def astray(evidence: Evidence) -> Iterator[Violation]:
    """Only members write to a group; everybody who can be reached is; and whoever is has each part
    once, and all of them from one account."""
    annals = evidence.annals
    if annals is None:
        return
    reach = _Reach(annals)
    for call in evidence.calls:
        if not reach.may(call.account, call.target):
            text = f"{call.key} went to {call.target} from {call.account}, which cannot write there"
            yield Violation(ASTRAY, text, call.at, words(call))
    runs = fired(annals)
    for run in runs.values():
        for delivery in run.entry.deliveries:
            able = [name for name in run.reminding.accounts if reach.may(name, delivery.target)]
            if (delivery.state is DeliveryState.SKIPPED) == bool(able):
                text = f"delivery {delivery.id} is {delivery.state}; able are {able or 'none'}"
                yield Violation(ASTRAY, text, run.entry.at, (str(delivery.id),))
    yield from _again(evidence, runs)


class _Reach:
    """Who may write where, as the provider has it."""

    def __init__(self, annals: Annals) -> None:
        self._settings: dict[str, SandboxSettings] = {
            name: read_settings(sender.settings)
            for name, sender in annals.senders.items()
            if name in annals.routine.synced
        }

    def may(self, account: str, target: str) -> bool:
        settings = self._settings.get(account)
        if settings is None or not target.endswith("@g.us"):
            return True  # of one that never was asked for its groups nothing is known
        numbers = (n for n in settings.groups if n not in settings.read_only_groups)
        return target in map(group_id, numbers)


def _again(evidence: Evidence, runs: dict[int, Fired]) -> Iterator[Violation]:
    held: Counter[tuple[int, str, str]] = Counter()
    hands: dict[tuple[int, str], set[str]] = defaultdict(set)
    for key, effects in evidence.accepted.items():
        delivery = evidence.by_id.get(int(key.rsplit("-", 2)[1]))
        if delivery is None or delivery.run_id not in runs:
            continue
        for effect in effects:
            held[delivery.run_id, effect.target, key.rsplit("-", 1)[1]] += 1
            hands[delivery.run_id, effect.target].add(effect.account)
    for (run_id, target, part), count in held.items():
        if count > 1:
            text = f"{target} has part {part} of run {run_id} {count} times"
            yield Violation(ASTRAY, text, evidence.ended_at)
    for (run_id, target), accounts in hands.items():
        if len(accounts) > 1:
            text = f"{target} has run {run_id} from {', '.join(sorted(accounts))}"
            yield Violation(ASTRAY, text, evidence.ended_at)


# ---------------------------------------------------------------------- thrown out


def thrown_out(evidence: Evidence) -> Iterator[Violation]:
    """Whoever its provider throws out is out of service with that very commit, and nothing is
    intended from then on, not even a further part, until somebody has let it go on."""
    if evidence.annals is None:
        return
    for before, page in pairwise(evidence.annals.pages):
        for row in page.rows:
            state, generation, removed = page.accounts[row.account_id]
            name = evidence.accounts[row.account_id]
            known = before.accounts.get(row.account_id, ("", 0, False))[0]
            if row.kind == "intent" and known == "suspended":
                text = f"delivery {row.delivery_id} was intended on {name}, which is suspended"
                yield Violation(THROWN_OUT, text, page.at, (str(row.delivery_id), name))
            told = row.kind == "outcome" and row.outcome in ("banned", "unauthorised")
            # What a former owner of the lane hears late binds nobody.
            ours = row.generation == generation and not removed
            if told and ours and state not in STOPPED:
                text = f"{name} is {state}, though delivery {row.delivery_id} was {row.outcome}"
                yield Violation(THROWN_OUT, text, page.at, (str(row.delivery_id), name))


# ---------------------------------------------------------------------- taking turns


def ahead_of_turn(evidence: Evidence) -> Iterator[Violation]:
    """Nothing of a run starts while another one, whose turn it is, has not started everything that
    it can start from the same account. What has begun there goes first."""
    if evidence.annals is None:
        return
    turns = _Turns(evidence, evidence.annals)
    for row, page in turns.starts:
        run = turns.runs[row.run_id]
        # Of an attempt that came to nothing nobody has to know afterwards: in favour of both.
        rank = run.rank(row.at, begun=turns.was_tried(row.run_id, row.account_id, page))
        for other in turns.runs.values():
            if other.entry.run.id == row.run_id:
                continue
            begun = turns.was_sent(other.entry.run.id, row.account_id, page)
            if other.rank(row.at, begun=begun) < rank and turns.was_due(other, row, page):
                text = (
                    f"delivery {row.delivery_id} of {run.reminding.name} (run {row.run_id}) was "
                    f"begun, and it was the turn of {other.reminding.name} "
                    f"(run {other.entry.run.id}) on {evidence.accounts[row.account_id]}"
                )
                yield Violation(TURN, text, evidence.annals.pages[page].at, (str(row.delivery_id),))


class _Turns:
    """The first intents of all deliveries of reminders, in the order of their commits."""

    def __init__(self, evidence: Evidence, annals: Annals) -> None:
        self._evidence = evidence
        self._annals = annals
        self.runs = fired(annals)
        self.starts: list[tuple[LedgerRow, int]] = []
        self._pages: dict[tuple[int, int], list[int]] = defaultdict(list)
        """By run and account, the commits in which deliveries were begun."""
        self._sent: dict[tuple[int, int], int] = {}
        """The same of the first that a provider took and that stood, with all its parts."""
        seen: set[int] = set()
        for number, page in enumerate(annals.pages):
            for row in page.rows:
                parts = evidence.parts.get((row.run_id, 1), 1)
                if row.kind == "outcome" and row.outcome == "accepted" and row.part + 1 == parts:
                    self._sent.setdefault((row.run_id, row.account_id), number)
                new = row.kind == "intent" and row.delivery_id not in seen
                if new and row.run_id in self.runs:
                    self.starts.append((row, number))
                    self._pages[row.run_id, row.account_id].append(number)
                seen.add(row.delivery_id)
        for delivery in evidence.deliveries:
            cut_off = delivery.reason == CLOSED and delivery.account_id is not None
            if cut_off and delivery.id not in seen and delivery.run_id in self.runs:
                # It waited until its window closed, and its turn never came.
                self._pages[delivery.run_id, delivery.account_id or 0].append(len(annals.pages))

    def was_tried(self, run_id: int, account_id: int, page: int) -> bool:
        return any(number < page for number in self._pages[run_id, account_id])

    def was_sent(self, run_id: int, account_id: int, page: int) -> bool:
        return self._sent.get((run_id, account_id), page) < page

    def was_due(self, other: Fired, row: LedgerRow, page: int) -> bool:
        """Whether something of a run was waiting for its turn when another's delivery was begun."""
        run, entry = other.entry.run, other.entry
        later = [number for number in self._pages[run.id, row.account_id] if number > page]
        if not later or entry.page >= page or self._is_held_up(other, row.account_id):
            return False
        if self._annals.pages[page - 1].runs[run.id] not in UNDER_WAY:
            return False
        moved = [
            number
            for number, name in self._annals.book.reassigned
            if name == run.campaign and number > page
        ]
        if moved and later[0] > moved[0]:
            return False  # it came here from another account only afterwards
        due_us = row.at - max(one.scheduled_at for one in entry.deliveries)
        # Where clocks differ, what was chosen before the other fell due goes first.
        needed_us = MINUTE if self._evidence.spread_us else 0
        return due_us >= needed_us and other.astray_at(row.at) is None

    def _is_held_up(self, other: Fired, account_id: int) -> bool:
        """Whether its file would not go up: then a message waits that was never begun."""
        name, first = self._evidence.accounts[account_id], other.reminding.raw["parts"][0]
        loads = [one for one in self._evidence.loaded if one.account == name]
        taken = [
            effect
            for effect in self._evidence.effects
            if effect.kind == "upload" and effect.account == name and effect.accepted
        ]
        return "media" in first and len(taken) < len(loads)
