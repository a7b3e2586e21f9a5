"""A process that is `paceline up` in everything but its sandbox's log, which is kept in memory.

As a program: serves a launched campaign to its end and prints how long that took, from the start
of the service, with the lanes due, until the run is finished: everything sent, settled and counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import Any

# The service imports these late, and nobody wants to measure that.
import paceline.api.metrics
import paceline.api.server  # noqa: F401
from bench import scenes
from bench.threads import ThreadBook
from paceline import logs
from paceline.app import App, serve
from paceline.config import Settings
from paceline.core.instants import SECOND
from paceline.core.states import RunState
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Clock, Crossing, LaneUnit, Store, Tx
from paceline.interpreter import loop_factory, tune_interpreter
from paceline.providers.sandbox import Effect, MemoryEffects

LOOK_EVERY_S = 0.002


class CountedEffects(MemoryEffects):
    """The sandbox's log, which says when it holds as many effects as were hoped for, and since
    when it holds any."""

    def __init__(self, hoped_for: int, reached: asyncio.Event, clock: Clock) -> None:
        super().__init__()
        self._left = hoped_for
        self._reached = reached
        self._clock = clock
        self.began_us: int | None = None

    def record(self, effect: Effect) -> None:
        super().record(effect)
        if self.began_us is None:
            self.began_us = self._clock.monotonic_us()
        self._left -= 1
        if not self._left:
            self._reached.set()


class CountedStore:
    """A store that counts its write transactions: one for each group of the journal."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.groups = 0

    @property
    def prompt(self) -> bool:
        return self._store.prompt

    def write(self, *, at_once: bool = False) -> AbstractContextManager[Tx]:
        self.groups += 1
        return self._store.write(at_once=at_once)

    def set_off(self, units: Sequence[LaneUnit]) -> Crossing | None:
        crossing = self._store.set_off(units)
        self.groups += crossing is not None
        return crossing

    def read(self) -> AbstractContextManager[Tx]:
        return self._store.read()

    def analyse(self) -> None:
        self._store.analyse()

    def close(self) -> None:
        self._store.close()


def run_as_service(work: Coroutine[Any, Any, None]) -> None:
    """In the loop that the service would run in, and with the interpreter set as it sets it."""
    tune_interpreter()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(work)


def quiet_end() -> None:
    """Ctrl-C reaches every process of the terminal; only the first has something to say."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


async def while_serving(
    app: App,
    work: Callable[[], Coroutine[Any, Any, None]],
    serving: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve for as long as the work takes; a service that fails ends the work."""
    stop = asyncio.Event()
    service = asyncio.ensure_future(serve(app, stop=stop, serving=serving))
    working = asyncio.ensure_future(work())
    try:
        await asyncio.wait({service, working}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.set()
        await service
    await working


async def _send_all(store: CountedStore, url: str, count: int, found: dict[str, Any]) -> None:
    clock, reached = SystemClock(), asyncio.Event()
    effects = CountedEffects(count, reached, clock)
    settings = Settings(database=url, port=0)
    app = App(settings, store, clock, scenes.house(clock, effects))

    async def until_finished() -> None:
        await reached.wait()
        # All are with the provider; what is left is the last settlements, a few milliseconds.
        while not await asyncio.to_thread(is_finished, store):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_EVERY_S)
        # Loading a program and opening a port is no part of the message path.
        found["seconds"] = (clock.monotonic_us() - (effects.began_us or 0)) / SECOND
        found["groups"] = store.groups

    await while_serving(app, until_finished)
    keys = {effect.key for effect in effects.all() if effect.accepted}
    if len(keys) != count or len(effects.all()) != count:
        raise AssertionError(f"{count} were to be sent, {len(keys)} were accepted")


def is_finished(store: CountedStore | Store) -> bool:
    with store.read() as tx:
        return scenes.only_run(tx).state is RunState.SUCCESS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("count", type=int)
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    quiet_end()
    # What a service started by a machine says and how: it is part of the price.
    logs.configure("info", "json")
    book = ThreadBook(profiled=asked.profile)
    book.watch()
    found: dict[str, Any] = {"count": asked.count}
    with scenes.opened(asked.url) as opened:
        store = CountedStore(opened)
        work = _send_all(store, asked.url, asked.count, found)
        book.keep("loop", lambda: run_as_service(work))
        scenes.check_sent(opened, asked.count)
    found["cpu_s"] = {name: round(spent_s, 3) for name, spent_s in book.cpu_s.items()}
    if asked.profile:
        found["profiles"] = book.profiles()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
