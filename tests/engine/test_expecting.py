"""Who is put off looks for a slot beside what will follow, too, although it is not released yet."""

from paceline.core.instants import DAY, MINUTE, Instant
from paceline.core.model import Content, Part, Step
from paceline.engine import launching
from tests.engine.scenes import deliveries, per_day, send_direct
from tests.engine.world import World

COLD = {
    "hours": "Mon-Fri 09:00-18:00 UTC",
    "spacing": "5m..20m",
    "min_gap": "6m",
    "daily": {"message": 20},
}
AGAIN = Content((Part("text", "and again"),))


def test_what_will_follow_keeps_its_day(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy=COLD)
        for name, steps in (("spring", (Step(DAY, AGAIN),)), ("plain", ())):
            world.campaign(40, name=name, launch=False, steps=steps)
            launching.launch(world.store, name, world.clock.now(), world.providers)
        # Somebody writes ten from the same mailbox: that many of both have to go another day.
        for number in range(10):
            send_direct(world, f"friend-{number}")
        process = world.process(poll_us=MINUTE)
        await world.until(
            lambda: world.account_now().state == "limit_reached", every_us=MINUTE, within_us=DAY
        )
        await process.stop()
        rows = deliveries(world)
        waiting = [row for row in rows if row.state in ("ready", "planned")]
        moved = {(row.run_id, row.position) for row in waiting if "cap" in row.reason}
        assert len(moved) == 10 and len({run_id for run_id, _ in moved}) == 2
        promised: list[Instant] = [
            row.scheduled_at if row.due_at is None else row.due_at
            for row in waiting
            # What follows one that has to wait can not keep its minute.
            if row.due_at is not None or (row.run_id, row.position) not in moved
        ]
        assert max(per_day(promised, "UTC").values()) == 20

    world.play(script)
