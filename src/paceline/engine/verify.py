"""``verify``: the invariants, judged from what is stored and nothing else.

Walks every account's ledger in the order of its intents, with the policy each was made under, and
recounts what the counters claim. It shares the policy's meaning with the pacer but none of its
code paths: where the pacer asks when a gate opens, this asks whether what happened was allowed.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from paceline.core.calendar import day_start_of, week_start
from paceline.core.hours import Hours
from paceline.core.instants import SECOND, Instant, iso
from paceline.core.model import REPLY
from paceline.core.outcome import OutcomeKind
from paceline.core.policy import Policy
from paceline.core.states import AccountState, RunState
from paceline.engine.ports import Account, LedgerRow, Run, Tx

CLOCK_SKEW_US = 15 * SECOND
"""Processes' clocks may differ; an old owner's intent is only damning well after the takeover."""

REMEMBERED_STARTS = 10_000


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: str
    detail: str


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


def verify(tx: Tx, now: Instant) -> list[Violation]:
    """Every violation of the invariants in the whole database."""
    found = [
        Violation("never twice", f"delivery {delivery} part {part} was accepted {times} times")
        for delivery, part, times in tx.audit.accepted_twice()
    ]
    found += [Violation("never lost", text) for text in tx.audit.recount()]
    found += [Violation("never lost", text) for text in tx.audit.misplaced()]
    found += [
        Violation(
            "never to the suppressed",
            f"delivery {delivery}: intent {iso(at)}, suppressed {iso(since_at)}",
        )
        for delivery, at, since_at in tx.audit.suppressed_after()
    ]
    for account in tx.accounts.list(with_removed=True):
        found += _Judge(tx, account).judge()
        found += _forgotten(tx, account)
    return found


def _forgotten(tx: Tx, account: Account) -> Iterator[Violation]:
    """Never stuck: a lane with work must be owned, or have a time to wake."""
    lane = tx.lanes.get(account.id)
    sending = account.state in (AccountState.ACTIVE, AccountState.LIMIT_REACHED)
    if lane.owner is not None or lane.wake_at is not None or not sending:
        return
    restored = tx.path.restore(account.id)
    if restored is None or restored.stopped:
        return
    for run in restored.runs:
        due_at = tx.path.next_due_at(account.id, run.id)
        if run.state is RunState.RUNNING and due_at is not None:
            text = f"{account.name} has work due {iso(due_at)} and nobody will wake its lane"
            yield Violation("never stuck", text)


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


def _complete(held: dict[tuple[int, int, int], dict[str, LedgerRow]]) -> Iterator[Attempt]:
    for kinds in held.values():
        if "intent" in kinds:
            yield Attempt(kinds["intent"], kinds.get("outcome"), kinds.get("resolution"))


@dataclass(slots=True)
class _Caps:
    """Slots taken in one period, with those that will be given back and when."""

    used: dict[tuple[Instant, str], int] = field(default_factory=dict)
    returning: list[tuple[Instant, Instant, str]] = field(default_factory=list)

    def take(self, period_at: Instant, row: LedgerRow) -> int:
        while self.returning and self.returning[0][0] <= row.at:
            _, period, action = heapq.heappop(self.returning)
            self.used[period, action] = self.used.get((period, action), 0) - 1
        self.used = {key: n for key, n in self.used.items() if key[0] >= period_at}
        self.used[period_at, row.action] = self.used.get((period_at, row.action), 0) + row.slots
        return self.used[period_at, row.action]

    def give_back(self, period_at: Instant, row: LedgerRow | None) -> None:
        if row is not None and row.slots < 0:
            heapq.heappush(self.returning, (row.at, period_at, row.action))


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
        self._started: OrderedDict[int, int] = OrderedDict()

    def judge(self) -> list[Violation]:
        for attempt in attempts_of(self._tx.ledger.walk(self._account.id)):
            policy = self._policy(attempt.intent.policy_id)
            self._judge_caps(attempt, policy)
            self._judge_owner(attempt)
            starts = self._starts(attempt)
            happened_at = attempt.happened_at
            if happened_at is not None:
                self._judge_rate(attempt, policy, happened_at)
                if starts and not attempt.reply:
                    self._judge_spacing(attempt, policy, happened_at)
                    self._judge_hours(attempt, policy, happened_at)
                if not attempt.reply:
                    self._last_paced = (happened_at, policy)
        return self._found

    def _policy(self, policy_id: int) -> Policy:
        if policy_id not in self._policies:
            body = self._tx.policies.body(policy_id)
            self._policies[policy_id] = Policy.from_mapping(body, where=self._account.name)
        return self._policies[policy_id]

    def _starts(self, attempt: Attempt) -> bool:
        """Whether this is the first part sent in its attempt; later parts only follow on."""
        row = attempt.intent
        starts = self._started.get(row.delivery_id) != row.attempt
        self._started[row.delivery_id] = row.attempt
        self._started.move_to_end(row.delivery_id)
        if len(self._started) > REMEMBERED_STARTS:
            self._started.popitem(last=False)
        return starts

    def _judge_rate(self, attempt: Attempt, policy: Policy, at: Instant) -> None:
        rate = policy.rate
        if rate is None:
            return
        if at < self._tat_at - (rate.burst - 1) * rate.interval_us:
            self._blame("never over", f"{attempt.text()} at {iso(at)} exceeds {rate}")
        self._tat_at = max(self._tat_at, at) + rate.interval_us

    def _judge_caps(self, attempt: Attempt, policy: Policy) -> None:
        row, zone = attempt.intent, policy.day_zone
        periods = (
            (self._days, day_start_of(row.at, zone), policy.daily, "a day"),
            (self._weeks, week_start(row.at, zone), policy.weekly, "a week"),
        )
        for caps, period_at, limits, name in periods:
            used, cap = caps.take(period_at, row), limits.get(row.action)
            caps.give_back(period_at, attempt.outcome)
            caps.give_back(period_at, attempt.resolution)
            if cap is not None and used > cap:
                text = f"{attempt.text()} is number {used} of {cap} {row.action}s {name}"
                self._blame("never over", text)

    def _judge_spacing(self, attempt: Attempt, policy: Policy, at: Instant) -> None:
        if self._last_paced is None:
            return
        last_at, last_policy = self._last_paced
        least_us = min(_least_gap_us(policy), _least_gap_us(last_policy))
        if at - last_at < least_us:
            gap_s = (at - last_at) / SECOND
            self._blame("never too close", f"{attempt.text()} only {gap_s:.3f} s after the last")

    def _judge_hours(self, attempt: Attempt, policy: Policy, at: Instant) -> None:
        if policy.hours is not None and not policy.hours.is_open(at):
            self._blame("never out of hours", f"{attempt.text()} at {iso(at)} ({policy.hours})")
        run = self._run(attempt.intent.run_id)
        closed = run.closes_at is not None and at >= run.closes_at
        early = run.opens_at is not None and at < run.opens_at
        outside = run.window is not None and not Hours.parse(run.window).is_open(at)
        if closed or early or outside:
            self._blame("never out of hours", f"{attempt.text()} at {iso(at)} outside its window")

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

    def _blame(self, invariant: str, detail: str) -> None:
        self._found.append(Violation(invariant, f"{self._account.name}: {detail}"))


def _least_gap_us(policy: Policy) -> int:
    spacing_us = policy.spacing.low_us if policy.spacing is not None else 0
    return max(spacing_us, policy.min_gap_us)
