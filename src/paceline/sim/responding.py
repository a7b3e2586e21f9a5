"""Whoever was set up to answer, as one simulated process reaches it: far away, and in no hurry.

The wire to it may take its process along: while it waits, when the answer has come, or by standing
still for so long that somebody else has taken the turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paceline.core.instants import SECOND
from paceline.engine.asking import Answers
from paceline.engine.ports import News
from paceline.engine.ports.answering import Answer, Burst, ResponderFailed, ResponderRefused
from paceline.sim.customers import Exchange, answer_to
from paceline.sim.talk import BUSY_US, PROMPT_US, SLOW_US, Mind
from paceline.sim.weather import Ask
from paceline.sim.wire import Wire

if TYPE_CHECKING:
    from paceline.sim.process import Process

WAY = "clerk"


class HookedWire(Wire):
    """The exchange as one process reaches it; what it reports is read as it comes."""

    def __init__(self, process: Process, exchange: Exchange) -> None:
        super().__init__(process, exchange)
        self.verify = exchange.verify
        self.proves = exchange.proves
        self.challenge = exchange.challenge
        self._exchange = exchange

    def parse(self, settings: Mapping[str, Any], body: bytes) -> list[News]:
        return self._exchange.parse(settings, body)


class Clerk:
    """A responder at the end of a wire."""

    def __init__(self, process: Process, exchange: Exchange) -> None:
        self._process = process
        self._exchange = exchange

    async def answer(self, burst: Burst) -> Answer:
        process, weather = self._process, self._process.around.weather
        process.refuse_dead()
        asked = self._exchange.ask(process.name, burst)
        mind, luck = self._exchange.mind_for(burst.key, calm=weather.clear)
        fate = weather.ask()
        if fate is Ask.STANDSTILL:
            process.stand_still(weather.up_to(weather.climate.standstill_us))
        takes_us = luck.randint(*(SLOW_US if mind is Mind.SLOW else PROMPT_US))
        if fate is Ask.CRASH:
            await asyncio.sleep(takes_us / 2 / SECOND)
            process.crash("over a question")
            raise asyncio.CancelledError
        await asyncio.sleep(takes_us / SECOND)
        if fate is Ask.CRASH_AFTER:
            process.crash("with an answer in hand")
            raise asyncio.CancelledError
        await process.pass_gate()
        if mind is Mind.FAILS:
            raise ResponderFailed("not this time")
        if mind is Mind.BUSY:
            raise ResponderFailed("too much to do", luck.randint(*BUSY_US))
        if mind in (Mind.REFUSES, Mind.SHUT):
            raise ResponderRefused("not a word", everybody=mind is Mind.SHUT)
        if mind is Mind.BREAKS:
            raise ValueError("a defect of whoever answers")
        asked.answered_at, asked.silent = process.around.clock.now(), mind is Mind.SILENT
        return Answer("" if mind is Mind.SILENT else answer_to(burst.key, asked.numbers))

    async def close(self) -> None:
        return None


def ways_of(process: Process, exchange: Exchange) -> dict[str, Answers]:
    return {WAY: Answers(Clerk(process, exchange), retries=exchange.talk.retries)}


__all__ = ["WAY", "Clerk", "HookedWire", "ways_of"]
