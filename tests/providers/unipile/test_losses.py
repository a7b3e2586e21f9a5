"""Connections that fail: before anything was written it is safe to try again, after it is not."""

import asyncio
import socket

import httpx
import pytest

from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Driver, Message
from paceline.providers.unipile import UnipileProvider
from tests.providers.loopback import JSON, Scripted, running
from tests.providers.remote import HASTY, account
from tests.providers.unipile.fake import FakeUnipile, error
from tests.providers.unipile.stage import letter, message, play, send

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
        with running(FakeUnipile()) as fake:
            driver = await UnipileProvider(SystemClock()).open(account(fake.settings()))
        try:
            return await driver.send(message())
        finally:
            await driver.close()

    outcome = asyncio.run(scene())
    assert (outcome.kind, outcome.code) == (OutcomeKind.UNAVAILABLE, "connection")


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
                driver._line._client.base_url = url  # type: ignore[attr-defined]
                return await driver.send(message())

            outcome = play(fake.settings(), scene, httpx.Timeout(30, connect=0.2))
        finally:
            for one in waiting:
                one.close()
    assert (outcome.kind, outcome.code) == (OutcomeKind.UNAVAILABLE, "connection")


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
