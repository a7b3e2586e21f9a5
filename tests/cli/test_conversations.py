"""``paceline conversations`` and ``paceline locks``, as operators type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.core.instants import MINUTE
from paceline.engine.commands import returns
from paceline.engine.ports import Inbound
from paceline.store.database import open_store
from tests.cli.conftest import NOW, CommandLine

EVA = "+34600111222"


def hear(folder: Path, *texts: str, minutes_ago: int = 2) -> None:
    """Somebody has written a while ago."""
    store = open_store(f"sqlite:///{folder / 'paceline.db'}", clock=lambda: NOW)
    at = NOW - minutes_ago * MINUTE
    try:
        with store.write() as tx:
            account = tx.accounts.find("shop")
            assert account is not None
            news = [Inbound(f"m-{at}-{text}", EVA, EVA, text, at) for text in texts]
            returns.take_in(tx, account, news, at)
    finally:
        store.close()


@pytest.fixture
def shop(paceline: CommandLine) -> CommandLine:
    paceline.ok("account", "add", "shop", "--provider", "sandbox")
    hear(paceline.folder, "Hello", "are you open?")
    return paceline


def test_nobody_has_written(paceline: CommandLine) -> None:
    paceline.ok("account", "add", "shop", "--provider", "sandbox")
    assert paceline.ok("conversations", "list").out == "no conversations\n"
    assert paceline.ok("locks").out == "nobody is being answered\n"
    assert paceline.ok("conversations", "list", "--json").json == []


def test_what_was_said_is_listed_and_shown(shop: CommandLine) -> None:
    (listed,) = shop.ok("conversations", "list", "--json").json
    assert (listed["id"], listed["account"], listed["chat"]) == (1, "shop", EVA)
    assert listed["waits_since"] == "2026-11-15T09:58:00Z"
    shown = shop.ok("conversations", "list").out
    assert EVA in shown and "2m ago" in shown
    assert "are you open?" in shop.ok("conversations", "show", "1").out
    messages = shop.ok("conversations", "show", "1", "--json").json["messages"]
    assert [(one["by"], one["text"], one["state"]) for one in messages] == [
        ("them", "Hello", "waits"),
        ("them", "are you open?", "waits"),
    ]
    assert shop.ok("conversations", "list", "--person").out == "no conversations\n"


def test_a_person_takes_it_answers_and_hands_it_back(shop: CommandLine) -> None:
    assert shop.ok("conversations", "take", "1").out == "conversation 1 is with a person now\n"
    assert "1" in shop.ok("conversations", "list", "--person").out
    answer = shop.ok("conversations", "reply", "1", "Until {six}, of course").out
    assert answer == "on its way as delivery 1; see: paceline why 1\n"
    (held,) = shop.ok("locks", "--json").json
    assert (held["owner"], held["state"], held["chat"]) == ("a person", "replying", EVA)
    assert "a person" in shop.ok("locks").out
    shown = shop.ok("conversations", "show", "1").out
    assert "Until {six}, of course" in shown and "an answer is on its way, delivery 1" in shown
    assert shop.ok("conversations", "list", "--waiting").out == "no conversations\n"
    assert (
        shop.ok("conversations", "hand-back", "1").out
        == "conversation 1 is in nobody's hands: its account answers nobody\n"
    )


def test_muted_nothing_waits(shop: CommandLine) -> None:
    shop.ok("conversations", "mute", "1")
    hear(shop.folder, "hello?", minutes_ago=1)
    (listed,) = shop.ok("conversations", "list", "--json").json
    assert listed["mode"] == "muted"


@pytest.mark.parametrize("command", ["show", "take", "mute", "hand-back", "reply"])
def test_one_that_there_is_not(shop: CommandLine, command: str) -> None:
    words = ["9", "text"] if command == "reply" else ["9"]
    assert shop("conversations", command, *words).complaint == (
        "paceline: there is no conversation 9. See: paceline conversations list"
    )


def test_what_cannot_be_done(shop: CommandLine) -> None:
    assert "an answer needs a text" in shop.refused("conversations", "reply", "1", "  ")
    assert "is in nobody's hands already" in shop("conversations", "hand-back", "1").complaint
    shop.ok("conversations", "reply", "1", "yes")
    hear(shop.folder, "and tomorrow?", minutes_ago=0)
    assert "another answer is on its way" in shop.refused("conversations", "reply", "1", "also")
