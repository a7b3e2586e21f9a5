"""A lane in virtual time: whose turn it is, when it may go, and what steps aside for whom.

It answers when to come back, as the engine's own lane does, and nothing here waits. ``chooser.py``
and ``agenda.py`` of the engine are what it must agree with; that it does is tested against the
simulator. Which lanes there are, and the order of time between them, is in ``plan.py``.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from typing import NamedTuple

from paceline.core import usage as usages
from paceline.core.durations import Chance
from paceline.core.instants import Instant
from paceline.core.model import Ask, Go, Refuse, Verdict, Wait
from paceline.core.outcome import accepted
from paceline.core.pacer import HORIZON, Pacer
from paceline.core.slots import Rank, Seat, Slot, Want
from paceline.core.virtual_line import SIGNAL, Line

CONCURRENCY = "concurrency"
"""What a delivery waits for while as many as may be under way are: no gate, but as good as one."""

_ACCEPTED = accepted("")


class _Choice(NamedTuple):
    """What a lane will do next, and when; without a delivery it only looks again."""

    at: Instant
    gate: str
    turn: _Turn | None = None
    want: Want | None = None


class _Turn:
    """A line as one lane sees it."""

    __slots__ = ("line", "rank", "served")

    def __init__(self, line: Line, served: int) -> None:
        self.line = line
        self.rank = line.queue.rank
        self.served = served


def _rank(turn: _Turn) -> tuple[Rank, int]:
    return turn.rank, turn.served


class _Flight:
    """A delivery of several parts that has started."""

    __slots__ = ("at", "bound_by", "gate", "left", "ready_at", "turn", "want")

    def __init__(self, want: Want, turn: _Turn, at: Instant, gate: str, bound_by: str) -> None:
        self.want = want
        self.turn = turn
        self.at = at
        self.gate = gate
        self.bound_by = bound_by
        self.left = want.ask.parts - 1
        self.ready_at = at


class Lane:
    """One account in virtual time."""

    __slots__ = (
        "_asked",
        "_awaited",
        "_bound_by",
        "_choice",
        "_flights",
        "_frequent",
        "_latency_us",
        "_nobody_new_until_at",
        "_pacer",
        "_policy",
        "_rng",
        "_seat",
        "_since_at",
        "_slots",
        "_started",
        "_turn",
        "_turns",
        "_usage",
        "_waited_us",
        "_written",
    )

    def __init__(
        self,
        seat: Seat,
        lines: Sequence[Line],
        *,
        start_at: Instant,
        rng: Chance,
        latency_us: int,
        slots: list[Slot],
        written: dict[str, list[Instant]] | None,
    ) -> None:
        """What it starts is added to ``slots``; ``written`` is who was written to and when, by
        whichever lane, or will be by somebody else, and None where nobody asks."""
        self._seat = seat
        self._policy = seat.policy
        self._pacer = Pacer(seat.policy, seat.standing)
        self._usage = seat.usage
        self._rng = rng
        self._latency_us = latency_us
        self._slots = slots
        self._frequent = seat.policy.per_recipient is not None
        self._nobody_new_until_at = seat.usage.holds.newcomers_until_at
        self._written = written
        # As a lane remembers them: the error windows are in the order of the last turns.
        served = {run_id: turn for turn, run_id in enumerate(seat.usage.health, start=1)}
        self._turns = [_Turn(line, served.get(line.queue.run_id, 0)) for line in lines]
        self._turn = len(served)
        self._flights: list[_Flight] = []
        self._choice: _Choice | None = None
        self._asked: tuple[Ask, Verdict] | None = None
        self._since_at = start_at
        self._started = False
        self._awaited = ""
        self._waited_us: dict[str, int] = {}
        self._bound_by = ""

    def step(self, now: Instant) -> Instant | None:
        """Do the next thing that may be done now; answer when to come back."""
        flights = self._flights
        if flights:
            flights[:] = [flight for flight in flights if flight.left or flight.ready_at > now]
            if self._send_part(now):
                return now
        start_at = None
        if len(flights) < self._policy.concurrency:
            start_at = self._start(now)
        if not flights:
            return start_at
        wakes = [flight.ready_at for flight in flights if not flight.left]
        part_at = self._part_at(now)
        wakes += [at for at in (start_at, part_at) if at is not None]
        return max(now, min(wakes))

    def end(self) -> None:
        """Nothing is followed any further: what has started counts as sent."""
        for flight in self._flights:
            if flight.left:
                ready_at, gate, bound_by = flight.ready_at, flight.gate, flight.bound_by
                self._note(flight.want, flight.turn, flight.at, ready_at, gate, bound_by)

    # ------------------------------------------------------------------ further parts

    def _next_part(self) -> _Flight | None:
        waiting = [flight for flight in self._flights if flight.left]
        return min(waiting, key=lambda flight: flight.ready_at, default=None)

    def _part_at(self, now: Instant) -> Instant | None:
        flight = self._next_part()
        if flight is None:
            return None
        return max(flight.ready_at, self._pacer.token_at(now, self._usage))

    def _send_part(self, now: Instant) -> bool:
        part_at = self._part_at(now)
        if part_at is None or part_at > now:
            return False
        flight = self._next_part()
        assert flight is not None
        self._usage = usages.spend_part(self._usage, self._policy, flight.want.ask, now)
        flight.left -= 1
        self._sent(flight, now)
        return True

    def _sent(self, flight: _Flight, now: Instant) -> None:
        """A part has gone out: another follows, or the place is free when it has landed."""
        self._choice = None
        if flight.left:
            flight.ready_at = now + self._latency_us + self._policy.part_gap.draw(self._rng)
            return
        flight.ready_at = now + self._latency_us
        if not self._latency_us and flight in self._flights:
            self._flights.remove(flight)
        self._note(flight.want, flight.turn, flight.at, now, flight.gate, flight.bound_by)

    def _note(
        self, want: Want, turn: _Turn, at: Instant, done_at: Instant, gate: str, bound_by: str
    ) -> None:
        run_id, account_id = turn.line.queue.run_id, self._seat.account_id
        turn.line.sent(want.key, done_at, account_id)
        self._slots.append(Slot(run_id, want.key, account_id, at, done_at, gate, bound_by))

    # ------------------------------------------------------------------ starting

    def _start(self, now: Instant) -> Instant | None:
        """Start a delivery if one may go now; when the next may, as far as is known."""
        choice = self._as_chosen(now) or self._choose(now)
        if choice is not None and choice.at <= now:
            assert choice.turn is not None and choice.want is not None, "what waits comes later"
            self._take(choice.turn, choice.want, choice.gate, now)
            if len(self._flights) >= self._policy.concurrency:
                self._awaited = CONCURRENCY
                return None
            choice = self._choose(now)
        self._choice = choice
        if choice is None:
            return None
        self._awaited = choice.gate
        return choice.at

    def _as_chosen(self, now: Instant) -> _Choice | None:
        """What was chosen before, if that is what would be chosen now.

        Nothing was spent here since. Only a run that others share may have gone on meanwhile, or
        something of it has fallen due that goes ahead; what asks for the same is as good. Where it
        matters whom others have written to meanwhile, it is chosen anew.
        """
        choice = self._choice
        if choice is None or choice.at > now or choice.turn is None or choice.want is None:
            return None
        if self._frequent:
            return None
        first, want = self._first_of(choice.turn.line, now), choice.want
        if first is want:
            return choice
        same = first is not None and first.ask is want.ask and first.new_to == want.new_to
        return choice._replace(want=first) if same else None

    def _first_of(self, line: Line, now: Instant) -> Want | None:
        """While it may write to nobody new, it leaves strangers it shares to the others."""
        nobody_new = now < self._nobody_new_until_at
        return line.first(now, self._seat.account_id, nobody_new=nobody_new)

    def _take(self, turn: _Turn, want: Want, waited_for: str, now: Instant) -> None:
        turn.line.take(want)
        self._turn += 1
        turn.served = self._turn
        gate = self._attribute(waited_for or self._awaited, now)
        ask = want.ask
        self._usage = usages.spend(self._usage, self._policy, ask, now, self._rng)
        self._recover(ask, now)
        if self._written is not None:
            for name in (want.target, *want.also):
                insort(self._written.setdefault(name, []), now)
        if ask.parts <= 1 and not self._latency_us:
            self._choice = None
            self._note(want, turn, now, now, gate, self._bound_by)
            return
        flight = _Flight(want, turn, now, gate, self._bound_by)
        self._flights.append(flight)
        self._sent(flight, now)

    def _attribute(self, gate: str, now: Instant) -> str:
        """Who is to blame for the time since the last start; and for most of all the time.

        What the very first waits for says nothing about the pace. It counts until something does.
        """
        lost_us = now - self._since_at
        self._since_at = now
        if not lost_us:
            gate = ""
        if not self._started:
            self._started, self._bound_by = True, gate
        elif gate:
            waited_us = self._waited_us
            waited_us[gate] = waited_us.get(gate, 0) + lost_us
            if waited_us[gate] > waited_us.get(self._bound_by, 0):
                self._bound_by = gate
        return gate

    def _recover(self, ask: Ask, now: Instant) -> None:
        """While errors slow the account down, every message that is accepted makes up for one."""
        usage = self._usage
        if self._policy.adaptive is not None and usage.window_of(ask.run_id).failed:
            self._usage = usages.settle(usage, ask, _ACCEPTED, now, ask.run_id)

    # ------------------------------------------------------------------ choosing

    def _choose(self, now: Instant) -> _Choice | None:
        """As a lane does it: the first in turn that may go; else whoever may go first."""
        self._asked = None
        turns = self._turns
        if len(turns) > 1:
            turns.sort(key=_rank)
        best: _Choice | None = None
        look: _Choice | None = None
        for turn in turns:
            choice = self._serve(turn, now)
            if choice is None:
                continue
            if choice.want is None:
                look = choice if look is None or choice.at < look.at else look
            elif choice.at <= now:
                return choice
            elif best is None or choice.at < best.at:
                best = choice
        if best is None or (look is not None and look.at <= best.at):
            return look
        return best

    def _serve(self, turn: _Turn, now: Instant) -> _Choice | None:
        """When a run's next delivery may go from here; None if nothing of it ever may."""
        line = turn.line
        while (want := self._first_of(line, now)) is not None:
            ask = self._ask(want)
            verdict = self._verdict(now, ask)
            if isinstance(verdict, Go):
                return _Choice(now, "", turn, want)
            if isinstance(verdict, Refuse):
                if verdict.gate == HORIZON and line.is_anybodys(want):
                    # It can never go from here, and says nothing about the others of the pool.
                    line.held = Wait(None, verdict.gate, verdict.why)
                    return None
                line.give_up(want, verdict)
                continue
            until_at = verdict.until_at
            if until_at is None:
                line.held = verdict
                return None
            if self._pacer.waits_alone(now, self._usage, ask, verdict):
                line.step_aside(want, until_at, verdict.gate)
                continue
            gate = verdict.gate
            if self._frequent or until_at >= _ends_at(ask, until_at + 1):
                # By then it may have been written to, or its time may be over.
                return _Choice(until_at, gate)
            return _Choice(until_at, gate, turn, want)
        account_id, nobody_new = self._seat.account_id, now < self._nobody_new_until_at
        due = line.next_due(account_id, nobody_new=nobody_new)
        if nobody_new and line.passed_by(account_id):
            over = (self._nobody_new_until_at, SIGNAL)
            due = over if due is None else min(due, over)
        return None if due is None else _Choice(*due)

    def _verdict(self, now: Instant, ask: Ask) -> Verdict:
        """Runs that ask for the same at the same moment are told the same."""
        if self._asked is not None and _alike(self._asked[0], ask):
            return self._asked[1]
        verdict = self._pacer.verdict(now, self._usage, ask)
        if self._policy.adaptive is None and not self._usage.holds.runs:
            # Else a run may have a pace of its own, by its errors or by a signal.
            self._asked = (ask, verdict)
        return verdict

    def _ask(self, want: Want) -> Ask:
        """The delivery as the gates see it here, with room for what started ones need yet."""
        ask = want.ask
        if want.new_to and self._seat.account_id in want.new_to:
            ask = ask._replace(known=False)
        if self._frequent and self._written and (instants := self._written.get(want.target)):
            ask = ask._replace(contacted=(*ask.contacted, *instants))
        if self._flights and (unsent := sum(flight.left for flight in self._flights)):
            ask = ask._replace(parts=ask.parts + unsent)
        return ask


def _alike(one: Ask, other: Ask) -> bool:
    """Whether two deliveries that are due differ in nothing but their runs."""
    return one[:2] == other[:2] and one.reply == other.reply and one[5:] == other[5:]


def _ends_at(ask: Ask, default: Instant) -> Instant:
    """When the delivery is given up; ``default`` if never."""
    ends = [ask.expires_at, None if ask.reply else ask.closes_at]
    return min((end_at for end_at in ends if end_at is not None), default=default)
