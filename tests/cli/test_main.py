"""The command as a whole: help, usage, exit codes, stopping everything, broken databases."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer

from paceline import __version__, app
from paceline.cli.main import make_app
from paceline.engine.verify import Violation
from tests.cli.conftest import CommandLine

Spring = Callable[..., Path]


def every_command() -> Iterator[tuple[str, ...]]:
    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield path
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*path, name))

    return walk(typer.main.get_command(make_app()), ())


@pytest.mark.parametrize("path", list(every_command()), ids=" ".join)
def test_everything_has_help_that_fits_a_narrow_terminal(
    paceline: CommandLine, path: tuple[str, ...]
) -> None:
    out = paceline.ok(*path, "--help").out
    assert out.startswith("Usage: paceline ")
    assert max(map(len, out.splitlines())) <= 80
    for line in out.splitlines()[1:]:
        assert not line.endswith("..."), "a summary that does not fit says nothing"
    assert os.listdir(paceline.folder) == [], "help needs neither settings nor a database"


def test_every_option_is_explained() -> None:
    def unexplained(command: Any, path: str) -> Iterator[str]:
        for parameter in command.params:
            if not getattr(parameter, "help", None):
                yield f"{path} {parameter.name}"
        for name, inner in getattr(command, "commands", {}).items():
            yield from unexplained(inner, f"{path} {name}")

    assert list(unexplained(typer.main.get_command(make_app()), "paceline")) == []


@pytest.mark.parametrize("words", [(), ("account",), ("campaign",)])
def test_without_a_command_there_is_help(paceline: CommandLine, words: tuple[str, ...]) -> None:
    assert paceline.ok(*words).out.startswith("Usage: paceline ")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("acount",), "paceline: No such command 'acount'. Did you mean 'account'"),
        (("--database", "plan", "acount"), "paceline: No such command 'acount'. Did you mean 'acc"),
        (
            ("--database=plan", "stpo-all"),
            "paceline: No such command 'stpo-all'. Did you mean 'stop",
        ),
        (("--config",), "paceline: Option '--config' requires an argument"),
        (("account", "add"), "paceline: Missing argument 'ACCOUNT'"),
        (("account", "list", "--jsn"), "paceline: No such option: --jsn"),
        (("unknown", "resolve", "x"), "paceline: 'x' is not a delivery's number"),
        (("up", "--port", "70000"), "paceline: --port: 70000 is not a port"),
    ],
)
def test_usage_errors_are_one_line(
    paceline: CommandLine, words: tuple[str, ...], complaint: str
) -> None:
    assert paceline.refused(*words).startswith(complaint)


def test_the_help_is_of_everything_whatever_comes_after_it(paceline: CommandLine) -> None:
    everything = paceline.ok("--help").out
    for words in (("--help", "account"), ("--database", "plan", "-h", "account"), ()):
        assert paceline.ok(*words).out == everything
    assert "account" in everything and "campaign" in everything


def test_what_comes_before_the_command_is_not_taken_for_it(paceline: CommandLine) -> None:
    told = paceline.ok("policy", "presets").out
    for before in (("--database", "plan"), ("--database=why",), ("--",), ("--database", "--help")):
        assert paceline.ok(*before, "policy", "presets").out == told


def test_the_version(paceline: CommandLine) -> None:
    assert paceline.ok("version").out == f"paceline {__version__}\n"
    assert paceline.ok("--version").out == f"paceline {__version__}\n"


def test_stop_all_and_go_on(accounts: CommandLine) -> None:
    assert "paceline go-on" in accounts.ok("stop-all", "--reason", "fire").out
    assert "everything is stopped: fire" in accounts.ok("why", "team").out
    accounts.ok("go-on")
    assert accounts.refused("go-on") == "paceline: nothing is stopped"


def test_verify(accounts: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert accounts.ok("verify").out == "every invariant holds\n"
    assert accounts.ok("verify", "--json").json == {"ok": True, "violations": []}
    found = [Violation("never twice", "delivery 1 part 0 was accepted 2 times")]
    monkeypatch.setattr("paceline.cli.control.judge", lambda *_: found)
    answer = accounts("verify")
    assert answer.code == 1
    assert "never twice  delivery 1 part 0 was accepted 2 times" in answer.out
    answer = accounts("verify", "--json")
    assert (answer.code, answer.json["ok"]) == (1, False)
    assert answer.json["violations"][0]["invariant"] == "never twice"


def failure(paceline: CommandLine, *words: str) -> str:
    answer = paceline(*words)
    assert answer.code == 1, answer
    return answer.complaint


def test_a_database_that_cannot_be_reached(paceline: CommandLine) -> None:
    url = "postgresql://me:secret@127.0.0.1:1/paceline"
    complaint = failure(paceline, "--database", url, "account", "list")
    assert complaint.startswith("paceline: ")
    assert "127.0.0.1" in complaint
    assert "secret" not in complaint


def test_a_database_in_no_folder(paceline: CommandLine) -> None:
    complaint = failure(paceline, "--database", "nowhere/p.db", "account", "list")
    assert "the folder nowhere does not exist" in complaint


def test_a_file_that_is_no_database(paceline: CommandLine) -> None:
    paceline.write("paceline.db", b"this is not a database at all" * 100)
    assert failure(paceline, "account", "list") == "paceline: paceline.db is not a database"


def test_a_database_from_a_newer_version(accounts: CommandLine) -> None:
    connection = sqlite3.connect("paceline.db")
    with connection:
        connection.execute("UPDATE paceline_schema SET version_num = 'r9999'")
    connection.close()
    complaint = failure(accounts, "account", "list")
    assert complaint == (
        "paceline: paceline.db was made by a newer version of Paceline (schema r9999); "
        "upgrade Paceline to use it"
    )


def test_a_locked_file(accounts: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "open_store", partial(app.open_store, busy_timeout_us=1_000))
    connection = sqlite3.connect("paceline.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    complaint = failure(accounts, "account", "pause", "team")
    connection.execute("ROLLBACK")
    connection.close()
    assert complaint == "paceline: paceline.db is locked by another process; try again later"
    accounts.ok("account", "pause", "team")


def test_an_interrupt_says_nothing(accounts: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "open_app", interrupt)
    answer = accounts("account", "list")
    assert (answer.code, answer.out, answer.err) == (130, "", "")


def test_tables_fit_a_narrow_terminal(
    accounts: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts.ok("send", "sales", "anna@example.com", "--text", "Hello")
    accounts.ok("account", "pause", "team", "--reason", "holidays " * 20)
    monkeypatch.setenv("COLUMNS", "80")
    for words in (("account", "list"), ("policy", "presets"), ("unknown", "list")):
        lines = accounts.ok(*words).out.splitlines()
        assert max(map(len, lines)) <= 80
        assert not any("…" in line for line in lines), "nothing is cut off"


def test_the_status_can_be_read_on_a_very_narrow_terminal(
    accounts: CommandLine, spring: Spring, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts.ok("campaign", "create", "-f", str(spring()), "--launch")
    monkeypatch.setenv("COLUMNS", "32")
    lines = accounts.ok("campaign", "status", "spring").out.splitlines()
    assert max(map(len, lines)) <= 32
    assert [line.split() for line in lines[3:9]] == [
        ["ACCOUNT", "sales"],
        ["WAITING", "2"],
        ["SENT", "0"],
        ["FAILED", "0"],
        ["TOTAL", "2"],
        [],
    ]
    assert "0% (0 of 3)" in lines[1]
    for words in (("account", "list"), ("campaign", "list"), ("why", "sales"), ("unknown", "list")):
        lines = accounts.ok(*words).out.splitlines()
        assert not [line for line in lines if len(line.strip()) == 1], "one letter per line"
    names = [line.split() for line in accounts.ok("account", "list").out.splitlines()]
    assert ["NAME", "sales"] in names


def test_nothing_from_outside_steers_the_terminal(accounts: CommandLine) -> None:
    reason = "\x1b]0;owned\x07 \x1b[31mred \x9b31m"
    accounts.ok("account", "pause", "team", "--reason", reason)
    for words in (("account", "list"), ("account", "show", "team"), ("why", "team")):
        out = accounts.ok(*words).out
        assert "red" in out
        assert not {"\x1b", "\x07", "\x9b"} & set(out)
    assert "\x1b" not in accounts.refused("account", "show", reason)
    listed = accounts.ok("account", "list", "--json")
    assert listed.json[1]["reason"] == reason and not {"\x1b", "\x9b"} & set(listed.out)


def test_settings_from_another_folder(
    accounts: CommandLine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere: Path = tmp_path_factory.mktemp("elsewhere")
    accounts.write("paceline.toml", 'database = "paceline.db"\n')
    os.chdir(elsewhere)
    config = str(accounts.folder / "paceline.toml")
    assert len(accounts.ok("--config", config, "account", "list", "--json").json) == 2
    assert os.listdir(elsewhere) == []
