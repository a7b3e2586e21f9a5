"""A shop that four processes answer for, over real HTTP."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, cycle
from urllib.parse import urlsplit

import pytest

from paceline.vault import new_key
from tests.processes.service import Installation, Service, services
from tests.providers.loopback import Call, Scripted, running, said
from tests.providers.responders.fake import KEY, FakeModel, completion
from tests.providers.wati.fake import TEXT, FakeWati

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


class Slow(FakeWati):
    """Takes what it is sent, and says so only when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def answer(self, call: Call) -> Scripted:
        usual = super().answer(call)
        if call.path.startswith(TEXT) and not self.may_answer.wait(timeout=60):
            raise AssertionError("it was never told to answer")
        return usual


class Shop:
    """A number at WATI that four processes look after."""

    def __init__(self, installation: Installation, wati: Slow, model: Echo) -> None:
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
        timeout = ("--set", "timeout=10s")
        installation.run("account", "add", "shop", "--provider", "wati", *timeout, *given)
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
    with running(Slow()) as wati, running(Echo()) as model:
        yield Shop(installation, wati, model)
