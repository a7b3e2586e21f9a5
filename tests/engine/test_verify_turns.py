"""``verify`` bites where conversations are concerned: each rule is broken in the tables."""

from __future__ import annotations

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.engine import conversations
from paceline.engine.commands import accounts
from tests.engine.scenes import sql, violations
from tests.engine.talking import BEN, EVA, Desk, Scripted, answered, conversation, hear, said
from tests.engine.world import World

BROKEN = {
    "conversation 1 has 2 active turns": (
        "DROP INDEX uq_turns_active",
        "UPDATE turns SET state = 'thinking', ended_at = NULL, delivery_id = NULL"
        " WHERE conversation_id = 1",
    ),
    "delivery 1 is the answer of 2 turns": ("UPDATE turns SET delivery_id = 1 WHERE id = 2",),
    "turn 2 is replying without an answer": (
        "UPDATE turns SET state = 'replying', delivery_id = NULL, ended_at = NULL WHERE id = 2",
    ),
    "turn 1 has an answer of somebody else's: delivery 1": (
        "UPDATE deliveries SET reply = false WHERE id = 1",
    ),
    "turn 1 is done, and its end says otherwise": (
        "UPDATE turns SET ended_at = NULL WHERE id = 1",
    ),
    "turn 2 began before the one ahead of it had ended": (
        "UPDATE turns SET ended_at = ended_at + 3600000000 WHERE id = 1",
    ),
    "message 1 is in turn 77, which there is not": (
        "UPDATE inbound SET turn_id = 77 WHERE id = 1",
    ),
    "message 1 is in turn 3 of another conversation": (
        "UPDATE inbound SET turn_id = 3 WHERE id = 1",
    ),
    "message 1 is in conversation 55, which there is not": (
        "UPDATE inbound SET conversation_id = 55, turn_id = NULL WHERE id = 1",
    ),
    "message 1 is in turn 2, and one that came later in an earlier turn": (
        "UPDATE inbound SET turn_id = 3 - turn_id WHERE conversation_id = 1",
    ),
    "something waits in conversation 1, and it does not know": (
        "UPDATE inbound SET turn_id = NULL WHERE id = 1",
    ),
    "nothing waits in conversation 2, though it says so": (
        "UPDATE conversations SET first_at = 1, last_at = 1, due_at = 1 WHERE id = 2",
    ),
    "what waits in conversation 1, and since when, disagree": (
        "UPDATE conversations SET due_at = 1 WHERE id = 1",
    ),
    "what waits in conversation 3 is never due": (
        "UPDATE conversations SET due_at = NULL WHERE id = 3",
    ),
}


@pytest.mark.parametrize("told", BROKEN)
def test_what_is_broken_is_told(world: World, told: str) -> None:
    """Two turns with Eva, one with Ben, and somebody who still waits."""

    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        hear(world, "one")
        await world.wait(MINUTE)
        hear(world, "two")
        hear(world, "hello", chat=BEN)
        await world.wait(MINUTE)
        await desk.stop()
        hear(world, "waiting", chat="+34600555666")
        assert (len(said(world)), len(said(world, BEN))) == (2, 1)
        assert violations(world) == []
        for statement in BROKEN[told]:
            sql(world, statement)
        found = violations(world)
        assert ("never out of turn", told) in found
        assert {invariant for invariant, _ in found} == {"never out of turn"}
        world.check = lambda: None  # type: ignore[method-assign]

    world.play(script)


def test_a_turn_of_another_account_s_delivery_is_told(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        world.account("bea")
        desk = Desk(world, Scripted())
        hear(world, "one")
        await world.wait(MINUTE)
        await desk.stop()
        other = world.account_now("bea").id
        sql(world, f"UPDATE conversations SET account_id = {other} WHERE id = 1")
        told = ("never out of turn", "turn 1 has an answer of somebody else's: delivery 1")
        assert told in violations(world)
        world.check = lambda: None  # type: ignore[method-assign]

    world.play(script)


@pytest.mark.parametrize("how", ["mute", "take"])
def test_handed_back_while_an_answer_is_on_its_way_what_came_meanwhile_is_not_forgotten(
    world: World, how: str
) -> None:
    async def script(world: World) -> None:
        answered(world)
        world.write(lambda tx: accounts.pause(tx, "ann", world.clock.now()))
        desk = Desk(world, Scripted())
        hear(world, "one")
        await world.wait(15 * SECOND)
        number, now = conversation(world, EVA).id, world.clock.now()
        world.write(lambda tx: getattr(conversations, how)(tx, number, now))
        hear(world, "two")
        world.write(lambda tx: conversations.hand_back(tx, number, now))
        assert violations(world) == []
        world.write(lambda tx: accounts.resume(tx, "ann", world.clock.now()))
        await world.wait(5 * MINUTE)
        assert said(world) == ["re: one", "re: two"]
        await desk.stop()

    world.play(script)
