"""Whose turn it is on an account: what has begun goes on to its end, and the others say so."""

from __future__ import annotations

from pathlib import Path

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.states import RunState
from paceline.engine import queries
from paceline.engine.commands import reminders
from paceline.engine.reminder_view import reminder_view
from tests.engine.reminding import fresh, remind, runs_of
from tests.engine.world import World


def fire(world: World, name: str) -> int:
    now = world.clock.now()
    return world.write(lambda tx: reminders.fire(tx, name, world.providers, now)).run.id


def order(world: World, first: int) -> list[bool]:
    """Of all that was sent, in order, whether it belonged to one run."""
    whose = {str(row.id) for row in world.read(lambda tx: tx.deliveries.page(run_id=first))}
    return [effect.key.split("-")[1] in whose for effect in world.sends()]


def waits_for(world: World, name: str) -> str:
    return world.read(lambda tx: reminder_view(tx, name, world.clock.now())).runs[0].waits_for


def test_what_has_begun_is_not_overtaken_by_a_window_that_closes_sooner(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 60, name="late", window="6-18")
        remind(world, 20, name="early", window="6-12")
        process = world.process(poll_us=MINUTE)
        late = fire(world, "late")
        await world.wait(30 * SECOND)
        fire(world, "early")
        await world.wait(20 * SECOND)
        assert waits_for(world, "late") == ""
        assert waits_for(world, "early") == "its turn, behind late on ann"
        await world.wait(10 * MINUTE)
        await process.stop()
        assert order(world, late) == [True] * 60 + [False] * 20

    fresh(tmp_path).play(script)


def test_after_a_restart_it_goes_on_to_its_end_as_well(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 60, name="late", window="6-18")
        remind(world, 20, name="early", window="6-12")
        process = world.process(poll_us=MINUTE)
        late = fire(world, "late")
        await world.wait(2 * SECOND)
        await process.kill()
        fire(world, "early")
        process = world.process("two", poll_us=SECOND)
        await world.wait(10 * MINUTE)
        await process.stop()
        assert order(world, late) == [True] * 60 + [False] * 20

    fresh(tmp_path).play(script)


def test_one_that_goes_on_every_day_closes_today_as_well(tmp_path: Path) -> None:
    """Both wait: by their last days one would never have its turn, by today it closes first."""

    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 10, name="late", window="6-18")
        remind(world, 10, name="daily", window="6-12", at_close="resume")
        fire(world, "late")
        daily = fire(world, "daily")
        assert waits_for(world, "late") == "its turn, behind daily on ann"
        process = world.process(poll_us=MINUTE)
        await world.wait(10 * MINUTE)
        await process.stop()
        assert order(world, daily) == [True] * 10 + [False] * 10

    fresh(tmp_path).play(script)


def test_a_paused_one_keeps_nobody_waiting_and_takes_its_turn_again(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 60, name="late", window="6-18")
        remind(world, 60, name="early", window="6-12")
        process = world.process(poll_us=MINUTE)
        fire(world, "late")
        await world.wait(30 * SECOND)
        early = fire(world, "early")
        world.write(lambda tx: reminders.pause(tx, "late", world.clock.now()))
        await world.wait(30 * SECOND)
        assert waits_for(world, "early") == ""
        world.write(lambda tx: reminders.resume(tx, "late", world.clock.now()))
        await world.wait(10 * SECOND)
        # Both have begun: it is the turn of the one whose window closes first.
        (late_run,) = runs_of(world, "late")
        assert late_run.state is RunState.RUNNING
        assert waits_for(world, "late") == "its turn, behind early on ann"
        last = world.read(lambda tx: tx.deliveries.page(run_id=late_run.id))[-1].id
        told = world.read(lambda tx: queries.why_delivery(tx, last, world.clock.now()))
        assert told.outside == ["reminder late waits for its turn, behind early on ann"]
        await world.wait(10 * MINUTE)
        await process.stop()
        sent = order(world, early)
        begun = sent.index(True)
        assert sent == [False] * begun + [True] * 60 + [False] * (60 - begun)

    fresh(tmp_path).play(script)


def test_one_whose_window_is_shut_is_in_nobodys_way(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "1/min"})
        remind(world, 200, name="daily", window="9-10", at_close="resume")
        remind(world, 60, name="late", window="6-18")
        process = world.process(poll_us=MINUTE)
        await world.wait(2 * HOUR + 30 * SECOND)
        assert runs_of(world, "daily")[0].state is RunState.RUNNING
        assert waits_for(world, "late") == ""
        await world.wait(DAY)
        await process.stop()
        assert runs_of(world, "late")[0].state is RunState.SUCCESS

    fresh(tmp_path).play(script)


def test_a_second_firing_of_the_same_one_waits_for_a_run_by_its_number(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 20)
        first = fire(world, "standup")
        fire(world, "standup")
        assert waits_for(world, "standup") == f"its turn, behind run {first} on ann"

    fresh(tmp_path).play(script)


def test_one_that_is_slowed_by_its_errors_is_not_overtaken_either(tmp_path: Path) -> None:
    """The delay that errors stretch is the run's own: one without errors could go in the gap."""

    async def script(world: World) -> None:
        adaptive = {"above": "5%", "slow_by": 2, "between": "2s..10s"}
        world.account(
            policy={"spacing": "4s", "adaptive": adaptive}, reject_at=[3, 13, 23, 33, 43, 53]
        )
        remind(world, 60, name="late", window="6-18")
        remind(world, 20, name="early", window="6-12")
        process = world.process(poll_us=MINUTE)
        late = fire(world, "late")
        await world.wait(2 * MINUTE)
        fire(world, "early")
        await world.wait(20 * MINUTE)
        await process.stop()
        sent = order(world, late)
        assert sent == sorted(sent, reverse=True)
        assert len(sent) == 74

    fresh(tmp_path).play(script)
