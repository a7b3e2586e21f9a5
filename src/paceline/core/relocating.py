"""Relocating: what can not go as it is planned is given the next slot at which it may.

Pure. These are the slots of one account. What of a plan offends, and who goes first, is worked out
in ``limits.py`` and ``repairing.py``; what a gate has just shut out, a lane knows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from paceline.core.durations import Chance
from paceline.core.instants import DAY, SECOND, Instant, local_text
from paceline.core.limits import HORIZON_US, Board, Booked, Rule, most_parts
from paceline.core.model import Ask
from paceline.core.pacer import HORIZON
from paceline.core.policy import Policy
from paceline.core.slots import Never, Seat

NEAREST_US = 2 * SECOND
"""A slot that is nearer to its own is none: a timetable leaves what moves so little where it is."""

PACES: tuple[Rule, ...] = ("gap", "rate")
"""Whoever offends these is too close to somebody, in a day that has room for it."""


@dataclass(frozen=True, slots=True)
class Relocation:
    """Everything that has to move is in exactly one of the two."""

    slots: dict[int, Instant] = field(default_factory=dict)
    nevers: list[Never] = field(default_factory=list)
    """What has no legal slot, and why."""


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
    search = Search(Board(seat, booked, slack_us), most_parts(homeless), rng)
    found = Relocation()
    for one in homeless:
        slot = search.first_from(one)
        if isinstance(slot, Never):
            found.nevers.append(slot)
        else:
            found.slots[one.key] = slot
    return found


class Search:
    """Looks for slots, one after the other, each beside those that were found before."""

    def __init__(self, board: Board, parts: int, rng: Chance) -> None:
        """``parts`` are the most that anything has that looks for a slot."""
        self.board = board
        self._policy = policy = board.seat.policy
        self._rng = rng
        self._interval_us = policy.rate.interval_us if policy.rate is not None else 0
        self._least_us = max(policy.least_gap_us, self._interval_us)
        self._longest_us = self.lasting_us(Ask(parts=parts))
        self._paced = [(one.at, self.lasting_us(one.ask)) for one in board.paced]
        # Who has gone ahead of the rate takes the token of somebody later: nobody else can have it.
        self._paced += [
            (token_at, self.lasting_us(one.ask))
            for one, token_at in zip(board.paced, board.token_ats, strict=True)
            if token_at > one.at
        ]
        self._drawn_us: int | None = None
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
        self._drawn_us = None
        self.board.room.take(self.board.place(at), one.ask.counted_as, one.ask.parts)
        if not one.ask.reply:
            self._add(at, self.lasting_us(one.ask))

    def has_room(self, one: Booked) -> bool:
        """Whether it may go at the very instant at which it is booked."""
        if self._earliest(one.ask, one.at) > one.at:
            return False
        found = self._walk(self._line_of(one.ask, capped=True), one, one.at, 0, one.at, capped=True)
        return found == one.at

    def peek_after(self, one: Booked) -> Instant | Never:
        """Of what offends: the next slot after its own."""
        room, own, parts = self.board.room, self.board.place(one.at), one.ask.parts
        at = self._earliest(one.ask, one.at + NEAREST_US)
        if not self._has_place(one):
            return self._look(one, at, self._gap_us(), at + HORIZON_US, capped=True)
        slot = self._look(one, at, self._gap_us(), own.next_day_at - 1, capped=False)
        if isinstance(slot, Never):
            at = max(at, own.next_day_at)
            room.take(own, one.ask.counted_as, -parts)
            slot = self._look(one, at, self._gap_us(), at + HORIZON_US, capped=True)
            room.take(own, one.ask.counted_as, parts)
        return slot

    def book_after(self, one: Booked, slot: Instant) -> None:
        """Give it the slot that was seen last, in which nobody has been put since."""
        room, own, here = self.board.room, self.board.place(one.at), self.board.place(slot)
        has_place = self._has_place(one)
        line = self._line_of(one.ask, not (has_place and here == own))
        line.given_at = max(line.given_at, slot)
        if has_place:
            room.take(own, one.ask.counted_as, -one.ask.parts)
        self.stay(one, slot)

    def _has_place(self, one: Booked) -> bool:
        """Whether its day has room for it already: it is only too close to others there."""
        return self.board.offends.get(one.key) in PACES

    def _gap_us(self) -> int:
        """Drawn once for each slot that is given, however many ask for it."""
        if self._drawn_us is None:
            self._drawn_us = max(self._policy.draw_gap_us(self._rng), self._interval_us)
        return self._drawn_us

    def _earliest(self, ask: Ask, at: Instant) -> Instant:
        at = max(at, ask.not_before_at, self.board.seat.usage.hold_until_at)
        return at if ask.reply else max(at, self._paced_at)

    def _look(
        self, one: Booked, at: Instant, gap_us: int, ends_at: Instant, *, capped: bool
    ) -> Instant | Never:
        """After the last slot that one of its like was given: they keep their order, and nobody is
        squeezed into the gap that was drawn between two of them, unless it is late for all else."""
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
        board, ask = self.board, one.ask
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
        openings, since_at = self.board.openings, line.free_before(at)
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

    def lasting_us(self, ask: Ask) -> int:
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
