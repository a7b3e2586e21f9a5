"""What the calls of one lane came to: from when an answer is there until its outcome is in the
outbox.

An answer is noted down whenever it comes. What follows from it is settled by the lane's own step,
so that nothing changes under whoever decides what may go next. Only while that is decided already,
and the lane waits for the commit of an intent, a plain yes is settled as it comes: once the commit
is there every lane wants the next one, and on PostgreSQL the database waits for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paceline.core.durations import Chance
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import DeliveryState
from paceline.core.usage import Usage
from paceline.engine.drivers import LazyDriver
from paceline.engine.memory import LaneMemory
from paceline.engine.outbox import Outbox
from paceline.engine.settling import (
    Flight,
    Landed,
    Settled,
    is_plain_yes,
    moved_with_the_clock,
    used,
)

Forget = Callable[[str, str], None]
"""Told of a file and of its handle, which the provider no longer has."""


class Landings:
    """Those of one lane."""

    __slots__ = (
        "_at_once",
        "_driver",
        "_flights",
        "_forget",
        "_landed",
        "_memory",
        "_outbox",
        "_rng",
        "_settled",
    )

    def __init__(
        self,
        memory: LaneMemory,
        outbox: Outbox,
        driver: LazyDriver,
        flights: dict[int, Flight],
        *,
        forget: Forget,
        rng: Chance,
    ) -> None:
        """Of the ``flights`` those that have ended are taken out."""
        self._memory = memory
        self._outbox = outbox
        self._driver = driver
        self._flights = flights
        self._forget = forget
        self._rng = rng
        self._landed: list[Landed] = []
        self._at_once = False
        self._settled: list[tuple[Flight, Outcome]] = []
        """What was settled at once since the last intent was asked for."""

    @property
    def waiting(self) -> Sequence[Landed]:
        """What nobody has settled yet."""
        return self._landed

    @property
    def any_refused(self) -> bool:
        """Whether one of them may ask for time, or for less."""
        landed = self._landed
        return bool(landed) and any(one[1].kind is not OutcomeKind.ACCEPTED for one in landed)

    def add(self, flight: Flight, outcome: Outcome, at: Instant) -> None:
        """An answer that has come. None is settled before those that came before it."""
        memory, first = self._memory, self._at_once and not self._landed
        if first and is_plain_yes(outcome, memory.usage, memory.policy):
            self._settle(flight, outcome, at)
            self._settled.append((flight, outcome))
        else:
            self._landed.append((flight, outcome, at))

    def settle_at_once(self) -> None:
        """An intent is about to be committed. Until the step goes on nothing but that is asked of
        the store: a delivery that has ended, and is not written down yet, would be taken for one
        that is left over."""
        self._at_once = True
        self._settled.clear()

    def settle_in_step(self) -> None:
        """The step goes on."""
        self._at_once = False

    def counted_since(self, usage: Usage) -> Usage:
        """Usage from before the last intent, with the answers counted that were settled since."""
        for flight, outcome in self._settled:
            usage = used(flight, outcome, usage, self._memory.policy)
        return usage

    def clock_was_set(self, by_us: int) -> None:
        self._landed = moved_with_the_clock(self._flights.values(), self._landed, by_us)

    def take_up(self) -> None:
        """Settle what has landed since the last step."""
        landed, self._landed = self._landed, []
        for flight, outcome, at in landed:
            self._settle(flight, outcome, at)

    def settled(self, flight: Flight, outcome: Outcome, at: Instant) -> Settled:
        """What follows from an outcome; nothing is done about it yet."""
        return self._memory.settled(flight, outcome, self._driver.capabilities, at)

    def _settle(self, flight: Flight, outcome: Outcome, at: Instant) -> None:
        memory, settled = self._memory, self.settled(flight, outcome, at)
        memory.usage = settled.usage
        self._outbox.add(settled)
        if outcome.handle_gone:
            # Which of several files is gone is not said, so all of them are uploaded again.
            files = flight.content.parts[flight.part].files
            for media_id, handle in zip(files, flight.handles, strict=True):
                self._forget(media_id, handle)
        if settled.settlement.state is DeliveryState.SENDING:
            flight.part += 1
            flight.next_part_at = at + memory.policy.part_gap.draw(self._rng)
            return
        del self._flights[flight.delivery.id]
        if settled.settlement.due_at is not None:
            memory.agenda.expect(flight.delivery.run_id, settled.settlement.due_at)
