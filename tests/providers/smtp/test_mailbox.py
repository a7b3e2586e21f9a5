"""A whole round: letters go out over SMTP, and what comes back is read over IMAP and believed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from paceline.core.instants import MILLISECOND
from paceline.core.states import DeliveryState
from paceline.engine.ports import Delivery
from paceline.engine.watching import Watcher
from tests.providers.live import BRISK
from tests.providers.mail import imap_server
from tests.providers.mail.imap_server import ImapServer
from tests.providers.remote import NOTE
from tests.providers.smtp.fake import FakeServer, Received
from tests.providers.smtp.live import PEOPLE, LiveWorld


@pytest.fixture
def imap() -> Iterator[ImapServer]:
    with imap_server.running(ImapServer()) as server:
        yield server


def bounce(letter: Received, status: str, words: str) -> bytes:
    """As a mail server says it (RFC 3464), with the head of the letter that came back."""
    return (
        "Return-Path: <>\r\nFrom: MAILER-DAEMON@mx.example\r\nTo: anna@shop.example\r\n"
        "Subject: Undelivered Mail Returned to Sender\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/report; report-type=delivery-status; boundary="b"\r\n\r\n'
        "--b\r\nContent-Type: text/plain\r\n\r\nIt could not be delivered.\r\n"
        "--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example\r\n\r\n"
        f"Final-Recipient: rfc822; {letter.recipient}\r\nAction: failed\r\nStatus: {status}\r\n"
        f"Diagnostic-Code: smtp; {words}\r\n\r\n"
        "--b\r\nContent-Type: text/rfc822-headers\r\n\r\n"
        f"Message-ID: {letter.message_id}\r\nSubject: A word\r\n\r\n--b--\r\n"
    ).encode()


def complaint(letter: Received) -> bytes:
    return (
        "From: feedback@mail.example\r\nTo: anna@shop.example\r\nSubject: complaint\r\n"
        "MIME-Version: 1.0\r\n"
        'Content-Type: multipart/report; report-type=feedback-report; boundary="b"\r\n\r\n'
        "--b\r\nContent-Type: text/plain\r\n\r\nThis is a complaint.\r\n"
        "--b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\n"
        "User-Agent: mail.example/1\r\nVersion: 1\r\n\r\n"
        "--b\r\nContent-Type: text/rfc822-headers\r\n\r\n"
        f"Message-ID: {letter.message_id}\r\n\r\n--b--\r\n"
    ).encode()


def answer(letter: Received) -> bytes:
    return (
        f"From: <{letter.recipient}>\r\nTo: anna@shop.example\r\nSubject: Re: A word\r\n"
        f"Message-ID: <1@example.com>\r\nIn-Reply-To: {letter.message_id}\r\n"
        "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nYes, please.\r\n"
    ).encode()


def state_of(world: LiveWorld, target: str) -> Delivery:
    def read(tx):  # type: ignore[no-untyped-def]
        (found,) = [one for one in tx.deliveries.page(run_id=1, after_id=0) if one.target == target]
        return found

    return world.read(read)


def test_what_comes_back_is_believed_and_what_is_said_is_kept(
    live: LiveWorld, fake: FakeServer, imap: ImapServer
) -> None:
    access = imap.access()
    mailbox = {
        "imap_host": access.host,
        "imap_port": access.port,
        "imap_security": access.security,
        "imap_username": access.username,
        "imap_password": access.password,
    }

    async def script(world: LiveWorld) -> None:
        world.connect(mailbox)
        world.campaign(targets=PEOPLE[:5], parts=NOTE, action="email")
        process = world.lively()
        watcher = Watcher(process.journal, world.clock, world.providers, look_every_us=BRISK)
        watching = asyncio.create_task(watcher.run())
        await world.until_so(lambda: world.state() == "finished")
        await imap.until("IDLE")
        gone, full, angry, keen, _ = fake.letters
        for raw in (
            bounce(gone, "5.1.1", "550 5.1.1 no such user here"),
            bounce(full, "5.2.2", "552 5.2.2 mailbox full"),
            complaint(angry),
            answer(keen),
        ):
            imap.append(raw)
        await world.until_so(lambda: len(world.read(lambda tx: tx.inbox.latest())) == 1)
        await world.until_so(lambda: world.counts() == {"sent": 3, "bounced": 2})
        watcher.stop()
        await watching
        await process.stop()
        assert "no such user here" in state_of(world, gone.recipient).reason
        assert state_of(world, full.recipient).state is DeliveryState.BOUNCED
        listed = {one[0]: one[2] for one in world.read(lambda tx: tx.suppressions.list())}
        assert listed == {gone.recipient: "bounce", angry.recipient: "complaint"}
        (kept,) = world.read(lambda tx: tx.inbox.latest())
        assert (kept.sender, kept.text.strip()) == (keen.recipient, "Yes, please.")
        assert kept.delivery_id == state_of(world, keen.recipient).id
        (watch,) = world.read(lambda tx: tx.watches.list())
        assert watch.problem == "" and watch.lease_until_at is None

    live.play(script)


def test_a_mailbox_that_does_not_let_us_in_harms_no_sending(
    live: LiveWorld, imap: ImapServer
) -> None:
    access = imap.access()
    mailbox = {
        "imap_host": access.host,
        "imap_port": access.port,
        "imap_security": access.security,
        "imap_username": access.username,
        "imap_password": "wrong",
    }

    async def script(world: LiveWorld) -> None:
        world.connect(mailbox)
        process = world.lively()
        watcher = Watcher(
            process.journal, world.clock, world.providers, look_every_us=100 * MILLISECOND
        )
        watching = asyncio.create_task(watcher.run())
        await world.until_so(lambda: bool(world.read(lambda tx: tx.alerts.list())))
        world.campaign(targets=PEOPLE[:2], parts=NOTE, action="email")
        await world.until_so(lambda: world.counts() == {"sent": 2})
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert alert.kind == "mailbox.failing" and "wrong" not in alert.text
        watcher.stop()
        await watching
        await process.stop()

    live.play(script)
