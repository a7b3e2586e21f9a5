"""A whole round: letters go out over Gmail's API, and what comes back is read over it as well."""

from __future__ import annotations

import asyncio

import pytest

from paceline.core.instants import MILLISECOND
from paceline.core.model import Target
from paceline.engine.watching import Watcher
from paceline.providers.gmail import mailbox
from tests.providers.gmail.bodies import BODIES
from tests.providers.gmail.fake import USER, FakeGmail
from tests.providers.gmail.live import LiveWorld
from tests.providers.live import BRISK
from tests.providers.mail.returned import answer, bounce, complaint
from tests.providers.remote import NOTE

PEOPLE = [Target(f"n{number}@example.com", {"name": f"N{number}"}) for number in range(4)]


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "POLL_US", 10 * MILLISECOND)


def test_what_comes_back_is_believed_and_what_is_said_is_kept(
    live: LiveWorld, fake: FakeGmail
) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect({"watch": True})
        process = world.lively()
        watcher = Watcher(process.journal, world.clock, world.providers, look_every_us=BRISK)
        watching = asyncio.create_task(watcher.run())
        await world.until_so(lambda: any(one.cursor for one in watches(world)))
        world.campaign(targets=PEOPLE, parts=NOTE, action="email")
        await world.until_so(lambda: world.state() == "finished")
        gone, full, angry, keen = fake.sent
        # The history is forgotten in between: they are found by date, and one of them twice.
        fake.box.put(bounce(gone.to, gone.own_id), at_s=world.clock.now() // 1_000_000)
        fake.box.forget()
        fake.soon[f"{USER}/history"] = [BODIES["unavailable"].answer]
        now_s = world.clock.now() // 1_000_000
        fake.box.put(bounce(full.to, full.own_id, "5.2.2", "552 5.2.2 mailbox full"), at_s=now_s)
        fake.box.put(complaint(angry.own_id), "SPAM", at_s=now_s)
        fake.box.put(answer(keen.to, keen.own_id), at_s=now_s)
        await world.until_so(lambda: len(world.read(lambda tx: tx.inbox.latest())) == 1)
        await world.until_so(lambda: len(world.read(lambda tx: tx.suppressions.list())) == 2)
        assert world.counts() == {"sent": 2, "bounced": 2}
        watcher.stop()
        await watching
        await process.stop()
        listed = {one[0]: one[2] for one in world.read(lambda tx: tx.suppressions.list())}
        assert listed == {gone.to: "bounce", angry.to: "complaint"}
        (kept,) = world.read(lambda tx: tx.inbox.latest())
        assert (kept.sender, kept.text.strip()) == (keen.to, "Yes, please.")
        (watch,) = watches(world)
        assert watch.problem == "" and watch.lease_until_at is None

    live.play(script)


def watches(world: LiveWorld):  # type: ignore[no-untyped-def]
    return world.read(lambda tx: tx.watches.list())
