"""Asking whoever answers, until there is an answer or the time of the turn is over.

A turn has one deadline, whatever its time goes by with: calls that hang, retries, the pauses
between them. It lies well before the ten minutes after which a lease counts as written by a wrong
clock, so a responder that never comes back keeps nobody for longer than that: a person is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import structlog

from paceline.core.answering import GIVE_UP_US
from paceline.core.durations import print_duration
from paceline.core.instants import MINUTE, SECOND
from paceline.engine.holding import Holding
from paceline.engine.ports import Clock, Journal, Tx
from paceline.engine.ports.answering import Answer, Responder, ResponderFailed, ResponderRefused
from paceline.engine.ports.conversations import Turn
from paceline.engine.questions import Question

LEASE_US = 15 * SECOND
RENEW_EVERY_US = 5 * SECOND
LONGEST_PAUSE_US = MINUTE
"""However long a responder asks to be left alone: somebody waits for an answer."""
MOST_ATTEMPTS = 10
"""How often the same is asked at most, by whichever process: every time may cost money."""
LET_GO_US = SECOND
"""How long a call that was called off may take to end. What does not end then is left alone."""

log = structlog.get_logger("paceline.conversation")


@dataclass(frozen=True, slots=True)
class Answers:
    """How conversations are answered: whom to ask, how often, and what to tell him."""

    responder: Responder
    retries: int = 2
    pause_us: int = 2 * SECOND
    history: int = 20
    give_up_us: int = GIVE_UP_US
    """For how long a turn is tried to be answered, all in all."""


class Asking:
    """Asks for one process, and holds the turns that it asks for."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        holding: Holding,
        hand_over: Callable[[Question, str], Awaitable[None]],
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._holding = holding
        self._hand_over = hand_over

    def until_us(self, way: Answers) -> int:
        """When a turn that begins now is given up, by a clock that nobody sets."""
        return self._clock.monotonic_us() + way.give_up_us

    def has_time_for_another(self, way: Answers, until_us: int) -> bool:
        """Whether an answer that is there may be made anew: else there might be none in the end."""
        return until_us - self._clock.monotonic_us() >= way.give_up_us // 2

    async def answer_to(self, question: Question, way: Answers, until_us: int) -> Answer | None:
        """The answer; None where there is none, and all that follows from that was done."""
        left = way.retries
        if question.turn.attempts > MOST_ATTEMPTS:
            await self._hand_over(question, "nobody has come to an answer, however often asked")
            return None
        while True:
            if self._holding.keeps(question):
                await self._holding.let_wait(question)
                return None
            try:
                found = await self._asked(question, way, until_us)
            except ResponderRefused as error:
                if error.everybody:
                    await self._holding.hold_back(question, str(error))
                    return None
                await self._holding.works(question)
                await self._hand_over(question, str(error))
                return None
            except ResponderFailed as error:
                log.warning("no answer", turn=question.turn.id, error=str(error), retries_left=left)
                pause_us = min(error.again_us or way.pause_us, LONGEST_PAUSE_US)
                if not left or self._clock.monotonic_us() + pause_us >= until_us:
                    await self._hand_over(question, str(error))
                    return None
                left -= 1
                if not await self._pause(question, pause_us):
                    return None
            else:
                if found is not None:
                    await self._holding.works(question)
                return found

    async def _pause(self, question: Question, pause_us: int) -> bool:
        """Leave the responder alone for a while, and hold the turn; whether it is still ours."""
        until_us = self._clock.monotonic_us() + pause_us
        while (left_us := until_us - self._clock.monotonic_us()) > 0:
            await self._clock.sleep(min(left_us, RENEW_EVERY_US))
            if not await self._renew(question.turn):
                return False
        return True

    async def _asked(self, question: Question, way: Answers, until_us: int) -> Answer | None:
        """Ask, and hold the turn meanwhile; None where it is not ours any more."""
        asked = asyncio.create_task(way.responder.answer(question.burst))
        try:
            while True:
                left_us = until_us - self._clock.monotonic_us()
                if left_us <= 0:
                    raise ResponderFailed(f"no answer within {print_duration(way.give_up_us)}")
                await self._wait_for(asked, min(left_us, RENEW_EVERY_US))
                if asked.done():
                    return asked.result()
                if not await self._renew(question.turn):
                    return None
        finally:
            if not asked.done():
                asked.cancel()
                await asyncio.wait({asked}, timeout=LET_GO_US / SECOND)
                _forget(asked)

    async def _wait_for(self, asked: asyncio.Task[Answer], longest_us: int) -> None:
        rest = asyncio.create_task(self._clock.sleep(longest_us))
        try:
            await asyncio.wait({asked, rest}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            rest.cancel()

    async def _renew(self, turn: Turn) -> bool:
        return await self._journal.write_together(renewed, turn, holds="turns")


def renewed(tx: Tx, turns: Sequence[Turn]) -> list[bool]:
    """Thousands may be in the making, and each is renewed every few seconds."""
    held = tx.listening.renew([(turn.id, turn.generation) for turn in turns], LEASE_US)
    return [turn.id in held for turn in turns]


def _forget(asked: asyncio.Task[Answer]) -> None:
    """What a call ends with that was called off is nobody's affair, also where it ends later."""
    if not asked.done():
        asked.add_done_callback(_forget)
    elif not asked.cancelled():
        asked.exception()
