"""What one message and the beginning of one turn take by themselves, in a process of their own.

As a program: takes in so many reports, one after the other, each of another customer, and then
begins their turns; prints the median of each in milliseconds, and that of the processor's time,
which says more where the machine is busy with something else. Both end when they are durable. Their
HTTP is not counted, and neither is the pause before each, in which nothing is written: a lone
message waits for no company.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from functools import partial
from statistics import median

from bench import reports, scenes
from bench.serving import quiet_end, run_as_service
from paceline import logs
from paceline.app import GATHER_US, READERS
from paceline.core.instants import MILLISECOND, SECOND
from paceline.engine import conversations
from paceline.engine.answering import LEASE_US
from paceline.engine.clock import SystemClock
from paceline.engine.journal import GroupJournal, ThreadRunner
from paceline.engine.ports import Store
from paceline.engine.reporting import ReportDesk

PAUSE_S = (GATHER_US + 2 * MILLISECOND) / SECOND
HISTORY = 20


class Times:
    """How long something took, by the clock and of the processor's time, time after time."""

    def __init__(self) -> None:
        self._taken: list[tuple[float, float]] = []
        self._began = (0.0, 0.0)

    def begin(self) -> None:
        self._began = (time.perf_counter(), time.process_time())

    def end(self) -> None:
        wall_s, cpu_s = self._began
        self._taken.append((time.perf_counter() - wall_s, time.process_time() - cpu_s))

    def medians(self) -> dict[str, float]:
        names = ("ms", "cpu_ms")
        every = zip(names, zip(*self._taken, strict=True), strict=True)
        return {name: round(median(taken) * 1_000, 3) for name, taken in every}


async def _timed(store: Store, count: int, found: dict[str, float]) -> None:
    clock, ours = SystemClock(), reports.house()
    (path,) = reports.add_accounts(store, ours, 1)
    _, _, name, secret = path.split("/")
    journal = GroupJournal(
        store,
        clock,
        writer=ThreadRunner("paceline-writer"),
        reader=ThreadRunner("paceline-reader", READERS),
        gather_us=GATHER_US,
        here=True,
    )
    desk = ReportDesk(journal, clock, ours.providers)
    buffering, locks = Times(), Times()
    for number in range(count):
        body = reports.body(number, count)
        await asyncio.sleep(PAUSE_S)
        buffering.begin()
        admitted = desk.known(name, secret) or await desk.admit(name, secret)
        assert admitted is not None
        assert await desk.take(admitted, {}, body, {}) == "taken"
        buffering.end()
    due_at = clock.now() + 2 * reports.LISTENS_US
    due = await journal.read(lambda tx: tx.conversations.list(waiting=True, limit=count))
    assert len(due) == count
    for one in due:
        await asyncio.sleep(PAUSE_S)
        locks.begin()
        work = partial(
            conversations.begin,
            conversation_id=one.id,
            owner="bench",
            lease_us=LEASE_US,
            at=due_at,
            history=HISTORY,
        )
        question = await journal.write(work)
        locks.end()
        assert question is not None and len(question.burst.said) == 1
    await journal.close()
    found |= {f"buffering_{name}": value for name, value in buffering.medians().items()}
    found |= {f"lock_{name}": value for name, value in locks.medians().items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("count", type=int)
    asked = parser.parse_args()
    quiet_end()
    logs.configure("info", "json")
    found: dict[str, float] = {}
    with scenes.opened(asked.url) as store:
        run_as_service(_timed(store, asked.count, found))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
