"""``why`` about what a reminder has begun: its turn, its pause, and the commands that help."""

from pathlib import Path

import pytest

from paceline.core.errors import NotFoundError
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.engine import queries
from paceline.engine.commands import reminders
from paceline.engine.queries import Why
from tests.engine.reminding import fresh, remind, runs_of
from tests.engine.world import World


def why_last(world: World, name: str) -> Why:
    """About the last delivery of a reminder's run."""
    run = runs_of(world, name)[0]
    rows = world.read(lambda tx: tx.deliveries.page(run_id=run.id))
    return world.read(lambda tx: queries.why_delivery(tx, rows[-1].id, world.clock.now()))


def test_a_run_that_waits_for_its_turn_says_behind_whom(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 40, name="late", window="6-18")
        remind(world, 40, name="early", window="6-12")
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + 30 * SECOND)
        told = why_last(world, "late")
        assert told.outside == ["reminder late waits for its turn, behind early on ann"]
        assert told.cures == []
        assert why_last(world, "early").outside == []
        await process.stop()

    fresh(tmp_path).play(script)


def test_before_its_window_it_waits_for_that(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 4, cron="30 8 * * *", window="10-18")
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR)
        (told,) = why_last(world, "standup").outside
        opens = "2026-03-02 10:00 Asia/Kuala_Lumpur"
        assert told == f"reminder standup waits for its window, which opens at {opens}"
        await process.stop()

    fresh(tmp_path).play(script)


def test_a_paused_one_is_resumed_as_a_reminder(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 40)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + 10 * SECOND)
        world.write(lambda tx: reminders.pause(tx, "standup", world.clock.now(), "a typo"))
        told = why_last(world, "standup")
        assert told.outside == ["reminder standup is paused: a typo"]
        assert told.cures == ["paceline reminder resume standup"]
        with pytest.raises(NotFoundError) as refused:
            world.read(lambda tx: queries.delivery_or_account(tx, "standup", world.clock.now()))
        assert refused.value.reason == "'standup' is a reminder, and no account"
        assert refused.value.hint == "See what it waits for: paceline reminder runs standup"
        await process.stop()

    fresh(tmp_path).play(script)
