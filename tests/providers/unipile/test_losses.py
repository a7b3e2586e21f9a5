"""Connections that fail: before anything was written it is safe to try again, after it is not."""

import asyncio
import socket

import httpx
import pytest

from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Driver, Message
from paceline.providers.unipile import UnipileProvider
from paceline.providers.unipile.driver import NOTHING_WRITTEN
from tests.providers.unipile.fake import JSON, FakeUnipile, Scripted, error, running
from tests.providers.unipile.stage import HASTY, account, letter, message, play, send

ALL = [message(), message("inmail"), message("connection_request"), letter()]


@pytest.mark.parametrize("sent", ALL, ids=lambda sent: sent.action)
@pytest.mark.parametrize("takes", [True, False])
@pytest.mark.parametrize("drops", ["read", "midway"])
def test_hanging_up_after_the_request_leaves_a_doubt(
    fake: FakeUnipile, sent: Message, takes: bool, drops: str
) -> None:
    scripted = Scripted(201, b'{"object": "', JSON, takes=takes, drops=drops)
    outcome = send(fake, sent, scripted)
    assert outcome.kind is OutcomeKind.UNKNOWN
    assert outcome.reason.startswith("Unipile's answer was lost: ")
    assert len(fake.sent) == takes


def test_hanging_up_in_the_middle_leaves_a_doubt(fake: FakeUnipile) -> None:
    outcome = send(fake, letter(text="x" * 2_000_000), Scripted(drops="unread"))
    assert outcome.kind is OutcomeKind.UNKNOWN
    assert not fake.sent


def test_no_answer_in_time_leaves_a_doubt(fake: FakeUnipile) -> None:
    outcome = send(fake, message(), Scripted(hangs=True, takes=True), timeout=HASTY)
    assert (outcome.kind, len(fake.sent)) == (OutcomeKind.UNKNOWN, 1)
    assert "ReadTimeout" in outcome.reason


def test_a_gateway_that_gave_up_leaves_a_doubt(fake: FakeUnipile) -> None:
    page = b"<html>504 Gateway Time-out</html>"
    for scripted in (error(504, "request_timeout", takes=True), Scripted(504, page, takes=True)):
        assert send(fake, message(), scripted).kind is OutcomeKind.UNKNOWN


def test_no_connection_is_no_doubt() -> None:
    """Opened while the other side was there; when the message is sent it is gone."""

    async def scene() -> Outcome:
        with running() as fake:
            driver = await UnipileProvider(SystemClock()).open(account(fake.settings()))
        try:
            return await driver.send(message())
        finally:
            await driver.close()

    outcome = asyncio.run(scene())
    assert (outcome.kind, outcome.code) == (OutcomeKind.TRANSIENT, "connection")


def test_no_connection_in_time_is_no_doubt(fake: FakeUnipile) -> None:
    """A host that takes no more callers: its queue is full, and the next one waits in vain."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(8)]
        try:
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(full.getsockname())
            url = "http://{}:{}".format(*full.getsockname())

            async def scene(driver: Driver) -> Outcome:
                driver._client.base_url = url  # type: ignore[attr-defined]
                return await driver.send(message())

            outcome = play(fake.settings(), scene, httpx.Timeout(30, connect=0.2))
        finally:
            for one in waiting:
                one.close()
    assert (outcome.kind, outcome.code) == (OutcomeKind.TRANSIENT, "connection")


def test_a_call_that_is_called_off_ends(fake: FakeUnipile) -> None:
    async def scene(driver: Driver) -> None:
        fake.script.append(Scripted(hangs=True))
        call = asyncio.ensure_future(driver.send(message()))
        assert await asyncio.to_thread(fake.await_calls, 2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await driver.send(message())).kind is OutcomeKind.ACCEPTED

    play(fake.settings(), scene)


def test_an_endless_answer_is_cut_short(fake: FakeUnipile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.providers.unipile.driver.MOST_BODY", 10_000)
    outcome = send(fake, message(), Scripted(200, b" " * 300_000 + b"{}"))
    assert outcome.kind is OutcomeKind.UNKNOWN


def test_every_failure_of_the_library_is_sorted() -> None:
    """All that HTTP can fail with is one of two; a new one in the library would be a doubt."""
    leaves = _leaves(httpx.TransportError)
    safe = {error for error in leaves if issubclass(error, NOTHING_WRITTEN)}
    assert {error.__name__ for error in safe} == {
        "ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol",
    }  # fmt: skip
    assert all(issubclass(error, httpx.HTTPError) for error in leaves)


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (httpx.ConnectError("x"), OutcomeKind.TRANSIENT),
        (httpx.ConnectTimeout("x"), OutcomeKind.TRANSIENT),
        (httpx.PoolTimeout("x"), OutcomeKind.TRANSIENT),
        (httpx.ReadError("x"), OutcomeKind.UNKNOWN),
        (httpx.WriteError("x"), OutcomeKind.UNKNOWN),
        (httpx.WriteTimeout("x"), OutcomeKind.UNKNOWN),
        (httpx.ReadTimeout(""), OutcomeKind.UNKNOWN),
        (httpx.RemoteProtocolError("x"), OutcomeKind.UNKNOWN),
        (httpx.DecodingError("x"), OutcomeKind.UNKNOWN),
        (httpx.TooManyRedirects("x"), OutcomeKind.UNKNOWN),
        (httpx.StreamError("x"), OutcomeKind.UNKNOWN),
        (OSError(5, "x"), OutcomeKind.UNKNOWN),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_failure_by_its_place(
    fake: FakeUnipile, monkeypatch: pytest.MonkeyPatch, failure: Exception, kind: OutcomeKind
) -> None:
    async def scene(driver: Driver) -> Outcome:
        async def fails(*_: object, **__: object) -> None:
            raise failure

        monkeypatch.setattr(driver, "_call", fails)
        return await driver.send(message())

    outcome = play(fake.settings(), scene)
    assert outcome.kind is kind
    assert type(failure).__name__ in outcome.reason


def _leaves(error: type[Exception]) -> set[type[Exception]]:
    below = error.__subclasses__()
    return {leaf for one in below for leaf in _leaves(one)} if below else {error}
