"""The process's lease: proof that this process is alive, and its right to send.

One lease covers every lane of the process. It is measured by database time; here only the part
that is safe to use is kept, counted from *before* the renewal was asked for, so that a slow answer
can only make it shorter. It is counted on both clocks: the wall clock may be set back, and the
monotonic one may stand still while the machine sleeps, but hardly both at once.

A process that owns no lane need not hurry: nobody waits to take over from it. Its lease is longer
then and seldom renewed, so that an idle service leaves the database in peace, and taking the first
lane makes it a short one again in the same transaction. What may be sent never rests on the longer
one.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple, Protocol, TypeVar

import structlog

from paceline.core.errors import LeaseLost, StoreUnavailable
from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.engine.ports import Clock, Journal, Tx, Work

T = TypeVar("T")

LEASE_US = 15 * SECOND
RENEW_EVERY_US = 5 * SECOND
ALONG_AFTER_US = RENEW_EVERY_US // 2
IDLE_LEASE_US = 3 * MINUTE
IDLE_RENEW_EVERY_US = MINUTE
UNSAFE_TAIL_US = 5 * SECOND
"""No send starts in the last part of a lease: it must have ended before anybody takes over.

A renewal overtakes whatever waits in the journal, but not the group under way. That one waits for a
row for ``lock_timeout`` and is replayed for ``REPLAY_US``; both together are less than the 10 s
between the instant a renewal falls due and the end of the lease, so nobody takes our lanes
meanwhile. Should it take longer all the same, nothing is sent, and nothing is lost but time.
"""
CERTAIN_US = LEASE_US - SECOND
"""How long a lease has certainly not run out, though its last part is left alone: clocks of two
machines do not go exactly alike."""
LINGER_US = LEASE_US - UNSAFE_TAIL_US
"""How long a short lease is left alone by whoever owns nothing any more."""

log = structlog.get_logger("paceline.lease")


class Renewed(NamedTuple):
    """Until when a lease was renewed, and when that was, both by the database's clock."""

    until_at: Instant | None
    """None where the process was forgotten."""
    at: Instant

    @property
    def long(self) -> bool:
        """Whether it is that of a process that owns nothing."""
        return self.until_at is not None and self.until_at - self.at > LEASE_US


class Termed(Protocol):
    """Something that may only be done in the term in which it was intended."""

    term: int


class ProcessLease:
    """Joins the fleet, renews, and knows until when a send may start."""

    def __init__(self, journal: Journal, clock: Clock, name: str) -> None:
        self._journal = journal
        self._clock = clock
        self._name = name
        self._process_id: int | None = None
        self._safe_until_us = 0
        self._safe_until_at: Instant = 0
        self._certain_until_us = 0
        self._certain_until_at: Instant = 0
        self._renewed = asyncio.Event()
        self._alive_until_us = 0
        self._asked_us = 0
        self._long = False
        """Whether it was renewed last as that of a process that owns nothing."""
        self.term = 0
        """Counts how often the lease was renewed after it may have run out. In between others may
        have taken every lane, so what was intended in one term is not sent in another."""

    @property
    def process_id(self) -> int:
        if self._process_id is None:
            raise LeaseLost("this process has not joined the fleet")
        return self._process_id

    @property
    def joined(self) -> bool:
        return self._process_id is not None

    def safe(self) -> bool:
        """Whether a send may start now."""
        return self.safe_at(self._clock.monotonic_us(), self._clock.now())

    def safe_at(self, us: int, now: Instant) -> bool:
        """The same for whoever has just looked at both clocks."""
        return us < self._safe_until_us and now < self._safe_until_at

    async def until_safe(self, us: int) -> None:
        """Wait until then, by the clock that nobody sets, and for the renewal of a lease that has
        not run out; for that no longer than until it may have.

        The one under way may be late by a moment. Whatever was intended under this lease would have
        to be taken back, though nobody else can have the lane.
        """
        early_us = us - self._clock.monotonic_us()
        if early_us > 0:
            await self._clock.sleep(early_us)
        left_us = self._certain_until_us - self._clock.monotonic_us()
        if self.safe() or left_us <= 0:
            return
        self._renewed.clear()
        timer = self._clock.timer(left_us, self._renewed.set)
        try:
            await self._renewed.wait()
        finally:
            timer.cancel()

    def note_term(self, flight: Termed) -> None:
        """The turn of an intent has come to be committed. However long it has waited for it, and
        whatever became of the lease meanwhile: what counts is from here on."""
        flight.term = self.term

    @property
    def alive(self) -> bool:
        """Whether the fleet takes this process for alive, though it may have to renew to send."""
        return self.joined and self._clock.monotonic_us() < self._alive_until_us

    def renew_in_us(self, *, busy: bool) -> int:
        """How long to wait with the next renewal, counted from the last, even if that has failed.

        Whoever has just given back its last lane may take another in a moment, and that renews the
        lease as well: it is left alone until it would run out, and only then made a long one.
        """
        every_us = RENEW_EVERY_US if busy else IDLE_RENEW_EVERY_US if self._long else LINGER_US
        return max(0, self._asked_us + every_us - self._clock.monotonic_us())

    def ask(self) -> tuple[int, Instant]:
        """To be noted before a renewal is asked for, and given to ``extend`` after it."""
        return self._clock.monotonic_us(), self._clock.now()

    async def join(self) -> None:
        await self.join_and(lambda _: None)

    async def join_and(self, look: Work[T]) -> T:
        """The same, and what there is to know at the beginning, in one visit. Looked at first: it
        may want to be the first in its transaction."""
        asked, name = self.ask(), self._name
        seen, row = await self._journal.write(
            lambda tx: (look(tx), tx.processes.join(name, LEASE_US))
        )
        self._process_id = row.id
        self.extend(asked)
        log.info("joined", process=row.id, name=name)
        return seen

    async def renew(self) -> None:
        """Renew once. A database that is away lets the lease run out: that is what it is for."""
        asked = self.ask()
        self._asked_us = asked[0]
        process_id = self._process_id
        if process_id is None:  # it has just left
            return
        try:
            renewed = await self._journal.write(
                lambda tx: rest(tx, process_id), alone=True, first=True
            )
        except StoreUnavailable as error:
            log.warning("lease not renewed", process=process_id, error=str(error))
            return
        if process_id != self._process_id:
            return
        if renewed.until_at is None:
            # Others found us dead and buried us; what they took over has a newer generation,
            # so joining again under a new number can harm nobody.
            log.warning("process was forgotten, joining again", process=process_id)
            await self.join()
            return
        self.extend(asked)
        self._long = renewed.long

    @property
    def aging(self) -> bool:
        """Whether it would be renewed soon: then whoever writes may as well do so along with it."""
        return self._clock.monotonic_us() - self._asked_us >= ALONG_AFTER_US

    def renewed_along(self, asked: tuple[int, Instant], renewed: Renewed) -> None:
        """A lane was given back, and the lease renewed with that. A process that was forgotten is
        found out by the next renewal; and what was renewed since may not be as long as this."""
        if renewed.until_at is not None and asked[0] >= self._asked_us:
            self.extend(asked)
            self._long = renewed.long

    async def leave(self) -> None:
        process_id = self.process_id
        self._process_id = None
        self._safe_until_us = 0
        await self._journal.write(lambda tx: tx.processes.leave(process_id))
        log.info("left", process=process_id)

    def extend(self, asked: tuple[int, Instant]) -> None:
        """The lease was renewed by a transaction that was asked for then."""
        if not self._has_lasted():
            self.term += 1
        asked_us, asked_at = asked
        self._asked_us = max(self._asked_us, asked_us)
        self._long = False
        self._safe_until_us = asked_us + LEASE_US - UNSAFE_TAIL_US
        self._safe_until_at = asked_at + LEASE_US - UNSAFE_TAIL_US
        self._certain_until_us = asked_us + CERTAIN_US
        self._certain_until_at = asked_at + CERTAIN_US
        self._alive_until_us = asked_us + IDLE_LEASE_US
        self._renewed.set()

    def _has_lasted(self) -> bool:
        """Whether nobody can have taken anything of ours up to now."""
        if self._clock.monotonic_us() >= self._certain_until_us:
            return False
        return self._clock.now() < self._certain_until_at


def rest(tx: Tx, process_id: int) -> Renewed:
    """Renew a lease; one that guards no lane is made a long one."""
    return Renewed(tx.processes.renew(process_id, LEASE_US, IDLE_LEASE_US), tx.now)


def make_busy(tx: Tx, process_id: int) -> None:
    """Lanes are being taken: from here on the lease is a short one, whatever it was."""
    tx.processes.renew(process_id, LEASE_US)
