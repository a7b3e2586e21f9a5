"""The reasons of an alert are those of the errors that raised it."""

from tests.engine.scenes import say, until
from tests.engine.world import World


def test_after_a_resume_the_reasons_begin_with_a_clean_sheet(world: World) -> None:
    async def script(world: World) -> None:
        breaker = {"above": "20%", "samples": 5}
        world.account(policy={"rate": "120/min", "breaker": breaker}, reject_rate=1, latency="10ms")
        world.campaign(20)
        process = world.process()
        for _ in range(2):
            await until(world, lambda: world.state() == "paused")
            (alert,) = world.read(lambda tx: tx.alerts.list())
            assert "error rate 5/5" in alert.text
            assert dict(alert.reasons) == {"the message is refused": 5}
            say(world, "resume campaign")
        await process.stop()

    world.play(script)
