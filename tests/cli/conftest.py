"""A command line to type into: a folder of its own, a clock that stands still, and its answers."""

import asyncio
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from paceline import app
from paceline.cli.main import main
from paceline.core.instants import Instant, parse_instant
from paceline.engine.ports import Alarm
from tests.logging_kept import logging_as_before

NOW: Instant = parse_instant("2026-11-15T10:00:00Z")
"""A Sunday, so that office hours are shut."""


class StillClock:
    """Time passes only while somebody sleeps."""

    def __init__(self, now: Instant) -> None:
        self.now_at = now

    def now(self) -> Instant:
        return self.now_at

    def monotonic_us(self) -> int:
        return self.now_at

    async def sleep_until(self, at: Instant) -> None:
        self.now_at = max(self.now_at, at)
        await asyncio.sleep(0)

    async def sleep(self, us: int) -> None:
        await self.sleep_until(self.now_at + us)

    def alarm(self, at: Instant, ring: Callable[[], None]) -> Alarm:
        self.now_at = max(self.now_at, at)
        return asyncio.get_running_loop().call_soon(ring)

    def timer(self, us: int, ring: Callable[[], None]) -> Alarm:
        return self.alarm(self.now_at + us, ring)


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line on stderr, if it is one."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert self.out == ""
        return lines[0]


class CommandLine:
    """Types commands into ``paceline``, all in one folder."""

    def __init__(self, folder: Path, clock: Any, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.clock = clock
        self._capsys = capsys

    def __call__(self, *words: str) -> Answer:
        self._capsys.readouterr()
        code = main(words)
        captured = self._capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    def ok(self, *words: str) -> Answer:
        answer = self(*words)
        assert answer.code == 0, answer.err
        return answer

    def refused(self, *words: str) -> str:
        """The complaint of a command that must be refused as bad input."""
        answer = self(*words)
        assert answer.code == 2, answer
        return answer.complaint

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def counts(self) -> dict[str, int]:
        """How many rows the tables have that commands write to."""
        tables = ("accounts", "campaigns", "runs", "deliveries", "media", "events", "lanes")
        path = self.folder / "paceline.db"
        if not path.exists():
            return dict.fromkeys(tables, 0)
        connection = sqlite3.connect(path)
        try:
            return {
                table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in tables
            }
        finally:
            connection.close()


@pytest.fixture(autouse=True)
def logging_kept() -> Iterator[None]:
    with logging_as_before():
        yield


@pytest.fixture
def clock() -> StillClock:
    return StillClock(NOW)


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, and no variable that could mean anything to Paceline."""
    for variable in [name for name in os.environ if name.startswith("PACELINE_")]:
        monkeypatch.delenv(variable)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def paceline(
    alone: Path,
    clock: StillClock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> CommandLine:
    monkeypatch.setattr(app, "SystemClock", lambda: clock)
    return CommandLine(alone, clock, capsys)


CAMPAIGN = """
name = "spring"
accounts = ["sales", "team"]
audience = "people.csv"
[[parts]]
text = "Hello {{ first_name }}"
[[parts]]
media = "poster.png"
caption = "See you there"
"""
PEOPLE = "address,first_name\nanna@example.com,Anna\nbob@example.com,Bob\ncleo@example.com,Cleo\n"


@pytest.fixture
def spring(paceline: CommandLine) -> Callable[..., Path]:
    """Writes a campaign with its audience and its media; what is given replaces the usual."""

    def write(campaign: str = CAMPAIGN, people: str | bytes = PEOPLE) -> Path:
        paceline.write("people.csv", people)
        paceline.write("poster.png", b"\x89PNG not really")
        return paceline.write("spring.toml", campaign)

    return write


@pytest.fixture
def accounts(paceline: CommandLine) -> CommandLine:
    """Two accounts: one that may not send on a Sunday, one that may."""
    paceline.ok("account", "add", "sales", "--provider", "sandbox", "--policy", "cold-email")
    paceline.ok("account", "add", "team", "--provider", "sandbox", "--set", "rate=40/min")
    return paceline
