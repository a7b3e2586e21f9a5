"""Files and folders that may be looked at only, or not even that: one line, and exit code 1."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2


def like_anybody() -> None:
    """Root may do everything, and tests often run as root; here it keeps to what files say."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            libc.prctl(PR_CAPBSET_DROP, capability)


def run(folder: Path, *words: str) -> tuple[int, str, str]:
    ran = subprocess.run(
        [sys.executable, "-m", "paceline", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=like_anybody,
        timeout=60,
    )
    return ran.returncode, ran.stdout, ran.stderr


@pytest.fixture
def modes(accounts: CommandLine) -> Iterator[Path]:
    yield accounts.folder
    accounts.folder.chmod(0o755)
    for path in accounts.folder.iterdir():
        path.chmod(0o755)


ADD = ("account", "add", "other", "--provider", "sandbox")
WRITE = "paceline: paceline.db cannot be written to; may we change it, and write into its folder?\n"


@pytest.mark.parametrize("words", [ADD, ("up", "--port", "0"), ("stop-all",)], ids=" ".join)
def test_a_database_that_may_not_be_changed(modes: Path, words: tuple[str, ...]) -> None:
    (modes / "paceline.db").chmod(0o444)
    assert run(modes, *words) == (1, "", WRITE)


@pytest.mark.parametrize("words", [ADD, ("account", "list")], ids=" ".join)
def test_a_folder_that_may_not_be_changed(modes: Path, words: tuple[str, ...]) -> None:
    for path in modes.glob("paceline.db-*"):
        path.unlink()
    modes.chmod(0o555)
    assert run(modes, *words) == (1, "", WRITE)
    (modes / "paceline.db").chmod(0o000)
    code, out, err = run(modes, *words)
    assert (code, out) == (1, "")
    assert err == (
        "paceline: paceline.db cannot be opened; may we read it, and write into its folder?\n"
    )


def test_no_database_can_be_made_there(modes: Path) -> None:
    empty = modes / "empty"
    empty.mkdir(mode=0o555)
    said = "paceline: paceline.db cannot be opened: Permission denied\n"
    assert run(empty, *ADD) == (1, "", said)
    code, _, err = run(empty, "account", "list")
    assert code == 1 and err.startswith(f"paceline: there is no database {empty}/paceline.db;")


def test_files_beside_it(modes: Path) -> None:
    (modes / "people.csv").write_text("email\nanna@example.com\nbob\n")
    (modes / "shut").mkdir(mode=0o555)
    denied = "cannot write: Permission denied\n"
    assert run(modes, "suppress", "export", "shut/x.csv") == (
        2, "", f"paceline: shut/x.csv: {denied}",
    )  # fmt: skip
    words = ("audience", "import", "people.csv")
    assert run(modes, *words, "--rejects", "shut/r.csv") == (
        2, "", f"paceline: shut/r.csv: {denied}",
    )  # fmt: skip
    (modes / "people.csv").chmod(0o000)
    said = "paceline: cannot read 'people.csv': Permission denied\n"
    assert run(modes, *words) == (2, "", said)
    (modes / "c.toml").write_text("")
    (modes / "c.toml").chmod(0o000)
    said = "paceline: c.toml: cannot read 'c.toml': Permission denied\n"
    assert run(modes, "plan", "c.toml") == (2, "", said)
