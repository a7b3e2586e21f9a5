"""Whoever has only written to us can be erased, and whoever writes again after it."""

from __future__ import annotations

import pytest

from paceline.core.errors import NotFoundError
from paceline.core.instants import MINUTE, SECOND
from paceline.engine.commands import erasing
from tests.engine.scenes import events
from tests.engine.talking import BEN, EVA, Desk, Scripted, answered, hear
from tests.engine.world import World


def erase(world: World, address: str = EVA) -> erasing.Erased:
    return world.write(lambda tx: erasing.erase(tx, address, world.clock.now()))


def kept_texts(world: World) -> str:
    """All that is kept of what was said, and by whom."""
    received = world.read(lambda tx: tx.inbox.latest())
    talks = world.read(lambda tx: tx.conversations.list())
    return " ".join(
        [f"{one.chat} {one.sender} {one.text} {one.provider_id}" for one in received]
        + [one.chat for one in talks]
    )


def test_whoever_only_wrote_is_known_and_can_be_forgotten(world: World) -> None:
    async def script(world: World) -> None:
        account = world.account()
        world.write(lambda tx: tx.accounts.update(account.id, answering={}))
        hear(world, "my secret")
        hear(world, "another's", chat=BEN)
        known = world.read(lambda tx: erasing.look_up(tx, EVA))
        assert (known.contact, known.erased) == (None, False)
        assert erase(world) == erasing.Erased()
        left = kept_texts(world)
        assert EVA not in left and "my secret" not in left and "another's" in left
        assert world.read(lambda tx: erasing.look_up(tx, EVA)).erased
        assert erase(world).before
        assert len(events(world, "contact.erased")) == 1

    world.play(script)


def test_nobody_is_still_nobody(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        hear(world, "hi", chat=BEN)
        with pytest.raises(NotFoundError):
            erase(world)
        with pytest.raises(NotFoundError):
            world.read(lambda tx: erasing.look_up(tx, EVA))

    world.play(script)


def test_whoever_writes_again_is_forgotten_again_and_is_not_answered(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        responder = Scripted()
        desk = Desk(world, responder)
        for text in ("one", "two", "three"):
            hear(world, f"{text} secret")
            await world.wait(SECOND)
            assert not erase(world).before
        await world.wait(2 * MINUTE)
        assert (responder.asked, world.sends()) == ([], [])
        assert "secret" not in kept_texts(world) and EVA not in kept_texts(world)
        assert len(world.read(lambda tx: tx.conversations.list())) == 3
        await desk.stop()

    world.play(script)
