"""Channels that take an answer for a day: from when somebody wrote, not from when we heard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
from paceline.core.opting_out_settings import opting_out_of
from paceline.core.states import DeliveryState
from paceline.engine import conversations, held_ways
from paceline.engine.commands import returns
from paceline.engine.confirming import words_of
from paceline.engine.ports import Capabilities, Inbound
from paceline.providers.sandbox import SandboxProvider
from tests.engine.talking import EVA, WAY, Desk, Scripted, answered, conversation, hear
from tests.engine.world import World


@pytest.fixture(autouse=True)
def only_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    """As WhatsApp Cloud has it."""
    whole = SandboxProvider.capabilities_of

    def strict(provider: SandboxProvider, settings: Mapping[str, Any]) -> Capabilities:
        return replace(whole(provider, settings), needs_templates=True)

    monkeypatch.setattr(SandboxProvider, "capabilities_of", strict)


def expires_at(world: World) -> Instant | None:
    (row,) = world.read(lambda tx: tx.deliveries.page())
    return row.expires_at


@pytest.mark.parametrize("ago_us", [0, 3 * HOUR, -HOUR])
def test_the_day_begins_when_they_wrote(world: World, ago_us: int) -> None:
    """By the provider's clock; nobody has written what is yet to come, though."""

    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        now = world.clock.now()
        hear(world, "earlier", at=now - 5 * HOUR)
        hear(world, "hi", at=now - ago_us)
        await world.wait(MINUTE)
        assert len(world.sends()) == 1
        assert expires_at(world) == now - max(ago_us, 0) + DAY
        await desk.stop()

    world.play(script)


def test_where_no_time_is_told_it_begins_when_we_heard(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        now = world.clock.now()
        hear(world, "hi")
        await world.wait(MINUTE)
        assert expires_at(world) == now + DAY
        await desk.stop()

    world.play(script)


def test_what_is_heard_of_after_its_day_is_a_person_s(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        hear(world, "hi", at=world.clock.now() - DAY - MINUTE)
        await world.wait(2 * MINUTE)
        assert world.sends() == []
        (row,) = world.read(lambda tx: tx.deliveries.page())
        assert row.state is DeliveryState.SKIPPED
        assert conversation(world).mode == "human"
        await desk.stop()

    world.play(script)


def test_an_answer_by_hand_has_the_same_day(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        written_at = world.clock.now() - 2 * HOUR
        hear(world, "hi", at=written_at)
        number, now = conversation(world).id, world.clock.now()
        world.write(lambda tx: conversations.reply(tx, number, "hello", world.providers, now))
        assert expires_at(world) == written_at + DAY

    world.play(script)


def test_a_confirmation_has_the_same_day(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        words = words_of(opting_out_of({"confirmation": "No more."}), world.providers)
        account, now = world.account_now(), world.clock.now()
        stop = Inbound("in-stop", EVA, EVA, "STOP", now - 2 * HOUR)
        with world.store.write() as tx:
            returns.prepare(tx, [stop], words)
            returns.take_in(tx, account, [stop], now, words)
        assert expires_at(world) == now - 2 * HOUR + DAY

    world.play(script)


@pytest.mark.usefixtures("calm")
def test_what_was_told_late_waits_no_longer_for_a_way_that_is_held(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        now = world.clock.now()
        world.write(lambda tx: tx.held_ways.hold(WAY, "no credit left", now, now + HOUR))
        desk = Desk(world, responder := Scripted(), look_every_us=15 * SECOND)
        hear(world, "hi", at=now - 22 * HOUR - 10 * MINUTE)
        await world.wait(49 * MINUTE)
        assert conversation(world).mode == "auto"
        await world.wait(2 * MINUTE)
        assert (conversation(world).mode, responder.asked) == ("human", [])
        assert held_ways.LONGEST_US == 23 * HOUR
        await desk.stop()

    world.play(script)
