"""``verify``: the invariants, judged from what is stored and nothing else.

Walks every account's ledger in the order of its intents, with the policy each was made under, and
recounts what the counters claim. It shares the policy's meaning with the pacer but none of its
code paths: where the pacer asks when a gate opens, this asks whether what happened was allowed.
Only "never stuck" is about what has not happened, and has to ask the pacer itself.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from paceline.core.calendar import day_of, day_start_of, week_start
from paceline.core.gates import NEVER
from paceline.core.hours import Hours
from paceline.core.instants import MINUTE, SECOND, Instant, iso
from paceline.core.model import REPLY, Refuse, Wait
from paceline.core.opting_out import DEFAULT, OptOut
from paceline.core.outcome import OutcomeKind
from paceline.core.pacer import Pacer
from paceline.core.policy import Policy
from paceline.core.states import RunState
from paceline.engine.memory import Snapshot, acquainted, policy_of, take_snapshot
from paceline.engine.pages import contacted
from paceline.engine.ports import Account, LedgerRow, Run, Tx
from paceline.engine.ports.history import IMPORTED
from paceline.engine.run_queue import RunQueue

CLOCK_SKEW_US = 15 * SECOND
"""Processes' clocks may differ; an old owner's intent is only damning well after the takeover."""

STUCK_AFTER_US = 5 * MINUTE
"""How late a lane may wake."""

REMEMBERED_STARTS = 10_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Offence:
    """Which of an account's limits a message has gone against, for whoever counts by the day."""

    rule: str
    """As ``core/limits.py`` names them."""
    at: Instant
    zone: str
    """By whose midnight its day is told."""
    action: str
    count: int = 1
    """Of a cap, the how many-th it was."""
    cap: int | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: str
    detail: str
    offence: Offence | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One part's attempt with everything the ledger says of it."""

    intent: LedgerRow
    outcome: LedgerRow | None
    resolution: LedgerRow | None

    @property
    def happened_at(self) -> Instant | None:
        """When the provider was called; None where it certainly was not, or nobody knows."""
        if self.outcome is not None and self.outcome.outcome == OutcomeKind.WITHDRAWN:
            return None
        return self.outcome.started_at if self.outcome is not None else None

    @property
    def reply(self) -> bool:
        return self.intent.action == REPLY

    def text(self) -> str:
        row = self.intent
        return f"delivery {row.delivery_id} part {row.part} attempt {row.attempt}"


def verify(tx: Tx, now: Instant, words: OptOut = DEFAULT) -> list[Violation]:
    """Every violation of the invariants in the whole database. ``words`` are those by which people
    opt out here."""
    found = [
        Violation("never twice", f"delivery {delivery} part {part} was accepted {times} times")
        for delivery, part, times in tx.audit.accepted_twice()
    ]
    found += [Violation("never lost", text) for text in tx.audit.recount()]
    found += [Violation("never lost", text) for text in tx.audit.misplaced()]
    found += [
        Violation("never lost", f"delivery {delivery} does not count its accepted part {part}")
        for delivery, part in tx.audit.uncounted()
    ]
    found += [
        Violation(
            "never to the suppressed",
            f"delivery {delivery}: intent {iso(at)}, suppressed {iso(since_at)}",
        )
        for delivery, at, since_at in tx.audit.suppressed_after()
    ]
    found += [Violation("never out of turn", text) for text in tx.audit.out_of_turn()]
    found += [Violation("never unbidden", text) for text in tx.audit.unbidden(words)]
    for account in tx.accounts.list(with_removed=True):
        found += judge_account(tx, account)
        found += _forgotten(tx, account, now)
    return found


def judge_account(tx: Tx, account: Account, since_at: Instant = 0) -> list[Violation]:
    """An account's ledger by itself. Where it is not read from its beginning, what came before is
    not known: the first messages are then judged without those that they follow."""
    return _Judge(tx, account).judge(since_at)


def _forgotten(tx: Tx, account: Account, now: Instant) -> Iterator[Violation]:
    """Never stuck: a lane with work is owned, or wakes soon after its gates are open."""
    lane = tx.lanes.get(account.id)
    if lane.owner is not None or account.removed_at is not None:
        return
    snapshot = take_snapshot(tx, account.id, now)
    if snapshot.restored.stopped:
        return
    for run in snapshot.restored.runs:
        opens_at = _opens_at(tx, snapshot, run, now) if run.state is RunState.RUNNING else None
        if opens_at is None:
            continue
        if lane.wake_at is None or lane.wake_at > opens_at + STUCK_AFTER_US:
            wakes = "nobody will wake" if lane.wake_at is None else f"{iso(lane.wake_at)} wakes"
            text = f"{account.name} may send for run {run.id} at {iso(opens_at)} and {wakes} it"
            yield Violation("never stuck", text)


def _opens_at(tx: Tx, snapshot: Snapshot, run: Run, now: Instant) -> Instant | None:
    """When the run's next delivery may go; None when nothing waits, or waits for a person."""
    account_id, policy = snapshot.restored.account.id, snapshot.policy
    due = tx.path.due(account_id, run.id, NEVER, 1)
    if not due and run.pooled:
        due = tx.path.pooled(run.id, NEVER, 1)
    if not due:
        return None
    queue = RunQueue(run, account_id, policy, journal=None)
    if policy.per_recipient is not None:
        since_at = now - policy.per_recipient.per_us
        queue.contacted = contacted(tx, due, since_at, now)
    ask = acquainted(tx, snapshot, due[0], queue.ask(due[0], queue.content_of(due[0])))
    verdict = Pacer(policy, snapshot.standing).verdict(now, snapshot.usage(), ask)
    if isinstance(verdict, Wait):
        return verdict.until_at
    if isinstance(verdict, Refuse):
        # What will only be skipped may wait for whatever wakes the lane next, if anything does.
        return snapshot.row.wake_at or now
    return now


def attempts_of(rows: Iterable[LedgerRow]) -> Iterator[Attempt]:
    """The ledger's rows put together: those of one attempt share the instant of its intent."""
    held: dict[tuple[int, int, int], dict[str, LedgerRow]] = {}
    at: Instant | None = None
    for row in rows:
        if row.intent_at != at:
            yield from _complete(held)
            held, at = {}, row.intent_at
        held.setdefault((row.delivery_id, row.part, row.attempt), {})[row.kind] = row
    yield from _complete(held)


def _complete(held: dict[tuple[int, int, int], dict[str, LedgerRow]]) -> Iterable[Attempt]:
    """Those of one instant, in the order of their calls."""
    found = [
        Attempt(kinds["intent"], kinds.get("outcome"), kinds.get("resolution"))
        for kinds in held.values()
        if "intent" in kinds
    ]
    if len(found) > 1:
        found.sort(key=lambda attempt: attempt.happened_at or attempt.intent.at)
    return found


@dataclass(slots=True)
class _Caps:
    """Slots taken in one period, with those that will be given back or made known, and when."""

    used: dict[tuple[Instant, str], int] = field(default_factory=dict)
    later: list[tuple[Instant, Instant, str, int]] = field(default_factory=list)

    def take(self, period_at: Instant, row: LedgerRow) -> int:
        while self.later and self.later[0][0] <= row.at:
            _, period, action, change = heapq.heappop(self.later)
            self.used[period, action] = self.used.get((period, action), 0) + change
        self.used = {key: n for key, n in self.used.items() if key[0] >= period_at}
        self.used[period_at, row.action] = self.used.get((period_at, row.action), 0) + row.slots
        return self.used[period_at, row.action]

    def give_back(self, period_at: Instant, row: LedgerRow | None) -> None:
        if row is not None and row.slots < 0:
            heapq.heappush(self.later, (row.at, period_at, row.action, -1))

    def learn(self, period_at: Instant, told: LedgerRow) -> None:
        """Of a message that others have sent: nobody could count it before it was told."""
        heapq.heappush(self.later, (told.at, period_at, told.action, 1))


class _Judge:
    """One account's ledger, judged in order."""

    def __init__(self, tx: Tx, account: Account) -> None:
        self._tx = tx
        self._account = account
        self._policies: dict[int, Policy] = {}
        self._runs: dict[int, Run] = {}
        self._found: list[Violation] = []
        self._days, self._weeks = _Caps(), _Caps()
        self._tat_at: Instant = 0
        self._last_paced: tuple[Instant, Policy] | None = None
        self._generation = (0, 0)
        self._started: OrderedDict[int, tuple[int, int]] = OrderedDict()
        self._parts: OrderedDict[int, int] = OrderedDict()

    def judge(self, since_at: Instant = 0) -> list[Violation]:
        for attempt in attempts_of(self._tx.ledger.walk(self._account.id, since_at)):
            if attempt.intent.code == IMPORTED:
                self._learn(attempt)
                continue
            policy = self._policy(attempt.intent.policy_id)
            starts = self._starts(attempt)
            self._judge_caps(attempt, policy)
            self._judge_owner(attempt)
            self._judge_order(attempt)
            happened_at = attempt.happened_at
            if happened_at is not None:
                self._judge_rate(attempt, policy, happened_at)
                if starts and not attempt.reply:
                    self._judge_spacing(attempt, policy, happened_at)
                    self._judge_hours(attempt, policy, happened_at)
                if not attempt.reply:
                    self._last_paced = (happened_at, policy)
        return self._found

    def _learn(self, attempt: Attempt) -> None:
        """What others have sent takes up a cap, and was otherwise under no limit of ours."""
        zone, at = policy_of(self._account).day_zone, attempt.intent.at
        if attempt.outcome is not None:
            self._days.learn(day_start_of(at, zone), attempt.outcome)
            self._weeks.learn(week_start(at, zone), attempt.outcome)

    def _policy(self, policy_id: int) -> Policy:
        if policy_id not in self._policies:
            body = self._tx.policies.body(policy_id)
            self._policies[policy_id] = Policy.from_mapping(body, where=self._account.name)
        return self._policies[policy_id]

    def _starts(self, attempt: Attempt) -> bool:
        """Whether this is the first part sent in its attempt; later parts only follow on."""
        row = attempt.intent
        known_attempt, _ = self._started.get(row.delivery_id, (0, 0))
        if known_attempt == row.attempt:
            return False
        _remember(self._started, row.delivery_id, (row.attempt, row.policy_id))
        return True

    def _judge_order(self, attempt: Attempt) -> None:
        """A part goes only after the one before it was accepted, or may have been."""
        row, outcome = attempt.intent, attempt.outcome
        before = self._parts.get(row.delivery_id, 0)
        if row.part > before and len(self._parts) < REMEMBERED_STARTS:
            self._blame("never too close", f"{attempt.text()} before part {row.part - 1} was sent")
        if outcome is None or outcome.slots == 0:
            _remember(self._parts, row.delivery_id, max(before, row.part + 1))

    def _judge_rate(self, attempt: Attempt, policy: Policy, at: Instant) -> None:
        rate = policy.rate
        if rate is None:
            return
        if at < self._tat_at - (rate.burst - 1) * rate.interval_us:
            self._blame("never over", f"{attempt.text()} at {iso(at)} exceeds {rate}")
        self._tat_at = max(self._tat_at, at) + rate.interval_us

    def _judge_caps(self, attempt: Attempt, policy: Policy) -> None:
        row, zone = attempt.intent, policy.day_zone
        # A delivery that had room for all its parts when it started may send them, although the
        # cap was lowered in between.
        begun = self._policy(self._started[row.delivery_id][1])
        daily = [self._daily_cap(attempt, each) for each in (policy, begun)]
        weekly = [each.weekly.get(row.action) for each in (policy, begun)]
        periods = (
            (self._days, day_start_of(row.at, zone), daily, "a day", "daily"),
            (self._weeks, week_start(row.at, zone), weekly, "a week", "weekly"),
        )
        for caps, period_at, allowed, name, rule in periods:
            used = caps.take(period_at, row)
            cap = None if None in allowed else max(each for each in allowed if each is not None)
            caps.give_back(period_at, attempt.outcome)
            caps.give_back(period_at, attempt.resolution)
            if cap is not None and used > cap:
                text = f"{attempt.text()} is number {used} of {cap} {row.action}s {name}"
                offence = Offence(rule, row.at, zone, row.action, used, cap)
                self._blame("never over", text, offence)

    def _daily_cap(self, attempt: Attempt, policy: Policy) -> int | None:
        row, zone = attempt.intent, policy.day_zone
        first_day = day_of(self._account.warm_since_at, zone)
        return policy.cap_on(row.action, (day_of(row.at, zone) - first_day).days)

    def _judge_spacing(self, attempt: Attempt, policy: Policy, at: Instant) -> None:
        if self._last_paced is None:
            return
        last_at, last_policy = self._last_paced
        least_us = min(policy.least_gap_us, last_policy.least_gap_us)
        if least_us and at - last_at < least_us:
            text = f"{attempt.text()} only {(at - last_at) / SECOND:.3f} s after the last"
            offence = Offence("gap", at, policy.day_zone, attempt.intent.action)
            self._blame("never too close", text, offence)

    def _judge_hours(self, attempt: Attempt, policy: Policy, at: Instant) -> None:
        zone, action = policy.day_zone, attempt.intent.action
        if policy.hours is not None and not policy.hours.is_open(at):
            text = f"{attempt.text()} at {iso(at)} ({policy.hours})"
            self._blame("never out of hours", text, Offence("hours", at, zone, action))
        run = self._run(attempt.intent.run_id)
        closed = run.closes_at is not None and at >= run.closes_at
        early = run.opens_at is not None and at < run.opens_at
        outside = run.window is not None and not Hours.parse(run.window).is_open(at)
        if closed or early or outside:
            text = f"{attempt.text()} at {iso(at)} outside its window"
            self._blame("never out of hours", text, Offence("window", at, zone, action))

    def _run(self, run_id: int) -> Run:
        if run_id not in self._runs:
            self._runs[run_id] = self._tx.runs.get(run_id)
        return self._runs[run_id]

    def _judge_owner(self, attempt: Attempt) -> None:
        generation, since_at = self._generation
        row = attempt.intent
        if row.generation > generation:
            self._generation = (row.generation, row.at)
        elif row.generation < generation and row.at > since_at + CLOCK_SKEW_US:
            text = f"{attempt.text()} by owner {row.generation} after {generation} took over"
            self._blame("never by two", text)

    def _blame(self, invariant: str, detail: str, offence: Offence | None = None) -> None:
        self._found.append(Violation(invariant, f"{self._account.name}: {detail}", offence))


def _remember(known: OrderedDict[int, T], delivery_id: int, value: T) -> None:
    known[delivery_id] = value
    known.move_to_end(delivery_id)
    if len(known) > REMEMBERED_STARTS:
        known.popitem(last=False)
