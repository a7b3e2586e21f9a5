"""Reminders in virtual time: fired when their time has come, once, and never twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.core.errors import ConflictError
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.states import RunState
from paceline.engine.commands import reminders
from paceline.engine.reminder_spec import ReminderSpec
from tests.engine.reminding import EIGHT, ZONE, fresh, groups, remind, runs_of
from tests.engine.world import World


def test_it_fires_on_the_dot_and_everything_waits_at_once(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 100)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR - SECOND)
        assert runs_of(world) == []
        await world.wait(2 * SECOND)
        (run,) = runs_of(world)
        assert run.fired_for == EIGHT + HOUR
        assert run.total == 100
        assert sum(world.counts("standup").values()) == 100
        await world.until(lambda: runs_of(world)[0].state is RunState.SUCCESS, HOUR)
        assert world.counts("standup") == {"sent": 100}
        assert runs_of(world)[0].summary == "100 of 100 groups delivered from ann."
        assert world.sends()[0].called_at < EIGHT + HOUR + SECOND
        await process.stop()

    fresh(tmp_path).play(script)


def test_it_fires_every_day_and_a_single_one_only_once(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 3)
        remind(world, 2, name="party", at="2026-03-03")
        process = world.process(poll_us=MINUTE)
        await world.wait(3 * DAY)
        await process.stop()
        assert [run.fired_for for run in runs_of(world)] == [
            EIGHT + HOUR + day * DAY for day in range(3)
        ]
        (party,) = runs_of(world, "party")
        assert party.fired_for == EIGHT + HOUR + DAY
        assert world.read(lambda tx: reminders.find(tx, "party")).next_at is None

    fresh(tmp_path).play(script)


def test_two_processes_fire_once(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 5)
        one, two = (world.process(name, poll_us=MINUTE) for name in ("one", "two"))
        await world.wait(2 * HOUR)
        assert len(runs_of(world)) == 1
        assert len(world.sends()) == 5
        await one.stop()
        await two.stop()

    fresh(tmp_path).play(script)


def test_fired_after_its_window_nothing_goes_and_the_run_has_failed(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 5, cron="0 20 * * *")
        process = world.process(poll_us=MINUTE)
        await world.wait(13 * HOUR)
        await process.stop()
        (run,) = runs_of(world)
        assert run.state is RunState.FAILED
        assert world.sends() == []
        assert world.counts("standup") == {"skipped": 5}
        assert run.summary.startswith("Delivery window closed at 18:00 (Asia/Kuala_Lumpur). 0 of 5")

    fresh(tmp_path).play(script)


def test_before_its_window_it_waits_for_it_to_open(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 5, cron="0 9 * * *", window="10-18")
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + MINUTE)
        (run,) = runs_of(world)
        assert run.state is RunState.WAITING
        await world.wait(HOUR)
        assert min(effect.called_at for effect in world.sends()) >= EIGHT + 2 * HOUR
        await process.stop()

    fresh(tmp_path).play(script)


@pytest.mark.parametrize(
    ("back_us", "state", "sent"),
    [(2 * HOUR, RunState.SUCCESS, 5), (11 * HOUR, RunState.MISSED, 0)],
    ids=["window still open", "window over"],
)
def test_a_firing_that_nobody_was_there_for(
    tmp_path: Path, back_us: int, state: RunState, sent: int
) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 5)
        await world.wait(back_us)
        process = world.process(poll_us=MINUTE)
        await world.wait(10 * MINUTE)
        await process.stop()
        (run,) = runs_of(world)
        assert run.state is state
        assert run.fired_for == EIGHT + HOUR
        assert len(world.sends()) == sent
        assert world.read(lambda tx: reminders.find(tx, "standup")).next_at == EIGHT + HOUR + DAY

    fresh(tmp_path).play(script)


def test_a_week_of_missed_minutes_is_one_run_and_one_firing(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 2, cron="*/5 * * * *")
        await world.wait(7 * DAY + MINUTE)
        process = world.process(poll_us=MINUTE)
        await world.wait(10 * SECOND)
        await process.stop()
        missed, fired = runs_of(world)
        assert missed.state is RunState.MISSED
        assert missed.summary.startswith("Missed more than 99 times")
        assert fired.fired_for == EIGHT + 7 * DAY
        assert len(world.sends()) == 2

    fresh(tmp_path).play(script)


def test_while_it_is_paused_it_does_not_fire_and_says_so(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 2)
        world.write(lambda tx: reminders.pause(tx, "standup", world.clock.now()))
        process = world.process(poll_us=MINUTE)
        await world.wait(2 * HOUR)
        (run,) = runs_of(world)
        assert run.state is RunState.MISSED
        assert "it was paused" in run.summary
        world.write(lambda tx: reminders.resume(tx, "standup", world.clock.now()))
        await world.wait(DAY)
        await process.stop()
        assert runs_of(world)[-1].state is RunState.SUCCESS

    fresh(tmp_path).play(script)


def test_disabled_it_does_not_fire_and_enabled_it_makes_up_for_nothing(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 2)
        world.write(lambda tx: reminders.disable(tx, "standup", world.clock.now()))
        process = world.process(poll_us=MINUTE)
        await world.wait(2 * HOUR)
        assert runs_of(world) == []
        world.write(lambda tx: reminders.enable(tx, "standup", world.clock.now()))
        await world.wait(HOUR)
        assert runs_of(world) == []
        await world.wait(DAY)
        await process.stop()
        assert len(runs_of(world)) == 1

    fresh(tmp_path).play(script)


def test_edited_while_it_runs_the_run_goes_on_as_it_was(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 60)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + 30 * SECOND)
        other = ReminderSpec.from_mapping(
            {
                "name": "standup",
                "account": "ann",
                "cron": "0 9 * * *",
                "zone": ZONE,
                "parts": [{"text": "something else"}],
            }
        )
        world.write(
            lambda tx: reminders.edit(
                tx,
                "standup",
                {},
                world.providers,
                world.clock.now(),
                instead=other,
                targets=groups(1),
            )
        )
        await world.wait(DAY)
        await process.stop()
        first, second = runs_of(world)
        assert (first.total, second.total) == (60, 1)
        sizes = [effect.part.size for effect in world.sends()]
        assert sizes == [*[len("good morning")] * 60, len("something else")]

    fresh(tmp_path).play(script)


def test_by_hand_it_fires_now_but_not_outside_its_window(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 2)
        process = world.process(poll_us=MINUTE)
        now = world.clock.now()
        fired = world.write(lambda tx: reminders.fire(tx, "standup", world.providers, now, key="k"))
        again = world.write(lambda tx: reminders.fire(tx, "standup", world.providers, now, key="k"))
        assert fired.run.id == again.run.id
        await world.wait(11 * HOUR)
        with pytest.raises(ConflictError, match="nothing would be sent"):
            world.write(
                lambda tx: reminders.fire(tx, "standup", world.providers, world.clock.now())
            )
        await process.stop()

    fresh(tmp_path).play(script)
