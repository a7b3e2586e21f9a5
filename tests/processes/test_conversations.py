"""Four processes answer what comes in over real HTTP: once each, in turn, whoever dies."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, cycle
from urllib.parse import urlsplit

import pytest

from paceline.core.states import TurnState
from paceline.vault import new_key
from tests.processes.service import Installation, Service, eventually, services
from tests.providers.loopback import Call, Scripted, running, said
from tests.providers.responders.fake import KEY, FakeModel, completion
from tests.providers.wati.fake import FakeWati

NAMES = ("one", "two", "three", "four")
PASSKEY = "agreed-upon-2026"
EVA = "34600111222"


class Echo(FakeModel):
    """Says what it was asked last."""

    def answer(self, call: Call) -> Scripted:
        usual = super().answer(call)
        if usual.status != 200:
            return usual
        return said(200, completion(f"re: {call.json()['messages'][-1]['content']}"))


class Shop:
    """A number at WATI that four processes look after."""

    def __init__(self, installation: Installation, wati: FakeWati, model: Echo) -> None:
        self.installation = installation
        self.wati = wati
        self.model = model
        self.services: list[Service] = []
        self._numbers = count(1)
        self._turns: Iterator[Service] = iter(())
        installation.env |= {"PACELINE_KEY": new_key(), "MODEL_KEY": KEY}
        (installation.folder / "paceline.toml").write_text(
            "[answering.desk]\n"
            'responder = "openai"\nmodel = "any"\nprompt = "Be kind."\napi_key = "env:MODEL_KEY"\n'
            f'base_url = "{model.url}/v1"\nquiet = "2s"\nmax_wait = "20s"\n'
        )
        options = wati.settings(webhook_auth="passkey", webhook_secret=PASSKEY)
        given = [word for pair in options.items() for word in ("--option", "=".join(pair))]
        installation.run("account", "add", "shop", "--provider", "wati", *given)
        installation.run("account", "answering", "shop", "desk")
        self.path = urlsplit(installation.ask("account", "hook", "shop")["url"]).path

    @contextmanager
    def open(self) -> Iterator[list[Service]]:
        with services(self.installation, *NAMES) as up:
            self.services, self._turns = up, cycle(up)
            yield up

    def hear(self, text: str, who: str = EVA, *, name: str = "", by: Service | None = None) -> None:
        """As document E has it: any of the processes may be the one that is told."""
        body = {"waId": who, "text": text, "passkey": PASSKEY, "type": "text"}
        body["id"] = name or f"in-{next(self._numbers)}"
        url = f"{(by or next(self._turns)).url}{self.path}"
        request = urllib.request.Request(url, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200

    def told(self, who: str = EVA) -> list[str]:
        """What the provider took for somebody, in order."""
        return [one["text"] for one in self.wati.messages if one["to"] == who]

    def at_rest(self) -> bool:
        return self.installation.look(
            lambda tx: not tx.turns.active() and not tx.conversations.list(waiting=True)
        )


@pytest.fixture
def shop(installation: Installation) -> Iterator[Shop]:
    with running(FakeWati()) as wati, running(Echo()) as model:
        yield Shop(installation, wati, model)


def test_rapid_messages_of_one_customer_and_four_customers_at_once(shop: Shop) -> None:
    with shop.open():
        for number in (1, 2, 3):
            shop.hear(f"Message {number}")
        shop.hear("Message 3", name="in-3")  # reported twice
        eventually(lambda: bool(shop.told()), "an answer")
        assert shop.told() == ["re: Message 1\nMessage 2\nMessage 3"]
        everybody = [f"3460022233{number}" for number in range(4)]
        shop.model.takes_its_time.clear()
        before = len(shop.model.calls)
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda who: shop.hear("Test", who), everybody))
        assert shop.model.await_calls(before + 4), "all four are asked about at the same time"
        shop.model.takes_its_time.set()
        eventually(lambda: all(shop.told(who) for who in everybody), "four answers")
        eventually(shop.at_rest, "everything answered")
        assert [shop.told(who) for who in everybody] == [["re: Test"]] * 4
        assert len(shop.wati.messages) == 5


def test_a_process_that_dies_while_it_answers_is_taken_over_from(shop: Shop) -> None:
    with shop.open() as up:
        shop.model.takes_its_time.clear()
        shop.hear("Are you there?")
        assert shop.model.await_calls(1)
        (turn,) = shop.installation.look(lambda tx: tx.turns.active())
        (owner,) = [one for one, name in zip(up, NAMES, strict=True) if name == turn.owner]
        owner.kill()
        shop.model.takes_its_time.set()
        others = [one for one in up if one is not owner]
        shop.hear("Hello?", by=others[0])
        eventually(shop.at_rest, "everything answered")
        assert shop.told() == ["re: Are you there?", "re: Hello?"]
        after = shop.installation.look(lambda tx: tx.turns.get(turn.id))
        assert (after.state, after.owner != turn.owner) == (TurnState.DONE, True)
        log = "".join(line for one in others for line in one.log)
        assert "stale cleaned" in log or after.attempts == 2
    assert shop.installation.run("verify").returncode == 0
