"""What goes wrong around a process: a store that fails at a chosen commit, a wire that is cut at a
chosen call, and a host that stands still.

Each stands between a process and a real port, and is told at every crossing what to do. None of
them knows what the engine looks like inside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from paceline.core.errors import StoreUnavailable
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome
from paceline.engine.clock import LoopClock
from paceline.engine.ports import (
    Account,
    Alarm,
    Capabilities,
    Clock,
    Driver,
    Found,
    LaneUnit,
    Media,
    Message,
    Provider,
    Store,
    Uploaded,
)
from paceline.providers.registry import Registry

T = TypeVar("T")

CommitMoment = Literal["before", "after"]
"""Before the commit, so that nothing is stored; or after it, so that only the answer is lost."""
CallMoment = Literal["before", "during", "after"]
"""Before anything is on the wire; while it is; or with the answer in hand."""


def never(number: int, moment: str) -> None:
    return


class TrippedStore:
    """A store that calls ``trip`` around every commit; what it raises is the commit's fate."""

    def __init__(self, store: Store, trip: Callable[[int, CommitMoment], None] = never) -> None:
        self._store = store
        self.trip = trip
        self.look: Callable[[], None] = lambda: None
        self.commits = 0

    @property
    def prompt(self) -> bool:
        return self._store.prompt

    @contextmanager
    def write(self, *, at_once: bool = False) -> Iterator[Any]:
        self.look()
        self.commits += 1
        number = self.commits
        with self._store.write(at_once=at_once) as tx:
            yield tx
            self.trip(number, "before")
        self.trip(number, "after")

    def set_off(self, units: Sequence[LaneUnit]) -> None:
        """Every commit is tripped over."""
        return None

    @contextmanager
    def read(self) -> Iterator[Any]:
        self.look()
        with self._store.read() as tx:
            yield tx

    def analyse(self) -> None:
        self._store.analyse()

    def wipe(self) -> bool:
        return bool(self._store.wipe())

    def close(self) -> None:
        self._store.close()


class LostStore(TrippedStore):
    """A store that goes away at a chosen commit and comes back after a while."""

    def __init__(
        self, store: Store, clock: Clock, at: int, moment: CommitMoment, away_us: int
    ) -> None:
        super().__init__(store, self._go)
        self.look = self._refuse
        self._clock = clock
        self._target = (at, moment)
        self._away_us = away_us
        self._back_at: Instant = 0
        self.gone = False

    @property
    def back(self) -> bool:
        """Whether it went away and is there again."""
        return self.gone and self._clock.now() >= self._back_at

    def _go(self, number: int, moment: CommitMoment) -> None:
        if (number, moment) == self._target:
            self.gone = True
            self._back_at = self._clock.now() + self._away_us
        self._refuse()

    def _refuse(self) -> None:
        if self._clock.now() < self._back_at:
            raise StoreUnavailable("the database cannot be reached")


class Wire:
    """A provider behind a wire that ``trip`` may cut, and on which messages outlive their sender.

    What was put on the wire arrives: a process that dies while it waits for the answer cannot take
    its message back.
    """

    def __init__(self, provider: Provider, trip: Callable[[int, CallMoment], None] = never) -> None:
        self._provider = provider
        self.name = provider.name
        self.secrets = provider.secrets
        self.capabilities_of = provider.capabilities_of
        self.trip = trip
        self.calls = 0

    @property
    def capabilities(self) -> Capabilities:
        return self._provider.capabilities

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return self._provider.check(settings)

    async def open(self, account: Account) -> Driver:
        return _WireDriver(self, await self._provider.open(account))

    def registry(self) -> Registry:
        return Registry([self])


class _WireDriver:
    def __init__(self, wire: Wire, driver: Driver) -> None:
        self._wire = wire
        self._driver = driver

    @property
    def capabilities(self) -> Capabilities:
        return self._driver.capabilities

    async def send(self, message: Message) -> Outcome:
        self._wire.calls += 1
        number = self._wire.calls
        self._wire.trip(number, "before")
        under_way = asyncio.ensure_future(self._driver.send(message))
        self._wire.trip(number, "during")
        outcome = await asyncio.shield(under_way)
        self._wire.trip(number, "after")
        return outcome

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        return await self._driver.upload(media, content)

    async def find(self, message: Message, since_at: Instant) -> Found:
        return await self._driver.find(message, since_at)

    async def close(self) -> None:
        # A real connection that is closed does not stop what was sent before.
        return


class Standstill:
    """A host that can stand still: nothing of its processes moves until it goes on.

    Give a process its ``clock``, ``runner`` and ``providers``. Whatever the process is waiting for
    while it stands still, it hears of afterwards; time, meanwhile, passes for everybody.
    """

    def __init__(self, clock: LoopClock, provider: Provider) -> None:
        self._moving = asyncio.Event()
        self._moving.set()
        self._clock = clock
        self.clock = _StandingClock(clock, self)
        self.runner = _StandingRunner(self)
        self.wire = Wire(_StandingProvider(provider, self))
        self.before: Callable[[Callable[[], Any]], None] = lambda function: None
        self.after: Callable[[Callable[[], Any]], None] = lambda function: None

    def ports(self) -> dict[str, Any]:
        return {
            "clock": self.clock,
            "runner": self.runner,
            "providers": self.wire.registry(),
        }

    def freeze(self) -> None:
        self._moving.clear()

    def thaw(self) -> None:
        self._moving.set()

    def freeze_for(self, us: int) -> None:
        self.freeze()
        self._thawing = asyncio.ensure_future(self._thaw_after(us))

    async def _thaw_after(self, us: int) -> None:
        await self._clock.sleep_until(self._clock.now() + us)
        self.thaw()

    @property
    def frozen(self) -> bool:
        return not self._moving.is_set()

    async def pass_gate(self) -> None:
        await self._moving.wait()

    def when_moving(self, act: Callable[[], None]) -> None:
        """Do something now, or when the host goes on."""
        if self._moving.is_set():
            act()
        else:
            self._delayed = asyncio.ensure_future(self._after_gate(act))

    async def _after_gate(self, act: Callable[[], None]) -> None:
        await self.pass_gate()
        act()


def intends(function: Any) -> bool:
    """Whether what a runner is given is the commit of a group with an intent in it."""
    arguments = getattr(function, "args", ())
    group = arguments[-1] if arguments else []
    return any(entry.unit is not None and entry.unit.intent is not None for entry in group)


class _StandingClock:
    def __init__(self, clock: LoopClock, host: Standstill) -> None:
        self._clock = clock
        self._host = host

    def now(self) -> Instant:
        return self._clock.now()

    def monotonic_us(self) -> int:
        return self._clock.monotonic_us()

    async def sleep_until(self, at: Instant) -> None:
        await self._clock.sleep_until(at)
        await self._host.pass_gate()

    async def sleep(self, us: int) -> None:
        await self._clock.sleep(us)
        await self._host.pass_gate()

    def alarm(self, at: Instant, ring: Callable[[], None]) -> Alarm:
        return self._clock.alarm(at, lambda: self._host.when_moving(ring))

    def timer(self, us: int, ring: Callable[[], None]) -> Alarm:
        return self._clock.timer(us, lambda: self._host.when_moving(ring))


class _StandingRunner:
    """Runs store calls inline, unless the host stands still before or after one."""

    def __init__(self, host: Standstill) -> None:
        self._host = host

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        host = self._host
        host.before(function)
        await host.pass_gate()
        result = function()
        host.after(function)
        await host.pass_gate()
        return result

    def close(self) -> None:
        return


class _StandingProvider:
    def __init__(self, provider: Provider, host: Standstill) -> None:
        self._provider = provider
        self._host = host
        self.name = provider.name
        self.secrets = provider.secrets
        self.capabilities_of = provider.capabilities_of

    @property
    def capabilities(self) -> Capabilities:
        return self._provider.capabilities

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return self._provider.check(settings)

    async def open(self, account: Account) -> Driver:
        return _StandingDriver(await self._provider.open(account), self._host)


class _StandingDriver:
    def __init__(self, driver: Driver, host: Standstill) -> None:
        self._driver = driver
        self._host = host

    @property
    def capabilities(self) -> Capabilities:
        return self._driver.capabilities

    async def send(self, message: Message) -> Outcome:
        outcome = await self._driver.send(message)
        await self._host.pass_gate()
        return outcome

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        answer = await self._driver.upload(media, content)
        await self._host.pass_gate()
        return answer

    async def find(self, message: Message, since_at: Instant) -> Found:
        found = await self._driver.find(message, since_at)
        await self._host.pass_gate()
        return found

    async def close(self) -> None:
        await self._driver.close()
