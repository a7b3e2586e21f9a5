"""A mute is for one person: whoever shares the address above a letter with them, or whose address
they have written there, is not muted."""

from __future__ import annotations

import pytest

from paceline.core.address import is_somebodys
from paceline.core.instants import MINUTE
from paceline.engine.ports import Inbound
from tests.engine.following_up import first_messages, outreach, second_messages
from tests.engine.talking import EVA, answered, conversation, hear
from tests.engine.test_muting import mode, mute, report
from tests.engine.test_reporting import reporting, secret
from tests.engine.world import World

FORM = "forms@shop.example.org"
ANN, BEN, NEW = (f"{name}@example.org" for name in ("ann", "ben", "new"))


@pytest.mark.parametrize("chat", [ANN, EVA, "34600111222@s.whatsapp.net", "erased:4f2a"])
def test_an_address_says_by_itself_who_writes_there(chat: str) -> None:
    assert is_somebodys(chat)


@pytest.mark.parametrize("chat", ["chat:1", "123456789@lid", "eva", ""])
def test_an_id_does_not(chat: str) -> None:
    assert not is_somebodys(chat)


def test_who_writes_by_the_same_form_is_not_muted(on_either: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        hear(world, "hi", chat=ANN, sender=FORM)
        hear(world, "hi", chat=BEN, sender=FORM)
        assert mute(world, conversation(world, ANN).id) == 1
        hear(world, "hi", chat=NEW, sender=FORM)
        hear(world, "hi", chat=FORM)
        modes = [mode(world, chat) for chat in (ANN, BEN, NEW, FORM)]
        assert modes == ["muted", "auto", "auto", "auto"]
        assert world.read(lambda tx: tx.muting.among([ANN, FORM])) == {ANN}

    on_either.play(script)


def test_nobody_has_somebody_else_muted(on_either: World) -> None:
    """Whoever is muted writes somebody else's address above a letter."""

    async def script(world: World) -> None:
        answered(world)
        hear(world, "hi", chat=ANN)
        mute(world, conversation(world, ANN).id)
        hear(world, "hi", chat=ANN, sender=BEN)
        hear(world, "hi", chat=BEN)
        assert [mode(world, chat) for chat in (ANN, BEN)] == ["muted", "auto"]
        # And if they are muted once more, it is by what they have.
        mute(world, conversation(world, ANN).id)
        hear(world, "hi", chat=BEN, sender=BEN)
        assert mode(world, BEN) == "auto"

    on_either.play(script)


def test_nor_where_many_are_taken_in_at_once(on_either: World) -> None:
    async def script(world: World) -> None:
        reporting(world)
        answered(world)
        secret(world, "ann")
        hear(world, "hi", chat=ANN, sender=FORM)
        mute(world, conversation(world, ANN).id)
        for place, (chat, sender) in enumerate([(ANN, BEN), (NEW, FORM), (BEN, BEN)]):
            report(world, Inbound(f"new-{place}", chat, sender, "hi", 0))
        assert [mode(world, chat) for chat in (ANN, NEW, BEN)] == ["muted", "auto", "auto"]

    on_either.play(script)


def test_a_follow_up_is_for_who_writes_and_not_for_whose_address_is_above(world: World) -> None:
    """Somebody answers by a form whose own address is muted."""

    async def script(world: World) -> None:
        process = outreach(world)
        hear(world, "hi", chat=FORM)
        mute(world, conversation(world, FORM).id)
        await first_messages(world)
        hear(world, "yes please", chat=EVA, sender=FORM)
        await world.wait(5 * MINUTE)
        assert [one.target for one in second_messages(world)] == [EVA]
        await process.stop()

    world.play(script)
