"""What is shown of a reminder's runs: what each waits for, also in the middle of it."""

from pathlib import Path

from paceline.core.instants import HOUR, MINUTE, SECOND, parse_instant
from paceline.core.states import RunState
from paceline.engine.commands import reminders
from paceline.engine.reminder_view import reminder_view
from tests.engine.reminding import ZONE, fresh, remind, runs_of
from tests.engine.world import World


def waits_for(world: World, name: str = "standup") -> str:
    view = world.read(lambda tx: reminder_view(tx, name, world.clock.now()))
    return view.runs[0].waits_for


def test_one_that_goes_on_waits_for_nothing(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 40)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + 10 * SECOND)
        assert waits_for(world) == ""
        await world.wait(HOUR)
        assert waits_for(world) == ""
        await process.stop()

    fresh(tmp_path).play(script)


def test_one_whose_account_is_out_of_service_names_it_and_the_way_on(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 40)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + 10 * SECOND)
        world.write(lambda tx: tx.accounts.move(1, "suspend", reason="banned"))
        assert waits_for(world) == (
            "ann, which is suspended; give it to others with: paceline reminder reassign standup"
        )
        await process.stop()

    fresh(tmp_path).play(script)


def test_one_that_goes_on_tomorrow_names_the_next_opening(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "1/min"})
        remind(world, 200, window="9-10", at_close="resume")
        process = world.process(poll_us=MINUTE)
        await world.wait(3 * HOUR)
        assert runs_of(world)[0].state is RunState.RUNNING
        assert waits_for(world) == f"its window, which opens at 2026-03-03 09:00 {ZONE}"
        await process.stop()

    fresh(tmp_path).play(script)


def test_one_fired_after_its_window_waits_for_the_next(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account()
        remind(world, 5, window="6-7", at_close="resume")
        at = parse_instant("2026-03-02T08:00:00", ZONE)
        world.write(lambda tx: reminders.fire(tx, "standup", world.providers, at))
        assert waits_for(world) == f"its window, which opens at 2026-03-03 06:00 {ZONE}"

    fresh(tmp_path).play(script)
