"""What the simulator has found about reminders, each as small as it can be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.states import RunState
from paceline.engine.commands import accounts, reminders
from paceline.engine.commands.reassigning import reassign
from paceline.engine.ports import Capabilities, Group
from paceline.providers.sandbox import SandboxProvider
from tests.engine.reminding import EIGHT, POSTER, fresh, groups, remind, runs_of
from tests.engine.world import World


def test_runs_that_wait_for_the_morning_take_turns_as_well(tmp_path: Path) -> None:
    """Each has slots of its own by then, and those of the second lay between those of the first."""

    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        for name in ("one", "two"):
            remind(world, 20, name=name, window="10-18", at_close="resume")
        process = world.process(poll_us=MINUTE)
        await world.wait(3 * HOUR)
        await process.stop()
        (first,) = runs_of(world, "one")
        whose = {str(row.id) for row in world.read(lambda tx: tx.deliveries.page(run_id=first.id))}
        order = [effect.key.split("-")[1] in whose for effect in world.sends()]
        assert order == [True] * 20 + [False] * 20

    fresh(tmp_path).play(script)


def test_what_was_due_when_somebody_edits_the_window_is_due_yet(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 3)
        await world.wait(HOUR + 30 * MINUTE)
        now = world.clock.now()
        world.write(
            lambda tx: reminders.edit(tx, "standup", {"window": "6-20"}, world.providers, now)
        )
        process = world.process(poll_us=MINUTE)
        await world.wait(10 * MINUTE)
        await process.stop()
        (run,) = runs_of(world)
        assert run.fired_for == EIGHT + HOUR
        assert run.state is RunState.SUCCESS

    fresh(tmp_path).play(script)


def test_what_was_due_when_somebody_gives_it_other_times_is_told_as_missed(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 3)
        await world.wait(HOUR + 30 * MINUTE)
        now = world.clock.now()
        world.write(
            lambda tx: reminders.edit(tx, "standup", {"cron": "0 10 * * *"}, world.providers, now)
        )
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR)
        await process.stop()
        missed, fired = runs_of(world)
        assert missed.state is RunState.MISSED
        assert missed.summary == (
            "Missed 2026-03-02 09:00 Asia/Kuala_Lumpur: it was given other times before it fired."
        )
        assert fired.fired_for == EIGHT + 2 * HOUR

    fresh(tmp_path).play(script)


def test_what_was_due_when_somebody_disables_it_is_told_as_missed(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 3)
        await world.wait(HOUR + 30 * MINUTE)
        world.write(lambda tx: reminders.disable(tx, "standup", world.clock.now()))
        (run,) = runs_of(world)
        assert run.state is RunState.MISSED
        assert run.fired_for == EIGHT + HOUR
        assert run.reason == "it was disabled before it fired"
        world.write(lambda tx: reminders.enable(tx, "standup", world.clock.now()))
        world.write(lambda tx: reminders.disable(tx, "standup", world.clock.now()))
        assert len(runs_of(world)) == 1

    fresh(tmp_path).play(script)


def test_enabled_by_a_clock_that_is_behind_it_neither_fires_again_nor_stops(tmp_path: Path) -> None:
    """By that clock its last time is yet to come; it has fired for it already."""

    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 3)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + 2 * MINUTE)
        behind = world.clock.now() - 5 * MINUTE
        world.write(lambda tx: reminders.disable(tx, "standup", behind))
        world.write(lambda tx: reminders.enable(tx, "standup", behind))
        await world.wait(5 * SECOND)
        assert len(runs_of(world)) == 1
        await world.wait(DAY)
        await process.stop()
        assert [run.fired_for for run in runs_of(world)] == [EIGHT + HOUR, EIGHT + HOUR + DAY]
        assert len(world.sends()) == 6

    fresh(tmp_path).play(script)


def test_a_run_that_waits_for_its_turn_ends_with_its_account(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account("ann", preset="whatsapp-established")
        remind(world, 3, window="10-18")
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + MINUTE)
        world.write(lambda tx: accounts.remove(tx, "ann", world.clock.now(), cancel=True))
        (run,) = runs_of(world)
        assert run.state is RunState.FAILED
        assert run.summary == (
            "0 of 3 groups delivered from ann. Not delivered: 3 cancelled (account ann removed)."
        )
        await process.stop()

    fresh(tmp_path).play(script)


def test_what_is_left_moves_though_another_of_its_accounts_was_removed(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        for name in ("ann", "bea", "cat"):
            world.account(name, preset="whatsapp-established")
        remind(world, 9, accounts=["ann", "bea", "cat"], window="10-18")
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + MINUTE)
        now = world.clock.now()
        world.write(lambda tx: accounts.remove(tx, "ann", now, cancel=True))
        world.write(lambda tx: accounts.pause(tx, "bea", now))
        done = world.write(lambda tx: reassign(tx, "standup", world.providers, now))
        assert done.given == {"cat": 3}
        await world.wait(2 * HOUR)
        await process.stop()
        assert {effect.account for effect in world.sends()} == {"cat"}
        assert len(world.sends()) == 6

    fresh(tmp_path).play(script)


def test_a_run_ends_by_the_clock_that_its_window_had(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 50, cron="59 17 * * *")
        process = world.process(poll_us=MINUTE)
        await world.wait(9 * HOUR + 59 * MINUTE + 10 * SECOND)
        now = world.clock.now()
        world.write(lambda tx: reminders.edit(tx, "standup", {"zone": "UTC"}, world.providers, now))
        await world.wait(HOUR)
        await process.stop()
        (run,) = runs_of(world)
        assert run.summary.startswith("Delivery window closed at 18:00 (Asia/Kuala_Lumpur). ")

    fresh(tmp_path).play(script)


def test_what_came_from_another_account_takes_its_turn_with_its_run(tmp_path: Path) -> None:
    """A firing that waits for its window has no minutes: it would lose its turn with them."""

    async def script(world: World) -> None:
        for name in ("ann", "bea"):
            world.account(name, preset="whatsapp-established")
        for name in ("one", "two"):
            remind(world, 20, name=name, accounts=["ann", "bea"], window="10-18", at_close="resume")
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + MINUTE)
        world.write(lambda tx: accounts.pause(tx, "bea", world.clock.now()))
        world.write(lambda tx: reassign(tx, "one", world.providers, world.clock.now()))
        await world.wait(3 * HOUR)
        await process.stop()
        (first,) = runs_of(world, "one")
        whose = {str(row.id) for row in world.read(lambda tx: tx.deliveries.page(run_id=first.id))}
        from_ann = [effect for effect in world.sends() if effect.account == "ann"]
        order = [effect.key.split("-")[1] in whose for effect in from_ann]
        assert order == [True] * 20 + [False] * 10

    fresh(tmp_path).play(script)


def test_an_account_that_stands_still_is_given_only_what_no_other_can_send(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        ann, bea = world.account("ann"), world.account("bea")
        only_bea, *others = groups(9)
        now = world.clock.now()
        here = [Group(target.address, "") for target in others]
        world.write(lambda tx: tx.groups.put(ann.id, here, now))
        there = [*here, Group(only_bea.address, "")]
        world.write(lambda tx: tx.groups.put(bea.id, there, now))
        world.write(lambda tx: accounts.pause(tx, "bea", now))
        remind(world, 9, accounts=["ann", "bea"])
        run = world.write(lambda tx: reminders.fire(tx, "standup", world.providers, now)).run
        rows = world.read(lambda tx: tx.deliveries.page(run_id=run.id))
        assert [row.target for row in rows if row.account_id == bea.id] == [only_bea.address]
        assert len(rows) == 9

    fresh(tmp_path).play(script)


def test_one_that_goes_on_in_the_morning_fires_late_in_the_evening(tmp_path: Path) -> None:
    """It is to fire after its window: the one it is sent in has not closed when the service is
    back, but the next morning's has when it is back in the evening."""

    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 3, at="2026-03-02T20:00", at_close="resume")
        remind(world, 3, name="early", at="2026-03-02T20:00", at_close="resume", window="6-8")
        await world.wait(25 * HOUR)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR)
        await process.stop()
        assert [run.state for run in runs_of(world)] == [RunState.SUCCESS]
        assert [run.state for run in runs_of(world, "early")] == [RunState.MISSED]

    fresh(tmp_path).play(script)


def test_a_key_used_again_after_closing_time_answers_as_before(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 3, cron="0 12 * * *")

        def fire() -> int:
            now = world.clock.now()
            return world.write(
                lambda tx: reminders.fire(tx, "standup", world.providers, now, key="once")
            ).run.id

        first = fire()
        await world.wait(12 * HOUR)
        assert fire() == first

    fresh(tmp_path).play(script)


def test_takers_must_be_able_to_send_what_every_run_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the older run says is older than the last edit, and only that one has a picture."""

    async def script(world: World) -> None:
        world.account("ann", policy={"rate": "1/min"})
        world.account("bea", latency="51ms")
        remind(world, 9, parts=[{"text": "look", "media": POSTER}])
        now = world.clock.now()
        world.write(lambda tx: reminders.fire(tx, "standup", world.providers, now))
        said = {"parts": [{"text": "no picture"}]}
        world.write(lambda tx: reminders.edit(tx, "standup", said, world.providers, now))
        world.write(lambda tx: reminders.fire(tx, "standup", world.providers, now))
        whole = SandboxProvider.capabilities_of

        def blind(provider: SandboxProvider, settings: Mapping[str, Any]) -> Capabilities:
            able = whole(provider, settings)
            return replace(able, media=False) if settings.get("latency") == "51ms" else able

        monkeypatch.setattr(SandboxProvider, "capabilities_of", blind)
        with pytest.raises(InputError, match="cannot send media from bea"):
            world.write(
                lambda tx: reassign(
                    tx, "standup", world.providers, now, from_account="ann", to_accounts=["bea"]
                )
            )

    fresh(tmp_path).play(script)
