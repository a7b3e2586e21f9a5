"""Looking ahead: while a lane's call is out, the intent of the next one is committed.

A lane with no pace to keep does two things by turns: it waits for the database, and it waits for
its server. Neither has to wait for the other, as long as the calls themselves stay one after the
other: what may go next is decided, written down and made ready while the letter before it is on its
way, and called for as soon as that one has landed well.

Anything but a plain yes may mean that the next one must not go at all: then its intent is taken
back, and whatever follows from the answer is done first. So it is where the answer takes so long
that what was committed may no longer be what people want; where answers take long, nothing is
written ahead in the first place. Decision 39 tells what this costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from paceline.core.holds import NO_HOLDS
from paceline.core.instants import MILLISECOND, Instant
from paceline.core.outcome import Outcome
from paceline.engine.calls import Calls
from paceline.engine.drivers import note_end
from paceline.engine.lane_names import acting_for
from paceline.engine.memory import LaneMemory
from paceline.engine.ports import Clock, Message
from paceline.engine.settling import Flight, Landed, is_plain_yes

QUICK_US = 50 * MILLISECOND
"""An answer that takes longer is not worth being looked past: the commit is done by then."""
AT_ONCE_US = 100
"""An answer that takes less leaves no time for anything else."""
LONGEST_US = 200 * MILLISECOND
"""How old an intent may become that waits for the call before it. As far ahead of its call an
intent may also be written where a pace is waited for (``lead.py``)."""

SLOW = "the message before it was not answered yet"
NO_YES = "the answer to the message before it comes first"


class Lookahead:
    """Of one lane: the call that is out while the next intent is committed, if there is one."""

    __slots__ = (
        "_beside",
        "_calls",
        "_clock",
        "_land",
        "_memory",
        "_name",
        "_out",
        "_out_us",
        "_quick",
        "_waiter",
    )

    def __init__(
        self,
        memory: LaneMemory,
        clock: Clock,
        calls: Calls,
        *,
        land: Callable[[Flight, Outcome], None],
        beside: Callable[[Flight, Message], object],
        name: str | None = None,
    ) -> None:
        """``land`` takes what a call came to; ``beside`` makes one that cannot be begun so. What
        the loop does for it by itself is done in the lane's ``name``."""
        self._memory = memory
        self._clock = clock
        self._calls = calls
        self._land = land
        self._beside = beside
        self._name = name
        self._out: Flight | None = None
        self._out_us = 0
        self._waiter: asyncio.Future[None] | None = None
        self._quick = False
        """Whether the last answer took a moment, and no more than that."""

    @property
    def is_out(self) -> bool:
        """Whether a call is under way, or about to be."""
        return self._out is not None

    @property
    def out_since_us(self) -> int | None:
        """Since when, by the clock that nobody sets."""
        return None if self._out is None else self._out_us

    @property
    def room(self) -> int:
        """For how many deliveries more than may be called at once an intent may be written."""
        return 1 if self._out is not None and self._worth_it else 0

    @property
    def _worth_it(self) -> bool:
        """Whether answers come quickly, and nothing but one that is no plain yes could hold the
        next message: a pace has a foresight of its own, and a breaker looks at every answer."""
        policy, usage = self._memory.policy, self._memory.usage
        free = policy.concurrency == 1 and not policy.paced and policy.breaker is None
        if not (self._quick and free and usage.holds is NO_HOLDS):
            return False
        slow_at = usage.throttled_at
        return slow_at is None or self._clock.now() >= slow_at + policy.throttle.recover_us

    def set_off(self, flight: Flight, message: Message) -> bool:
        """Have the provider called in a moment, and do not wait for its answer; False where that is
        not worth it, or cannot be. A message of several parts is sent to its end before anything
        else is looked at; and after one out of a pool comes another, most likely.

        In a moment: what is to be written next is handed over first, so that calls and answers
        have the time of its commit.
        """
        if not (self._worth_it and flight.last_part and self._calls.prompt):
            return False
        if flight.delivery.account_id is None:
            return False
        self._out = flight
        self._out_us = self._clock.monotonic_us()
        asyncio.get_running_loop().call_soon(acting_for, self._name, self._begin, flight, message)
        return True

    def drop(self) -> None:
        """The lane has ended: nothing lands any more, and nobody is known who would take it."""
        self._land = self._beside = _tell_nobody

    def _begin(self, flight: Flight, message: Message) -> None:
        if self._calls.dropped:
            return
        try:
            self._set_off(flight, message)
        except BaseException as error:
            self._failed(flight, message, error)

    def _set_off(self, flight: Flight, message: Message) -> None:
        call = self._calls.set_off(flight, message)
        if isinstance(call, Outcome):
            self._land(flight, call)
        elif call is None:
            self._beside(flight, message)
        elif call.done():
            self._answered(flight, message, call)
        else:
            answered = partial(acting_for, self._name, self._answered, flight, message)
            call.add_done_callback(answered)

    def _answered(
        self, flight: Flight, message: Message, call: asyncio.Future[Outcome | None]
    ) -> None:
        if self._calls.dropped:
            note_end(call)
            return
        try:
            outcome = self._calls.came_to(flight, message, call)
            if outcome is not None:
                self._land(flight, outcome)
            else:  # nobody has heard of it, and it is sent the usual way
                self._beside(flight, message)
        except BaseException as error:
            self._failed(flight, message, error)

    def _failed(self, flight: Flight, message: Message, error: BaseException) -> None:
        """Nobody waits here who could be told: whatever has gone wrong, a message that does not
        land would keep its lane waiting for ever."""
        if flight is self._out:
            self._land(flight, self._calls.lost(flight, message, error))
        if not isinstance(error, Exception):
            raise error

    def landed(self, flight: Flight, at: Instant) -> None:
        """Its call has come to its end, whichever way it was made."""
        started_at = flight.started_at
        self._quick = started_at is not None and AT_ONCE_US <= at - started_at <= QUICK_US
        if flight is self._out:
            self._out = None
            self._wake()

    async def turn(self, landed: Callable[[], Iterable[Landed]]) -> str | None:
        """Wait for the call before, if it is still out; why none must follow it, if so. What has
        ``landed`` is asked when that is over."""
        if self._out is not None:
            since_us = self._clock.monotonic_us()
            await self._wait()
            # A loop that stood still hears of the answer and of the time that is over at once.
            late = self._clock.monotonic_us() - since_us > LONGEST_US
            if late or self._out is not None:
                self._quick = False
                return SLOW
        usage, policy = self._memory.usage, self._memory.policy
        for _, outcome, _ in landed():
            if not is_plain_yes(outcome, usage, policy):
                return NO_YES
        return None

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        alarm = self._clock.timer(LONGEST_US, self._wake)
        try:
            await self._waiter
        finally:
            alarm.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _tell_nobody(*_: object) -> None:
    return
