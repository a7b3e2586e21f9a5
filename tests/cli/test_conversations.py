"""``paceline conversations`` and ``paceline locks``, as operators type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.core.instants import MINUTE
from paceline.engine import conversations
from paceline.engine.alerts import responder_fails
from paceline.engine.commands import returns
from paceline.engine.ports import Inbound
from paceline.store.database import open_store
from tests.cli.conftest import NOW, CommandLine

EVA = "+34600111222"
BEN = "+34600333444"


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


def test_whoever_has_opted_out_is_shown_so(shop: CommandLine) -> None:
    assert not shop.ok("conversations", "show", "1", "--json").json["opted_out"]
    hear(shop.folder, "STOP", minutes_ago=1)
    assert "they have opted out" in shop.ok("conversations", "show", "1").out
    assert shop.ok("conversations", "list", "--json").json[0]["opted_out"]


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


# ---------------------------------------------------------------------- a way that is held


@pytest.fixture
def held(paceline: CommandLine) -> CommandLine:
    """Somebody waits, and whoever answers has no credit left."""
    settings = '[answering.words]\nresponder = "rules"\notherwise = "yes"\n'
    settings += 'rules = [{ words = ["hi"], reply = "hi" }]\n'
    (paceline.folder / "paceline.toml").write_text(settings)
    paceline.ok("account", "add", "shop", "--provider", "sandbox")
    paceline.ok("account", "answering", "shop", "words")
    hear(paceline.folder, "Hello")
    store = open_store(f"sqlite:///{paceline.folder / 'paceline.db'}", clock=lambda: NOW)
    with store.write() as tx:
        tx.held_ways.hold("words", "no credit left", NOW - MINUTE, NOW + 4 * MINUTE)
        responder_fails(tx, "words", "no credit left", NOW)
    store.close()
    return paceline


def test_what_is_held_is_said_wherever_somebody_asks(held: CommandLine) -> None:
    told = "nobody is answered by words since 2026-11-15 09:59 UTC: no credit left; "
    told += "tried again in 4m"
    cure = "to go on: paceline account answering shop --go-on"
    for asked in (
        ("account", "answering", "shop"),
        ("why", "shop"),
        ("conversations", "show", "1"),
    ):
        shown = held.ok(*asked).out
        assert told in shown and cure in shown, asked
    listed = held.ok("conversations", "list").out
    assert "held" in listed and "words: no credit left" in listed
    shape = {
        "way": "words",
        "reason": "no credit left",
        "since": "2026-11-15T09:59:00Z",
        "tries": 0,
        "try_at": "2026-11-15T10:04:00Z",
    }
    (one,) = held.ok("conversations", "list", "--json").json
    assert one["held"] == shape
    assert held.ok("why", "shop", "--json").json["answers_held"] == shape


def test_somebody_lets_it_go_on(held: CommandLine) -> None:
    assert "held" not in held.ok("account", "answering", "shop", "--go-on").out
    assert held.ok("alerts", "--json").json == []
    (one,) = held.ok("conversations", "list", "--json").json
    assert one["held"] is None
    complaint = held("account", "answering", "shop", "--go-on").complaint
    assert complaint == "paceline: nothing is held that shop is answered by"
    assert "--go-on is for" in held.refused("account", "answering", "shop", "words", "--go-on")


# ---------------------------------------------------------------------- many at once


def hear_from(folder: Path, chats: dict[str, list[str]], at: int = NOW - 5 * MINUTE) -> None:
    """Somebody each writes to these accounts."""
    store = open_store(f"sqlite:///{folder / 'paceline.db'}", clock=lambda: NOW)
    with store.write() as tx:
        for name, people in chats.items():
            account = tx.accounts.find(name)
            assert account is not None
            news = [Inbound(f"{name}-{chat}-{at}", chat, chat, "hi", at) for chat in people]
            returns.take_in(tx, account, news, at)
    store.close()


def give_to_people(folder: Path, reason: str = "the server is down") -> None:
    """No answer could be made to any of them."""
    store = open_store(f"sqlite:///{folder / 'paceline.db'}", clock=lambda: NOW)
    with store.write() as tx:
        for one in tx.conversations.list(modes=("auto",)):
            conversations.take(tx, one.id, NOW, reason)
    store.close()


@pytest.fixture
def two(held: CommandLine) -> CommandLine:
    """Two accounts, and six people who wrote to them."""
    held.ok("account", "answering", "shop", "--go-on")
    held.ok("account", "add", "desk", "--provider", "sandbox")
    held.ok("account", "answering", "desk", "words")
    hear_from(held.folder, {"shop": [BEN, "+34600555666"], "desk": [EVA, BEN, "+34600777888"]})
    return held


def modes(line: CommandLine) -> dict[tuple[str, str], str]:
    listed = line.ok("conversations", "list", "--json").json
    return {(one["account"], one["chat"]): one["mode"] for one in listed}


def test_all_that_failed_are_handed_back(two: CommandLine) -> None:
    two.ok("conversations", "mute", "2")
    two.ok("conversations", "take", "3")
    give_to_people(two.folder)
    assert sorted(modes(two).values()) == ["human"] * 5 + ["muted"]
    back = ("conversations", "hand-back", "--all")
    assert two.ok(*back, "--dry-run").out == "4 conversations would be handed back\n"
    assert "Add --yes if that is what you want" in two.refused(*back)
    one = two.ok(*back, "--account", "shop", "--yes").out
    assert one == "1 conversation is answered again\n"
    assert two.ok(*back, "--yes").out == "3 conversations are answered again\n"
    assert two.ok(*back, "--yes").out == "nothing to hand back\n"
    left = {key for key, mode in modes(two).items() if mode != "auto"}
    assert left == {("shop", BEN), ("shop", "+34600555666")}, "what is muted, and what was taken"
    waiting = two.ok("conversations", "list", "--waiting", "--json").json
    assert all(one["due_at"] for one in waiting if one["mode"] == "auto")
    assert two.ok("alerts", "--json").json == []


def test_either_one_or_all(two: CommandLine) -> None:
    for words in ((), ("1", "--all")):
        asked = ("conversations", "hand-back", *words)
        assert "name one conversation, or --all of them" in two.refused(*asked)
    assert "are for --all" in two.refused("conversations", "hand-back", "1", "--dry-run")


def test_somebody_is_muted_on_every_account_and_heard_again(two: CommandLine) -> None:
    told = two.ok("conversations", "mute", "1", "--everywhere").out
    assert told == f"{EVA} is muted everywhere: 2 conversations more, and those that begin later\n"
    two.ok("account", "add", "late", "--provider", "sandbox")
    two.ok("account", "answering", "late", "words")
    hear_from(two.folder, {"late": [EVA, "+34600999000"], "shop": [EVA]}, NOW - MINUTE)
    muted = {key for key, mode in modes(two).items() if mode == "muted"}
    assert muted == {("shop", EVA), ("desk", EVA), ("late", EVA)}
    assert "muted everywhere" in two.ok("conversations", "list").out
    assert "muted everywhere" in two.ok("conversations", "show", "1").out
    assert two.ok("conversations", "show", "1", "--json").json["muted_everywhere"]
    again = two.ok("conversations", "unmute", "1").out
    assert again.startswith("conversation 1 is not muted any more\nelsewhere")
    assert "answered, muted elsewhere" in two.ok("conversations", "show", "1").out
    told = two.ok("conversations", "unmute", "1", "--everywhere").out
    assert told == f"{EVA} is not muted any more: 2 conversations\n"
    assert set(modes(two).values()) == {"auto"}
    assert not two.ok("conversations", "show", "1", "--json").json["muted_everywhere"]
    assert "is not muted" in two("conversations", "unmute", "1", "--everywhere").complaint
    assert "is not muted" in two("conversations", "unmute", "1").complaint


def test_somebody_is_muted_under_every_address(two: CommandLine) -> None:
    people = two.folder / "people.csv"
    people.write_text(f"phone,email,name\n{EVA},eva@example.org,Eva\n")
    two.ok("audience", "import", str(people), "--name", "all")
    two.ok("conversations", "mute", "1", "--everywhere")
    hear_from(two.folder, {"desk": ["eva@example.org"]}, NOW - MINUTE)
    assert modes(two)["desk", "eva@example.org"] == "muted"


def test_unmuted_it_is_with_whoever_had_it(shop: CommandLine) -> None:
    shop.ok("conversations", "take", "1")
    shop.ok("conversations", "mute", "1")
    told = shop.ok("conversations", "unmute", "1").out
    assert told == "conversation 1 is not muted any more; a person has it, as before\n"
    (listed,) = shop.ok("conversations", "list", "--json").json
    assert (listed["mode"], listed["reason"]) == ("human", conversations.TAKEN)
