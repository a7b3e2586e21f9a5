"""Connections that end, at every step there is: before a letter's first byte it is safe to try
again, after it the letter may be out."""

from __future__ import annotations

import asyncio

import pytest

from paceline.core.outcome import Outcome, OutcomeKind
from paceline.providers.smtp.driver import SmtpDriver
from tests.providers.smtp.fake import FakeServer, Step
from tests.providers.smtp.stage import HASTY, letter, play, send

pytestmark = pytest.mark.usefixtures("way")

K = OutcomeKind


@pytest.mark.parametrize(
    ("at", "kind"),
    [
        ("rcpt", K.TRANSIENT),
        ("data", K.TRANSIENT),
        ("midway", K.UNKNOWN),
        ("content", K.UNKNOWN),
    ],
)
def test_where_the_connection_ends(fake: FakeServer, at: str, kind: OutcomeKind) -> None:
    async def scene(driver: SmtpDriver) -> list[Outcome]:
        fake.script.append(Step(at, drops=True))
        return [await driver.send(letter()), await driver.send(letter(key="home-8-0"))]

    first, second = play(fake.settings(), scene)
    assert first.kind is kind and first.reason
    assert second.kind is K.ACCEPTED
    assert (len(fake.letters), fake.connections) == (1, 2)


def test_before_mail_it_ends_twice(fake: FakeServer) -> None:
    outcome = send(fake, Step("mail", drops=True), Step("mail", drops=True))
    assert (outcome.kind, outcome.code) == (K.TRANSIENT, "connection")
    assert fake.connections == 2 and not fake.letters


def test_taken_and_then_lost_is_a_doubt(fake: FakeServer) -> None:
    """The final dot was read, and the answer to it never came."""
    assert send(fake, Step("content", drops=True, takes=True)).kind is K.UNKNOWN
    assert len(fake.letters) == 1


@pytest.mark.parametrize(
    ("at", "kind", "reason"),
    [
        ("mail", K.TRANSIENT, "before the letter was sent: no answer in time"),
        ("rcpt", K.TRANSIENT, "before the letter was sent: no answer in time"),
        ("data", K.TRANSIENT, "before the letter was sent: no answer in time"),
        ("midway", K.UNKNOWN, "while the letter was sent: no answer in time"),
        ("content", K.UNKNOWN, "while the letter was sent: no answer in time"),
    ],
)
def test_servers_that_keep_silent(
    fake: FakeServer, at: str, kind: OutcomeKind, reason: str
) -> None:
    outcome = send(fake, Step(at, hangs=True), timing=HASTY)
    assert outcome.kind is kind and reason in outcome.reason
    assert not fake.letters


def test_a_server_that_is_gone(fake: FakeServer) -> None:
    async def scene(driver: SmtpDriver) -> Outcome:
        await asyncio.to_thread(fake.leave)
        return await driver.send(letter())

    outcome = play(fake.settings(), scene)
    assert (outcome.kind, outcome.code) == (K.UNAVAILABLE, "connection")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("454 4.7.0 Temporary authentication failure", K.UNAVAILABLE),
        ("535 5.7.8 Username and Password not accepted", K.UNAUTHORISED),
    ],
)
def test_a_login_that_fails_when_it_is_called_again(
    fake: FakeServer, answer: str, kind: OutcomeKind
) -> None:
    async def scene(driver: SmtpDriver) -> Outcome:
        fake.script.extend([Step("mail", drops=True), Step("login", answer)])
        return await driver.send(letter())

    outcome = play(fake.settings(), scene)
    assert outcome.kind is kind and outcome.reason == answer
    assert not fake.letters


@pytest.mark.parametrize("at", ["mail", "rcpt", "data", "midway", "content"])
def test_one_that_is_called_off_leaves_the_account_usable(fake: FakeServer, at: str) -> None:
    """The connection is dropped: what would be said to the next letter is about this one."""

    async def scene(driver: SmtpDriver) -> Outcome:
        fake.script.append(Step(at, hangs=True))
        call = asyncio.ensure_future(driver.send(letter()))
        assert await asyncio.to_thread(fake.await_command, at)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return await driver.send(letter(key="home-8-0"))

    assert play(fake.settings(), scene).kind is K.ACCEPTED
    assert (len(fake.letters), fake.connections) == (1, 2)


def test_closing_ends_what_is_under_way(fake: FakeServer) -> None:
    async def scene(driver: SmtpDriver) -> Outcome:
        fake.script.append(Step("content", hangs=True))
        call = asyncio.ensure_future(driver.send(letter()))
        assert await asyncio.to_thread(fake.await_command, "content")
        await driver.close()
        return await call

    assert play(fake.settings(), scene).kind is K.UNKNOWN
