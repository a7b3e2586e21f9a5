"""When the day's bounces are looked at: whenever there may be too many, and at no other time."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from paceline.core.errors import StoreUnavailable
from paceline.core.instants import HOUR, MILLISECOND, MINUTE, SECOND
from paceline.core.outcome import Outcome, OutcomeKind, accepted
from paceline.core.states import AccountState, DeliveryState
from paceline.engine import bouncing, lane_writes
from paceline.engine.ports import Receipt, Tx
from tests.engine.fenced import groups_at_the_fence
from tests.engine.scenes import finish, in_state, say, until
from tests.engine.test_lookahead import Server, answering
from tests.engine.test_returns import PEOPLE, returned, take
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds
from tests.store.scene import settlement

SLOW = {"bounce_pause": "5%", "spacing": "10s"}
FIRST = [1, 2, 3]
YES = (5 * MILLISECOND, accepted("taken"))
NOBODY = (5 * MILLISECOND, Outcome(OutcomeKind.BOUNCED, "nobody there", "5.1.1"))


def is_paused(world: World) -> bool:
    return world.account_now().state is AccountState.PAUSED


def test_bounces_among_the_first_pause_once_there_are_enough(world: World) -> None:
    """That those after them arrived makes it no better: 3 of 20 are 15 %."""

    async def script(world: World) -> None:
        world.account(policy=SLOW, bounce_at=FIRST)
        world.campaign(60)
        process = world.process()
        await until(world, lambda: len(world.calls()) == 19)
        assert not is_paused(world), "too few to say anything"
        await until(world, lambda: is_paused(world))
        await world.wait(HOUR)
        assert len(world.calls()) == 20
        assert world.account_now().state_reason == "bounce rate 3/20 today is above 5%"
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert (alert.kind, alert.reasons) == (
            "account.bounces",
            (("the address does not exist", 3),),
        )
        await process.stop()

    world.play(script)


def test_those_that_came_back_later_count_among_the_first_as_well(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy=SLOW)
        world.campaign(targets=PEOPLE)
        process = world.process()
        await until(world, lambda: len(world.sends()) == 15)
        for effect in world.sends()[:3]:
            take(world, returned("failed", effect.key))
        assert not is_paused(world)
        await until(world, lambda: is_paused(world))
        assert (len(world.sends()), world.account_now().state_reason) == (
            20,
            "bounce rate 3/20 today is above 5%",
        )
        await process.stop()

    world.play(script)


def test_whoever_goes_on_is_stopped_by_the_next_that_comes_back_and_not_by_one_that_arrives(
    world: World,
) -> None:
    async def script(world: World) -> None:
        world.account(policy=SLOW, bounce_at=[*FIRST, 30])
        world.campaign(60)
        process = world.process()
        await until(world, lambda: is_paused(world))
        say(world, "resume account")
        await until(world, lambda: is_paused(world))
        assert world.account_now().state_reason == "bounce rate 4/30 today is above 5%"
        say(world, "resume account")
        await finish(world, process=process, within_us=HOUR)

    world.play(script)


def test_a_doubt_that_ends_well_may_be_the_one_that_makes_them_enough(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy=SLOW | {"timeout": "1s"}, bounce_at=FIRST, lost_at=[4], finds=False)
        world.campaign(20)
        process = world.process()
        await until(world, lambda: world.counts() == {"sent": 16, "bounced": 3, "unknown": 1})
        assert not is_paused(world)
        key = f"{world.read(lambda tx: tx.settings.get('instance'))}-4-0"
        take(world, Receipt("x", "delivered", world.clock.now(), key=key))
        assert world.account_now().state_reason == "bounce rate 3/20 today is above 5%"
        await process.stop()

    world.play(script)


def test_what_was_found_out_meanwhile_is_counted_by_the_lane(world: World) -> None:
    """Of the twenty one was in doubt: the twentieth that arrives is the twentieth all the same."""

    async def script(world: World) -> None:
        world.account(policy=SLOW | {"timeout": "1s"}, bounce_at=FIRST, lost_at=[4], finds=False)
        world.campaign(40)
        process = world.process()
        await until(world, lambda: len(world.calls()) == 10)
        key = f"{world.read(lambda tx: tx.settings.get('instance'))}-4-0"
        take(world, Receipt("x", "delivered", world.clock.now(), key=key))
        await until(world, lambda: is_paused(world))
        assert len(world.calls()) == 20
        await process.stop()

    world.play(script)


def test_nothing_follows_the_one_that_makes_them_enough_before_it_was_heard(
    worlds: Worlds,
) -> None:
    """Also where the next intent is written while the call before it is out."""

    async def script(world: World) -> None:
        world.account(policy={"timeout": "10s"}, finds=False)
        world.campaign(40)
        server = Server(world, answering(YES, NOBODY, NOBODY, then=YES))
        process = world.process(providers=server.registry())
        await until(world, lambda: is_paused(world))
        await world.wait(10 * SECOND)
        assert len(server.calls) == 20
        await process.stop()

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]  # the sandbox has seen none of it
    world.play(script)


async def three_come_back_of_fifteen(world: World) -> Process:
    """After they were taken, and too few to judge yet; the rest goes on being sent."""
    world.account(policy=SLOW, finds=False)
    world.campaign(targets=PEOPLE)
    process = world.process()
    await until(world, lambda: len(world.sends()) == 15)
    for effect in world.sends()[:3]:
        take(world, returned("failed", effect.key))
    return process


def test_what_comes_back_in_the_very_moment_is_judged_by_somebody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever hears of it finds nineteen, and the lane has asked a moment before."""
    seen = bouncing.any_came_back
    asked = 0

    def blind_at_first(tx: Tx, *rest: object) -> bool:
        nonlocal asked
        asked += 1
        return asked > 1 and seen(tx, *rest)  # type: ignore[arg-type]

    async def script(world: World) -> None:
        process = await three_come_back_of_fifteen(world)
        monkeypatch.setattr("paceline.engine.outbox.any_came_back", blind_at_first)
        fenced = groups_at_the_fence(monkeypatch)
        await until(world, lambda: is_paused(world))
        assert (len(world.sends()), asked, fenced) == (20, 2, [1])
        await process.stop()

    world.play(script)


def test_where_nothing_came_back_the_twentieth_is_written_like_any_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone: list[object] = []
    monkeypatch.setattr(lane_writes, "with_aftermath", lambda *of: alone.append(of))

    async def script(world: World) -> None:
        world.account(policy=SLOW)
        world.campaign(targets=PEOPLE)
        await finish(world)
        assert world.counts() == {"sent": 30} and not alone

    world.play(script)


def test_a_doubt_that_ends_well_while_the_next_is_out_hides_nothing(world: World) -> None:
    """It makes 19 to the ledger, and the next one makes 19 to its lane: neither is the 20th, though
    together they are. The one after them is."""

    async def script(world: World) -> None:
        policy = {**SLOW, "spacing": "30s", "timeout": "20s"}
        world.account(policy=policy, bounce_at=FIRST, lost_at=[4], finds=False, latency="5s")
        world.campaign(60)
        process = world.process()
        known = (DeliveryState.SENT, DeliveryState.BOUNCED, DeliveryState.UNKNOWN)
        await until(world, lambda: sum(world.counts().get(one, 0) for one in known) == 19)
        await until(world, lambda: world.counts().get("sending") == 1)
        instance = world.read(lambda tx: tx.settings.get("instance"))
        take(world, Receipt("x", "delivered", world.clock.now(), key=f"{instance}-4-0"))
        assert world.counts()["sending"] == 1, "it is still out"
        await until(world, lambda: is_paused(world), within_us=10 * MINUTE)
        assert len(world.calls()) <= 22
        await process.stop()

    world.play(script)


def test_of_the_answers_that_come_late_only_those_that_were_accepted_have_arrived(
    world: World,
) -> None:
    """Somebody has let the account go on at the 20th. That two more are answered, of which one was
    refused, makes 21, and no 20th once more."""

    async def script(world: World) -> None:
        world.account(policy=SLOW, bounce_at=FIRST, reject_at=[22])
        world.campaign(60)
        process = world.process()
        await until(world, lambda: is_paused(world))
        say(world, "resume account")
        await until(world, lambda: world.counts().get("failed") == 1)
        await process.stop()
        assert world.counts()["sent"] == 18
        (refused,) = in_state(world, DeliveryState.FAILED)
        arrived = max(in_state(world, DeliveryState.SENT), key=lambda one: one.sent_at or 0)
        no = Outcome(OutcomeKind.REJECTED, reason="refused")
        late = [
            settlement(arrived.id, arrived.run_id),
            settlement(refused.id, refused.run_id, DeliveryState.FAILED, no, parts_done=0),
        ]
        tell = partial(lane_writes.tell_owner, late=late, now=world.clock.now())
        world.write(lambda tx: tell(tx, world.account_now().id))
        assert not is_paused(world)
        accepted_both = [late[0], late[0]]
        world.write(lambda tx: tell(tx, world.account_now().id, late=accepted_both))
        assert is_paused(world), "as it would be, had both arrived"

    world.play(script)


def test_a_look_that_the_store_did_not_answer_is_made_good(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing had come back when the 20th was written; some had when the look behind it failed."""
    seen, asked = bouncing.any_came_back, 0

    def blind(tx: Tx, *rest: Any) -> bool:
        nonlocal asked
        asked += 1
        if asked == 1:
            return False
        if asked == 2:
            raise StoreUnavailable("away")
        return seen(tx, *rest)

    async def script(world: World) -> None:
        process = await three_come_back_of_fifteen(world)
        monkeypatch.setattr("paceline.engine.outbox.any_came_back", blind)
        await until(world, lambda: is_paused(world))
        assert len(world.sends()) <= 21
        await process.stop()

    world.play(script)
