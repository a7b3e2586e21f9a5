"""What reaches the server, over which connection, and what its answers come to."""

from __future__ import annotations

import asyncio
import logging

import pytest
import structlog

from paceline.core.instants import SECOND
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Found, Media, Thread, Uploaded
from paceline.providers.mail.letters import Sender, message_id
from paceline.providers.smtp import driver as drivers
from paceline.providers.smtp.driver import SmtpDriver
from tests.providers.smtp.fake import PASSWORD, USER, FakeServer, Step, running
from tests.providers.smtp.stage import ANNA, HASTY, letter, play, send

pytestmark = pytest.mark.usefixtures("way")

K = OutcomeKind
PAPER = Media("a" * 64, "offer “1”.pdf", "application/pdf", 4)


def test_a_letter_arrives(fake: FakeServer) -> None:
    outcome = send(fake)
    (received,) = fake.letters
    assert outcome == Outcome(K.ACCEPTED, provider_id=message_id("home-7-0", Sender(USER)))
    assert (received.sender, received.recipient, received.text) == (USER, ANNA, "Hello")
    read = received.parsed
    assert read["From"] == f"Anna from the shop <{USER}>"
    assert read["Message-ID"] == outcome.provider_id
    assert f"SIZE={len(received.raw)}" in received.options
    assert fake.commands() == ["connect", "login", "mail", "rcpt", "data", "content", "quit"]


def test_from_whom_and_where_answers_go(fake: FakeServer) -> None:
    settings = fake.settings(from_address="", from_name="", reply_to="office@shop.example")
    play(settings, lambda driver: driver.send(letter()))
    (received,) = fake.letters
    assert received.sender == "shop@example.com", "the account's own address"
    assert received.parsed["Reply-To"] == "office@shop.example"


def test_dots_and_odd_lines_arrive_as_they_were(fake: FakeServer) -> None:
    text = ".\n..\n.hidden\nFrom here\n\n.\n" + "x" * 3_000 + "\nend."
    play(fake.settings(), lambda driver: driver.send(letter(text=text)))
    assert fake.letters[0].text.replace("\r\n", "\n") == text


def test_files_threads_and_leaving(fake: FakeServer) -> None:
    async def scene(driver: SmtpDriver) -> Outcome:
        uploaded = await driver.upload(PAPER, b"%PDF")
        assert isinstance(uploaded, Uploaded)
        sent = letter(
            media="a" * 64, attachments=("a" * 64,), handle=uploaded.handle, subject="",
            attached=(uploaded.handle,), thread=Thread(("home-1-0",), "First"),
            unsubscribe="https://shop.example/u/1",
        )  # fmt: skip
        return await driver.send(sent)

    assert play(fake.settings(), scene).kind is K.ACCEPTED
    (received,) = fake.letters
    assert received.files == [b"%PDF", b"%PDF"]
    assert received.parsed["Subject"] == "Re: First"
    assert received.parsed["List-Unsubscribe"] == "<https://shop.example/u/1>"


# ---------------------------------------------------------------------- connections


def test_a_connection_is_kept(fake: FakeServer) -> None:
    async def scene(driver: SmtpDriver) -> None:
        for number in range(5):
            outcome = await driver.send(letter(key=f"home-{number}-0"))
            assert outcome.kind is K.ACCEPTED

    play(fake.settings(), scene)
    assert fake.connections == 1 and len(fake.letters) == 5
    assert "rset" not in fake.commands()


def test_after_a_refusal_it_is_used_again(fake: FakeServer) -> None:
    async def scene(driver: SmtpDriver) -> list[OutcomeKind]:
        kinds = []
        for at in ("mail", "rcpt", "data", "content"):
            fake.script.append(Step(at, "452 4.2.2 mailbox full"))
            kinds.append((await driver.send(letter())).kind)
        kinds.append((await driver.send(letter())).kind)
        return kinds

    assert play(fake.settings(), scene) == [K.TRANSIENT] * 4 + [K.ACCEPTED]
    assert fake.connections == 1 and len(fake.letters) == 1
    assert fake.commands().count("rset") == 4


def test_as_many_at_once_as_are_sent_at_once(fake: FakeServer) -> None:
    async def scene(driver: SmtpDriver) -> None:
        for _ in range(2):
            sent = [driver.send(letter(key=f"home-{number}-0")) for number in range(3)]
            outcomes = await asyncio.gather(*sent)
            assert [outcome.kind for outcome in outcomes] == [K.ACCEPTED] * 3

    play(fake.settings(), scene)
    assert fake.connections == 3 and len(fake.letters) == 6


@pytest.mark.parametrize("ending", [Step("mail", drops=True), Step("mail", "421 4.4.2 idle")])
def test_a_server_that_has_ended_the_conversation_is_called_again(
    fake: FakeServer, ending: Step
) -> None:
    """It happens before it has heard of the letter, so nothing is in doubt and nothing refused."""

    async def scene(driver: SmtpDriver) -> None:
        for number in range(2):
            fake.script.extend([ending] if number else [])
            outcome = await driver.send(letter(key=f"home-{number}-0"))
            assert outcome.kind is K.ACCEPTED

    play(fake.settings(), scene)
    assert fake.connections == 2 and len(fake.letters) == 2


def test_an_idle_connection_is_tried_first(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drivers, "IDLE_US", -1)

    async def scene(driver: SmtpDriver) -> None:
        await driver.send(letter())
        fake.script.append(Step("rset", drops=True))
        await driver.send(letter(key="home-8-0"))
        await driver.send(letter(key="home-9-0"))

    play(fake.settings(), scene)
    assert fake.connections == 2 and len(fake.letters) == 3
    assert fake.commands().count("rset") == 3


def test_one_that_was_idle_for_long_is_left(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(driver: SmtpDriver) -> None:
        await driver.send(letter())
        monkeypatch.setattr(drivers, "IDLE_US", -SECOND)
        monkeypatch.setattr(drivers, "KEPT_US", -SECOND)
        await driver.send(letter(key="home-8-0"))
        assert await asyncio.to_thread(fake.await_command, "quit")

    play(fake.settings(), scene)
    assert fake.connections == 2 and len(fake.letters) == 2


def test_goodbye_does_not_take_long(fake: FakeServer) -> None:
    fake.script.append(Step("quit", hangs=True))
    play(
        fake.settings(),
        lambda driver: driver.send(letter()),
        HASTY._replace(envelope_s=30, content_s=30),
    )
    assert len(fake.letters) == 1


def test_a_closed_account_writes_nothing(fake: FakeServer) -> None:
    async def scene(driver: SmtpDriver) -> Outcome:
        await driver.close()
        await driver.close()
        return await driver.send(letter())

    assert play(fake.settings(), scene).code == "closed"
    assert not fake.letters


# ---------------------------------------------------------------------- answers


@pytest.mark.parametrize("at", ["mail", "rcpt", "data"])
@pytest.mark.parametrize("answer", ["what?", "250", "354 go on", "999 x", "55"])
def test_answers_that_make_no_sense(fake: FakeServer, at: str, answer: str) -> None:
    """Before the letter they cost nothing but a connection."""

    async def scene(driver: SmtpDriver) -> Outcome:
        fake.script.append(Step(at, answer))
        await driver.send(letter())
        fake.script.clear()
        return await driver.send(letter(key="home-8-0"))

    assert play(fake.settings(), scene).kind is K.ACCEPTED


@pytest.mark.parametrize("answer", ["what?", "354 go on", "999 x", "199 hm"])
def test_nonsense_after_the_letter_is_a_doubt(fake: FakeServer, answer: str) -> None:
    assert send(fake, Step("content", answer, takes=True)).kind is K.UNKNOWN
    assert len(fake.letters) == 1


# ---------------------------------------------------------------------- limits


def test_too_large_is_refused_before_anything_is_said(fake: FakeServer) -> None:
    fake.size = 100_000

    async def scene(driver: SmtpDriver) -> list[Outcome | Uploaded]:
        kept = await driver.upload(PAPER, b"x" * 90_000)
        assert isinstance(kept, Uploaded)
        return [
            await driver.upload(PAPER, b"x" * 110_000),
            await driver.send(letter(media="a" * 64, handle=kept.handle)),
        ]

    for outcome in play(fake.settings(), scene):
        assert isinstance(outcome, Outcome) and outcome.code == "too-large"
    assert "mail" not in fake.commands()


def test_our_own_limit_counts_too(fake: FakeServer) -> None:
    async def scene(driver: SmtpDriver) -> Uploaded | Outcome:
        return await driver.upload(PAPER, b"x" * 1_100_000)

    assert isinstance(play(fake.settings(), scene), Uploaded)
    refused = play(fake.settings(largest_mib=1), scene)
    assert isinstance(refused, Outcome) and "1.0 MiB can be sent" in refused.reason


def test_letters_before_the_at() -> None:
    for utf8, kind in ((True, K.ACCEPTED), (False, K.REJECTED)):
        server = FakeServer()
        server.utf8 = utf8
        with running(server) as fake:
            outcome = play(fake.settings(), lambda d: d.send(letter("jürgen@bücher.example")))
            assert outcome.kind is kind
            assert fake.recipients() == (["jürgen@xn--bcher-kva.example"] if utf8 else [])
            if utf8:
                assert "SMTPUTF8" in fake.letters[0].options


@pytest.mark.parametrize("password", ["two  spaces", "back\\slash"])
@pytest.mark.parametrize("answer", ["550 5.7.1 {} is no password", "{} is no answer"])
def test_no_spelling_of_the_password_is_in_a_reason(password: str, answer: str) -> None:
    fake = FakeServer()
    fake.passwords[USER] = password
    with running(fake):
        outcome = send(fake, Step("mail", answer.format(password)), password=password)
    for spelled in (password, " ".join(password.split()), repr(password)[1:-1]):
        assert spelled not in outcome.reason and "(secret)" in outcome.reason


def test_nothing_is_found_again(fake: FakeServer) -> None:
    assert play(fake.settings(), lambda driver: driver.find(letter(), 0)) == Found("unclear")


def test_the_password_is_in_no_reason(fake: FakeServer, caplog: pytest.LogCaptureFixture) -> None:
    """Some servers repeat what they were sent."""
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as events:
        for padding in (0, 190, 270, 290):
            echo = f"550 5.7.1 {'.' * padding} {PASSWORD} is not allowed"
            outcome = send(fake, Step("rcpt", echo))
            assert PASSWORD[:6] not in repr(outcome) and outcome.reason
            outcome = send(fake, Step("mail", f"{'.' * padding} {PASSWORD} is no answer"))
            assert PASSWORD[:6] not in repr(outcome) and outcome.reason
    for line in (*map(repr, events), *(record.getMessage() for record in caplog.records)):
        assert PASSWORD not in line
