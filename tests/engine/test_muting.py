"""People who are muted everywhere: nobody answers them, whichever account they write to."""

from __future__ import annotations

from paceline.core.instants import MINUTE, SECOND
from paceline.engine import muting
from paceline.engine.commands.erasing import erase
from tests.engine.talking import EVA, Desk, Scripted, answered, conversation, hear, taking
from tests.engine.world import World


def test_what_is_being_made_for_them_anywhere_is_not_sent(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        answered(world, "ben")
        desk = Desk(world, responder := Scripted(taking(world, 30)))
        hear(world, "hi")
        hear(world, "hi", account="ben")
        await world.wait(20 * SECOND)
        assert responder.at_once == 2
        number, now = conversation(world).id, world.clock.now()
        changed = world.write(lambda tx: muting.mute_everywhere(tx, number, now))
        assert len(changed) == 2
        answered(world, "cleo")
        hear(world, "and you?", account="cleo")
        await world.wait(3 * MINUTE)
        assert world.sends() == []
        assert {burst.account for burst in responder.asked} == {"ann", "ben"}
        now = world.clock.now()
        world.write(lambda tx: muting.unmute_everywhere(tx, number, now))
        await world.wait(MINUTE)
        assert len(world.sends()) == 3
        await desk.stop()

    world.play(script)


def test_nobody_who_was_erased_is_kept_among_the_muted(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        hear(world, "hi")
        number, now = conversation(world).id, world.clock.now()
        world.write(lambda tx: muting.mute_everywhere(tx, number, now))
        assert world.read(lambda tx: tx.muting.among([EVA])) == {EVA}
        world.write(lambda tx: erase(tx, EVA, now))
        assert world.read(lambda tx: tx.muting.among([EVA])) == frozenset()

    world.play(script)
