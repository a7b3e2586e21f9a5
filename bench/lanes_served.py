"""The process that is looked at while it serves many paced lanes, in real time.

Prints its memory with the first few lanes and with all of them waiting, and while they send; its
processor time over the window; and what the sandbox's log says about the pace. The scene (accounts,
campaigns that lie ahead and one that is ready to be launched) is made by another process, because
making it takes memory, too. So does the first of everything that a process does, whatever it does
it for: what a lane takes is told by the lanes that come after the first few.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import resource
import sys
import time
import urllib.request
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import pace, scenes
from bench.serving import CountedEffects, quiet_end, run_as_service, while_serving
from paceline import logs
from paceline.app import App
from paceline.config import Settings
from paceline.core.grammar import Rate
from paceline.core.instants import HOUR, SECOND, Instant
from paceline.engine.clock import SystemClock
from paceline.engine.commands import campaigns
from paceline.engine.ports import Store

FIRST, IDLE, PACED = "first", "idle", "paced"
PARK_AFTER_US = 24 * HOUR
"""Longer than the idle campaign lies ahead: its lanes stay in memory, waiting."""
CALM_SHARE = 0.1
LANES_WITHIN_S = 300
"""How long the lanes may take to be started and to come to rest."""
BEGIN_WITHIN_S = 60
"""How long they may take until each has sent once."""
LOOK_EVERY_S = 0.5

_ATTEMPTS = re.compile(
    rb'^paceline_attempts_total\{account="[^"]*",outcome="([^"]*)"\} (\S+)$', re.MULTILINE
)
_RUNNING = re.compile(rb"^paceline_lanes_running (\S+)$", re.MULTILINE)


@dataclass(slots=True)
class Watch:
    """What is asked of one service, step by step, and what was found."""

    store: Store
    effects: CountedEffects
    all_began: asyncio.Event
    lanes: int
    rate: Rate
    warm_up_s: float
    window_s: float
    windows: int
    clock: SystemClock = field(default_factory=SystemClock)
    url: asyncio.Future[str] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    found: dict[str, Any] = field(default_factory=dict)
    _windows: list[tuple[Instant, int, float]] = field(default_factory=list)

    async def look(self) -> None:
        await self.url
        first = first_lanes(self.lanes)
        await asyncio.to_thread(self._launch, FIRST)
        before = await self._memory_with(first)
        await asyncio.to_thread(self._launch, IDLE)
        waiting = await self._memory_with(self.lanes)
        self.found["kb_per_idle_lane"] = (waiting - before) / (self.lanes - first) / 1024
        self.found["idle_mb"] = waiting / 2**20
        await asyncio.to_thread(self._launch, PACED)
        # Where they do not all begin in time, the share that was sent will tell.
        with suppress(TimeoutError):
            async with asyncio.timeout(BEGIN_WITHIN_S):
                await self.all_began.wait()
        await asyncio.sleep(self.warm_up_s)
        for _ in range(self.windows):
            await self._window()
        self.found["sending_mb"] = _memory_bytes() / 2**20
        self.found["withdrawn"] = _withdrawn(await self._metrics())

    async def _window(self) -> None:
        began_at, began_us, cpu_s = self.clock.now(), self.clock.monotonic_us(), time.process_time()
        await asyncio.sleep(self.window_s)
        took_us = self.clock.monotonic_us() - began_us
        share = (time.process_time() - cpu_s) * SECOND / took_us
        self._windows.append((began_at, took_us, share))

    def judge(self) -> None:
        """Once everything has ended, so that it takes nobody's time."""
        calls = self._calls()
        instants = [at for each in calls for at in each]
        self.found["cpu_share"] = [share for _, _, share in self._windows]
        self.found["per_second"], self.found["achieved_share"] = [], []
        for began_at, took_us, _ in self._windows:
            within = sum(began_at <= at < began_at + took_us for at in instants)
            may = pace.allowed(self.rate, self.lanes, took_us)
            self.found["per_second"].append(within * SECOND / took_us)
            self.found["achieved_share"].append(within / may)
        self.found["sending"] = len(calls)
        self.found["sends"] = sum(map(len, calls))
        worst = (pace.overshoot(each, self.rate) for each in calls)
        self.found["overshoot"] = max(worst, default=0.0)

    def _calls(self) -> list[list[Instant]]:
        by_account: dict[str, list[Instant]] = defaultdict(list)
        for effect in self.effects.all():
            by_account[effect.account].append(effect.called_at)
        return list(by_account.values())

    def _launch(self, name: str) -> None:
        with self.store.write() as tx:
            campaigns.launch(tx, name, self.clock.now())

    async def _memory_with(self, lanes: int) -> int:
        await self._until_running(lanes)
        await self._until_calm()
        return _memory_bytes()

    async def _until_running(self, lanes: int) -> None:
        """As an operator would find out: by what the service says of itself."""
        async with asyncio.timeout(LANES_WITHIN_S):
            while _lanes_running(await self._metrics()) < lanes:  # noqa: ASYNC110
                await asyncio.sleep(LOOK_EVERY_S)

    async def _metrics(self) -> bytes:
        return await asyncio.to_thread(_page, f"{await self.url}/metrics")

    async def _until_calm(self) -> None:
        """Until the process has nearly nothing to do: every lane has begun, and waits."""
        async with asyncio.timeout(LANES_WITHIN_S):
            share = 1.0
            while share > CALM_SHARE:
                cpu_s = time.process_time()
                await asyncio.sleep(1)
                share = time.process_time() - cpu_s
        gc.collect()


def first_lanes(lanes: int) -> int:
    """How many are started before the memory is looked at for the first time."""
    return max(1, lanes // 10)


class FirstOfEach(CountedEffects):
    """The log that tells when every account has sent once."""

    def __init__(self, accounts: int, all_began: asyncio.Event) -> None:
        super().__init__(0, asyncio.Event(), SystemClock())
        self._accounts = accounts
        self._seen: set[str] = set()
        self._all_began = all_began

    def record(self, effect: Any) -> None:
        super().record(effect)
        if len(self._seen) < self._accounts:
            self._seen.add(effect.account)
            if len(self._seen) == self._accounts:
                self._all_began.set()


def _page(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=120) as page:  # noqa: S310  (our own service)
        written: bytes = page.read()
    return written


def _lanes_running(metrics: bytes) -> float:
    found = _RUNNING.search(metrics)
    return float(found[1]) if found else 0.0


def _withdrawn(metrics: bytes) -> float:
    """Attempts whose intent was committed in vain: the lease, or the day, was over by then.

    The sandbox accepts everything here, so whatever was not accepted never reached it.
    """
    return sum(float(count) for kind, count in _ATTEMPTS.findall(metrics) if kind != b"accepted")


def _memory_bytes() -> int:
    """What this process holds in memory now; where that is not told, at most until now."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


async def _watch(store: Store, asked: argparse.Namespace, found: dict[str, Any]) -> None:
    all_began = asyncio.Event()
    effects = FirstOfEach(asked.lanes, all_began)
    rate = Rate.parse(asked.rate)
    times = (asked.warm_up, asked.window, asked.windows)
    watch = Watch(store, effects, all_began, asked.lanes, rate, *times)
    settings = Settings(database=asked.url, port=0, park_after_us=PARK_AFTER_US)
    app = App(settings, store, watch.clock, scenes.house(watch.clock, effects))
    await while_serving(app, watch.look, watch.url.set_result)
    watch.judge()
    found.update(watch.found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("lanes", type=int)
    parser.add_argument("rate")
    parser.add_argument("--warm-up", type=float, default=10)
    parser.add_argument("--window", type=float, default=12)
    parser.add_argument("--windows", type=int, default=5)
    asked = parser.parse_args()
    quiet_end()
    logs.configure("info", "json")
    found: dict[str, Any] = {}
    with scenes.opened(asked.url) as store:
        run_as_service(_watch(store, asked, found))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
