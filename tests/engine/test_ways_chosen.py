"""An account is answered in another way: so is everybody who waits, and what was told of the way
before is over."""

from __future__ import annotations

from functools import partial

import pytest

from paceline.core.answering import Rule, Rules, Way
from paceline.core.instants import MINUTE, SECOND
from paceline.engine import alerts, conversations, held_ways
from paceline.engine.commands.answering import answer_by, refresh
from paceline.engine.conversations import Holder
from paceline.engine.ports import Inbound, Tx
from paceline.engine.ports.answering import Answer, Burst, ResponderRefused
from paceline.engine.ports.listening import Heard, Waiting
from tests.engine.talking import BEN, WAY, Desk, Scripted, answered, conversation, echo, hear, said
from tests.engine.test_conversations import alerts_of
from tests.engine.world import World

BROKE = "no credit left"
WAYS = {name: Way(name, Rules((Rule(("hi",), "hello"),))) for name in (WAY, "help")}
MANY = 10_500
FAILING = "responder.failing"


def choose(world: World, way: str | None) -> None:
    world.write(lambda tx: answer_by(tx, "ann", way, WAYS, world.clock.now()))


def hold(world: World, way: str = WAY) -> None:
    now = world.clock.now()

    def work(tx: Tx) -> None:
        tx.held_ways.hold(way, BROKE, now, now + MINUTE)
        alerts.responder_fails(tx, way, BROKE, now)

    world.write(work)


def test_however_many_wait_all_of_them_are_answered(on_either: World) -> None:
    async def script(world: World) -> None:
        account, now = world.account(), world.clock.now()

        def wait(tx: Tx) -> None:
            made = tx.listening.open({(account.id, f"+{n}"): now + n for n in range(MANY)})
            said = [
                Heard(account.id, Inbound(one.chat, one.chat, one.chat, "hi", now), now, one.id)
                for one in made.values()
            ]
            waiting = [Waiting(one.id, now, now, now, None) for one in made.values()]
            tx.listening.add(said, waiting)

        def due(tx: Tx) -> set[int | None]:
            found = tx.conversations.list(waiting=True, limit=2 * MANY)
            assert len(found) == MANY
            return {one.due_at for one in found}

        world.write(wait)
        choose(world, WAY)
        assert world.read(due) == {now + 8 * SECOND}
        choose(world, None)
        assert world.read(due) == {None}

    on_either.play(script)


def test_what_is_put_back_is_answered_as_its_account_is_now(world: World) -> None:
    """A turn may have begun long ago; by people now, it is due by nobody."""

    async def script(world: World) -> None:
        answered(world)
        hear(world, "hi")
        await world.wait(20 * SECOND)
        number, now = conversation(world).id, world.clock.now()
        begin = partial(conversations.begin, owner="one", lease_us=MINUTE, at=now, history=0)
        question = world.write(lambda tx: begin(tx, number))
        assert question is not None
        choose(world, None)
        world.write(lambda tx: held_ways.let_wait(tx, question, now))
        found = conversation(world)
        assert (found.first_at is not None, found.due_at) == (True, None)

    world.play(script)


# ---------------------------------------------------------------------- held ways


def test_a_try_lets_go_of_what_it_tried_and_not_of_what_was_held_since(on_either: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        hear(world, "hi")
        await world.wait(20 * SECOND)
        hold(world)
        await world.wait(2 * MINUTE)
        (held,) = world.read(lambda tx: tx.held_ways.list())
        by, number = Holder("one", MINUTE, 0), conversation(world).id
        question = world.write(
            lambda tx: held_ways.try_with(tx, held, number, by, world.clock.now())
        )
        assert question is not None and question.tries == held
        # Somebody lets it go on; whoever is asked next finds that there is no credit left.
        assert world.write(lambda tx: held_ways.release(tx, WAY, world.clock.now())) is not None
        hold(world)
        (younger,) = world.read(lambda tx: tx.held_ways.list())
        assert world.write(lambda tx: held_ways.works(tx, held, world.clock.now())) is None
        assert world.read(lambda tx: tx.held_ways.list()) == [younger]
        assert len(alerts_of(world, FAILING)) == 1
        assert world.write(lambda tx: held_ways.works(tx, younger, world.clock.now())) == younger
        assert alerts_of(world, FAILING) == []

    on_either.play(script)


def test_a_late_answer_to_a_try_does_not_open_a_way_that_was_shut_again(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        tried: list[str] = []

        async def slow_at_the_second(burst: Burst) -> Answer:
            tried.append(burst.chat)
            if len(tried) == 2:
                await world.clock.sleep(2 * MINUTE)
                return await echo(burst)
            raise ResponderRefused(BROKE, everybody=True)

        desk = Desk(world, Scripted(slow_at_the_second))
        hear(world, "hi")
        await world.wait(90 * SECOND)
        assert len(tried) == 2, "it is being tried"
        world.write(lambda tx: held_ways.release(tx, WAY, world.clock.now()))
        hear(world, "hello", chat=BEN)
        await world.wait(MINUTE)
        assert len(tried) >= 3, "and is shut again"
        (before,) = world.read(lambda tx: tx.held_ways.list())
        await world.wait(70 * SECOND)
        assert said(world) == ["re: hi"]
        (after,) = world.read(lambda tx: tx.held_ways.list())
        assert after.since_at == before.since_at
        assert len(alerts_of(world, FAILING)) == 1
        await desk.stop()

    world.play(script)


def test_what_is_answered_in_another_way_by_now_tries_nothing(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        hear(world, "hi")
        await world.wait(20 * SECOND)
        hold(world)
        (held,) = world.read(lambda tx: tx.held_ways.list())
        account = world.account_now()
        other = {**account.answering, "way": "help"}
        world.write(lambda tx: tx.accounts.update(account.id, answering=other))
        by, number = Holder("one", MINUTE, 0), conversation(world).id
        question = world.write(
            lambda tx: held_ways.try_with(tx, held, number, by, world.clock.now())
        )
        assert question is not None and question.tries is None

    world.play(script)


@pytest.mark.parametrize("still", [True, False])
def test_an_alert_from_before_ways_were_held_ends_with_the_next_start(
    on_either: World, still: bool
) -> None:
    """Nobody would try a way that is not held, and so nobody would find out that it works."""

    async def script(world: World) -> None:
        answered(world)
        if still:
            hold(world)
        now = world.clock.now()
        for way in {WAY, "gone"}:
            world.write(partial(alerts.responder_fails, way=way, reason=BROKE, now=now))
        world.write(lambda tx: alerts.none_held(tx, now))
        assert len(alerts_of(world, FAILING)) == 2
        world.write(lambda tx: refresh(tx, WAYS, now + SECOND))
        left = [f"nobody is answered by {WAY}, and what they write waits: {BROKE}"]
        assert alerts_of(world, FAILING) == (left if still else [])

    on_either.play(script)


def test_a_way_in_which_nobody_is_answered_any_more_is_let_go_of(world: World) -> None:
    async def script(world: World) -> None:
        answered(world)
        answered(world, "ben")
        hold(world)
        choose(world, "help")
        assert len(alerts_of(world, FAILING)) == 1, "another account has it"
        ben = world.account_now("ben")
        world.write(lambda tx: answer_by(tx, ben.name, None, WAYS, world.clock.now()))
        assert alerts_of(world, FAILING) == []
        assert world.read(lambda tx: tx.held_ways.list()) == []

    world.play(script)
