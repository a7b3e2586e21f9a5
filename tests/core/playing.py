"""A lane played in virtual time, as the engine's own lane does it but without engine or store.

It asks the pacer, spends, calls an imaginary provider whose answers are drawn, and settles. What it
did is kept for the naive judge. Also the random rules it is played by.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from hypothesis import strategies as st

from paceline.core import usage as usages
from paceline.core.calendar import day_start_of, week_start
from paceline.core.health import window_size
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Ask, Go, Refuse, Standing, Verdict
from paceline.core.outcome import COUNTS_AS_FAILED, COUNTS_AS_SENT, Outcome, OutcomeKind
from paceline.core.pacer import Pacer
from paceline.core.policy import Policy
from paceline.core.recounting import recounted
from paceline.core.retry import consequence
from paceline.core.usage import Usage
from paceline.core.week import print_week
from tests.core import values
from tests.core.naive import Rules, Sent, Settled

K = OutcomeKind
KINDS = [K.ACCEPTED] * 14 + [K.REJECTED, K.BOUNCED, K.TRANSIENT, K.TRANSIENT, K.UNKNOWN]
KINDS += [K.THROTTLED, K.UNAVAILABLE]


def policy_of(rules: Rules, **further: Any) -> Policy:
    """The rules as people would write them."""
    text: dict[str, Any] = {"zone": rules.zone, **further}
    if rules.rate is not None:
        count, per_us, burst = rules.rate
        text["rate"] = f"{count}/{per_us}us burst {burst}"
    if rules.high_us:
        text["spacing"] = f"{rules.low_us}us..{rules.high_us}us"
    if rules.min_gap_us:
        text["min_gap"] = f"{rules.min_gap_us}us"
    if rules.batch is not None:
        text["batch"] = f"{rules.batch[0]} then {rules.batch[1]}us"
    if rules.week is not None:
        text["hours"] = print_week(rules.week)
    if rules.blackout:
        text["blackout"] = sorted(day.isoformat() for day in rules.blackout)
    if rules.warmup is not None:
        start, percent, limit = rules.warmup
        text["warmup"] = f"{start} +{percent}%/day to {limit}"
    if rules.adaptive is not None:
        percent, low_us, high_us = rules.adaptive
        between = f"{low_us}us..{high_us}us"
        text["adaptive"] = {"above": f"{percent}%", "slow_by": 1.5, "between": between}
    return Policy.from_mapping({**text, "daily": rules.daily, "weekly": rules.weekly})


@dataclass
class Letter:
    """One delivery that waits to be sent."""

    due_at: int
    action: str = "message"
    parts: int = 1
    reply: bool = False
    run: int = 1
    done: int = 0
    retries: int = 0

    def ask(self) -> Ask:
        return Ask(
            action=self.action,
            parts=self.parts - self.done,
            run_id=self.run,
            reply=self.reply,
            not_before_at=self.due_at,
        )


@dataclass
class Flight:
    letter: Letter
    sent: Sent | None
    intent_at: int
    lands_at: int | None
    outcome: Outcome
    next_part_at: int | None = None

    @property
    def unsent(self) -> int:
        ahead = self.letter.parts - self.letter.done
        return ahead if self.next_part_at is not None else ahead - 1


@dataclass
class Player:
    """One lane, its letters, and everything it has done."""

    rules: Rules
    policy: Policy
    now: int
    letters: list[Letter]
    rng: random.Random
    kinds: list[OutcomeKind] = field(default_factory=lambda: list(KINDS))
    latency_us: int = 2 * SECOND
    usage: Usage = field(default_factory=Usage)
    sends: list[Sent] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)
    holds: list[tuple[int, int]] = field(default_factory=list)
    trace: list[tuple[int, Verdict]] = field(default_factory=list)
    ledger: list[tuple[int, str, int]] = field(default_factory=list)
    flights: list[Flight] = field(default_factory=list)
    refused: int = 0

    def __post_init__(self) -> None:
        self.pacer = Pacer(self.policy, Standing(warm_since_at=self.rules.warm_since_at))

    def play(self, steps: int = 2_000, between: Callable[["Player"], None] | None = None) -> None:
        """Until nothing is left to do, or no passing of time will help."""
        for _ in range(steps):
            wake_at = self._step()
            if wake_at is None:
                return
            assert wake_at >= self.now
            self.now = wake_at
            if between is not None:
                between(self)

    def restart(self) -> None:
        """Forget everything but the checkpoint and the ledger, as ``engine/memory.py`` does."""
        zone = self.policy.day_zone
        day_at, week_at = day_start_of(self.now, zone), week_start(self.now, zone)
        self.usage = recounted(
            usages.decode(json.loads(json.dumps(usages.encode(self.usage)))),
            day_at=day_at,
            day=self._counts(day_at),
            week_at=week_at,
            week=self._counts(week_at),
        )

    def _counts(self, since_at: int) -> Mapping[str, int]:
        counts: Counter[str] = Counter()
        for intent_at, action, slots in self.ledger:
            if intent_at >= since_at:
                counts[action] += slots
        return dict(counts)

    def _step(self) -> int | None:
        for flight in sorted(self.flights, key=lambda f: f.lands_at or 0):
            if flight.lands_at is not None and flight.lands_at <= self.now:
                self._land(flight)
        wakes = [f.lands_at for f in self.flights if f.lands_at is not None]
        for flight in self.flights:
            if flight.next_part_at is not None:
                may_at = max(flight.next_part_at, self.pacer.token_at(self.now, self.usage))
                if may_at <= self.now:
                    self._send_part(flight)
                    return self.now
                wakes.append(may_at)
        if len(self.flights) < self.policy.concurrency:
            wake_at = self._start_one()
            if wake_at == self.now:
                return wake_at
            wakes += [] if wake_at is None else [wake_at]
        return min(wakes, default=None)

    def _start_one(self) -> int | None:
        """Start the first letter that may go; else the earliest instant at which one may."""
        heads: dict[tuple[bool, int, str], Letter] = {}
        for letter in sorted(self.letters, key=lambda letter: (not letter.reply, letter.due_at)):
            heads.setdefault((not letter.reply, letter.run, letter.action), letter)
        wakes = []
        unsent = sum(flight.unsent for flight in self.flights)
        for letter in heads.values():
            ask = letter.ask()
            ask = ask._replace(parts=ask.parts + unsent) if unsent else ask
            verdict = self.pacer.verdict(self.now, self.usage, ask)
            self.trace.append((self.now, verdict))
            if isinstance(verdict, Go):
                self.letters.remove(letter)
                self._start(letter)
                return self.now
            if isinstance(verdict, Refuse):
                self.letters.remove(letter)
                self.refused += 1
                return self.now
            if verdict.until_at is not None:
                assert verdict.until_at > self.now
                wakes.append(verdict.until_at)
        return min(wakes, default=None)

    def _start(self, letter: Letter) -> None:
        asked_at, ask = self.now, letter.ask()
        self.now += self.rng.randrange(self.latency_us // 4 + 1)
        self.usage = usages.spend(self.usage, self.policy, ask, self.now, self.rng)
        self._call(Flight(letter, None, self.now, None, Outcome(K.WITHDRAWN)), asked_at, True)

    def _send_part(self, flight: Flight) -> None:
        asked_at = self.now
        self.now += self.rng.randrange(self.latency_us // 4 + 1)
        self.usage = usages.spend_part(self.usage, self.policy, flight.letter.ask(), self.now)
        self.flights.remove(flight)
        self._call(Flight(flight.letter, None, self.now, None, flight.outcome), asked_at, False)

    def _call(self, flight: Flight, asked_at: int, starts: bool) -> None:
        """The commit takes a while; then closing time is looked at once more, as a sender does.

        Where nothing takes any time the verdict alone must do, so nobody looks again.
        """
        letter, policy = flight.letter, self.policy
        self.ledger.append((flight.intent_at, letter.ask().counted_as, 1))
        self.flights.append(flight)
        self.now += self.rng.randrange(self.latency_us // 4 + 1)
        unlooked = not self.latency_us or policy.hours is None
        open_now = unlooked or policy.hours.is_open(self.now)
        if starts and not letter.reply and not open_now:
            flight.outcome, flight.lands_at = Outcome(K.WITHDRAWN), self.now
            return
        self.usage = usages.started(self.usage, self.now, policy, letter.reply)
        flight.sent = Sent(
            asked_at=asked_at,
            intent_at=flight.intent_at,
            at=self.now,
            action=letter.ask().counted_as,
            reply=letter.reply,
            starts=starts,
            run=letter.run,
            drawn_us=self.usage.gap_us,
        )
        self.sends.append(flight.sent)
        after_us = self.rng.choice([None, 5 * SECOND, 10 * MINUTE])
        flight.outcome = Outcome(self.rng.choice(self.kinds), retry_after_us=after_us)
        flight.lands_at = self.now + self.rng.randrange(self.latency_us + 1)

    def _land(self, flight: Flight) -> None:
        letter, outcome, ask, now = flight.letter, flight.outcome, flight.letter.ask(), self.now
        result = consequence(
            outcome,
            retries=letter.retries,
            setbacks=self.usage.setbacks,
            policy=self.policy,
            now=now,
        )
        self.usage = usages.settle(
            self.usage,
            ask,
            outcome,
            flight.intent_at,
            letter.run,
            limit=window_size(self.policy),
        )
        if result.hold_until_at is not None:
            at = now if result.slows else None
            self.usage = usages.hold(self.usage, result.hold_until_at, "held", at)
            self.holds.append((len(self.sends), result.hold_until_at))
        if outcome.kind in COUNTS_AS_SENT | COUNTS_AS_FAILED:
            failed = outcome.kind in COUNTS_AS_FAILED
            self.settled.append(Settled(len(self.sends), letter.run, failed))
        if outcome.refused:
            self.ledger.append((flight.intent_at, ask.counted_as, -1))
            if flight.sent is not None:
                flight.sent.refused_after = len(self.sends)
        if result.event == "accept" and letter.done + 1 < letter.parts:
            letter.done += 1
            flight.lands_at = None
            flight.next_part_at = now + self.policy.part_gap.draw(self.rng)
            return
        self.flights.remove(flight)
        if result.event == "retry" and letter.retries < 3:
            letter.retries += 1
            letter.due_at = result.due_at or now
            self.letters.append(letter)


# ---------------------------------------------------------------------- random rules

_intervals_us = st.sampled_from([SECOND, 7 * SECOND, MINUTE, 17 * MINUTE, HOUR, 5 * HOUR])
_lengths_us = st.builds(lambda us, n: us * n // 7 + n, _intervals_us, st.integers(1, 9))
_caps = st.dictionaries(st.sampled_from(["message", "email", "reply"]), st.integers(0, 9))
_rates = st.tuples(st.integers(1, 7), _lengths_us, st.integers(1, 4))
_batches = st.tuples(st.integers(1, 6), _lengths_us)
_warmups = st.builds(
    lambda start, percent, more: (start, percent, start + more),
    st.integers(1, 4),
    st.integers(1, 150),
    st.integers(0, 9),
)


def _sometimes(strategy: st.SearchStrategy[Any], otherwise: Any = None) -> st.SearchStrategy[Any]:
    return st.booleans().flatmap(lambda yes: strategy if yes else st.just(otherwise))


@st.composite
def rules_around_changes(draw: st.DrawFn) -> tuple[Rules, int]:
    """Any limits together, in a zone and days before an instant at which its clock changes."""
    zone, change = draw(st.sampled_from(values.CHANGES))
    start_at = values.instant_of(change) - draw(st.integers(0, 60)) * HOUR
    low_us, high_us = sorted(draw(_sometimes(st.tuples(_lengths_us, _lengths_us), (0, 0))))
    adaptive, min_gap_us = None, draw(_sometimes(_lengths_us, 0))
    if high_us and draw(st.booleans()):
        top_us = max(high_us, min_gap_us) * draw(st.integers(4, 8)) // 4
        adaptive = (draw(st.integers(0, 30)), low_us * draw(st.integers(1, 2)) // 2, top_us)
    rules = Rules(
        rate=draw(_sometimes(_rates)),
        low_us=low_us,
        high_us=high_us,
        min_gap_us=min_gap_us,
        batch=draw(_sometimes(_batches)),
        week=draw(_sometimes(values.weeks())),
        zone=zone,
        blackout=draw(_sometimes(_dates_near(change), frozenset())),
        daily=draw(_sometimes(_caps, {})),
        weekly=draw(_sometimes(_caps, {})),
        warmup=draw(_sometimes(_warmups)),
        warm_since_at=start_at - draw(st.integers(0, 5)) * DAY,
        adaptive=adaptive,
    )
    return rules, start_at


def _dates_near(change: date) -> st.SearchStrategy[frozenset[date]]:
    near = [date.fromordinal(change.toordinal() + n) for n in range(-2, 3)]
    return st.frozensets(st.sampled_from(near), max_size=2)


def letters_from(start_at: int, number: int, rng: random.Random, parts: int = 3) -> list[Letter]:
    """Campaign messages of two runs, replies among them, all arriving within three days."""
    return [
        Letter(
            due_at=start_at + rng.choice([0, 0, rng.randrange(3 * DAY)]),
            action=rng.choice(["message", "message", "email"]),
            parts=rng.choice([1, 1, rng.randint(1, parts)]),
            reply=rng.random() < 0.15,
            run=rng.randint(1, 2),
        )
        for _ in range(number)
    ]
