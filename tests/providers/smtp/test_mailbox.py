"""A whole round: letters go out over SMTP, and what comes back is read over IMAP and believed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from paceline.core.instants import MILLISECOND
from paceline.core.model import Target
from paceline.core.states import DeliveryState
from paceline.engine.ports import Delivery
from paceline.engine.watching import Watcher
from tests.providers.live import BRISK
from tests.providers.mail import imap_server
from tests.providers.mail.imap_server import ImapServer
from tests.providers.mail.returned import answer, bounce, complaint
from tests.providers.remote import NOTE
from tests.providers.smtp.fake import FakeServer
from tests.providers.smtp.live import PEOPLE, LiveWorld


@pytest.fixture
def imap() -> Iterator[ImapServer]:
    with imap_server.running(ImapServer()) as server:
        yield server


def state_of(world: LiveWorld, target: str) -> Delivery:
    def read(tx):  # type: ignore[no-untyped-def]
        (found,) = [one for one in tx.deliveries.page(run_id=1, after_id=0) if one.target == target]
        return found

    return world.read(read)


def mailbox_of(imap: ImapServer) -> dict[str, Any]:
    access = imap.access()
    return {
        "imap_host": access.host,
        "imap_port": access.port,
        "imap_security": access.security,
        "imap_username": access.username,
        "imap_password": access.password,
    }


def test_what_comes_back_is_believed_and_what_is_said_is_kept(
    live: LiveWorld, fake: FakeServer, imap: ImapServer
) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect(mailbox_of(imap))
        world.campaign(targets=PEOPLE[:5], parts=NOTE, action="email")
        process = world.lively()
        watcher = Watcher(process.journal, world.clock, world.providers, look_every_us=BRISK)
        watching = asyncio.create_task(watcher.run())
        await world.until_so(lambda: world.state() == "finished")
        await imap.until("IDLE")
        gone, full, angry, keen, _ = fake.letters
        for raw in (
            bounce(gone.recipient, gone.message_id),
            bounce(full.recipient, full.message_id, "5.2.2", "552 5.2.2 mailbox full"),
            complaint(angry.message_id),
            answer(keen.recipient, keen.message_id),
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


def test_somebody_at_postmaster_who_says_stop_is_obeyed(
    live: LiveWorld, fake: FakeServer, imap: ImapServer
) -> None:
    """Their letter has all that a report in prose has, but for a sign that it is one."""
    owner = "postmaster@client.example"

    async def script(world: LiveWorld) -> None:
        world.connect(mailbox_of(imap))
        world.campaign(targets=[Target(owner, {"name": "Pia"})], parts=NOTE, action="email")
        process = world.lively()
        watcher = Watcher(process.journal, world.clock, world.providers, look_every_us=BRISK)
        watching = asyncio.create_task(watcher.run())
        await world.until_so(lambda: world.state() == "finished")
        await imap.until("IDLE")
        (letter,) = fake.letters
        said = answer(owner, letter.message_id)
        imap.append(said.replace(b"Yes, please.", b"STOP"))
        await world.until_so(lambda: bool(world.read(lambda tx: tx.inbox.latest())))
        watcher.stop()
        await watching
        await process.stop()
        assert world.counts() == {"sent": 1}
        listed = [(one[0], one[2]) for one in world.read(lambda tx: tx.suppressions.list())]
        assert listed == [(owner, "opt-out")]

    live.play(script)


def test_a_mailbox_that_does_not_let_us_in_harms_no_sending(
    live: LiveWorld, imap: ImapServer
) -> None:
    mailbox = mailbox_of(imap) | {"imap_password": "wrong"}

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
