"""An event loop in virtual time: nobody ever waits, yet everything happens in its order.

Whenever nothing is ready, time jumps to the next timer. There is no wall clock, no thread and no
input or output in here, so the same program gives the same trace every time. Given a source of
chance, what is ready at the same moment runs in an order drawn from it: another seed, another
schedule. What happens in the simulated world is not told here.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context, ContextVar
from itertools import count
from typing import Any, NoReturn, TypeVar, TypeVarTuple, Unpack

from paceline.core.instants import SECOND, Instant, iso

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

LONGEST_US = 2**50
"""Some 35 years. Up to there a float of seconds, rounded to microseconds, is always exact."""

OWNER: ContextVar[object] = ContextVar("owner", default=None)
"""To whom the tasks belong that are started here: they can be dropped together."""

_HALF_A_MICROSECOND = 0.5 / SECOND
_MOST_NAMES = 20


class Deadlock(RuntimeError):
    """Nothing is ready and nothing is scheduled: whoever is waiting would wait for ever."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time is a whole number of microseconds that starts at 0; ``start_at`` is what 0 stands for.

    Timers of the same instant fire in the order in which they were set.
    """

    _ready: deque[asyncio.Handle]

    def __init__(self, start_at: Instant = 0, chance: random.Random | None = None) -> None:
        self.start_at = start_at
        self.now_us = 0
        self.turns = 0
        """How often everything that was ready has run: the finest moments there are."""
        self.at_turn: Callable[[int], None] | None = None
        """Called between two turns; whatever awaits something is waiting just then."""
        self._chance = chance
        self._order = count(1)
        self._births = count(1)
        self._born: weakref.WeakKeyDictionary[asyncio.Task[Any], tuple[int, object]]
        self._born = weakref.WeakKeyDictionary()
        still = _Stillness(self)
        super().__init__(still)
        # The base class has registered the pipe it wakes itself with. From here on there is none
        # but us, and whoever waited for a socket would wait for ever.
        still.sealed = True
        # The base class fires timers that lie before "now + resolution". It has to be more than
        # the spacing of floats, or a timer due exactly now would never fire, and less than a
        # microsecond, or the next one would fire early.
        self._clock_resolution = _HALF_A_MICROSECOND
        self.set_task_factory(self._give_birth)

    def time(self) -> float:
        return self.now_us / SECOND

    @property
    def now_at(self) -> Instant:
        """The virtual instant."""
        return self.start_at + self.now_us

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        when_us = round(when * SECOND)
        if when_us > LONGEST_US:
            raise OverflowError(f"{when} s lies beyond the end of virtual time")
        moment = _Moment(when_us / SECOND, next(self._order))
        return super().call_at(moment, callback, *args, context=context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> NoReturn:
        name = getattr(func, "__qualname__", repr(func))
        raise RuntimeError(f"{name} wants a thread, and there are none in virtual time")

    def unfinished(self, owner: object = None) -> list[asyncio.Task[Any]]:
        """The tasks that are not done, oldest first; all of them, or those of one owner."""
        found = [
            (number, task)
            for task, (number, whose) in self._born.items()
            if not task.done() and (owner is None or whose is owner)
        ]
        return [task for _, task in sorted(found, key=lambda pair: pair[0])]

    def wind_up(self) -> None:
        """Cancel whatever is left, as the end of ``asyncio.run`` does, but in a fixed order."""
        leftovers = self.unfinished()
        for task in leftovers:
            task.cancel()
        if leftovers:
            self.run_until_complete(asyncio.gather(*leftovers, return_exceptions=True))
        for task in leftovers:
            if not task.cancelled() and (error := task.exception()) is not None:
                self.call_exception_handler(
                    {"message": "failed while being cancelled", "exception": error, "task": task}
                )
        self.run_until_complete(self.shutdown_asyncgens())

    def jump(self, timeout: float | None) -> None:
        """What the base class takes for waiting: nothing is ready for ``timeout`` seconds."""
        self.turns += 1
        if self.at_turn is not None:
            self.at_turn(self.turns)
            if self._ready:  # whoever was called gave others something to do
                timeout = 0
        if timeout is None:
            raise Deadlock(self._deadlock_text())
        self.now_us += round(timeout * SECOND)
        if self._chance is not None and len(self._ready) > 1:
            ready = list(self._ready)
            self._chance.shuffle(ready)
            self._ready.clear()
            self._ready.extend(ready)

    def _deadlock_text(self) -> str:
        names = [getattr(task.get_coro(), "__qualname__", "?") for task in self.unfinished()]
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        waiting = ", ".join(names[:_MOST_NAMES]) + more if names else "nobody"
        return f"nothing is scheduled after {iso(self.now_at)}; waiting for ever: {waiting}"

    def _give_birth(
        self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any
    ) -> asyncio.Task[Any]:
        # The usual names count on across loops, so they would differ from run to run.
        number = next(self._births)
        if options.get("name") is None:
            options["name"] = f"virtual-{number}"
        context: Context | None = options.get("context")
        owner = OWNER.get() if context is None else context.get(OWNER)
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
        self._born[task] = (number, owner)
        return task


def run_virtual(
    main: Coroutine[Any, Any, T], *, start_at: Instant = 0, chance: random.Random | None = None
) -> T:
    """Run ``main`` to its end in a fresh virtual loop, cancel what it left behind, and close.

    A ``LoopClock(start_at)`` reads the time inside.
    """
    loop = VirtualLoop(start_at, chance)
    try:
        return loop.run_until_complete(main)
    finally:
        try:
            loop.wind_up()
        finally:
            loop.close()


class _Moment(float):
    """A timer's time that also knows its turn.

    The base class keeps its timers in a heap, which may swap equals; with a turn there are none.
    """

    __slots__ = ("_turn",)
    _turn: int

    def __new__(cls, seconds: float, turn: int) -> _Moment:
        moment = super().__new__(cls, seconds)
        moment._turn = turn
        return moment

    def __lt__(self, other: float) -> bool:
        if isinstance(other, _Moment) and float(self) == float(other):
            return self._turn < other._turn
        return float(self) < float(other)


class _Stillness(selectors.SelectSelector):
    """A selector to which nothing ever happens; instead of blocking it moves the loop's time."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self.sealed = False
        # The loop owns us; a strong reference back would be a cycle that only the collector ends.
        self._loop = weakref.ref(loop)

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if self.sealed:
            raise RuntimeError("there is no input or output in virtual time")
        return super().register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        loop = self._loop()
        if loop is not None:
            loop.jump(timeout)
        return []
