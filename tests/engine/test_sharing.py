"""Making room for another campaign on the same account: what a limit had put off stays put off."""

from paceline.core.instants import MINUTE
from paceline.engine import launching
from tests.engine.scenes import change, deliveries
from tests.engine.world import World


def _launched(world: World, count: int, name: str) -> None:
    world.campaign(count, name=name, launch=False)
    launching.launch(world.store, name, world.clock.now(), world.providers)


def test_what_a_cap_has_put_off_says_so_and_comes_back_when_it_is_raised(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 20}, "rate": "60/min"})
        _launched(world, 30, "spring")
        change(world, overrides={"daily": {"message": 8}})
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: world.account_now().state == "limit_reached", every_us=MINUTE)
        put_off = {row.id for row in deliveries(world) if row.reason}
        assert len(put_off) == 12, "twenty were planned for today, and eight have gone"
        _launched(world, 5, "summer")
        rows = {row.id: row for row in deliveries(world)}
        moved = {number for number in put_off if rows[number].reason.endswith("with summer")}
        assert moved, "somebody makes room"
        assert {rows[number].reason for number in put_off} <= {
            "Daily cap reached (8/8)",
            "Daily cap reached (8/8); shares its account with summer",
        }
        change(world, overrides={"daily": {"message": 50}})
        await world.wait(10 * MINUTE)
        states = {row.id: row.state for row in deliveries(world)}
        assert {states[number] for number in put_off} == {"sent"}, (
            "the limit was all that held them"
        )
        await process.stop()

    world.play(script)
