"""Campaigns to groups and people through the real engine and store, in virtual time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.model import Part, Target
from paceline.engine.commands import accounts
from paceline.engine.commands.accounts import House, NewAccount
from paceline.engine.commands.standing import REPORTED
from paceline.providers.registry import Registry
from paceline.providers.whatsapp import provider as providers
from paceline.providers.whatsapp.errors import BANS, LOGOUTS
from paceline.providers.whatsapp.provider import WhatsAppProvider
from paceline.providers.whatsapp.wire import Standing, WireGroup
from tests.engine.world import World
from tests.providers.whatsapp.scripted import ScriptedWhatsApp

GROUPS = [WireGroup(f"1203630000000{number:05}@g.us", f"Group {number}") for number in range(60)]
TARGETS = [Target(group.jid) for group in GROUPS]


class PairedWorld(World):
    """A small world in which the account is somebody's phone."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"sqlite:///{folder / 'world.db'}")
        self.folder = folder
        self.whatsapp = ScriptedWhatsApp(groups=list(GROUPS))
        provider = WhatsAppProvider(self.clock, folder, self.whatsapp.make)
        self.providers = Registry([provider])
        self.house = House(self.providers, self.house.catalogue)

    def pair(self) -> None:
        (self.folder / "ann.session").touch()
        new = NewAccount("ann", "whatsapp", "ann", {}, "whatsapp-established", {})
        with self.store.write() as tx:
            accounts.add(tx, new, self.house, self.clock.now())

    @property
    def sent_to(self) -> Counter[str]:
        return Counter(jid for jid, _ in self.whatsapp.sent)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PairedWorld:
    monkeypatch.setattr(providers, "installed", lambda: True)
    return PairedWorld(tmp_path)


def test_a_captioned_picture_to_many_groups(world: PairedWorld) -> None:
    """One upload, one question about each group, one message to each, at the account's pace."""

    async def script(_: World) -> None:
        world.pair()
        picture = world.write(lambda tx: tx.media.put("a.png", "image/png", b"x", tx.now))
        parts = (Part("media", "See you", media=picture.id),)
        world.campaign(targets=TARGETS, parts=parts)
        began_at = world.clock.now()
        process = world.process()
        await world.until_finished()
        took_us = world.clock.now() - began_at
        await process.stop()
        assert world.counts() == {"sent": 60}
        assert 59 * 1500 <= took_us // 1000 <= 59 * 1500 + 3_000, "forty a minute"

    world.play(script)
    assert world.sent_to == Counter(group.jid for group in GROUPS)
    assert len(world.whatsapp.called("upload")) == 1
    assert len(world.whatsapp.called("group")) == 60
    assert len(world.whatsapp.wires) == 1 and world.whatsapp.wires[0].closed


def test_a_ban_cools_the_account_down_for_as_long_as_it_lasts(world: PairedWorld) -> None:
    async def script(_: World) -> None:
        world.pair()
        world.campaign(targets=TARGETS[:10])
        process = world.process()
        await world.until(lambda: len(world.whatsapp.sent) == 4)
        world.whatsapp.say(Standing("banned", BANS[1], "temporary-ban", HOUR))
        banned_at = world.clock.now()
        await world.until(lambda: world.account_now().state == "cooling_down")
        account = world.account_now()
        told = f"{REPORTED}banned by WhatsApp: sent to too many people"
        assert account.state_reason.startswith(told)
        assert account.state_until_at is not None
        assert abs(account.state_until_at - banned_at - HOUR) <= 2 * SECOND
        assert len(world.whatsapp.sent) == 4
        await world.until_finished()
        assert world.clock.now() >= banned_at + HOUR
        await process.stop()
        assert world.counts() == {"sent": 10}

    world.play(script)
    assert max(world.sent_to.values()) == 1


def test_a_logout_suspends_the_account_with_its_reason(world: PairedWorld) -> None:
    async def script(_: World) -> None:
        world.pair()
        world.campaign(targets=TARGETS[:10])
        process = world.process()
        await world.until(lambda: len(world.whatsapp.sent) == 4)
        world.whatsapp.say(Standing("logged_out", LOGOUTS[2], "logged-out"))
        await world.until(lambda: world.account_now().state == "suspended")
        reason = f"{REPORTED}logged out: the device was removed on the phone; pair it again with: "
        assert world.account_now().state_reason == reason + "paceline account pair ann"
        await world.wait(HOUR)
        assert world.counts() == {"sent": 4, "ready": 6}
        with world.store.write() as tx:
            accounts.resume(tx, "ann", world.clock.now())
        await world.until_finished()
        await process.stop()

    world.play(script)
    assert max(world.sent_to.values()) == 1
    assert len(world.whatsapp.wires) == 2


def test_an_account_that_is_not_paired_is_suspended_before_anything_is_sent(
    world: PairedWorld,
) -> None:
    async def script(_: World) -> None:
        world.pair()
        (world.folder / "ann.session").unlink()
        world.campaign(targets=TARGETS[:3])
        process = world.process()
        await world.until(lambda: world.account_now().state == "suspended")
        reason = world.account_now().state_reason
        assert reason == "not paired; pair it with: paceline account pair ann"
        await process.stop()

    world.play(script)
    assert world.whatsapp.wires == []


def test_what_was_under_way_in_a_crash_is_in_doubt_and_never_sent_again(
    world: PairedWorld,
) -> None:
    async def script(_: World) -> None:
        world.pair()
        world.campaign(targets=TARGETS[:6])
        process = world.process()
        await world.until(lambda: len(world.whatsapp.sent) == 2)
        world.whatsapp.hold.add("send")
        await world.whatsapp.begun.wait()
        world.whatsapp.wires[-1].crash()
        world.whatsapp.hold.clear()
        await world.until(lambda: world.counts().get("sent") == 5)
        assert world.counts() == {"sent": 5, "unknown": 1}
        await process.stop()

    world.play(script)
    assert max(world.sent_to.values()) == 1 and len(world.whatsapp.wires) == 2


def test_a_call_that_takes_too_long_is_settled_by_its_late_answer(world: PairedWorld) -> None:
    async def script(_: World) -> None:
        world.pair()
        world.campaign(targets=TARGETS[:1])
        world.whatsapp.hold.add("send")
        process = world.process()
        await world.until(lambda: world.counts() == {"unknown": 1})
        await world.wait(MINUTE)
        assert world.whatsapp.sent == []
        world.whatsapp.go_on.set()
        await world.until(lambda: world.counts() == {"sent": 1})
        await process.stop()

    world.play(script)
    assert len(world.whatsapp.sent) == 1


def test_a_number_that_is_not_on_whatsapp_fails_alone(world: PairedWorld) -> None:
    people = [Target(f"+4915112345{number:03}") for number in range(4)]
    world.whatsapp.strangers = {people[1].address}

    async def script(_: World) -> None:
        world.pair()
        world.campaign(targets=people)
        process = world.process()
        await world.until_finished()
        await process.stop()
        assert world.counts() == {"sent": 3, "failed": 1}

    world.play(script)
    assert len(world.whatsapp.called("look_up")) == 4


def test_too_fast_is_waited_out_and_nobody_is_left_out(world: PairedWorld) -> None:
    world.whatsapp.fails("send", "server returned error 429")

    async def script(_: World) -> None:
        world.pair()
        world.campaign(targets=TARGETS[:5])
        process = world.process()
        await world.until_finished()
        await process.stop()
        assert world.counts() == {"sent": 5}

    world.play(script)
    assert max(world.sent_to.values()) == 1
