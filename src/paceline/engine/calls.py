"""A call of the provider: the last look before it, from when it counts, and what it comes to.

Its intent is committed by now. Most drivers are called in a task of their own, so that one which
neither answers nor lets itself be called off can be left behind. Where a driver can begin without
waiting (``ports.Prompt``) a task would only take time: then there is nothing to cling to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from paceline.core import outcome as outcomes
from paceline.core import usage as usages
from paceline.core.errors import ProviderError
from paceline.core.instants import SECOND, Instant
from paceline.core.outcome import Outcome
from paceline.core.usage import Usage
from paceline.engine.beginning import telling_when_begun
from paceline.engine.context import LaneContext
from paceline.engine.deadline import Deadline
from paceline.engine.drivers import LazyDriver, within_time
from paceline.engine.last_look import forbidden
from paceline.engine.late import LateCall, not_ended
from paceline.engine.memory import LaneMemory
from paceline.engine.ports import Clock, Lease, Message
from paceline.engine.settling import Flight

log = structlog.get_logger("paceline.lane")

_Begun = asyncio.Future[Outcome | None] | Outcome | None
"""A call that is under way, or why it is not made after all."""


class Calls:
    """Those of one lane."""

    def __init__(
        self,
        context: LaneContext,
        memory: LaneMemory,
        lease: Lease,
        driver: LazyDriver,
        *,
        follow_the_clock: Callable[[], tuple[Instant, int]],
        late_ended: Callable[[], None],
    ) -> None:
        """``late_ended`` is told when a call that was left behind has come to its end."""
        self._context = context
        self._clock = context.clock
        self._memory = memory
        self._lease = lease
        self._driver = driver
        self._follow_the_clock = follow_the_clock
        self._late_ended = late_ended
        self._deadline = Deadline()
        self._begun: Flight | None = None
        """The last that has begun since an intent was asked for."""
        self.dropped = False
        """Whether nobody waits for any of them any more."""

    @property
    def prompt(self) -> bool:
        """Whether it is worth a try to begin one without waiting."""
        return self._driver.is_prompt

    def drop(self) -> None:
        """Those that were left behind end with their lane.

        From here on nobody is told anything, and nobody is known: what knew each other would stay
        in memory until it is looked for, and lanes come and go with every message.
        """
        self.dropped = True
        self._follow_the_clock = partial(_look_at, self._clock)
        self._late_ended = _tell_nobody
        self._deadline.drop()
        for late in self._context.late.of(self._lease):
            log.error("lane ends before its call", account=late.account.name, key=late.key)
            late.call.cancel()

    async def call(
        self, flight: Flight, message: Message, begun: asyncio.Future[None] | None = None
    ) -> Outcome:
        """What becomes of a part, whatever its driver does. A call beside others has somebody who
        wants to know when it has ``begun``."""
        timeout_us = self._memory.policy.timeout_us
        try:
            if begun is None and self._driver.is_prompt:
                call = self._begin_at_once(flight, message)
                if isinstance(call, Outcome):
                    return call
                outcome = None if call is None else await self._deadline.answer(call, timeout_us)
                if outcome is not None:
                    return outcome
            leave = partial(self._leave, flight, message.key)
            return await within_time(self._begin(flight, message, begun), timeout_us, leave)
        except Exception as error:
            return self.lost(flight, message, error)

    def set_off(self, flight: Flight, message: Message) -> _Begun:
        """Begin a call for whose answer nobody waits: what it ``came_to`` is asked when it is done.
        None where it has to be made the usual way."""
        call: _Begun = None
        try:
            call = self._begin_at_once(flight, message)
            if call is not None and not isinstance(call, Outcome):
                self._deadline.watch(call, self._memory.policy.timeout_us)
        except asyncio.CancelledError:
            # Nobody has told it to stop, for there is no task that could be.
            return self.lost(flight, message, ProviderError("the driver broke off its own call"))
        except Exception as error:
            if isinstance(call, asyncio.Future):  # nobody will look after it
                call.cancel()
            return self.lost(flight, message, error)
        return call

    def came_to(
        self, flight: Flight, message: Message, call: asyncio.Future[Outcome | None]
    ) -> Outcome | None:
        """What a call that was set off has answered; None where nobody has heard of it."""
        try:
            return self._deadline.came_to(call)
        except Exception as error:
            return self.lost(flight, message, error)

    def lost(self, flight: Flight, message: Message, error: BaseException) -> Outcome:
        """What a call is that has no answer."""
        if isinstance(error, TimeoutError):
            reason = f"no answer within {self._memory.policy.timeout_us / SECOND:g} s"
            return outcomes.unknown(not_ended(reason) if flight.left else reason)
        # A driver must answer with an outcome. When it raises instead, the message may be out or
        # not: only "unknown" is honest.
        told = {"account": self._memory.account.name, "key": message.key}
        log.error("driver failed", exc_info=error, **told)
        return outcomes.unknown(f"driver failed: {type(error).__name__}: {error}")

    def _begin_at_once(self, flight: Flight, message: Message) -> _Begun:
        """The same as ``_begin`` without a task; None where that cannot be."""
        if flight.unreachable is not None:
            return None
        reason, ahead_us = self._look(flight)
        if reason is not None:
            return outcomes.withdrawn(reason)
        call: _Begun = None
        try:
            call = self._driver.begin(message)
        except BaseException:
            self._count(flight, ahead_us)
            raise
        if call is not None:
            self._count(flight, ahead_us)
        return call

    async def _begin(
        self, flight: Flight, message: Message, begun: asyncio.Future[None] | None
    ) -> Outcome:
        """The last look, the count, and the call: with nothing between them that takes time.

        A busy loop begins a call later than it was asked to. What counts is when it begins.
        """
        reason, ahead_us = self._look(flight)
        if reason is not None:
            if begun is not None:
                begun.set_result(None)
            return outcomes.withdrawn(reason)
        count = partial(self._count, flight, ahead_us, begun)
        if flight.unreachable is not None:
            count()
            return flight.unreachable
        return await telling_when_begun(self._driver.send(message), count)

    def _look(self, flight: Flight) -> tuple[str | None, int]:
        """Why a call must not be made any more, if so; and by how much the clock is ahead of the
        one that nobody sets."""
        now, us = self._follow_the_clock()
        return self._forbidden(flight, now, us), now - us

    def _forbidden(self, flight: Flight, now: Instant, us: int) -> str | None:
        """The lease and closing time, checked once more: the commit may have taken long."""
        lease = self._context.lease
        if not lease.safe_at(us, now):
            return "lease about to run out"
        if lease.term != flight.term:
            return "the lease had run out in between"
        return forbidden(flight, self._memory.policy, now)

    def _count(
        self, flight: Flight, ahead_us: int, begun: asyncio.Future[None] | None = None
    ) -> None:
        """A call has begun by now, and counts from now on: by the clock as it was looked at last,
        which is ahead of the one that nobody sets by so much."""
        flight.started_at = ahead_us + self._clock.monotonic_us()
        self._begun = flight
        self._memory.usage = self._counted(self._memory.usage, flight)
        if begun is not None:
            begun.set_result(None)

    def watch_usage(self) -> None:
        """An intent is asked for, and what it takes may have to be given back."""
        self._begun = None

    def counted_since(self, usage: Usage) -> Usage:
        """Usage from before the intent, with a call counted that has begun since: one at most, for
        a lane without a pace."""
        return usage if self._begun is None else self._counted(usage, self._begun)

    def _counted(self, usage: Usage, flight: Flight) -> Usage:
        """Usage with a call counted from when it has begun, if it has."""
        if flight.started_at is None:
            return usage
        counted_at = flight.started_at + self._context.lead.guard_us
        return usages.started(usage, counted_at, self._memory.policy, flight.ask.reply)

    def _leave(self, flight: Flight, key: str, call: asyncio.Future[Any]) -> None:
        """A call does not end: the flight lands in doubt, and the call is watched on its own."""
        context, memory = self._context, self._memory
        flight.left = True
        late = LateCall(
            key=key,
            call=call,
            lease=self._lease,
            flight=replace(flight),
            account=memory.account,
            policy=memory.policy,
            capabilities=self._driver.capabilities,
            given_up_at=self._clock.now(),
            ended=self._late_ended,
            signals=memory.signals,
        )
        context.late.watch(late, context.journal, context.clock, context.lease)
        if self.dropped:
            call.cancel()


def _look_at(clock: Clock) -> tuple[Instant, int]:
    return clock.now(), clock.monotonic_us()


def _tell_nobody() -> None:
    return
