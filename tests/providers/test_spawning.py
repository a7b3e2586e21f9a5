"""Workers as real processes, with a program in place of ours that does whatever it is told."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from paceline.core.reports import Assignment, Joined, LaneCrash, Report, write_report
from paceline.providers.spawning import ProcessWorker, ProcessWorkers

TELL = "import sys, os; tell = lambda line: os.write(1, line.encode() + b'\\n')\n"


class Stage:
    """A program's text as a worker, and what was heard of it."""

    def __init__(self, program: str) -> None:
        self.workers = ProcessWorkers(
            os.environ, lambda name: f"{name}\n".encode(), (sys.executable, "-c", TELL + program)
        )
        self.heard: list[Report] = []
        self._news = asyncio.Event()

    def hear(self, report: Report) -> None:
        self.heard.append(report)
        self._news.set()

    async def start(self) -> ProcessWorker:
        return await self.workers.start("one worker 1", [3, 4], self.hear)

    async def until_heard(self, count: int) -> None:
        while len(self.heard) < count:
            self._news.clear()
            await self._news.wait()


def play(program: str, scene: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(60):
            await scene(Stage(program))

    asyncio.run(whole())


JOINED = write_report(Joined(7)).decode().strip()


def test_what_it_says_is_heard_and_what_it_is_told_arrives() -> None:
    async def scene(stage: Stage) -> None:
        worker = await stage.start()
        await stage.until_heard(1)
        worker.assign(Assignment((5,), (LaneCrash(5, 1, None),)))
        await stage.until_heard(2)
        worker.stop()
        assert await worker.ended() == 0
        # What it was told, how it was started, and that the end of its input is its end.
        assert stage.heard == [
            Joined(7),
            LaneCrash(5, 1, None),
            LaneCrash(1, 2, 3),
        ]

    play(
        "import json\n"
        f"tell({JOINED!r})\n"
        "assert sys.stdin.readline() == 'one worker 1\\n'\n"
        "ids, crashes = json.loads(sys.stdin.readline())\n"
        "assert sys.argv[1:] == ['--accounts', '3,4'], sys.argv\n"
        "assert os.getsid(0) == os.getpid()\n"
        "tell(json.dumps(['LaneCrash', *crashes[0]]))\n"
        "assert sys.stdin.read() == ''\n"
        "tell(json.dumps(['LaneCrash', 1, 2, 3]))\n",
        scene,
    )


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("sys.exit(3)", 3),
        ("os.kill(os.getpid(), 11)", -signal.SIGSEGV),
    ],
)
def test_how_it_ended_is_known(program: str, code: int) -> None:
    async def scene(stage: Stage) -> None:
        worker = await stage.start()
        assert await worker.ended() == code
        # Whoever comes too late does no harm.
        worker.assign(Assignment((5,)))
        worker.stop()
        worker.kill()

    play(program, scene)


def test_one_that_does_not_listen_can_be_ended_and_so_can_all_at_once() -> None:
    async def scene(stage: Stage) -> None:
        first, second, third = [await stage.start() for _ in range(3)]
        await stage.until_heard(3)
        first.stop()
        first.kill()
        assert await first.ended() == -signal.SIGKILL
        stage.workers.kill_all()
        assert await second.ended() == await third.ended() == -signal.SIGKILL

    play(f"tell({JOINED!r})\nimport signal\nwhile True: signal.pause()", scene)


def test_nonsense_is_not_heard_and_what_follows_it_is() -> None:
    async def scene(stage: Stage) -> None:
        worker = await stage.start()
        assert await worker.ended() == 0
        assert stage.heard == [Joined(7)], "also what it said last"

    play(f"tell('nonsense')\ntell('[1]')\ntell({JOINED!r})", scene)


def test_a_program_that_is_not_there_cannot_be_started(tmp_path: Path) -> None:
    async def scene() -> None:
        workers = ProcessWorkers(os.environ, str.encode, (str(tmp_path / "none"),))
        with pytest.raises(OSError):
            await workers.start("one", [1], lambda report: None)

    asyncio.run(scene())
