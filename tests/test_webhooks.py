"""From something that happens to somebody's server: the whole service, on a real clock and network,
on both databases."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import replace

import pytest

from paceline.app import App, open_app
from paceline.config import Settings
from paceline.core.errors import InputError
from paceline.core.instants import MILLISECOND
from paceline.core.webhooks import webhooks_of
from paceline.engine import courier
from paceline.engine.commands import accounts
from paceline.engine.commands.accounts import NewAccount
from tests import test_app
from tests.providers.loopback import Call, Fake, Scripted, running
from tests.test_app import send, served, until

SECRET = "a-secret-of-some-length"
database = test_app.database
settings = test_app.settings


class Receiver(Fake):
    """Takes what is signed, unless it is told otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[dict[str, object]] = []

    def answer(self, call: Call) -> Scripted:
        signed = f"{call.headers['paceline-timestamp']}.".encode() + call.body
        expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(call.headers["paceline-signature"], f"v1={expected}"):
            self.failures.append("somebody else has signed this")
        scripted = self.script.popleft() if self.script else Scripted(204)
        if 200 <= scripted.status < 300 and not scripted.drops:
            self.taken.append(call.json())
        return scripted

    @property
    def kinds(self) -> list[object]:
        return [event["kind"] for event in self.taken]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running(Receiver()) as fake:
        yield fake


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real clock, and no patience."""
    monkeypatch.setattr(courier, "RETRY_US", 20 * MILLISECOND)
    monkeypatch.setattr(courier.Courier.__init__, "__kwdefaults__", {"look_every_us": 20_000})


def with_hooks(settings: Settings, *urls: str, events: tuple[str, ...] = ("*",)) -> Settings:
    written = [
        {"name": f"hook-{number}", "url": url, "secret": SECRET, "events": list(events)}
        for number, url in enumerate(urls, start=1)
    ]
    return replace(settings, webhooks=webhooks_of(written))


def act(app: App, *states: str) -> None:
    now = app.clock.now()
    for state in states:
        move = {"pause": accounts.pause, "resume": accounts.resume}[state]
        with app.store.write() as tx:
            move(tx, "team", now)


def known(app: App, *names: str) -> bool:
    with app.store.read() as tx:
        return {hook.name for hook in tx.hooks.list()} >= set(names)


def test_what_happens_reaches_one_while_another_is_dead(
    settings: Settings, receiver: Receiver
) -> None:
    """Answers of every kind on the way; nothing is missing at the end, and all of it in order."""
    receiver.script.extend(
        [
            Scripted(500, b"not yet"),
            Scripted(302, b"", {"Location": f"{receiver.url}/elsewhere"}),
            Scripted(204),
            Scripted(drops="read"),
            Scripted(drops="unread"),
            Scripted(429, b"", {"Retry-After": "0"}),
        ]
    )
    written = with_hooks(settings, receiver.url, "http://127.0.0.1:1/", events=("account.*",))

    async def live(app: App) -> None:
        with app.store.write() as tx:
            accounts.add(tx, NewAccount("team", "sandbox"), app.house, app.clock.now())
        async with served(app):
            await until(app, lambda: known(app, "hook-1", "hook-2"))
            act(app, "pause", "resume", "pause", "resume")
            message = send(app, "anna")
            await until(app, lambda: len(receiver.taken) >= 4)
            await until(app, lambda: test_app.is_sent(app, message))

    with open_app(written, sends=True) as app:
        asyncio.run(live(app))
        with app.store.read() as tx:
            works, dead = tx.hooks.list()
            events = [
                event.id for event in tx.events.after(0, 100) if event.kind.startswith("account.")
            ]
    assert receiver.kinds == ["account.paused", "account.active"] * 2
    assert [event["id"] for event in receiver.taken] == events[1:], "from when it was known"
    assert {call.path for call in receiver.calls} == {"/"}, "nobody is followed elsewhere"
    assert (works.delivered, works.failures, works.lease_until_at) == (4, 0, None)
    assert dead.delivered == 0
    assert dead.failures > 0
    assert "ConnectError" in dead.problem


def test_whoever_is_gone_is_left_alone(settings: Settings, receiver: Receiver) -> None:
    receiver.script.append(Scripted(410))

    async def live(app: App) -> None:
        with app.store.write() as tx:
            accounts.add(tx, NewAccount("team", "sandbox"), app.house, app.clock.now())
        async with served(app):
            await until(app, lambda: known(app, "hook-1"))
            act(app, "pause", "resume")
            await until(app, lambda: disabled(app))
            act(app, "pause", "resume")

    def disabled(app: App) -> bool:
        with app.store.read() as tx:
            return any(hook.disabled_at is not None for hook in tx.hooks.list())

    with open_app(with_hooks(settings, receiver.url), sends=True) as app:
        asyncio.run(live(app))
        with app.store.read() as tx:
            (alert,) = tx.alerts.list()
    assert len(receiver.calls) == 1
    assert alert.kind == "webhook.disabled"


def test_a_stop_does_not_wait_for_somebody_who_hangs(
    settings: Settings, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.script.append(Scripted(hangs=True))
    monkeypatch.setattr("paceline.app.TELLING_SECONDS", 0.1)

    async def live(app: App) -> None:
        with app.store.write() as tx:
            accounts.add(tx, NewAccount("team", "sandbox"), app.house, app.clock.now())
        async with served(app):
            await until(app, lambda: known(app, "hook-1"))
            act(app, "pause")
            await until(app, lambda: len(receiver.calls) == 1)

    with open_app(with_hooks(settings, receiver.url), sends=True) as app:
        asyncio.run(live(app))
        with app.store.read() as tx:
            (hook,) = tx.hooks.list()
    assert (hook.delivered, hook.failures) == (0, 0), "nobody knows what became of it"


def test_without_its_secret_a_service_does_not_start(settings: Settings) -> None:
    written = [{"name": "crm", "url": "https://example.com/", "secret": "env:NOT_THERE"}]
    source = replace(settings, webhooks=webhooks_of(written), source="here.toml")
    with (
        open_app(source, sends=True) as app,
        pytest.raises(InputError, match=r"here\.toml: webhooks: crm: secret: the variable NOT_TH"),
    ):
        asyncio.run(start(app))


async def start(app: App) -> None:
    async with served(app):
        pass
