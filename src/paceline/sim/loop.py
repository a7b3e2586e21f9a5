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
from contextvars import Context, ContextVar, copy_context
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, NoReturn, TypeVar, TypeVarTuple, Unpack

from paceline.core.instants import DAY, SECOND, Instant, iso
from paceline.engine.clock import LoopClock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

LONGEST_US = 2**50
"""Some 35 years. Up to there a float of seconds, rounded to microseconds, is always exact."""

OWNER: ContextVar[object] = ContextVar("owner", default=None)
"""To whom the tasks belong that are started here: they can be dropped together."""

LONGEST_JUMP_US = DAY
"""Time never jumps farther at once, so that whoever looks on between two turns does so daily."""
MOST_TURNS_AT_ONCE = 100_000
"""Turns in which time does not move before somebody is taken to be spinning. The busiest instant of
many hundreds of worlds has fewer than a hundred."""
CANCELLED_AT_LEAST = 100
"""Timers that were called off stay in the heap until they are many, and more than the others."""
_MOST_NAMES = 20
ROOM_AT_FIRST = 64
"""Tasks of one owner before those that have ended are dropped."""


class Deadlock(RuntimeError):
    """Nothing is ready and nothing is scheduled: whoever is waiting would wait for ever."""


class Standstill(RuntimeError):
    """Something is ready again and again, and time never moves: so it would go on for ever."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time is a whole number of microseconds that starts at 0; ``start_at`` is what 0 stands for.

    Timers of the same instant fire in the order in which they were set. They are kept here rather
    than by the base class, and so is what it does once per turn: both are written for sockets and
    for a clock of floats, and a world takes millions of turns.
    """

    get_debug = staticmethod(bool)
    """No. Every future asks, and this answers without a call of Python."""
    _ready: deque[Any]
    _stopping: bool

    def __init__(self, start_at: Instant = 0, chance: random.Random | None = None) -> None:
        self.start_at = start_at
        self.now_us = 0
        self.turns = 0
        """How often everything that was ready has run: the finest moments there are."""
        self.at_turn: Callable[[int], None] | None = None
        """Called between two turns; whatever awaits something is waiting just then."""
        self.next_at_turn = 0
        """From which turn on it is called: there are hundreds of thousands, and few are wanted."""
        self._last_turn = MOST_TURNS_AT_ONCE
        """Until which time has to have moved."""
        self._chance = chance
        self._order = count(1)
        self._births = count(1)
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._called_off = 0
        self._born: dict[object, _Offspring] = {}
        """By owner, because a crash asks for those of one among a dozen that are long gone."""
        still = _Stillness()
        super().__init__(still)
        # The base class has registered the pipe it wakes itself with. From here on there is none
        # but us, and whoever waited for a socket would wait for ever.
        still.sealed = True
        self.set_task_factory(self._give_birth)

    def time(self) -> float:
        return self.now_us / SECOND

    @property
    def now_at(self) -> Instant:
        """The virtual instant."""
        return self.start_at + self.now_us

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self._at(self.now_us + round(delay * SECOND), callback, args, context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self._at(round(when * SECOND), callback, args, context)

    def _at(
        self, when_us: int, callback: Any, args: Any, context: Context | None
    ) -> asyncio.TimerHandle:
        if when_us > LONGEST_US:
            raise OverflowError(f"{when_us} us lies beyond the end of virtual time")
        timer = _Timer(when_us, callback, args, self, context)
        heappush(self._timers, (when_us, next(self._order), timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Told by a timer that is called off: most are, and the heap must not fill with them."""
        self._called_off += 1
        if self._called_off <= CANCELLED_AT_LEAST:
            return
        if self._called_off > len(self._timers) // 2:
            self._timers = [timer for timer in self._timers if not timer[2].cancelled()]
            heapify(self._timers)
            self._called_off = 0

    def _run_once(self) -> None:
        """One turn: let time pass if nothing is ready, then run whatever is."""
        ready, at_turn = self._ready, self.at_turn
        self.turns += 1
        if self.turns > self._last_turn:
            # Whoever winds up has as many turns again.
            self._last_turn = self.turns + MOST_TURNS_AT_ONCE
            raise Standstill(self._standstill_text())
        busy = bool(ready) or self._stopping
        if at_turn is not None and self.turns >= self.next_at_turn:
            at_turn(self.turns)
        if not busy and not ready:  # whoever was called may have given others something to do
            self._let_time_pass()
        if len(ready) > 1 and self._chance is not None:
            self._shuffle(ready)
        timers, now_us = self._timers, self.now_us
        while timers and timers[0][0] <= now_us:
            timer = heappop(timers)[2]
            if not timer._cancelled:
                ready.append(timer)
        # What becomes ready meanwhile has its turn in the next one.
        popleft = ready.popleft
        for _ in range(len(ready)):
            handle = popleft()
            if handle._cancelled:
                continue
            try:  # as a handle does it by itself, which is called for each of them otherwise
                handle._context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self._tell_of(handle, error)

    def _tell_of(self, handle: Any, error: BaseException) -> None:
        message = f"Exception in callback {handle._callback!r}"
        told = {"message": message, "exception": error, "handle": handle}
        self.call_exception_handler(told)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> NoReturn:
        name = getattr(func, "__qualname__", repr(func))
        raise RuntimeError(f"{name} wants a thread, and there are none in virtual time")

    def unfinished(self, owner: object = None) -> list[asyncio.Task[Any]]:
        """The tasks that are not done, oldest first; all of them, or those of one owner."""
        found = [
            pair
            for whose, born in self._born.items()
            if owner is None or whose is owner
            for pair in born.unfinished()
        ]
        for gone in [whose for whose, born in self._born.items() if not born.unfinished()]:
            del self._born[gone]
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

    def _let_time_pass(self) -> None:
        """Nothing is ready: the next timer is what happens next."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heappop(timers)
        if not timers:
            raise Deadlock(self._deadlock_text())
        left_us = timers[0][0] - self.now_us
        if left_us > 0:
            self.now_us += min(left_us, LONGEST_JUMP_US)
            self._last_turn = self.turns + MOST_TURNS_AT_ONCE

    def _shuffle(self, ready: deque[asyncio.Handle]) -> None:
        assert self._chance is not None
        shuffled = list(ready)
        self._chance.shuffle(shuffled)
        ready.clear()
        ready.extend(shuffled)

    def _deadlock_text(self) -> str:
        waiting = _named(self.unfinished())
        return f"nothing is scheduled after {iso(self.now_at)}; waiting for ever: {waiting}"

    def _standstill_text(self) -> str:
        stepping = [getattr(handle._callback, "__self__", None) for handle in self._ready]
        spinning = _named([one for one in stepping if isinstance(one, asyncio.Task)])
        stands = f"time stands still at {iso(self.now_at)}"
        return f"{stands}, after {MOST_TURNS_AT_ONCE} turns in that instant; ready: {spinning}"

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
        born = self._born.get(owner)
        if born is None:
            born = self._born[owner] = _Offspring()
        born.add(number, task)
        return task


def _named(tasks: list[asyncio.Task[Any]]) -> str:
    names = [getattr(task.get_coro(), "__qualname__", "?") for task in tasks]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more if names else "nobody"


class _Handle(asyncio.Handle):
    """A callback that is ready. Made several dozen times for every message, and so without asking
    each time whether the loop is being debugged, which the base class does."""

    __slots__ = ()

    def __init__(
        self, callback: Any, args: Any, loop: VirtualLoop, context: Context | None
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None

    def cancel(self) -> None:
        self._cancelled = True
        self._callback, self._args = None, ()


class _Timer(asyncio.TimerHandle):
    """The same for a callback whose time is to come."""

    __slots__ = ()

    def __init__(
        self, when_us: int, callback: Any, args: Any, loop: VirtualLoop, context: Context | None
    ) -> None:
        self._when = when_us / SECOND
        self._scheduled = False
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None

    def cancel(self) -> None:
        if not self._cancelled:
            self._loop._timer_handle_cancelled(self)
            self._cancelled = True
            self._callback, self._args = None, ()


class _Offspring:
    """Somebody's tasks and their numbers. They are held weakly, as by every loop: one that nobody
    else holds may vanish here as well."""

    def __init__(self) -> None:
        self._all: list[tuple[int, weakref.ref[asyncio.Task[Any]]]] = []
        self._room = ROOM_AT_FIRST

    def add(self, number: int, task: asyncio.Task[Any]) -> None:
        if len(self._all) >= self._room:
            self._all = [(number, weakref.ref(task)) for number, task in self.unfinished()]
            self._room = max(ROOM_AT_FIRST, 2 * len(self._all))
        self._all.append((number, weakref.ref(task)))

    def unfinished(self) -> list[tuple[int, asyncio.Task[Any]]]:
        held = ((number, ref()) for number, ref in self._all)
        return [(number, task) for number, task in held if task is not None and not task.done()]


class VirtualClock(LoopClock):
    """A loop clock that reads a virtual loop's time as it is, without the way over seconds."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__(loop.start_at)
        self._loop = loop

    def now(self) -> Instant:
        return self.epoch_at + self._loop.now_us

    def monotonic_us(self) -> int:
        return self._loop.now_us


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


class _Stillness(selectors.SelectSelector):
    """A selector to which nothing ever happens; nobody asks it, for the loop moves its own time."""

    sealed = False

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if self.sealed:
            raise RuntimeError("there is no input or output in virtual time")
        return super().register(fileobj, events, data)
