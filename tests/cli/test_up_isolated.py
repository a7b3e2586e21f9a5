"""``paceline up`` with a worker for every account: signals from a terminal, and what is shown."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.engine.clock import SystemClock
from paceline.service import AT_ONCE
from tests.cli.conftest import CommandLine
from tests.processes.service import eventually, lives


class Terminal:
    """A service in a session of its own: Ctrl-C is for everybody in it, as on a terminal."""

    def __init__(self, folder: Path) -> None:
        settings = {"PACELINE_ISOLATION": "process", "PACELINE_LOG_FORMAT": "json"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "paceline", "up", "--port", "0"],
            cwd=folder,
            env=os.environ | settings | {"PACELINE_POLL": "50ms"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def line(self, event: str) -> dict[str, Any]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            entry: dict[str, Any] = json.loads(line)
            if entry["event"].startswith(event):
                return entry
        raise AssertionError(f"it never said {event!r}")

    def ctrl_c(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> tuple[int, str]:
        out, err = self.process.communicate()
        assert out == "", "a service has nothing to answer, and its workers neither"
        return self.process.returncode, err


@pytest.fixture
def terminal(alone: Path) -> Iterator[Terminal]:
    service = Terminal(alone)
    yield service
    if service.process.poll() is None:
        service.process.kill()
    service.process.communicate()


@pytest.fixture
def typed(alone: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(alone, SystemClock(), capsys)


def worker_under_way(terminal: Terminal, typed: CommandLine) -> int:
    """A worker whose message takes a while, by its number; until it is with the provider."""
    terminal.line("joined")
    typed.ok("send", "team", "timeout@example.com", "--text", "hello")
    worker = terminal.line("worker started")
    while typed.ok("why", "1", "--json").json["state"] != "sending":
        assert terminal.process.poll() is None
    return int(worker["pid"])


def test_ctrl_c_is_the_service_s_and_its_workers_settle_what_is_under_way(
    typed: CommandLine, terminal: Terminal
) -> None:
    slow = ("--option", "timeout_latency=2s", "--set", "timeout=1h")
    typed.ok("account", "add", "team", "--provider", "sandbox", *slow)
    pid = worker_under_way(terminal, typed)
    terminal.ctrl_c()
    code, log = terminal.end()
    assert code == 0
    events = [json.loads(line)["event"] for line in log.splitlines()]
    assert events[-3:] == ["worker ended", "left", "stopped"]
    assert "worker crashed" not in events
    assert not lives(pid)
    assert typed.ok("why", "1", "--json").json["state"] != "sending", "it has settled"
    assert typed.ok("verify").out == "every invariant holds\n"


def test_a_second_ctrl_c_ends_the_workers_as_well(typed: CommandLine, terminal: Terminal) -> None:
    slow = ("--option", "timeout_latency=10m", "--set", "timeout=1h")
    typed.ok("account", "add", "team", "--provider", "sandbox", *slow)
    pid = worker_under_way(terminal, typed)
    with open(f"/proc/{pid}/cmdline", "rb") as words:
        told = words.read().split(b"\0")[1:-1]
    assert told == [b"-P", b"-m", b"paceline", b"worker", b"--accounts", b"1"], "no secret in it"
    terminal.ctrl_c()
    terminal.line("stopping")
    terminal.ctrl_c()
    code, log = terminal.end()
    assert code == 130
    assert log.splitlines()[-1] == AT_ONCE
    eventually(lambda: not lives(pid), "the worker is gone")


def test_the_worker_s_command_is_not_for_people(paceline: CommandLine) -> None:
    assert "worker" not in paceline.ok("--help").out
    assert "For a service that is told to isolate them" in paceline.ok("worker", "--help").out
    said = paceline.refused("worker", "--accounts", "ann")
    assert said == "paceline: --accounts: 'ann' are no numbers of accounts"
