"""What providers' answers ask for beyond their own message, as people have written it down.

The table of signals is read here once more, in the plainest way, from what operators wrote; the
engine is not asked what it made of it. Whether anybody kept to it is judged in ``signals.py``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from paceline.core.durations import parse_duration
from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.core.policy import Policy
from paceline.core.signals import DEFAULT_TABLE
from paceline.core.tables import Throttle
from paceline.engine.ports import LedgerRow
from paceline.providers.sandbox.effects import Effect
from paceline.sim.checks.alone import Alone, is_reread
from paceline.sim.checks.evidence import Evidence
from paceline.sim.checks.messages import UNDER_WAY_US
from paceline.sim.checks.time import day_of
from paceline.sim.chronicle import Page
from paceline.sim.witness import Seen

MAY_ASK = ("throttled", "unavailable", "exhausted", "banned")
"""Answers that may say themselves how long to wait."""
REFUSED = ("throttled", "unavailable", "exhausted", "banned", "rejected", "bounced", "transient")
"""Answers after which nobody has got anything."""
LONGEST_DOUBLED_US = 15 * MINUTE

Attempt = tuple[int, int, int]
"""Delivery, part, and the how-manieth try."""
Wanted = Mapping[str, Any]
"""A rule as people have written it."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One answer, what the table makes of it, and since which commit that is known."""

    page: int
    row: LedgerRow
    origin: Seen
    """The call that was answered so."""
    scope: str
    lasts_us: int | None
    """None: until somebody lets it go on."""
    ramp: Throttle | None
    longest_us: int = 0
    """Where it doubles with every setback, how long it can become."""

    @property
    def says(self) -> str:
        lasts = "until it is resumed" if self.lasts_us is None else f"for {self.lasts_us} us"
        answer = f"{self.origin.key} had been answered {self.row.outcome}"
        return f"{answer} at {self.row.at}: {self.scope} waits {lasts}"


@dataclass
class Records:
    """What is known of every attempt, and since which commit."""

    evidence: Evidence
    intended: dict[Attempt, int] = field(default_factory=dict)
    """The commit that brought its intent."""
    settled: dict[Attempt, tuple[int, LedgerRow]] = field(default_factory=dict)
    signals: list[Signal] = field(default_factory=list)
    unclear: set[int] = field(default_factory=set)
    """Accounts of which some answer was under way when the table was changed."""

    def __post_init__(self) -> None:
        self._names = {name: number for number, name in self.evidence.accounts.items()}
        self._alone = Alone()
        for number, page in enumerate(self.evidence.pages):
            for row in page.rows:
                attempt = (row.delivery_id, row.part, row.attempt)
                if row.kind == "intent":
                    self.intended[attempt] = number
                elif row.kind == "outcome":
                    self.settled[attempt] = (number, row)
                    signal = self._signal(number, page, row)
                    if signal is not None:
                        self.signals.append(signal)

    @cached_property
    def _origins(self) -> dict[Attempt, Seen]:
        return {attempt_of(call): call for call in self.evidence.calls if call.facts is not None}

    @cached_property
    def _effects(self) -> dict[str, list[Effect]]:
        found: dict[str, list[Effect]] = defaultdict(list)
        for effect in self.evidence.effects:
            found[effect.key].append(effect)
        return found

    def _signal(self, number: int, page: Page, row: LedgerRow) -> Signal | None:
        origin = self._origins.get((row.delivery_id, row.part, row.attempt))
        policy = self.evidence.policies.get(row.policy_id)
        if origin is None or policy is None:
            return None
        answers = (one for one in self._effects[origin.key] if one.called_at >= origin.at)
        effect = next(answers, None)
        own = self._alone.take_in(row, effect)
        if effect is None or effect.accepted or own:
            return None
        if effect.answer != row.outcome and not is_reread(row, effect):
            return None
        rules = self._rules(origin, effect, page.at)
        if any(rule != rules[0] for rule in rules):
            self.unclear.add(row.account_id)
            return None
        rule = rules[0]
        if rule is None or rule["for"] == "none":
            return None
        lasts_us = _lasts_us(rule, effect, row, policy)
        if lasts_us is not None and row.generation < page.accounts[row.account_id][1]:
            return None
        ramp = None if lasts_us is None else _ramp(rule.get("ramp", "none"), policy)
        longest_us = lasts_us or 0
        if "doubling" in rule["for"]:
            longest_us = max(longest_us, LONGEST_DOUBLED_US)
        return Signal(number, row, origin, rule["scope"], lasts_us, ramp, longest_us)

    def _rules(self, origin: Seen, effect: Effect, settled_at: Instant) -> list[Wanted | None]:
        """What the table said about an answer while it was under way: once, unless it changed."""
        asked_at = origin.at - UNDER_WAY_US
        tables = [table for table in self.evidence.tables if table.at <= settled_at]
        before = [table for table in tables if table.at <= asked_at][-1:]
        return [
            _rule_of({**DEFAULT_TABLE, **table.own}, effect)
            for table in (*before, *(table for table in tables if table.at > asked_at))
        ]

    def is_bound(self, call: Seen, signal: Signal) -> bool:
        """Whether a signal is about this call, and was known when it was decided."""
        facts, row = call.facts, signal.row
        if facts is None or self.intended.get(attempt_of(call), -1) < signal.page:
            return False
        if signal.lasts_us is None and self.stops_campaign(signal):
            return call.part == 0 and facts.run_id == row.run_id
        if self._names[call.account] != row.account_id:
            return False
        if signal.scope == "account" and signal.lasts_us is not None:
            return True
        if call.part > 0:  # what has started finishes
            return False
        if signal.lasts_us is None:
            return True
        if signal.scope == "campaign":
            return facts.run_id == row.run_id
        return not facts.reply and not self._is_known(call)

    def stops_campaign(self, signal: Signal) -> bool:
        """Whether a campaign waits for somebody, on all its accounts; single messages have none,
        so their account does."""
        return signal.scope == "campaign" and self.evidence.runs[signal.row.run_id].kind != "direct"

    def _is_known(self, call: Seen) -> bool:
        """Whether the account has written to this target, or may have, before this was decided."""
        decided = self.intended[attempt_of(call)]
        for earlier in self.evidence.by_account[call.account]:
            if earlier.at >= call.at:
                return False
            if earlier.target != call.target or earlier.facts is None:
                continue
            number, row = self.settled.get(attempt_of(earlier), (len(self.evidence.pages), None))
            if row is None or number > decided or row.outcome not in REFUSED:
                return True
        return False


def attempt_of(call: Seen) -> Attempt:
    assert call.facts is not None, "asked of calls of which something is written"
    return (call.delivery_id, call.part, call.facts.attempts)


# ---------------------------------------------------------------------- what the table says


def _rule_of(table: Mapping[str, Wanted], effect: Effect) -> Wanted | None:
    """The rule that says most exactly what it means: a code before a provider before an action
    before a kind."""
    fitting: list[tuple[tuple[bool, ...], Wanted]] = []
    for text, rule in table.items():
        provider, what, *action = text.split()
        by_code = what not in REFUSED
        code = what.removeprefix("code:")
        if provider not in ("*", "sandbox") or (action and action != [effect.action]):
            continue
        if (code if by_code else what) != (effect.code if by_code else effect.answer):
            continue
        fitting.append(((by_code, provider != "*", bool(action), not by_code), rule))
    return max(fitting, key=lambda entry: entry[0])[1] if fitting else None


def _lasts_us(rule: Wanted, effect: Effect, row: LedgerRow, policy: Policy) -> int | None:
    """How long at least; None until somebody lets it go on."""
    asked_us = effect.retry_after_us if effect.answer in MAY_ASK else None
    lasts = rule["for"]
    if lasts == "until resumed" and (asked_us is None or effect.answer != "banned"):
        return None
    if asked_us is not None:
        return max(SECOND, asked_us)
    if lasts == "day end":
        return _next_day_at(row.at, policy.day_zone) - row.at
    return parse_duration(lasts.removesuffix(" doubling"))


def _next_day_at(at: Instant, zone: str) -> Instant:
    today, ahead = day_of(at, zone), at - at % MINUTE
    while day_of(ahead + HOUR, zone) == today:
        ahead += HOUR
    while day_of(ahead, zone) == today:
        ahead += MINUTE
    return ahead


def _ramp(written: Any, policy: Policy) -> Throttle | None:
    if written == "none":
        return None
    return policy.throttle if written == "policy" else Throttle.from_mapping(written)


# ---------------------------------------------------------------------- in a row


def setbacks_of(evidence: Evidence) -> dict[int, list[tuple[int, int]]]:
    """By commit, which accounts were held back as a whole by it, and the how-manieth time in a row
    at least: each time after the hold before had been known, and with nothing accepted between."""
    records = Records(evidence)
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    rows: dict[int, int] = defaultdict(int)
    known: dict[int, int] = defaultdict(int)
    signals = {(s.row.delivery_id, s.row.part, s.row.attempt): s for s in records.signals}
    for number, page in enumerate(evidence.pages):
        settled = [row for row in page.rows if row.kind == "outcome"]
        if any(row.outcome == "accepted" for row in settled):
            for row in settled:
                rows[row.account_id] = 0
            continue
        for row in settled:
            attempt = (row.delivery_id, row.part, row.attempt)
            signal = signals.get(attempt)
            if signal is None or signal.scope != "account" or signal.lasts_us is None:
                continue
            account_id = row.account_id
            if row.outcome != "banned" and records.intended[attempt] >= known[account_id]:
                rows[account_id] += 1
                known[account_id] = number
                found[number].append((account_id, rows[account_id]))
    return found
