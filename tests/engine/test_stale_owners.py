"""What a lane's former owner still tries to write is refused, and it would be seen if it were not.

The other half of ``test_takeover``: the guards themselves, one by one, and broken twins of them.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import ANY

import pytest

from paceline.core.errors import LeaseLost
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.engine import lane_writes, recovery
from paceline.engine.leases import ProcessLease
from paceline.engine.ports import Intent, LaneUnit, Lease, Tx, Work
from paceline.store import path
from tests.engine.doubles import Double
from tests.engine.faults import Standstill
from tests.engine.test_takeover import asleep_before_the_call, asleep_before_the_intent
from tests.engine.world import World
from tests.engine.worlds import Worlds


def found_too_late(world: World) -> Any:
    """A process asks what became of a message and falls asleep before it hears the answer. Another
    one asks too, sends again, and is still waiting when the first wakes up with its old news."""

    async def answer_slowly(real: Any, message: Any) -> Any:
        outcome = await real(message)
        await world.wait(5 * MINUTE - SECOND)
        return outcome

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "timeout": "5m"}, lost_at=(1,), latency="8s")
        world.campaign(1)
        asking = Double(world.providers.get("sandbox"))
        host = Standstill(world.clock, asking)
        first = world.process("one", poll_us=10 * SECOND, **host.ports())
        await world.until(lambda: asking.called["find"] == 1, HOUR, SECOND)
        host.freeze()
        slow = Double(world.providers.get("sandbox"), send=answer_slowly)
        second = world.process("two", providers=slow.registry(), poll_us=10 * SECOND)
        await world.until(lambda: len(world.sends()) == 1, HOUR)
        assert world.counts() == {"sending": 1}
        host.thaw()
        await world.until(lambda: world.counts() == {"sent": 1}, HOUR, 10 * SECOND)
        await first.stop()
        await second.stop()

    return script(world)


def test_what_was_found_out_too_late_changes_nothing(worlds: Worlds) -> None:
    worlds.fresh().play(found_too_late)


# ---------------------------------------------------------------------- the guards, one by one


def taken_over(world: World) -> tuple[Lease, Lease]:
    """The lease of a lane's former owner, and that of its present one."""
    world.account()
    world.campaign(2)

    def work(tx: Tx) -> tuple[Lease, Lease]:
        account = tx.accounts.find("ann")
        assert account is not None
        leases = []
        for name in ("old", "new"):
            process = tx.processes.join(name, 0 if name == "old" else HOUR)
            row = tx.lanes.take(account.id, process.id)
            assert row is not None
            leases.append(Lease(account.id, process.id, row.generation))
        return leases[0], leases[1]

    return world.write(work)


def test_nothing_is_written_about_a_delivery_by_a_former_owner(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        old, new = taken_over(world)
        delivery = world.read(lambda tx: tx.deliveries.page())[0]
        now = world.clock.now()
        with world.store.write() as tx:
            policy_id = tx.accounts.get(old.account_id).policy_id
            revision = tx.lanes.get(old.account_id).revision
            intent = Intent(delivery.id, delivery.run_id, 0, 1, "message", now, policy_id)
            (result,) = tx.path.apply([LaneUnit(new, revision, intent=intent)])
        assert result.intended
        attempts: list[Work[Any]] = [
            lambda tx: lane_writes.break_off(tx, old, delivery, 0, now),
            lane_writes.held(old, lambda tx: tx.deliveries.move(delivery.id, "skip", at=now)),
            lambda tx: recovery._put_right(tx, LaneUnit(old, revision), [delivery], now),
        ]
        for attempt in attempts:
            with pytest.raises(LeaseLost):
                world.write(attempt)
        assert world.read(lambda tx: tx.deliveries.get(delivery.id).state) == "sending"
        with world.store.write() as tx:
            assert not tx.lanes.release(old)
            assert not tx.lanes.park(old, revision, None)
            assert not tx.lanes.quiet(old, revision)
            lane_writes.break_off(tx, new, delivery, 0, now)
            tx.lanes.release(new)

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]  # an intent without an outcome is left
    world.play(script)


def test_a_doubt_is_ended_only_while_it_is_the_same_doubt(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "timeout": "10s"}, lost_at=(1,), finds=False)
        world.campaign(1)
        process = world.process()
        await world.until(lambda: world.counts() == {"unknown": 1})
        before = world.read(lambda tx: tx.deliveries.page())[0]
        world.write(
            lambda tx: tx.deliveries.move(before.id, "fail", at=world.clock.now(), reason="person")
        )
        await world.until_finished()
        account = world.account_now()
        lane = world.write(lambda tx: tx.lanes.take(account.id, tx.processes.list()[0].id))
        assert lane is not None
        assert lane.owner is not None
        lease = Lease(account.id, lane.owner, lane.generation)
        context = process.supervisor._context
        for end in (
            recovery._Doubt(context, lease, before).go_on("again"),
            recovery._Doubt(context, lease, before).keep(None, living=False),
        ):
            resolution = await end
            assert resolution.due_at == world.clock.now(), "look again"
        assert world.counts() == {"failed": 1}
        world.write(lambda tx: tx.lanes.release(lease))
        await process.stop()

    worlds.fresh().play(script)


# ---------------------------------------------------------------------- broken twins


def test_it_would_be_seen_if_the_generation_were_not_guarded(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = path._judge

    def credulous(units: Any, lanes: Any, gate: Any) -> Any:
        return judge(units, {key: (row[0], ANY, ANY, *row[3:]) for key, row in lanes.items()}, gate)

    monkeypatch.setattr(path, "_judge", credulous)
    with pytest.raises(AssertionError):
        worlds.fresh().play(asleep_before_the_intent)


def test_it_would_be_seen_if_the_lease_were_not_looked_at_before_the_call(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProcessLease, "safe_at", lambda self, us, now: True)
    with pytest.raises(AssertionError, match=r"made no call|accepted twice"):
        worlds.fresh().play(asleep_before_the_call)


def test_it_would_be_seen_if_old_news_were_believed(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def believe(self: Any, work: Any, resolution: Any) -> Any:
        await self._context.journal.write(work)
        return resolution

    monkeypatch.setattr(recovery._Doubt, "_end", believe)
    with pytest.raises(AssertionError):
        worlds.fresh().play(found_too_late)
