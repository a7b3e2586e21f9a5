"""Real services as child processes: started, asked, stopped, killed for real."""

from __future__ import annotations

import io
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from paceline.cli.main import main
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Store, Tx
from paceline.engine.queries import campaign_view
from paceline.providers.sandbox import Effect, read_effects
from paceline.store.database import open_store
from tests.logging_kept import logging_as_before

T = TypeVar("T")

ROGUE = Path(__file__).parent / "rogue"
"""On the path of a service it makes it live faster (``rogue/sitecustomize.py``)."""

PATIENCE_S = 90
"""How long anything may take on a busy machine before it counts as hanging."""


class Installation:
    """One database, one sandbox log, and any number of processes on them."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder = folder
        self.effects_path = folder / "effects.jsonl"
        self._store: Store | None = None
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PACELINE_")}
        self.env = {
            **kept,
            "PACELINE_DATABASE": database,
            "PACELINE_SANDBOX_EFFECTS": str(self.effects_path),
            "PACELINE_PORT": "0",
            "PACELINE_POLL": "200ms",
            "PACELINE_LOG_FORMAT": "json",
            "PACELINE_LOG_LEVEL": "debug",
        }

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A command beside the services, in this process: starting another takes far longer."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        with (
            patch.dict(os.environ, self.env, clear=True),
            chdir(self.folder),
            redirect_stdout(out),
            redirect_stderr(err),
            logging_as_before(),
        ):
            code = main(arguments)
        said = (_text(out), _text(err))
        assert not check or code == 0, said[1]
        return subprocess.CompletedProcess(arguments, code, *said)

    def run_apart(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The same in a process of its own, as operators do."""
        done = subprocess.run(
            [sys.executable, "-m", "paceline", *arguments],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done

    def ask(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json").stdout)

    def campaign(self, name: str, count: int, *accounts: str) -> None:
        lines = "".join(f"{name}-{number:04}\n" for number in range(count))
        (self.folder / f"{name}.csv").write_text(f"address\n{lines}")
        names = ", ".join(f'"{account}"' for account in accounts)
        (self.folder / f"{name}.toml").write_text(
            f'name = "{name}"\naccounts = [{names}]\naudience = "{name}.csv"\n'
            '[[parts]]\ntext = "hello {{ target }}"\n'
        )
        self.run("campaign", "create", "-f", f"{name}.toml", "--launch")

    def look(self, work: Callable[[Tx], T]) -> T:
        """What the database says, read in this process: cheap enough to look often."""
        if self._store is None:
            self._store = open_store(self.env["PACELINE_DATABASE"], clock=SystemClock().now)
        with self._store.read() as tx:
            return work(tx)

    def close(self) -> None:
        if self._store is not None:
            self._store.close()

    def finished(self, name: str) -> bool:
        return self.look(lambda tx: campaign_view(tx, name).campaign.state) == "finished"

    def effects(self) -> list[Effect]:
        return read_effects(self.effects_path) if self.effects_path.exists() else []

    def accepted(self) -> Counter[str]:
        """How often the provider accepted each message, by the provider's own log."""
        return Counter(e.key for e in self.effects() if e.kind == "send" and e.accepted)

    @contextmanager
    def service(self, name: str) -> Iterator[Service]:
        service = Service(self, name)
        try:
            yield service
        finally:
            service.end()


class Service:
    """One ``paceline up``."""

    def __init__(self, installation: Installation, name: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "paceline", "up", "--name", name],
            cwd=installation.folder,
            env=installation.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.log: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = json.loads(self.wait_for_line('"event": "serving"'))["url"]

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._lines.put(line)
        self._lines.put(None)

    def wait_for_line(self, text: str) -> str:
        """The next log line that has ``text`` in it: the log is the signal."""
        while True:
            line = self._lines.get(timeout=PATIENCE_S)
            assert line is not None, "the service ended:\n" + "".join(self.log)
            self.log.append(line)
            if text in line:
                return line

    @property
    def code(self) -> int | None:
        """What it ended with; None while it lives."""
        return self._process.poll()

    def kill(self) -> None:
        """``kill -9``: no handler, no finally, nothing."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(PATIENCE_S)

    def terminate(self, with_signal: int = signal.SIGTERM) -> int:
        self._process.send_signal(with_signal)
        return self._process.wait(PATIENCE_S)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        if self._process.stderr is not None:
            self._process.stderr.close()


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    written = stream.buffer
    assert isinstance(written, io.BytesIO)
    return written.getvalue().decode()


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Look until something outside our process has come to be so, or say what never did."""
    tick = threading.Event()
    for _ in range(PATIENCE_S * 20):
        if condition():
            return
        tick.wait(0.05)
    raise AssertionError(f"it never came to be: {what}")


def lives(pid: int) -> bool:
    try:
        # One that has ended and that nobody has asked for yet is a name on a list, no more.
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@contextmanager
def services(installation: Installation, *names: str) -> Iterator[list[Service]]:
    with ExitStack() as stack:
        yield [stack.enter_context(installation.service(name)) for name in names]


def worker_of(service: Service) -> tuple[list[str], int]:
    """The next worker that is started: whose it is, and its number."""
    started = json.loads(service.wait_for_line('"event": "worker started"'))
    return started["accounts"], started["pid"]
