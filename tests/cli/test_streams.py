"""What becomes of a command whose reader leaves, whose disk is full, or that is interrupted."""

import io
import json
import os
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from paceline.cli.campaign_export import write_rows
from paceline.engine.commands import audiences
from tests.cli.conftest import CommandLine

Spring = Callable[..., Path]
COMMAND = (sys.executable, "-m", "paceline")


def test_a_full_disk_is_told_in_one_line(accounts: CommandLine) -> None:
    listings = (("account", "list"), ("account", "list", "--json"), ("unknown",), ("--help",))
    for words in (*listings, ("campaign", "export", "x")):
        with open("/dev/full", "w") as full:
            ran = subprocess.run(
                [*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, check=False
            )
        if words[0] == "campaign":
            assert ran.stderr == b"paceline: no campaign named 'x'\n", "what is wrong comes first"
            continue
        assert ran.stderr == b"paceline: cannot write: No space left on device\n"
        assert ran.returncode == 1


READINGS = [
    ("account", "list"), ("campaign", "status", "spring", "--watch"), ("unknown",), ("--help",),
    ("account", "list", "--help"), ("policy", "presets", "--json"), ("version",),
    ("campaign", "export", "spring"), ("suppress", "export"),
]  # fmt: skip


@pytest.mark.parametrize("words", READINGS, ids=" ".join)
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


STEERING = "\x1b]0;owned\x07 \x9b31m red"


WRITING = f"""
import sys
from pathlib import Path
from paceline.cli.campaign_export import write_rows

path = Path(sys.argv[1]) if sys.argv[1:] else None
write_rows(path, [{{"reason": {STEERING!r}}}], ("reason",), as_json=False)
write_rows(path, [{{"reason": {STEERING!r}}}], as_json=True)
"""


@pytest.mark.parametrize("named", [False, True], ids=["standard output", "by its name"])
def test_an_export_does_not_steer_the_terminal(named: bool) -> None:
    keyboard, terminal = os.openpty()
    # In a process of its own: a terminal that is opened may become that of whoever opens it.
    words = [os.ttyname(terminal)] if named else []
    subprocess.run([sys.executable, "-c", WRITING, *words], stdout=terminal, check=True, timeout=60)
    raw = b""
    while raw.count(b"\n") < 3:
        raw += os.read(keyboard, 1_000)
    os.close(terminal)
    os.close(keyboard)
    told = raw.decode()
    assert not {"\x1b", "\x07", "\x9b"} & set(told)
    heading, shown, line = told.splitlines()
    assert (heading, shown) == ("reason", "\ufffd]0;owned\ufffd \ufffd31m red")
    assert json.loads(line) == {"reason": STEERING}


def test_an_export_keeps_what_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a file and in a pipe it is data, and nobody looks at it."""
    path = tmp_path / "out.csv"
    for target in (path, None):
        write_rows(target, [{"reason": STEERING}], ("reason",), as_json=False)
    assert path.read_text() == capsys.readouterr().out == f"reason\n{STEERING}\n"


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a text where standard input is read."""

    def put(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return put


def test_a_dash_is_standard_input(accounts: CommandLine, typed: Callable[[str], None]) -> None:
    typed("email,name\nanna@example.com,Anna\n")
    accounts.ok("audience", "import", "-", "--name", "news")
    typed("email\nanna@example.com\n")
    said = accounts.refused("audience", "import", "-")
    assert said.startswith("paceline: --name: is missing: standard input has no name")
    typed("email\nbob@example.com\nbob\n")
    told = accounts.ok("suppress", "import", "-").out
    assert told.startswith("1 address newly suppressed") and "  line 3: 'bob' is not" in told
    typed("at\n2026-11-15T09:00:00Z\n")
    assert accounts.ok("history", "import", "-", "--account", "team").out == "1 message counted\n"
    typed("")
    assert accounts.refused("suppress", "import", "-").startswith(
        "paceline: standard input: the file is empty"
    )
    campaign = 'name = "c"\naccounts = ["team"]\naudience = "news"\n[[parts]]\ntext = "hi"\n'
    typed(campaign)
    assert accounts.ok("plan", "-").out.startswith("c: 1 message from 1 account")
    typed(campaign)
    assert accounts.ok("campaign", "create", "-f", "-").out.startswith("campaign c created")
    typed(campaign)
    said = accounts.refused("campaign", "create", "-f", "-")
    assert said == "paceline: standard input: name: a campaign named 'c' exists already"


def test_a_dash_is_standard_output(accounts: CommandLine, spring: Spring) -> None:
    accounts.ok("campaign", "create", "-f", str(spring()))
    accounts.ok("audience", "import", "people.csv")
    accounts.ok("suppress", "add", "anna@example.com")
    for words, option in (
        (("suppress", "export"), ()),
        (("campaign", "export", "spring"), ("-o",)),
        (("audience", "show", "people", "--csv"), ("-o",)),
    ):
        answer = accounts.ok(*words, *option, "-")
        assert (answer.out, answer.err) == (accounts.ok(*words).out, "")
        assert "anna@example.com" in answer.out
    assert not (accounts.folder / "-").exists()


def test_a_pipe_by_name_is_read_as_a_file_is(accounts: CommandLine) -> None:
    pipe = accounts.folder / "pipe.csv"
    os.mkfifo(pipe)
    with subprocess.Popen(
        ["/bin/sh", "-c", f"printf 'email\\nanna@example.com\\n' > {shlex.quote(str(pipe))}"]
    ):
        assert accounts.ok("audience", "import", "pipe.csv", "--json").json["new"] == 1


def test_an_import_that_is_broken_off_says_how_to_go_on(
    accounts: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audiences, "CHUNK", 10)
    rows = "".join(f"p{n}@example.com\n" for n in range(25))
    accounts.write("people.csv", f"email\n{rows}")
    real, chunks = audiences.take_in, iter([True, False])

    def interrupted(*args: object, **options: object) -> object:
        if not next(chunks):
            raise KeyboardInterrupt
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(audiences, "take_in", interrupted)
    answer = accounts("audience", "import", "people.csv", "--rejects", "bad.csv")
    assert (answer.code, answer.out) == (130, "")
    assert answer.err == (
        "broken off: 10 rows were seen to, and stay so; import the same file again to go on\n"
    )
    assert not list(accounts.folder.glob("bad.csv*")), "no half of a file is left behind"


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
