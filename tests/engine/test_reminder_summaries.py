"""How a firing is told that its window cut off, or that could not be: only what is so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.states import RunState
from paceline.engine.commands import accounts, audiences, control, reminders
from paceline.engine.ports import Group, Tx
from tests.engine.reminding import EIGHT, fresh, groups, remind, runs_of
from tests.engine.world import World

SIX = EIGHT + 10 * HOUR
CLOSED = "Delivery window closed at 18:00 (Asia/Kuala_Lumpur). "


def suspend(tx: Tx, name: str, reason: str, event: str = "suspend") -> None:
    number = accounts.find(tx, name).id
    tx.accounts.move(number, event, reason=reason)
    tx.lanes.touch(number, EIGHT)


STOPS: dict[str, tuple[Callable[[Tx, int], object], str]] = {
    "account paused": (
        lambda tx, now: accounts.pause(tx, "ann", now, "holidays"),
        "the window closed while ann was paused: holidays",
    ),
    "run paused": (
        lambda tx, now: reminders.pause(tx, "standup", now, "a typo"),
        "the window closed while it was paused: a typo",
    ),
    "banned": (
        lambda tx, now: suspend(tx, "ann", "banned by the provider"),
        "the window closed while ann was suspended: banned by the provider",
    ),
    "cooling down": (
        lambda tx, now: suspend(tx, "ann", "asked to rest", "cool_down"),
        "the window closed while ann was cooling down: asked to rest",
    ),
    "everything stopped": (
        lambda tx, now: control.stop_all(tx, "an alarm", now),
        "the window closed while everything was stopped: an alarm",
    ),
}


@pytest.mark.parametrize("stop", STOPS)
def test_what_stood_still_when_its_window_closed_is_not_at_capacity(
    tmp_path: Path, stop: str
) -> None:
    how, why = STOPS[stop]

    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 100)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + MINUTE)
        world.write(lambda tx: how(tx, world.clock.now()))
        await world.wait(10 * HOUR)
        await process.stop()
        (run,) = runs_of(world)
        sent = world.counts("standup")["sent"]
        assert run.summary == (
            f"{CLOSED}{sent} of 100 groups delivered from ann. "
            f"Not delivered: {100 - sent} skipped ({why})."
        )

    fresh(tmp_path).play(script)


@pytest.mark.parametrize("cap", ["daily", "weekly"])
def test_an_account_whose_cap_was_used_up_hours_before_is_at_capacity(
    tmp_path: Path, cap: str
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "40/min", cap: {"message": 40}})
        remind(world, 100)
        process = world.process(poll_us=MINUTE)
        await world.wait(11 * HOUR)
        await process.stop()
        (run,) = runs_of(world)
        assert run.summary.startswith(f"{CLOSED}40 of 100 groups delivered from ann. This account ")
        assert "at capacity" in run.summary and "nothing was sent" not in run.summary

    fresh(tmp_path).play(script)


def test_when_nobody_was_there_to_send_it_is_not_at_capacity(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 100)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + MINUTE)
        await process.stop()
        await world.wait(10 * HOUR)
        process = world.process("two", poll_us=MINUTE)
        await world.wait(5 * MINUTE)
        await process.stop()
        (run,) = runs_of(world)
        why = "the window closed, and nothing was sent from ann"
        assert run.summary.endswith(f" skipped ({why}).")
        assert "capacity" not in run.summary

    fresh(tmp_path).play(script)


def test_of_several_accounts_only_those_are_at_capacity_that_were_sending(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        for name in ("ann", "bea"):
            world.account(name, preset="whatsapp-established")
        remind(world, 1_000, cron="50 17 * * *", accounts=["ann", "bea"])
        process = world.process(poll_us=MINUTE)
        await world.wait(9 * HOUR + 55 * MINUTE)
        world.write(lambda tx: suspend(tx, "bea", "logged out"))
        await world.wait(HOUR)
        await process.stop()
        (run,) = runs_of(world)
        assert " ann is at capacity for this fan-out: " in run.summary
        assert "skipped (the window closed while bea was suspended: logged out)" in run.summary

    fresh(tmp_path).play(script)


def test_a_window_that_closed_before_anybody_looked_makes_it_missed(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 5, cron="59 17 * * *")
        await world.wait(SIX - world.clock.now() + 30 * SECOND)
        process = world.process(poll_us=MINUTE)
        await world.wait(5 * MINUTE)
        await process.stop()
        (run,) = runs_of(world)
        assert run.state is RunState.MISSED
        assert run.reason == "its window closed before the service got to it"

    fresh(tmp_path).play(script)


def lose_account(world: World) -> str:
    world.write(lambda tx: accounts.remove(tx, "ann", world.clock.now(), cancel=True))
    return "account ann was removed"


def lose_audience(world: World) -> str:
    world.write(lambda tx: audiences.remove(tx, "people", world.clock.now()))
    return "there is no audience people any more"


def leave_groups(world: World) -> str:
    account, now = world.account_now(), world.clock.now()
    world.write(lambda tx: tx.groups.put(account.id, [Group("elsewhere@g.us", "")], now))
    return "none of its targets can be reached (5: ann is not a member of this group)"


def to_an_audience(world: World) -> None:
    """The reminder goes to everybody of an audience from now on."""
    now = world.clock.now()

    def store(tx: Tx) -> None:
        tx.audiences.open("people", now)
        tx.audiences.open("peoples", now)
        campaign = tx.campaigns.find("standup")
        assert campaign is not None
        settings = {**campaign.settings, "audience": "people"}
        tx.campaigns.set_settings(campaign.id, settings)

    world.write(store)


@pytest.mark.parametrize("lose", [lose_account, lose_audience, leave_groups])
def test_fired_by_hand_what_cannot_be_changes_nothing(
    tmp_path: Path, lose: Callable[[World], str]
) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        world.account("anna", preset="whatsapp-established")
        remind(world, 5)
        if lose is lose_audience:
            to_an_audience(world)
        why, now = lose(world), world.clock.now()
        with pytest.raises(InputError) as refused:
            world.write(lambda tx: reminders.fire(tx, "standup", world.providers, now))
        assert str(refused.value) == why
        assert runs_of(world) == []

    fresh(tmp_path).play(script)


@pytest.mark.parametrize("lose", [lose_account, lose_audience])
def test_by_its_own_times_it_fails_in_plain_words(
    tmp_path: Path, lose: Callable[[World], str]
) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        world.account("anna", preset="whatsapp-established")
        remind(world, 5)
        if lose is lose_audience:
            to_an_audience(world)
        why = lose(world)
        process = world.process(poll_us=MINUTE)
        await world.wait(2 * HOUR)
        await process.stop()
        (run,) = runs_of(world)
        assert run.state is RunState.FAILED
        assert run.summary == f"Nothing was sent: {why}."

    fresh(tmp_path).play(script)


def test_shared_out_evenly_though_one_is_a_member_of_the_first_half_only(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        ann, bea = (world.account(name) for name in ("ann", "bea"))
        targets, now = [target.address for target in groups(40)], world.clock.now()
        for account, some in ((ann, targets), (bea, targets[:20])):
            known = [Group(one, one) for one in some]
            world.write(lambda tx, a=account, k=known: tx.groups.put(a.id, k, now))
        remind(world, 40, accounts=["ann", "bea"])
        fired = world.write(lambda tx: reminders.fire(tx, "standup", world.providers, now))
        rows = world.read(lambda tx: tx.deliveries.page(run_id=fired.run.id))
        owners = {row.target: row.account_id for row in rows}
        assert [owners[one] for one in targets] == [bea.id] * 20 + [ann.id] * 20
        assert [row.target for row in rows] == targets

    fresh(tmp_path).play(script)
