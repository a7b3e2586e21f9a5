"""What a service hands down to its workers, and that no worker asks anybody else."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path

import pytest

from paceline.config import Settings, load
from paceline.core.errors import InputError
from paceline.core.reports import Away, Joined, read_report
from paceline.engine.ports.workers import AWAY
from paceline.handing_down import KEPT, read_settings, write_settings

PATIENCE_S = 60

WRITTEN = """
name = "north"
poll = "150ms"
grace = "7s"
park_after = "9s"
fire_concurrency = 3
isolation = "process"
max_workers = 4
worker_memory = "300 MB"
log_level = "debug"
log_format = "json"
base_url = "https://pace.example.com"
per_contact = "1/day"

[alerts]
urls = ["json://user:secret@example.com"]

[policy.slow]
rate = "5/min"

[[webhooks]]
name = "crm"
url = "https://crm.example.com/hook"
secret = "env:CRM"
"""


def test_all_that_lanes_go_by_arrives_and_secrets_that_others_need_stay(tmp_path: Path) -> None:
    file = tmp_path / "paceline.toml"
    file.write_text(WRITTEN)
    settings = load(file, environ={"PACELINE_DATABASE": "postgresql://me:pass@host/db"})
    line = write_settings(replace(settings, name="north worker 1"))
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert b"secret" not in line
    arrived = read_settings(line)
    for entry in fields(Settings):
        if entry.name not in KEPT:
            meant = "north worker 1" if entry.name == "name" else getattr(settings, entry.name)
            assert getattr(arrived, entry.name) == meant, entry.name
    assert settings.database == arrived.database == "postgresql://me:pass@host/db"
    assert (arrived.policies, arrived.alerts_urls, arrived.webhooks) == ({}, (), ())


@pytest.mark.parametrize("line", [b"\n", b"[]\n", b"5\n", b'{"databse": "secret"}\n', b'{"data'])
def test_what_are_no_settings_is_refused_and_not_repeated(line: bytes) -> None:
    with pytest.raises(InputError, match="no settings of this version") as refused:
        read_settings(line)
    assert "secret" not in str(refused.value)


# ---------------------------------------------------------------------- a worker of its own


@contextmanager
def worker(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "paceline", "worker", "--accounts", "1"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def said_by(process: subprocess.Popen[bytes], settings: Settings) -> bytes:
    """What a worker with these settings says first."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(write_settings(settings))
    process.stdin.flush()
    return process.stdout.readline()


def test_a_worker_goes_by_what_it_was_told_whatever_the_file_says_by_now(
    tmp_path: Path, fresh_sqlite_url: Callable[[], str]
) -> None:
    (tmp_path / "paceline.toml").write_text('database = "elsewhere.db"\nnonsense = true\n')
    effects = str(tmp_path / "effects.jsonl")
    settings = Settings(
        database=fresh_sqlite_url(), name="one worker 1", sandbox_effects=effects, log_format="json"
    )
    with worker(tmp_path) as process:
        report = read_report(said_by(process, settings))
        while not isinstance(report, Joined):
            assert process.stdout is not None
            report = read_report(process.stdout.readline())
        assert process.stdin is not None and process.stderr is not None
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
        assert b'"worker": "one worker 1"' in process.stderr.read()
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_worker_that_cannot_reach_the_database_says_why(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    settings = Settings(database=f"postgresql://me:secret@127.0.0.1:{port}/db")
    with worker(tmp_path) as process:
        report = read_report(said_by(process, settings))
        assert process.wait(PATIENCE_S) == AWAY
    assert isinstance(report, Away) and "secret" not in report.reason
    assert "cannot be reached" in report.reason


def test_a_worker_whose_service_died_before_it_said_anything_ends(tmp_path: Path) -> None:
    with worker(tmp_path) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == b""
    assert list(tmp_path.iterdir()) == [], "it has touched nothing"


def test_a_worker_whose_service_dies_while_the_database_does_not_answer_ends_at_once(
    tmp_path: Path,
) -> None:
    """A server that takes the call and says nothing: whoever waits for it waits for ten seconds."""
    with socket.create_server(("127.0.0.1", 0)) as server, worker(tmp_path) as process:
        assert process.stdin is not None
        settings = Settings(database=f"postgresql://me@127.0.0.1:{server.getsockname()[1]}/db")
        process.stdin.write(write_settings(settings))
        process.stdin.flush()
        server.settimeout(PATIENCE_S)
        call, _ = server.accept()
        with call:
            process.stdin.close()
            assert process.wait(PATIENCE_S) == 0, "and not because the database was away"


def test_a_worker_that_is_told_nonsense_does_not_start(tmp_path: Path) -> None:
    with worker(tmp_path) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(b'{"password": "secret"}\n')
        process.stdin.flush()
        assert process.wait(PATIENCE_S) == 2
        complaint = process.stderr.read()
    assert b"no settings of this version" in complaint and b"secret" not in complaint
