"""What an operator under stress relies on: stops that show, cures, questions before harm."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from paceline.cli import campaigns
from paceline.core.instants import DAY
from paceline.engine.commands.retrying import Retried
from tests.cli.conftest import CommandLine
from tests.cli.test_sending import in_doubt

Spring = Callable[..., Path]
STOPPED = "everything is stopped since 2026-11-15 10:00 UTC: fire; go on with: paceline go-on"


@pytest.fixture
def running(accounts: CommandLine, spring: Spring) -> CommandLine:
    """A campaign under way: deliveries 1 and 3 on sales, 2 on team."""
    accounts.ok("campaign", "create", "-f", str(spring()), "--launch")
    return accounts


def test_a_stop_shows_wherever_somebody_looks(running: CommandLine) -> None:
    looks = (("campaign", "status", "spring"), ("account", "list"), ("account", "show", "team"))
    for words in looks:
        assert "stopped" not in running.ok(*words).out
    assert running.ok("campaign", "status", "spring", "--json").json["stopped"] is None
    running.ok("stop-all", "--reason", "fire")
    for words in (*looks, ("campaign", "list")):
        assert STOPPED in running.ok(*words).out.splitlines()
    told = {"since_at": "2026-11-15T10:00:00Z", "reason": "fire"}
    assert running.ok("campaign", "status", "spring", "--json").json["stopped"] == told
    assert running.ok("campaign", "list", "--json").json[0]["stopped"] == told
    assert [a["stopped"] for a in running.ok("account", "list", "--json").json] == [told, told]
    assert running.ok("account", "show", "team", "--json").json["stopped"] == told
    running.ok("go-on")
    for words in looks:
        assert STOPPED not in running.ok(*words).out.splitlines()


def test_a_second_stop_does_not_make_the_first_one_younger(running: CommandLine) -> None:
    running.ok("stop-all", "--reason", "smoke")
    running.clock.now_at += 3_600_000_000
    running.ok("stop-all", "--reason", "fire")
    assert STOPPED in running.ok("account", "list").out


def test_who_watches_is_told_of_a_stop(running: CommandLine) -> None:
    running.ok("stop-all", "--reason", "fire")
    running.ok("campaign", "cancel", "spring", "--yes")
    assert STOPPED in running.ok("campaign", "status", "spring", "--watch").out


@pytest.mark.parametrize(
    "words",
    [("campaign", "cancel", "spring"), ("account", "remove", "team"), ("unknown", "resolve", "4")],
    ids=" ".join,
)
def test_what_cannot_be_undone_needs_a_yes_where_nobody_can_be_asked(
    running: CommandLine, words: tuple[str, ...]
) -> None:
    assert in_doubt(running) == 4
    extra = {"unknown": ("--resend",), "account": ("--cancel",)}.get(words[0], ())
    before = running.ok("campaign", "export", "spring").out, running.ok("unknown", "list").out
    said = running.refused(*words, *extra)
    assert said.endswith("there is no terminal to ask on. Add --yes if that is what you want")
    after = running.ok("campaign", "export", "spring").out, running.ok("unknown", "list").out
    assert after == before, "nothing was done"


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1)])
def test_on_a_terminal_somebody_is_asked(
    running: CommandLine, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    keyboard, terminal = os.openpty()
    os.write(keyboard, answer.encode())
    with open(terminal, encoding="utf-8") as typed:
        monkeypatch.setattr("sys.stdin", typed)
        said = running("campaign", "cancel", "spring")
    os.close(keyboard)
    assert said.code == code
    assert "Cancel campaign spring for good?" in said.err
    state = running.ok("campaign", "status", "spring", "--json").json["state"]
    assert state == ("running" if code else "cancelled")


def cures(command_line: CommandLine, about: str) -> list[str]:
    answer: list[str] = command_line.ok("why", about, "--json").json["cures"]
    out = command_line.ok("why", about).out.splitlines()
    for cure in answer:
        assert f"to go on: {cure}" in out
    return answer


def test_why_names_the_cure(running: CommandLine) -> None:
    assert cures(running, "team") == []
    running.ok("account", "pause", "team")
    running.ok("campaign", "pause", "spring")
    running.ok("stop-all")
    assert cures(running, "team") == [
        "paceline go-on",
        "paceline account resume team",
        "paceline campaign resume spring",
    ]
    for cure in cures(running, "2"):
        running.ok(*cure.split()[1:])
    assert cures(running, "2") == []


def test_why_names_the_cure_of_a_draft(accounts: CommandLine, spring: Spring) -> None:
    accounts.ok("campaign", "create", "-f", str(spring()))
    assert cures(accounts, "2") == ["paceline campaign launch spring"]


def test_why_names_the_cure_of_a_doubt(accounts: CommandLine) -> None:
    number = in_doubt(accounts)
    assert cures(accounts, str(number)) == [
        f"paceline unknown resolve {number} (--sent, --resend or --failed)"
    ]
    accounts.ok("unknown", "resolve", str(number), "--sent")
    accounts.ok("account", "pause", "team")
    assert cures(accounts, str(number)) == [], "what is sent needs no cure"


def set_tried(folder: Path, number: int, due_at: int) -> None:
    connection = sqlite3.connect(folder / "paceline.db")
    with connection:
        connection.execute(
            "UPDATE deliveries SET attempts = 1, due_at = ? WHERE id = ?", (due_at, number)
        )
    connection.close()


def test_why_speaks_of_the_delivery_that_the_lane_would_take(running: CommandLine) -> None:
    now = running.clock.now()
    running.clock.now_at = now + 10_000_000
    set_tried(running.folder, 3, now + 5_000_000)
    found = running.ok("why", "sales", "--json").json["delivery"]
    assert found == 3, "what was tried goes ahead of what was not"
    set_tried(running.folder, 3, now + 30 * DAY)
    found = running.ok("why", "sales", "--json").json["delivery"]
    assert found == 1, "a retry that is not due yet keeps nobody waiting"
    running.ok("send", "sales", "zoe@example.com", "--text", "Hello")
    found = running.ok("why", "sales", "--json").json["delivery"]
    assert found == 4, "single messages go ahead of campaigns"


READS = [
    ("account", "list"), ("account", "show", "x"), ("campaign", "list"), ("verify",),
    ("campaign", "status", "x"), ("campaign", "export", "x"), ("unknown", "list"), ("why", "x"),
    ("policy", "show", "x"),
]  # fmt: skip


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_looking_in_the_wrong_folder_makes_nothing(
    paceline: CommandLine, words: tuple[str, ...]
) -> None:
    answer = paceline(*words)
    assert answer.code == 1
    assert answer.complaint == (
        f"paceline: there is no database {paceline.folder / 'paceline.db'}; name another with "
        "--database, or make this one with: paceline account add"
    )
    assert os.listdir(paceline.folder) == []


def test_an_empty_list_names_its_database(accounts: CommandLine) -> None:
    accounts.ok("account", "remove", "team", "--yes")
    accounts.ok("account", "remove", "sales", "--yes")
    place = accounts.folder / "paceline.db"
    assert accounts.ok("account", "list").out.startswith(f"no accounts yet in {place}; add one")
    assert accounts.ok("campaign", "list").out.startswith(f"no campaigns yet in {place}; create")


def test_nobody_else_can_read_the_database(accounts: CommandLine) -> None:
    files = list(accounts.folder.glob("paceline.db*"))
    assert files
    assert {path.stat().st_mode & 0o077 for path in files} == {0}


CHANGES = [
    ("stop-all",), ("go-on",), ("campaign", "launch", "x"), ("campaign", "pause", "x"),
    ("campaign", "cancel", "x", "--yes"), ("campaign", "retry", "x", "--failed", "--yes"),
    ("account", "pause", "x"), ("account", "set", "x", "--set", "rate=1/s"),
    ("account", "remove", "x", "--yes"), ("send", "x", "y", "--text", "hi"),
    ("unknown", "resolve", "7", "--sent"), ("contact", "erase", "x@y.de", "--yes"),
    ("suppress", "remove", "x@y.de"), ("audience", "remove", "x", "--yes"), ("limits", "fix"),
    ("alert", "clear", "1"), ("signals", "reset", "--all"),
]  # fmt: skip


@pytest.mark.parametrize("words", CHANGES, ids=" ".join)
def test_what_is_not_there_is_not_changed_in_the_wrong_folder(
    paceline: CommandLine, words: tuple[str, ...]
) -> None:
    """To be told that all is stopped, where nothing ever ran, would be worse than no answer."""
    answer = paceline(*words)
    assert answer.code == 1
    assert answer.complaint.startswith("paceline: there is no database ")
    assert os.listdir(paceline.folder) == []


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (
            1,
            "1 stays failed: its account was removed, or its recipient opted out\n"
            "1 may have arrived and is left alone: paceline unknown list\n",
        ),
        (
            2,
            "2 stay failed: their account was removed, or they opted out\n"
            "2 may have arrived and are left alone: paceline unknown list\n",
        ),
    ],
)
def test_one_that_is_not_sent_again_is_told_of_as_one(
    running: CommandLine, monkeypatch: pytest.MonkeyPatch, number: int, told: str
) -> None:
    done = Retried(again=1, gone=number, unknown=number)
    monkeypatch.setattr(campaigns, "retry_failed", lambda *_: done)
    answer = running.ok("campaign", "retry", "spring", "--failed", "--yes")
    assert (answer.out, answer.err) == ("1 message of campaign spring sent again\n", told)
