"""A reminder's runs in virtual time: how they share accounts, end, and are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paceline.core.errors import ConflictError
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Target
from paceline.core.states import RunState
from paceline.engine.commands import accounts, reminders
from paceline.engine.commands.reassigning import reassign
from paceline.engine.ports import Group
from paceline.engine.reminder_spec import ReminderSpec
from tests.engine.reminding import EIGHT, ZONE, fresh, groups, remind, runs_of
from tests.engine.world import World


def test_the_window_ends_a_run_and_its_summary_says_what_to_do(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 1_000, cron="50 17 * * *")
        process = world.process(poll_us=MINUTE)
        await world.wait(11 * HOUR)
        await process.stop()
        (run,) = runs_of(world)
        sent = world.counts("standup")["sent"]
        assert 395 <= sent <= 402, "ten minutes at forty a minute"
        assert run.state is RunState.PARTIAL
        assert run.summary == (
            f"Delivery window closed at 18:00 (Asia/Kuala_Lumpur). {sent} of 1000 groups delivered "
            "from ann. This account is at capacity for this fan-out: consider sending the "
            "remainder from another paired account (paceline reminder fire standup --rest --run 1 "
            "--from ACCOUNT)."
        )
        assert max(effect.called_at for effect in world.sends()) < EIGHT + 10 * HOUR
        assert world.counts("standup") == {"sent": sent, "skipped": 1_000 - sent}

    fresh(tmp_path).play(script)


def test_one_that_failed_here_and_there_says_so_without_that_advice(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        raw = {
            "name": "standup",
            "account": "ann",
            "at": "2026-03-02 09:00",
            "zone": ZONE,
            "parts": [{"text": "hello"}],
        }
        targets = [*groups(8), Target("gone-1+reject"), Target("gone-2+reject")]
        spec = ReminderSpec.from_mapping(raw)
        world.write(
            lambda tx: reminders.create(tx, spec, targets, world.providers, world.clock.now())
        )
        process = world.process(poll_us=MINUTE)
        await world.wait(2 * HOUR)
        await process.stop()
        (run,) = runs_of(world)
        assert run.state is RunState.PARTIAL
        assert run.summary.startswith("8 of 10 groups delivered from ann. Not delivered: 2 failed")
        assert "capacity" not in run.summary

    fresh(tmp_path).play(script)


def test_two_on_one_account_take_turns_and_never_double_its_rate(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 40, name="late", window="6-18")
        remind(world, 40, name="early", window="6-12")
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + 30 * SECOND)
        (late,), (early,) = runs_of(world, "late"), runs_of(world, "early")
        assert early.state is RunState.RUNNING
        assert late.state is RunState.WAITING, "it waits, and everybody can see it"
        await world.wait(10 * MINUTE)
        await process.stop()
        order = [effect.key.split("-")[1] for effect in world.sends()]
        first = {str(row.id) for row in world.read(lambda tx: tx.deliveries.page(run_id=early.id))}
        assert set(order[:40]) == first, "the one whose window closes first, to its end"
        calls = [effect.called_at for effect in world.sends()]
        assert calls[-1] - calls[0] >= 79 * 60 * SECOND // 40

    fresh(tmp_path).play(script)


def test_two_on_two_accounts_both_go_on_from_the_first_second(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        for name in ("ann", "bea"):
            world.account(name, preset="whatsapp-established")
            remind(world, 50, name=f"for-{name}", account=name)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + SECOND)
        assert {effect.account for effect in world.sends()} == {"ann", "bea"}
        await world.wait(5 * MINUTE)
        await process.stop()

    fresh(tmp_path).play(script)


def test_paused_in_the_middle_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 100)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + MINUTE)
        world.write(lambda tx: reminders.pause(tx, "standup", world.clock.now()))
        await world.wait(MINUTE)
        before = len(world.sends())
        assert 0 < before < 100
        await world.wait(HOUR)
        assert len(world.sends()) == before
        world.write(lambda tx: reminders.resume(tx, "standup", world.clock.now()))
        await world.wait(HOUR)
        await process.stop()
        assert len(world.sends()) == 100
        assert runs_of(world)[0].state is RunState.SUCCESS

    fresh(tmp_path).play(script)


def test_at_close_resume_goes_on_next_morning(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 1_000, at="2026-03-02 17:50", at_close="resume")
        process = world.process(poll_us=MINUTE)
        await world.wait(DAY)
        await process.stop()
        (run,) = runs_of(world)
        assert run.state is RunState.SUCCESS
        night = [
            effect
            for effect in world.sends()
            if EIGHT + 10 * HOUR <= effect.called_at < EIGHT + 22 * HOUR
        ]
        assert night == []
        assert len(world.sends()) == 1_000

    fresh(tmp_path).play(script)


@pytest.mark.parametrize("what", ["account", "reminder"])
def test_its_window_ends_it_even_while_nobody_goes_through_it(tmp_path: Path, what: str) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 100)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + MINUTE)
        now = world.clock.now()
        if what == "account":
            world.write(lambda tx: accounts.pause(tx, "ann", now))
        else:
            world.write(lambda tx: reminders.pause(tx, "standup", now))
        await world.wait(10 * HOUR)
        await process.stop()
        (run,) = runs_of(world)
        assert run.state is RunState.PARTIAL
        counts = world.counts("standup")
        assert counts["sent"] + counts["skipped"] == 100
        assert run.summary.startswith("Delivery window closed at 18:00")

    fresh(tmp_path).play(script)


def test_what_is_left_when_an_account_is_banned_goes_on_from_another(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        for name in ("ann", "bea"):
            world.account(name, preset="whatsapp-established")
        remind(world, 100)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + MINUTE)
        world.write(
            lambda tx: tx.accounts.move(
                reminders_account(tx, "ann"), "suspend", reason="banned by the provider"
            )
        )
        world.write(lambda tx: tx.lanes.touch(reminders_account(tx, "ann"), world.clock.now()))
        await world.wait(MINUTE)
        before = len(world.sends())
        with pytest.raises(ConflictError, match="no other account in service"):
            world.write(lambda tx: reassign(tx, "standup", world.providers, world.clock.now()))
        done = world.write(
            lambda tx: reassign(
                tx, "standup", world.providers, world.clock.now(), to_accounts=["bea"]
            )
        )
        assert done.given == {"bea": 100 - before}
        await world.wait(HOUR)
        await process.stop()
        (run,) = runs_of(world)
        assert run.state is RunState.SUCCESS
        assert (
            run.summary
            == f"100 of 100 groups delivered from ann ({before}) and bea ({100 - before})."
        )
        assert len({effect.target for effect in world.sends()}) == 100

    fresh(tmp_path).play(script)


def reminders_account(tx: Any, name: str) -> int:
    return int(tx.accounts.find(name).id)


def test_split_over_accounts_each_group_from_one_of_its_members(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        ann = world.account("ann", preset="whatsapp-established")
        bea = world.account("bea", preset="whatsapp-established")
        targets = [target.address for target in groups(40)]
        now = world.clock.now()
        world.write(
            lambda tx: tx.groups.put(ann.id, [Group(one, one) for one in targets[:30]], now)
        )
        world.write(
            lambda tx: tx.groups.put(
                bea.id,
                [*(Group(one, one) for one in targets[20:38]), Group(targets[38], "", None, False)],
                now,
            )
        )
        remind(world, 40, accounts=["ann", "bea"])
        process = world.process(poll_us=MINUTE)
        await world.wait(2 * HOUR)
        await process.stop()
        by = {effect.target: effect.account for effect in world.sends()}
        assert all(by[one] == "ann" for one in targets[:20])
        assert all(by[one] == "bea" for one in targets[30:38])
        assert set(by) == set(targets[:38])
        (run,) = runs_of(world)
        assert run.state is RunState.PARTIAL
        assert run.summary == (
            "38 of 40 groups delivered from ann (20) and bea (18). Not delivered: 1 skipped (no "
            "account of it is a member of this group), 1 skipped (only admins may write to this "
            "group)."
        )

    fresh(tmp_path).play(script)
