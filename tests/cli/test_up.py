"""``paceline up`` as a process of its own: what it says, what signals mean, how it ends."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from paceline.engine.clock import SystemClock
from paceline.service import AT_ONCE
from tests.cli.conftest import CommandLine


class Up:
    """One service, its log read line by line."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "paceline", "up", *words],
            cwd=folder,
            env=os.environ | {"PACELINE_LOG_FORMAT": "json", "PACELINE_POLL": "50ms"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self, event: str) -> dict[str, Any]:
        """The next line that tells of this event."""
        assert self.process.stderr is not None
        seen = []
        for line in self.process.stderr:
            seen.append(line)
            entry: dict[str, Any] = json.loads(line)
            if entry["event"].startswith(event):
                return entry
        raise AssertionError(f"it never said {event!r}: {''.join(seen)}")

    def end(self) -> tuple[int, str]:
        out, err = self.process.communicate()
        assert out == "", "a service has nothing to answer"
        return self.process.returncode, err


@pytest.fixture
def up(alone: Path) -> Iterator[Callable[..., Up]]:
    started: list[Up] = []

    def start(*words: str) -> Up:
        started.append(Up(alone, *words))
        return started[-1]

    yield start
    for service in started:
        if service.process.poll() is None:
            service.process.kill()
        service.process.communicate()


@pytest.fixture
def typed(alone: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The command line beside the service, both by the clock on the wall."""
    return CommandLine(alone, SystemClock(), capsys)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_gracefully(up: Callable[..., Up], number: signal.Signals) -> None:
    service = up("--port", "0")
    url = service.line("serving")["url"]
    service.line("joined")
    assert httpx.get(f"{url}/healthz").status_code == 200
    service.process.send_signal(number)
    code, log = service.end()
    assert code == 0
    assert [json.loads(line)["event"] for line in log.splitlines()][-2:] == ["left", "stopped"]


def test_one_message_now_beside_the_service(up: Callable[..., Up], typed: CommandLine) -> None:
    service = up("--port", "0")
    service.line("joined")
    typed.ok("account", "add", "team", "--provider", "sandbox")
    out = typed.ok("send", "team", "--self", "--text", "hello", "--wait").out
    assert out.splitlines()[-1].startswith("delivery 1 was sent at ")
    assert typed("send", "team", "bounce@example.com", "--text", "hello", "--wait").code == 1
    assert typed.ok("verify").out == "every invariant holds\n"
    service.process.terminate()
    assert service.end()[0] == 0
    assert len((typed.folder / "paceline-sandbox.jsonl").read_text().splitlines()) == 2


def test_a_second_ctrl_c_stops_at_once_and_says_what_that_means(
    up: Callable[..., Up], typed: CommandLine
) -> None:
    slow = ("--option", "timeout_latency=10m", "--set", "timeout=1h")
    typed.ok("account", "add", "team", "--provider", "sandbox", *slow)
    service = up("--port", "0")
    service.line("joined")
    typed.ok("send", "team", "timeout@example.com", "--text", "hello")
    while typed.ok("why", "1", "--json").json["state"] != "sending":
        assert service.process.poll() is None
    service.process.send_signal(signal.SIGINT)
    service.line("stopping")
    service.process.send_signal(signal.SIGINT)
    code, log = service.end()
    assert code == 130
    assert log.splitlines()[-1] == AT_ONCE


def test_a_port_in_use(up: Callable[..., Up]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, log = up("--port", str(port)).end()
    assert code == 1
    assert log == (
        f"paceline: port {port} on 127.0.0.1 is in use; choose another with --port, "
        "or stop whoever has it\n"
    )


def test_two_services_on_one_file(up: Callable[..., Up], typed: CommandLine) -> None:
    services = [up("--port", "0", "--name", name) for name in ("one", "two")]
    for service in services:
        service.line("joined")
    typed.ok("account", "add", "team", "--provider", "sandbox")
    for number in range(5):
        typed.ok("send", "team", f"{number}@example.com", "--text", "hello", "--wait")
    for service in services:
        service.process.terminate()
        assert service.end()[0] == 0
    effects = (typed.folder / "paceline-sandbox.jsonl").read_text().splitlines()
    assert len(effects) == 5, "each was sent once, whoever sent it"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--database", "nowhere/p.db"), "paceline: nowhere/p.db cannot be opened"),
        (("--database", "mysql://x/y"), "paceline: 'mysql' is not a database Paceline can use"),
    ],
)
def test_a_service_without_a_database(alone: Path, words: tuple[str, ...], complaint: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "paceline", *words, "up", "--port", "0"],
        cwd=alone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in (1, 2)
    assert ran.stderr.startswith(complaint)
    assert len(ran.stderr.splitlines()) == 1
