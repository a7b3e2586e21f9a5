"""What goes wrong with one firing is nobody else's concern: neither of other accounts' nor of the
next one on the same account."""

import gc
from pathlib import Path
from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.outcome import Outcome
from paceline.core.states import AccountState, RunState
from paceline.engine.commands import reminders
from paceline.engine.lane import Lane
from paceline.engine.ports import Message
from paceline.providers.sandbox.provider import SandboxDriver
from tests.engine.reminding import POSTER, fresh, remind, runs_of
from tests.engine.scenes import sql
from tests.engine.world import Process, World

IMAGE = [{"media": POSTER, "caption": "the plan"}]
FAST = {"rate": "600/min", "concurrency": 4, "timeout": "30s"}


def state_of(world: World, name: str) -> RunState:
    return runs_of(world, name)[0].state


def fire(world: World, name: str) -> None:
    world.write(lambda tx: reminders.fire(tx, name, world.providers, world.clock.now()))


def test_only_so_many_accounts_of_a_process_begin_at_once(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        names = [f"number-{n}" for n in range(7)]
        for name in names:
            world.account(name, policy=FAST, upload_latency="10s")
            remind(world, 5, name=name, account=name, parts=IMAGE)
        process = world.process(poll_us=MINUTE, fire_concurrency=3)
        await world.wait(HOUR + 9 * SECOND)
        # Three are with their upload; the others wait, and it can be seen.
        states = [state_of(world, name) for name in names]
        assert (states.count(RunState.RUNNING), states.count(RunState.WAITING)) == (3, 4)
        await world.wait(5 * MINUTE)
        await process.stop()
        at = sorted(one.called_at for one in world.effects.all() if one.kind == "upload")
        assert all(later - sooner >= 10 * SECOND for sooner, later in zip(at, at[3:], strict=False))
        assert at[-1] - at[0] < 40 * SECOND, "who has begun makes room for the next at once"
        assert {state_of(world, name) for name in names} == {RunState.SUCCESS}

    fresh(tmp_path).play(script)


def test_a_dead_account_delays_nobody_else(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account("dead", policy=FAST, timeout_rate=1, timeout_latency="24h")
        world.account("slow", policy=FAST, latency="20s")
        world.account("fine", policy=FAST, latency="100ms")
        for name in ("dead", "slow", "fine"):
            remind(world, 100, name=name, account=name)
        process = world.process(poll_us=MINUTE, fire_concurrency=2)
        await world.wait(HOUR + 15 * SECOND)
        assert state_of(world, "fine") is RunState.SUCCESS
        assert {state_of(world, "dead"), state_of(world, "slow")} == {RunState.RUNNING}
        await process.stop()

    fresh(tmp_path).play(script)


def test_nothing_is_kept_in_memory_for_accounts_that_are_idle(tmp_path: Path) -> None:
    """No lane, no driver and no limiter of theirs: what they need next time is in the store."""

    def found() -> list[Lane | SandboxDriver]:
        gc.collect()
        return [one for one in gc.get_objects() if isinstance(one, Lane | SandboxDriver)]

    earlier = found()  # what other tests have left behind, and a traceback may hold

    def kept(process: Process) -> int:
        here = process.supervisor._context
        ours = [one for one in found() if not any(one is other for other in earlier)]
        return len(ours) + len(process.supervisor._running) + len(here.claims)

    async def script(world: World) -> None:
        names = [f"number-{n}" for n in range(20)]
        for name in names:
            world.account(name, policy={"rate": "30/min"})
            remind(world, 5, name=name, account=name, parts=IMAGE)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + 4 * SECOND)
        assert kept(process) >= 20
        await world.wait(5 * MINUTE)
        assert {state_of(world, name) for name in names} == {RunState.SUCCESS}
        assert kept(process) == 0
        await process.stop()

    fresh(tmp_path).play(script)


def test_a_run_whose_driver_throws_releases_the_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = SandboxDriver.send

    async def throwing(self: SandboxDriver, message: Message) -> Outcome:
        if message.part.text == "bad":
            raise RuntimeError("a defect of the driver")
        return await send(self, message)

    monkeypatch.setattr(SandboxDriver, "send", throwing)

    async def script(world: World) -> None:
        world.account(policy=FAST)
        remind(world, 6, name="bad", parts=[{"text": "bad"}], window="6-10")
        remind(world, 6, name="good")
        process = world.process(poll_us=MINUTE)
        await world.wait(2 * HOUR)
        await process.stop()
        (run,) = runs_of(world, "bad")
        assert run.state is RunState.FAILED
        assert run.summary.startswith("0 of 6 groups delivered from ann. Not delivered: 6 failed")
        assert state_of(world, "good") is RunState.SUCCESS

    fresh(tmp_path).play(script)


@pytest.mark.parametrize("content", ["[]", "null", "7"])
def test_a_run_that_makes_its_lane_crash_is_set_aside(tmp_path: Path, content: str) -> None:
    """Whatever has happened to it: a defect of ours, or somebody's hand in the database."""

    async def script(world: World) -> None:
        world.account(policy=FAST)
        for name, window in (("bad", "6-10"), ("good", "6-18")):
            remind(world, 6, name=name, window=window)
            fire(world, name)
        bad = runs_of(world, "bad")[0].id
        sql(world, f"UPDATE runs SET content = '{content}' WHERE id = {bad}")
        process = world.process(poll_us=MINUTE)
        await world.wait(2 * MINUTE)
        await process.stop()
        assert state_of(world, "good") is RunState.SUCCESS
        assert state_of(world, "bad") is RunState.PAUSED
        assert world.account_now().state is AccountState.ACTIVE
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert (alert.kind, alert.run_id) == ("campaign.defect", bad)
        assert "reminder bad was paused on ann: Too many worker crashes (last: " in alert.text

    fresh(tmp_path).play(script)


def test_an_account_whose_lane_crashes_for_no_one_run_is_suspended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def defective(*_: Any) -> None:
        raise RuntimeError("a defect of the lane")

    monkeypatch.setattr(Lane, "_step", defective)

    async def script(world: World) -> None:
        world.account(policy=FAST)
        remind(world, 6)
        fire(world, "standup")
        process = world.process(poll_us=MINUTE)
        await world.wait(2 * MINUTE)
        await process.stop()
        assert world.account_now().state is AccountState.SUSPENDED
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert alert.kind == "account.suspended"

    fresh(tmp_path).play(script)
