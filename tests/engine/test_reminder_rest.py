"""What a run left is sent by another, is called off, or goes with its reminder; and by whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paceline.core.errors import ConflictError, InputError, NotFoundError
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Target
from paceline.core.states import DeliveryState, RunState
from paceline.engine import queries
from paceline.engine.commands import accounts, reminder_runs, reminders
from paceline.engine.commands.reassigning import STAYS, reassign
from paceline.engine.commands.reminder_runs import Rest, fire_rest
from paceline.engine.ports import Group
from paceline.engine.reminder_spec import ReminderSpec
from paceline.engine.reminder_view import reminder_view
from tests.engine.reminding import EIGHT, ZONE, fresh, groups, remind, runs_of
from tests.engine.scenes import sql, suppress
from tests.engine.world import World

QUICK = {"rate": "600/min"}


def rest(world: World, **how: Any) -> Rest:
    now = world.clock.now()
    return world.write(lambda tx: fire_rest(tx, "standup", world.providers, now, **how))


def fire(world: World, name: str = "standup") -> int:
    now = world.clock.now()
    return world.write(lambda tx: reminders.fire(tx, name, world.providers, now)).run.id


def states(world: World, run_id: int) -> dict[str, DeliveryState]:
    rows = world.read(lambda tx: tx.deliveries.page(run_id=run_id, limit=1_000))
    return {row.target: row.state for row in rows}


async def cut_short(world: World) -> int:
    """A run of which the window has cut off the most; it is the morning after."""
    world.account(policy={"rate": "1/min"})
    remind(world, 20, cron="50 17 * * *")
    process = world.process(poll_us=MINUTE)
    await world.wait(22 * HOUR)
    await process.stop()
    (run,) = runs_of(world)
    assert run.state is RunState.PARTIAL
    return run.id


def test_what_a_run_left_goes_from_another_account_and_nobody_gets_it_twice(
    tmp_path: Path,
) -> None:
    async def script(world: World) -> None:
        first = await cut_short(world)
        world.account("bea", policy=QUICK)
        left = [one for one, state in states(world, first).items() if state == "skipped"]
        before = len(world.sends())
        done = rest(world, from_accounts=["bea"])
        assert done.of_run is not None and done.of_run.id == first
        assert list(states(world, done.fired.run.id)) == left
        with pytest.raises(ConflictError, match="is under way yet"):
            rest(world)
        with pytest.raises(ConflictError, match="has left nothing to be sent"):
            rest(world, run_id=first)
        process = world.process("two", poll_us=MINUTE)
        await world.wait(5 * MINUTE)
        sent = world.sends()[before:]
        assert sorted(effect.target for effect in sent) == sorted(left)
        assert {effect.account for effect in sent} == {"bea"}
        assert len({effect.target for effect in world.sends()}) == 20
        with pytest.raises(ConflictError, match="has left nothing to be sent"):
            rest(world)
        with pytest.raises(ConflictError, match=r"\(10 got it since, or are about to\)"):
            rest(world, run_id=first)
        assert len(left) == 10
        await process.stop()

    fresh(tmp_path).play(script)


def test_asked_for_twice_under_one_key_it_is_sent_once(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        await cut_short(world)
        one, two = rest(world, key="again"), rest(world, key="again")
        assert one.fired.run.id == two.fired.run.id
        assert len(runs_of(world)) == 2

    fresh(tmp_path).play(script)


def test_it_says_what_the_run_said_and_not_what_the_reminder_says_by_now(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        first = await cut_short(world)
        now = world.clock.now()
        raw = {
            "name": "standup",
            "account": "ann",
            "cron": "0 9 * * *",
            "zone": ZONE,
            "parts": [{"text": "something else"}],
        }
        spec = ReminderSpec.from_mapping(raw)
        world.write(
            lambda tx: reminders.edit(
                tx, "standup", {}, world.providers, now, instead=spec, targets=groups(1)
            )
        )
        done = rest(world, run_id=first)
        assert [part["text"] for part in done.fired.run.content] == ["good morning"]
        assert len(states(world, done.fired.run.id)) == 10

    fresh(tmp_path).play(script)


def test_only_those_who_got_nothing_at_all(tmp_path: Path) -> None:
    """Whoever may have got it, or has got the first part of it, is left alone."""

    async def script(world: World) -> None:
        world.account(policy=QUICK)
        remind(world, 7)
        first = fire(world)
        rows = world.read(lambda tx: tx.deliveries.page(run_id=first))
        ends = ["sent", "bounced", "unknown", "failed", "skipped", "cancelled", "failed"]
        for row, state in zip(rows, ends, strict=True):
            sent_at = 1 if state in ("sent", "bounced") else "NULL"
            values = f"state = '{state}', due_at = NULL, sent_at = {sent_at}"
            sql(world, f"UPDATE deliveries SET {values} WHERE id = {row.id}")
        sql(world, f"UPDATE deliveries SET parts_done = 1 WHERE id = {rows[6].id}")
        sql(world, "DELETE FROM counters")
        for state in set(ends):
            sql(
                world,
                "INSERT INTO counters (run_id, account_id, state, n) "
                f"VALUES ({first}, 1, '{state}', {ends.count(state)})",
            )
        sql(world, f"UPDATE runs SET state = 'partial' WHERE id = {first}")
        done = rest(world)
        assert list(states(world, done.fired.run.id)) == [rows[n].target for n in (3, 4, 5)]
        assert (done.begun, done.since) == (1, 0)
        now = world.clock.now()
        world.write(lambda tx: reminder_runs.cancel(tx, "standup", now))

    world = fresh(tmp_path)
    world.check = lambda: None  # type: ignore[method-assign]
    world.play(script)


def test_whoever_does_not_want_it_is_not_left_to_be_sent_to(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        run_id = await cut_short(world)
        left = [target for target, state in states(world, run_id).items() if state == "skipped"]
        for target in left[1:]:
            suppress(world, target)
        assert list(states(world, rest(world).fired.run.id)) == left[:1]

    fresh(tmp_path).play(script)


def test_the_rest_of_a_reminder_that_was_removed_is_nobody_else_s(tmp_path: Path) -> None:
    """What another of the same name has sent since could not be told from it."""

    async def script(world: World) -> None:
        run_id = await cut_short(world)
        world.write(lambda tx: reminders.remove(tx, "standup", world.clock.now()))
        remind(world, 20, cron="50 17 * * *")
        with pytest.raises(ConflictError, match=f"run {run_id} is of a reminder standup that was"):
            rest(world, run_id=run_id)
        assert runs_of(world) == []

    fresh(tmp_path).play(script)


def test_each_group_only_from_a_member(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        first = await cut_short(world)
        left = [one for one, state in states(world, first).items() if state == "skipped"]
        bea, now = world.account("bea", policy=QUICK), world.clock.now()
        world.write(lambda tx: tx.groups.put(bea.id, [Group(left[0], "")], now))
        done = rest(world, from_accounts=["bea"])
        assert len(done.fired.unreachable) == 9
        counts = world.read(lambda tx: tx.runs.counts(done.fired.run.id))
        assert (counts[DeliveryState.READY], counts[DeliveryState.SKIPPED]) == (1, 9)

    fresh(tmp_path).play(script)


def test_a_run_that_is_none_of_its_own(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(policy=QUICK)
        remind(world, 2)
        remind(world, 2, name="other")
        with pytest.raises(NotFoundError, match="has sent nothing yet"):
            rest(world)
        for number in (fire(world, "other"), 99):
            with pytest.raises(NotFoundError, match=f"reminder standup has no run {number}"):
                rest(world, run_id=number)

    fresh(tmp_path).play(script)


# ---------------------------------------------------------------------- reassigning


def test_a_finished_run_cannot_be_reassigned_and_says_what_can_be_done(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        first = await cut_short(world)
        with pytest.raises(ConflictError) as refused:
            world.write(lambda tx: reassign(tx, "standup", world.providers, world.clock.now()))
        again = f"paceline reminder fire standup --rest --run {first} --from ACCOUNT"
        assert refused.value.hint == f"Send what run {first} did not deliver: {again}"

    fresh(tmp_path).play(script)


def test_what_nobody_else_can_send_stays_where_it_is(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(policy=QUICK)
        bea, now = world.account("bea", policy=QUICK), world.clock.now()
        remind(world, 20)
        first = fire(world)
        rows = world.read(lambda tx: tx.deliveries.page(run_id=first))
        world.write(lambda tx: tx.groups.put(bea.id, [Group(rows[5].target, "")], now))
        sql(world, f"UPDATE deliveries SET parts_done = 1 WHERE id = {rows[0].id}")
        done = world.write(
            lambda tx: reassign(
                tx, "standup", world.providers, now, from_account="ann", to_accounts=["bea"]
            )
        )
        assert done.given == {"bea": 1}
        assert done.stays == {"ann": {STAYS: 1, "bea is not a member of this group": 18}}

    fresh(tmp_path).play(script)


def test_why_of_a_banned_account_names_the_way_on_from_others(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 40)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + 10 * SECOND)
        world.write(lambda tx: tx.accounts.move(1, "suspend", reason="banned"))
        told = world.read(lambda tx: queries.why_account(tx, "ann", world.clock.now()))
        assert told.cures == ["paceline account resume ann", "paceline reminder reassign standup"]
        await process.stop()

    fresh(tmp_path).play(script)


# ---------------------------------------------------------------------- cancelling, removing


def test_cancelled_the_rest_is_called_off_and_it_fires_again(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 100)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + MINUTE)
        now = world.clock.now()
        done = world.write(lambda tx: reminder_runs.cancel(tx, "standup", now, reason="a typo"))
        assert (done.state, done.reason) == (RunState.CANCELLED, "a typo")
        await world.wait(MINUTE)
        counts = world.counts("standup")
        assert 0 < counts["sent"] < 100
        assert counts["sent"] + counts["cancelled"] == 100
        with pytest.raises(ConflictError, match="has no run under way"):
            world.write(lambda tx: reminder_runs.cancel(tx, "standup", now))
        with pytest.raises(ConflictError, match="is over: cancelled"):
            world.write(lambda tx: reminder_runs.cancel(tx, "standup", now, run_id=done.id))
        again = rest(world)
        await world.wait(HOUR)
        assert len({effect.target for effect in world.sends()}) == len(world.sends()) == 100
        await world.wait(DAY)
        await process.stop()
        assert [run.state for run in runs_of(world)] == ["cancelled", "success", "success"]
        assert again.fired.run.fired_for is None

    fresh(tmp_path).play(script)


def test_of_several_under_way_one_has_to_be_named(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(policy=QUICK)
        remind(world, 2)
        one, two = fire(world), fire(world)
        now = world.clock.now()
        with pytest.raises(ConflictError, match=f"several runs are under way: {one}, {two}"):
            world.write(lambda tx: reminder_runs.cancel(tx, "standup", now))
        world.write(lambda tx: reminder_runs.cancel(tx, "standup", now, run_id=one))
        assert [run.state for run in runs_of(world)] == ["cancelled", "waiting"]

    fresh(tmp_path).play(script)


def test_removed_its_name_is_free_and_its_runs_can_be_read_by_number(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(policy=QUICK)
        remind(world, 2)
        first, now = fire(world), world.clock.now()
        with pytest.raises(ConflictError, match=f"run {first} of reminder standup is under way"):
            world.write(lambda tx: reminders.remove(tx, "standup", now))
        world.write(lambda tx: reminder_runs.cancel(tx, "standup", now))
        world.write(lambda tx: reminders.remove(tx, "standup", now))
        with pytest.raises(NotFoundError, match="no reminder named 'standup'"):
            fire(world)
        remind(world, 3)
        second = fire(world)
        found = world.read(lambda tx: reminder_runs.run_of(tx, "standup", first))
        assert (found.id, found.total) == (first, 2)
        assert world.read(lambda tx: reminder_runs.run_of(tx, "standup")).id == second
        process = world.process(poll_us=MINUTE)
        await world.wait(2 * HOUR)
        await process.stop()
        assert len(runs_of(world)) == 2

    fresh(tmp_path).play(script)


def test_a_time_that_is_over_is_refused(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(policy=QUICK)
        with pytest.raises(InputError) as refused:
            remind(world, 2, at="2026-03-01 09:00")
        assert str(refused.value) == (f"at: 2026-03-01 09:00 {ZONE} is over: it would never fire")
        remind(world, 2)
        now = world.clock.now()
        with pytest.raises(InputError, match="is over: it would never fire"):
            world.write(
                lambda tx: reminders.edit(tx, "standup", {"at": "2026-03-01"}, world.providers, now)
            )

    fresh(tmp_path).play(script)


# ---------------------------------------------------------------------- what is shown


def test_one_that_is_due_right_now_fires_next_whoever_shows_it(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(policy=QUICK)
        remind(world, 2)
        await world.wait(HOUR + 10 * SECOND)
        view = world.read(lambda tx: reminder_view(tx, "standup", world.clock.now()))
        assert view.due
        assert view.firings[:2] == [view.reminder.next_at, EIGHT + HOUR + DAY]

    fresh(tmp_path).play(script)


def test_accounts_that_cannot_send_are_named_with_the_reason(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        names = ("ann", "bea", "cat", "dan")
        for name in names:
            world.account(name, policy=QUICK)
        now = world.clock.now()
        world.write(lambda tx: accounts.pause(tx, "bea", now, "holidays"))
        world.write(lambda tx: tx.accounts.move(3, "suspend", reason="banned"))
        raw = {
            "name": "standup",
            "accounts": list(names),
            "cron": "0 9 * * *",
            "zone": ZONE,
            "parts": [{"text": "hello"}],
        }
        spec, targets = ReminderSpec.from_mapping(raw), [Target("120363000001@g.us")]
        made, _ = world.write(lambda tx: reminders.create(tx, spec, targets, world.providers, now))
        told = ["account bea is paused: holidays", "account cat is suspended: banned"]
        assert made.warnings == told
        world.write(lambda tx: accounts.remove(tx, "dan", now))
        view = world.read(lambda tx: reminder_view(tx, "standup", now))
        assert view.away == [*told, "account dan was removed"]

    fresh(tmp_path).play(script)
