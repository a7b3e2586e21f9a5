"""The phone of a world's operators: notices reach it, or do not, and processes die over them.

What a notice is about is read off its words, as people do; which alerts there are is never asked.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paceline.core.instants import SECOND, Instant
from paceline.engine.ports import Told
from paceline.sim.weather import Ring

if TYPE_CHECKING:
    from paceline.sim.process import Process

SLOWEST_US = 4 * SECOND

_ONE = re.compile(r"paceline alert clear (\d+)$")
_MANY = re.compile(r"^Alerts ([\d, -]+)\. ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rung:
    """One notice that has reached people."""

    at: Instant
    process: str
    title: str
    text: str
    alerts: tuple[int, ...]
    """The numbers of those it is about, as it says itself."""
    well: bool
    """Whether its process lived on and was told that it had rung."""


class Phone:
    """Everything that reached the people of one world."""

    def __init__(self) -> None:
        self.rung: list[Rung] = []

    @property
    def heard(self) -> set[int]:
        """The alerts of which people know."""
        return {number for rung in self.rung for number in rung.alerts}


class Line:
    """The phone as one process reaches it."""

    def __init__(self, process: Process, phone: Phone) -> None:
        self._process = process
        self._phone = phone

    async def tell(self, title: str, text: str) -> list[Told]:
        process, weather = self._process, self._process.around.weather
        process.refuse_dead()
        fate = weather.ring()
        if fate is Ring.CRASH_BEFORE:
            process.crash("before it tells")
            raise asyncio.CancelledError
        await asyncio.sleep(weather.up_to(SLOWEST_US) / SECOND)
        if fate is not Ring.UNREACHED:
            self._ring(title, text, well=fate is Ring.WELL)
        if fate is Ring.CRASH_AFTER:
            process.crash("after it has told")
            raise asyncio.CancelledError
        await process.pass_gate()
        return [Told("phone://…", "" if fate is Ring.WELL else "nobody answers")]

    def _ring(self, title: str, text: str, *, well: bool) -> None:
        process, now = self._process, self._process.around.clock.now()
        process.around.trace.note(process.name, "tells", text.partition("\n")[0])
        about = numbers_in(text)
        self._phone.rung.append(Rung(now, process.name, title, text, about, well))


def numbers_in(text: str) -> tuple[int, ...]:
    """The alerts that a notice is about."""
    one = _ONE.search(text)
    if one is not None:
        return (int(one.group(1)),)
    many = _MANY.search(text)
    if many is None:
        return ()
    found: list[int] = []
    for span in many.group(1).split(", "):
        first, _, last = span.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)
