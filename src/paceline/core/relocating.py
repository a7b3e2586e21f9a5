"""Relocating: what can not go as it is planned is given the next slot at which it may.

Pure. Everything that offends nobody stays where it is, and what moves only ever moves to later.
What of a plan offends, and whom, is worked out in ``limits.py``; what a gate has just shut out, a
lane knows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from paceline.core.durations import Chance
from paceline.core.instants import DAY, SECOND, Instant, local_text
from paceline.core.limits import HORIZON_US, Board, Booked
from paceline.core.model import Ask
from paceline.core.pacer import HORIZON
from paceline.core.policy import Policy
from paceline.core.slots import Never, Seat

NEAREST_US = 2 * SECOND
"""A slot that is nearer to its own is none: a timetable leaves what moves so little where it is."""

KEEPS_ITS_OWN = "it was tried before or sent by hand, and keeps its own instant"


@dataclass(frozen=True, slots=True)
class Relocation:
    """Everything that has to move is in exactly one of the two."""

    slots: dict[int, Instant] = field(default_factory=dict)
    nevers: list[Never] = field(default_factory=list)
    """What has no legal slot, and why."""


def relocated(
    seat: Seat, booked: Iterable[Booked], rng: Chance, *, slack_us: int = 0
) -> Relocation:
    """The next legal slot of each that offends: hours and windows open, room in its day and week
    beside everything else that is booked, and a gap to both its neighbours."""
    board = Board(seat, booked, slack_us)
    search, found = Search(board, board.offending, rng), Relocation()
    for one in board.offending:
        if not one.movable:
            why = KEEPS_ITS_OWN
            found.nevers.append(Never(one.ask.run_id, one.key, board.offends[one.key], why))
            continue
        slot = search.slot_for(one)
        if isinstance(slot, Never):
            found.nevers.append(slot)
        else:
            found.slots[one.key] = slot
    return found


def rehoused(
    seat: Seat,
    booked: Iterable[Booked],
    homeless: Sequence[Booked],
    rng: Chance,
    *,
    slack_us: int = 0,
) -> Relocation:
    """The next legal slot of each that has lost its own, from the instant at which it is booked on:
    in the order given, and beside everything else that is booked."""
    search, found = Search(Board(seat, booked, slack_us), homeless, rng), Relocation()
    for one in homeless:
        slot = search.first_from(one)
        if isinstance(slot, Never):
            found.nevers.append(slot)
        else:
            found.slots[one.key] = slot
    return found


class Search:
    """Looks for slots, one after the other, each beside those that were found before."""

    def __init__(self, board: Board, moving: Sequence[Booked], rng: Chance) -> None:
        self._board = board
        self._policy = policy = board.seat.policy
        self._rng = rng
        self._interval_us = policy.rate.interval_us if policy.rate is not None else 0
        self._least_us = max(policy.least_gap_us, self._interval_us)
        self._longest_us = max((self._lasting_us(one.ask) for one in moving), default=0)
        self._paced = [(one.at, self._lasting_us(one.ask)) for one in board.paced]
        self._lines: dict[tuple[object, ...], Line] = {}
        usage = board.seat.usage
        gap_us = max(usage.gap_us, self._least_us)
        self._paced_at = 0 if usage.last_at is None else usage.last_at + gap_us

    def first_from(self, one: Booked) -> Instant | Never:
        """Of what takes no room anywhere yet: the first slot from where it is booked on."""
        slot = self.peek(one)
        if not isinstance(slot, Never):
            self.book(one, slot)
        return slot

    def peek(self, one: Booked) -> Instant | Never:
        """The same, without giving it that slot."""
        at = self._earliest(one.ask, one.at)
        return self._look(one, at, self._gap_us(), at + HORIZON_US, capped=True)

    def book(self, one: Booked, slot: Instant) -> None:
        """Give it the slot that was seen last, in which nobody has been put since."""
        line = self._line_of(one.ask, capped=True)
        line.given_at = max(line.given_at, slot)
        self.stay(one, slot)

    def stay(self, one: Booked, at: Instant) -> None:
        """Let it have its place then, whoever comes before or after."""
        self._board.room.take(self._board.place(at), one.ask.counted_as, one.ask.parts)
        if not one.ask.reply:
            self._add(at, self._lasting_us(one.ask))

    def has_room(self, one: Booked) -> bool:
        """Whether it may go at the very instant at which it is booked."""
        if self._earliest(one.ask, one.at) > one.at:
            return False
        found = self._walk(self._line_of(one.ask, capped=True), one, one.at, 0, one.at, capped=True)
        return found == one.at

    def slot_for(self, one: Booked) -> Instant | Never:
        """Of what offends: the next slot after its own."""
        room, ask, own = self._board.room, one.ask, self._board.place(one.at)
        gap_us, at = self._gap_us(), self._earliest(ask, one.at + NEAREST_US)
        rule, slot = self._board.offends[one.key], None
        if rule == "gap":
            # It has its place in its day already, and so its day has room for it.
            slot = self._find(one, at, gap_us, own.next_day_at - 1, capped=False)
            if isinstance(slot, Never):
                at = max(at, own.next_day_at)
                room.take(own, ask.counted_as, -ask.parts)
        if not isinstance(slot, Instant):
            slot = self._find(one, at, gap_us, at + HORIZON_US, capped=True)
            if not isinstance(slot, Never):
                room.take(self._board.place(slot), ask.counted_as, ask.parts)
            elif rule == "gap":
                room.take(own, ask.counted_as, ask.parts)
        if not isinstance(slot, Never) and not ask.reply:
            self._add(slot, self._lasting_us(ask))
        return slot

    def _gap_us(self) -> int:
        return max(self._policy.draw_gap_us(self._rng), self._interval_us)

    def _earliest(self, ask: Ask, at: Instant) -> Instant:
        at = max(at, ask.not_before_at, self._board.seat.usage.hold_until_at)
        return at if ask.reply else max(at, self._paced_at)

    def _find(
        self, one: Booked, at: Instant, gap_us: int, ends_at: Instant, *, capped: bool
    ) -> Instant | Never:
        """After the last slot that one of its like was given: they keep their order, and nobody is
        squeezed into the gap that was drawn between two of them, unless it is late for all else."""
        slot = self._look(one, at, gap_us, ends_at, capped=capped)
        if not isinstance(slot, Never):
            line = self._line_of(one.ask, capped)
            line.given_at = max(line.given_at, slot)
        return slot

    def _look(
        self, one: Booked, at: Instant, gap_us: int, ends_at: Instant, *, capped: bool
    ) -> Instant | Never:
        line = self._line_of(one.ask, capped)
        slot = self._walk(line, one, max(at, line.given_at), gap_us, ends_at, capped=capped)
        if isinstance(slot, Never) and at < line.given_at:
            slot = self._walk(line, one, at, gap_us, ends_at, capped=capped)
        return slot

    def _walk(
        self, line: Line, one: Booked, at: Instant, gap_us: int, ends_at: Instant, *, capped: bool
    ) -> Instant | Never:
        """Walks from what is shut to where it opens until nothing is. Each only ever leads on, and
        what is shut for one is written down for all that are like it."""
        board, ask = self._board, one.ask
        while at <= ends_at:
            at = line.free_from(at, gap_us)
            late = _too_late(ask, at, self._policy)
            if late is not None:
                return Never(ask.run_id, one.key, *late)
            opens_at = board.openings.next(at, ask)
            if opens_at is None:
                why = f"its hours are never open together within {HORIZON_US // DAY} days"
                return Never(ask.run_id, one.key, "hours", why)
            if opens_at > at:
                line.shut(self._closed_since(line, at, opens_at, ask), opens_at)
                at = opens_at
                continue
            place = board.place(at)
            shut = board.room.shut_by(place, ask.counted_as, ask.parts) if capped else None
            if shut is None:
                break
            at = place.next_day_at if shut == "daily" else place.next_week_at
            line.shut(place.day_at, at)
        if at <= ends_at:
            return at
        why = f"no room for it within {HORIZON_US // DAY} days"
        return Never(ask.run_id, one.key, board.offends.get(one.key, HORIZON), why)

    def _closed_since(self, line: Line, at: Instant, opens_at: Instant, ask: Ask) -> Instant:
        """Since when it has been closed at ``at``, or ``at`` if that is not known.

        Up to the closing hour there may be room that the drawn gap has led past.
        """
        openings, since_at = self._board.openings, line.free_before(at)
        if since_at is None:
            return at
        if openings.shut_by(since_at, ask) is None:
            since_at = openings.closes_at(since_at, ask)
        return since_at if since_at < at and openings.next(since_at, ask) == opens_at else at

    def _line_of(self, ask: Ask, capped: bool) -> Line:
        """The line of all that are open at the same hours and are counted the same."""
        counted = (ask.counted_as, ask.parts) if capped else ()
        shape = (id(ask.window), id(ask.recipient_hours), ask.opens_at, ask.reply, *counted)
        line = self._lines.get(shape)
        if line is None:
            least_us = 0 if ask.reply else self._least_us
            line = self._lines[shape] = Line(least_us, self._longest_us, keeps_gaps=not ask.reply)
            for at, lasting_us in self._paced:
                line.add(at, lasting_us)
        return line

    def _add(self, at: Instant, lasting_us: int) -> None:
        self._paced.append((at, lasting_us))
        for line in self._lines.values():
            line.add(at, lasting_us)

    def _lasting_us(self, ask: Ask) -> int:
        """How long its parts take after the first, at the most."""
        return (ask.parts - 1) * max(self._policy.part_gap.high_us, self._interval_us)


def _too_late(ask: Ask, at: Instant, policy: Policy) -> tuple[str, str] | None:
    zone = policy.day_zone
    if ask.expires_at is not None and at >= ask.expires_at:
        ends = f"it expires at {local_text(ask.expires_at, zone)}"
        return "expiry", f"{ends}, before its next legal slot"
    if ask.closes_at is not None and at >= ask.closes_at and not ask.reply:
        ends = f"its window closes at {local_text(ask.closes_at, zone)}"
        return "window", f"{ends}, before its next legal slot"
    return None


class Line:
    """Time as the stretches in which nothing may start: beside other sends, or because it is shut.

    Those that leave no room between them are one stretch, so that a free instant is found with one
    look however crowded the line is.
    """

    def __init__(self, least_us: int, longest_us: int, *, keeps_gaps: bool = True) -> None:
        """``longest_us`` is how long anything lasts that is to be put in."""
        self._least_us = least_us
        self._before_us = least_us + longest_us
        self._keeps_gaps = keeps_gaps and least_us > 0
        # A stretch is without its two ends: whatever starts there is far enough.
        self._starts: list[Instant] = []
        self._ends: list[Instant] = []
        self._sent: list[Instant] = []
        """When the last send of each stretch is over, from which a gap is reckoned."""
        self.given_at: Instant = 0
        """The last slot that was given here."""

    def add(self, at: Instant, lasting_us: int) -> None:
        """A send."""
        if self._keeps_gaps:
            done_at = at + lasting_us
            self._block(at - self._before_us, done_at + self._least_us, done_at)

    def shut(self, from_at: Instant, until_at: Instant) -> None:
        """Nothing may start then; at ``until_at`` it may."""
        self._block(from_at - 1, until_at, 0)

    def _block(self, start_at: Instant, end_at: Instant, sent_at: Instant) -> None:
        first = bisect_left(self._ends, start_at + 1)
        last = bisect_left(self._starts, end_at)
        if first < last:
            start_at = min(start_at, self._starts[first])
            end_at = max(end_at, self._ends[last - 1])
            sent_at = max(sent_at, *self._sent[first:last])
        self._starts[first:last] = [start_at]
        self._ends[first:last] = [end_at]
        self._sent[first:last] = [sent_at]

    def free_from(self, at: Instant, gap_us: int) -> Instant:
        """The first free instant from ``at`` on, with this gap to the send before it, or with what
        there is of it where the room ends before."""
        before = bisect_left(self._starts, at) - 1
        if before < 0:
            return at
        at = max(at, self._ends[before])
        if not self._keeps_gaps:
            return at
        wished_at = self._sent[before] + gap_us
        if before + 1 < len(self._starts):
            wished_at = min(wished_at, self._starts[before + 1])
        return max(at, wished_at)

    def free_before(self, at: Instant) -> Instant | None:
        """From when on it is free at ``at``, as far as is known here."""
        before = bisect_left(self._starts, at) - 1
        return self._ends[before] if before >= 0 else None
