"""A doubt whose call had not ended when it was written down, in the hands of a new owner.

The former owner may have lost the lane and not its life. As long as its call lives it moves the
doubt ahead, but for that it must reach the store. Until it has had the time to, absence proves
nothing: the message may arrive a moment later, and must not have been sent again by then.
"""

from __future__ import annotations

from typing import Any

from paceline.core.errors import StoreUnavailable
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.retry import ASK_AFTER_US
from paceline.engine.late import HOLD_US, NOT_ENDED
from tests.engine.doubles import Act, Double
from tests.engine.faults import TrippedStore
from tests.engine.scenes import deliveries
from tests.engine.test_late_calls import failing, in_doubt, stubborn
from tests.engine.test_takeover import owner_of
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

SHORT: dict[str, Any] = {"rate": "60/min", "timeout": "10s"}
CALL_US = 4 * MINUTE
"""How long the call lives. Then it delivers, unless its process has died."""


def raise_away() -> None:
    raise StoreUnavailable("the database cannot be reached")


async def lose_the_lane(world: World, at_last: Act | None = None) -> tuple[Process, TrippedStore]:
    """The call is given up, the loss is written, and from then on the first process cannot reach
    the database: its lease runs out, and it can tell nobody that the call lives."""
    world.account(policy=SHORT)
    world.campaign(1)
    store = TrippedStore(world.store)
    provider = Double(
        world.providers.get("sandbox"), send=stubborn(world, CALL_US, at_last=at_last)
    )
    first = world.process("one", store=store, providers=provider.registry(), poll_us=SECOND)
    await in_doubt(world)
    (lost,) = deliveries(world)
    assert NOT_ENDED in lost.reason
    store.look = raise_away
    return first, store


async def taken_over(world: World, asking: Double) -> Process:
    second = world.process("two", providers=asking.registry(), poll_us=SECOND)
    await world.until(lambda: owner_of(world) == "two", MINUTE, SECOND)
    return second


def test_absence_proves_nothing_while_the_call_of_a_former_owner_may_live(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        asking = Double(world.providers.get("sandbox"))
        first, store = await lose_the_lane(world)
        second = await taken_over(world, asking)
        await world.until(lambda: asking.called["find"] > 0, MINUTE, SECOND)
        await world.wait(HOLD_US // 2)
        assert world.counts() == {"unknown": 1}, "it was absent, and that is no proof"
        store.look = lambda: None
        await world.until(lambda: world.counts() == {"sent": 1}, CALL_US, SECOND)
        await world.wait(HOLD_US)
        assert asking.called["send"] == 0
        assert len(world.calls()) == 1
        await first.stop()
        await second.stop()

    worlds.fresh().play(script)


def test_a_former_owner_that_died_is_not_waited_for_for_ever(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        asking = Double(world.providers.get("sandbox"))
        first, _ = await lose_the_lane(world, at_last=failing)
        await first.kill()
        second = await taken_over(world, asking)
        taken_at = world.clock.now()
        await world.until(lambda: world.counts() == {"sent": 1}, HOUR, SECOND)
        (again,) = world.calls()
        assert HOLD_US - 2 * SECOND <= again.called_at - taken_at <= HOLD_US + ASK_AFTER_US[1]
        await second.stop()

    worlds.fresh().play(script)
