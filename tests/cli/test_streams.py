"""What becomes of a command whose reader leaves, whose disk is full, or that is interrupted."""

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

Spring = Callable[..., Path]
COMMAND = (sys.executable, "-m", "paceline")


def test_a_full_disk_is_told_in_one_line(accounts: CommandLine) -> None:
    for words in (("account", "list"), ("account", "list", "--json"), ("campaign", "export", "x")):
        with open("/dev/full", "w") as full:
            ran = subprocess.run(
                [*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, check=False
            )
        if words[0] == "campaign":
            assert ran.stderr == b"paceline: no campaign named 'x'\n", "what is wrong comes first"
            continue
        assert ran.stderr == b"paceline: cannot write: No space left on device\n"
        assert ran.returncode == 1


@pytest.mark.parametrize(
    "words", [("account", "list"), ("campaign", "status", "spring", "--watch")], ids=" ".join
)
def test_a_reader_who_has_had_enough(
    accounts: CommandLine, spring: Spring, words: tuple[str, ...]
) -> None:
    """`paceline … | head -1` ends without a word, as if by the signal that others end by."""
    accounts.ok("campaign", "create", "-f", str(spring()))
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [*COMMAND, *words], stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60
    )
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (128 + signal.SIGPIPE, b"")


def test_an_interrupt_during_the_imports_says_nothing(alone: Path) -> None:
    """The first half second of a command goes by with imports."""
    (alone / "typer.py").write_text("raise KeyboardInterrupt\n")
    ran = subprocess.run(
        [*COMMAND, "version"],
        env={**os.environ, "PYTHONPATH": str(alone)},
        capture_output=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, b"", b"")


def test_the_command_starts_where_interrupts_are_heard() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["scripts"] == {"paceline": "paceline.__main__:run"}
