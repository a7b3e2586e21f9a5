"""Ways to fail that a reviewer found, each kept as a case of its own."""

import asyncio
from typing import Any

import pytest

from paceline.core.errors import ConflictError, InputError
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Part
from paceline.core.states import DeliveryState
from paceline.engine.commands import accounts, control
from paceline.engine.commands.accounts import AccountChange
from paceline.engine.journal import GroupJournal, InlineRunner
from paceline.engine.observe import Unobserved
from paceline.engine.ports import LaneUnit, Lease
from paceline.engine.ports.path import Intent
from tests.engine.world import World


def test_resending_in_doubt_has_an_end(world: World) -> None:
    world.twice_allowed = True  # it is what the policy asks for

    async def script(world: World) -> None:
        world.account(policy={"on_unknown": "resend", "timeout": "5s"}, timeout_rate=1, finds=False)
        world.campaign(1)
        process = world.process()
        await world.wait(6 * HOUR)
        await process.stop()

    world.play(script)
    assert len(world.sends()) == 4  # the first, and three more
    assert world.counts_at_end == {"unknown": 1}


def test_a_provider_that_loses_everything_is_given_up(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"timeout": "5s"}, lost_rate=1)
        world.campaign(2)
        process = world.process()
        await world.until_finished(within_us=6 * HOUR)
        await process.stop()

    world.play(script)
    assert world.counts_at_end == {"failed": 2}
    assert len(world.calls()) == 8


def test_a_commit_that_comes_through_long_after_its_connection_was_lost(world: World) -> None:
    """The server commits an intent of which the lane was told that it failed."""

    async def script(world: World) -> None:
        account = world.account(policy={"rate": "6/min"})
        world.campaign(3)
        process = world.process()
        await world.until(lambda: len(world.sends()) == 1)
        with world.store.write() as tx:
            (run,) = tx.runs.of_campaign(1)
            lane = tx.lanes.get(account.id)
            last = tx.deliveries.page(run_id=run.id)[-1]
            assert lane.owner is not None
            intent = Intent(last.id, run.id, 0, 1, "message", world.clock.now(), account.policy_id)
            lease = Lease(account.id, lane.owner, lane.generation)
            (result,) = tx.path.apply([LaneUnit(lease, lane.revision, intent=intent)])
            assert result.intended
        await world.until_finished()
        await process.stop()

    world.play(script)
    assert world.counts_at_end == {"sent": 3}


def test_a_retry_goes_ahead_of_those_who_were_never_tried(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "2/min", "retry": "1m"}, transient_at=[1])
        world.campaign(40)
        process = world.process()
        await world.until(lambda: len(world.calls()) == 5)
        await process.stop()

    world.play(script)
    assert [effect.target for effect in world.calls()].index("spring-0000", 1) <= 3


def test_a_doubt_is_looked_into_while_others_wait(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "2/min", "timeout": "5s"}, lost_at=[1])
        world.campaign(40)
        process = world.process()
        await world.until(lambda: len(world.calls()) == 5)
        await process.stop()

    world.play(script)
    assert [effect.target for effect in world.calls()].count("spring-0000") == 2


def test_a_suspended_account_logs_in_nowhere(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"timeout": "5s"}, timeout_at=[2], unauthorised_after=4)
        world.campaign(6)
        process = world.process()
        await world.until(lambda: world.account_now().state == "suspended")
        opened: list[Any] = []
        provider = world.providers.get("sandbox")
        original = provider.open

        async def counting(account: Any) -> Any:
            opened.append(account)
            return await original(account)

        provider.open = counting  # type: ignore[method-assign]
        await world.wait(10 * MINUTE)
        assert opened == []
        await process.stop()

    world.play(script)


def test_a_warm_up_begins_on_the_day_it_is_given(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        await world.wait(90 * DAY)
        wish = AccountChange(overrides={"warmup": "5 +10%/day to 100"})
        now = world.clock.now()
        world.write(lambda tx: accounts.change(tx, "ann", wish, world.house, now))
        world.campaign(30)
        process = world.process()
        await world.wait(MINUTE)
        await process.stop()

    world.play(script)
    assert len(world.sends()) == 5


def test_a_message_that_fits_into_no_day_is_refused(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 2}})
        parts = tuple(Part("text", str(number)) for number in range(3))
        with pytest.raises(InputError, match="3 parts never fit into the daily cap of 2 on ann"):
            world.campaign(3, parts=parts)

    world.play(script)


def test_nobody_is_asked_to_send_again_from_a_removed_account(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"timeout": "5s"}, timeout_at=[1], finds=False)
        world.campaign(1)
        process = world.process()
        await world.until(lambda: world.counts().get("unknown") == 1)
        await process.stop()
        now = world.clock.now()
        world.write(lambda tx: accounts.remove(tx, "ann", now))
        (lost,) = world.read(lambda tx: tx.deliveries.page(state=DeliveryState.UNKNOWN))
        with pytest.raises(ConflictError, match="was removed"):
            world.write(lambda tx: control.resolve_unknown(tx, lost.id, "resend", now))
        world.write(lambda tx: control.resolve_unknown(tx, lost.id, "sent", now))

    world.play(script)


def test_a_lane_that_never_rests_still_tells_how_it_goes(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "10/s"})
        world.campaign(250)
        process = world.process()
        await world.until(lambda: len(world.sends()) > 210, within_us=MINUTE + SECOND)
        told = capsys.readouterr().out
        assert told.count("batch done") == 2
        await process.stop()

    world.play(script)


def test_work_that_needs_the_fence_has_a_transaction_of_its_own(world: World) -> None:
    sizes: list[int] = []

    class Groups(Unobserved):
        def committed(self, units: int, took_us: int) -> None:
            sizes.append(units)

    async def script(world: World) -> None:
        journal = GroupJournal(
            world.store,
            world.clock,
            writer=InlineRunner(),
            reader=InlineRunner(),
            observer=Groups(),
        )
        await asyncio.gather(
            journal.write(lambda tx: tx.settings.put("one", 1)),
            journal.write(lambda tx: tx.settings.put("two", 2)),
            journal.write(lambda tx: tx.settings.fence(), alone=True),
            journal.write(lambda tx: tx.settings.put("three", 3)),
        )
        await journal.close()

    world.play(script)
    assert sizes == [2, 1, 1]
