"""A call whose process died may last as long as its policy allows; its message is looked for from
half a minute on all the same. That it is there is proof at any time, that it is not only later."""

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
from paceline.core.retry import ASK_AFTER_US
from paceline.core.states import DeliveryState
from paceline.engine.drivers import CLEAN_UP_US
from tests.engine.scenes import delivery, ledger, to, until, violations
from tests.engine.world import Process, World

SLOW = {"timeout": "5m"}
OVER_US = 5 * MINUTE + CLEAN_UP_US
"""When no call of a process that died can be under way any more."""


async def taken_over(world: World, *, arrived: bool) -> tuple[Process, Instant]:
    """A process dies in its call and another takes up the doubt; that one, and since when it is
    written down."""
    world.campaign(targets=to("a"))
    first = world.process("one")
    if arrived:
        await until(world, lambda: len(world.sends()) == 1, SECOND // 2)
    else:
        await until(world, lambda: delivery(world, "a").state is DeliveryState.SENDING, SECOND // 2)
        assert not world.sends()
    await first.kill()
    second = world.process("two")
    await until(world, lambda: world.counts().get("unknown") == 1, SECOND // 2)
    return second, lost_at(world)


def lost_at(world: World) -> Instant:
    return next(row.at for row in ledger(world) if row.outcome == "unknown")


@pytest.mark.parametrize(("lag", "found_after_us"), [("0s", 30 * SECOND), ("90s", 2 * MINUTE)])
def test_what_arrived_is_found_long_before_its_call_is_over(
    world: World, lag: str, found_after_us: int
) -> None:
    async def script(world: World) -> None:
        world.account(policy=SLOW, latency="20s", find_lag=lag)
        second, since_at = await taken_over(world, arrived=True)
        await until(world, lambda: world.state() == "finished")
        (found,) = (row for row in ledger(world) if row.kind == "resolution")
        assert found.outcome == "accepted"
        # To log in and to be told takes as long as any other answer here.
        assert found_after_us <= found.at - since_at <= found_after_us + 45 * SECOND
        await second.stop()
        assert violations(world) == []

    world.play(script)
    assert world.counts_at_end == {"sent": 1}
    assert len(world.calls()) == 1


def test_what_did_not_arrive_is_sent_again_only_when_its_call_is_over(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy=SLOW, latency="20s")
        second, since_at = await taken_over(world, arrived=False)
        await until(world, lambda: world.state() == "finished", MINUTE, HOUR)
        (absent,) = (row for row in ledger(world) if row.kind == "resolution")
        assert absent.outcome == "absent"
        assert absent.at - since_at >= OVER_US
        await second.stop()

    world.play(script)
    assert world.counts_at_end == {"sent": 1}
    assert len(world.sends()) == 1


def test_what_is_found_nowhere_is_looked_for_on_every_rung_and_left_to_a_person(
    world: World,
) -> None:
    async def script(world: World) -> None:
        world.account(policy=SLOW, latency="20s", proves_absence=False)
        second, since_at = await taken_over(world, arrived=False)
        looks = list[int]()
        while (due_at := delivery(world, "a").due_at) is not None:
            looks.append(due_at - since_at)
            assert due_at - world.clock.now() < DAY
            await until(world, lambda: delivery(world, "a").due_at != due_at, MINUTE, 7 * HOUR)
        assert looks == sorted([*ASK_AFTER_US, OVER_US])
        assert delivery(world, "a").reason.endswith("; held for a person")
        await second.stop()

    world.play(script)
    assert not world.sends()


def test_where_nobody_can_be_asked_it_is_sent_again_only_when_its_call_is_over(
    world: World,
) -> None:
    world.twice_allowed = True

    async def script(world: World) -> None:
        world.account(policy={**SLOW, "on_unknown": "resend"}, latency="20s", finds=False)
        second, since_at = await taken_over(world, arrived=True)
        await until(world, lambda: world.state() == "finished", MINUTE, HOUR)
        again = world.calls()[1]
        assert again.called_at - since_at >= OVER_US
        await second.stop()

    world.play(script)
    assert world.counts_at_end == {"sent": 1}
