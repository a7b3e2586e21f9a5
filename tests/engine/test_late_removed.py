"""What comes back late for an account that was removed meanwhile.

Nobody will ever send for it, so nothing may be left waiting: what an answer makes ready again is
cancelled, in the same transaction, and the run ends. An answer that ends a delivery stands.
"""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.core.states import DeliveryState
from paceline.engine import lane_writes
from paceline.engine.commands import control
from paceline.engine.ports import Tx
from tests.engine.doubles import Double
from tests.engine.faults import Standstill, intends
from tests.engine.scenes import TWO_PARTS, deliveries, say, the_run
from tests.engine.test_late_calls import answering, in_doubt, stubborn
from tests.engine.test_takeover import freeze_when
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds
from tests.store.scene import settlement

POLL_US = 10 * SECOND
SHORT: dict[str, Any] = {"rate": "60/min", "timeout": "10s"}
REMOVED = "account ann removed"


def given_up(world: World, outcome: Outcome) -> Process:
    """A process whose first call is given up, and answers a minute later."""
    act = stubborn(world, MINUTE, at_last=answering(outcome))
    provider = Double(world.providers.get("sandbox"), send=act)
    return world.process(providers=provider.registry(), poll_us=POLL_US)


def remove(world: World) -> None:
    say(world, "remove account")
    assert world.counts() == {"unknown": 1}
    assert world.state() == "finished", "a doubt that only a person can clear keeps no run open"


@pytest.mark.parametrize(
    "kind",
    [OutcomeKind.TRANSIENT, OutcomeKind.THROTTLED, OutcomeKind.UNAUTHORISED],
    ids=str,
)
def test_a_late_answer_that_says_try_again_cancels(worlds: Worlds, kind: OutcomeKind) -> None:
    async def script(world: World) -> None:
        world.account(policy=SHORT, finds=False)
        world.campaign(1)
        process = given_up(world, Outcome(kind, "not now"))
        await in_doubt(world)
        remove(world)
        await world.until(lambda: world.counts() != {"unknown": 1}, 2 * MINUTE, SECOND)
        (late,) = deliveries(world)
        assert (late.state, late.due_at, late.reason) == ("cancelled", None, REMOVED)
        assert world.state() == "finished"
        await process.stop()

    worlds.fresh().play(script)


def test_what_another_account_sent_of_the_same_run_stands(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy=SHORT, finds=False)
        world.account("bob", policy={"rate": "60/min"}, finds=False)
        world.campaign(2, on=("ann", "bob"))
        process = given_up(world, Outcome(OutcomeKind.TRANSIENT, "busy"))
        await world.until(lambda: world.counts() == {"unknown": 1, "sent": 1}, MINUTE)
        say(world, "remove account")
        await world.until(lambda: "unknown" not in world.counts(), 2 * MINUTE, SECOND)
        assert world.counts() == {"cancelled": 1, "sent": 1}
        assert world.state() == "finished"
        await process.stop()

    worlds.fresh().play(script)


@pytest.mark.parametrize(
    ("kind", "state"),
    [(OutcomeKind.ACCEPTED, "sent"), (OutcomeKind.REJECTED, "failed")],
    ids=str,
)
def test_a_late_answer_that_ends_the_delivery_stands(
    worlds: Worlds, kind: OutcomeKind, state: str
) -> None:
    async def script(world: World) -> None:
        world.account(policy=SHORT, finds=False)
        world.campaign(1)
        process = given_up(world, Outcome(kind))
        await in_doubt(world)
        remove(world)
        await world.until(lambda: world.counts() == {state: 1}, 2 * MINUTE, SECOND)
        assert world.state() == "finished"
        await process.stop()

    worlds.fresh().play(script)


def test_a_call_that_a_sleeper_withdraws_is_cancelled(worlds: Worlds) -> None:
    """Its lane was taken over and its account removed while it slept between intent and call."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, finds=False)
        world.campaign(1)
        host = Standstill(world.clock, world.providers.get("sandbox"))
        first = world.process("one", poll_us=POLL_US, **host.ports())
        await freeze_when(world, host, intends, before=False, us=MINUTE)
        second = world.process("two", poll_us=POLL_US)
        await in_doubt(world)
        remove(world)
        await world.until(lambda: not host.frozen, 2 * MINUTE, SECOND)
        await world.wait(POLL_US)
        (late,) = deliveries(world)
        assert (late.state, late.reason) == ("cancelled", REMOVED)
        assert world.state() == "finished"
        assert not world.calls()
        await first.stop()
        await second.stop()

    worlds.fresh().play(script)


def test_a_run_that_had_not_ended_ends_with_it(worlds: Worlds) -> None:
    """Between the answer and the telling the delivery was ready, and whoever settled the last of
    the others found that the run had to go on."""

    async def script(world: World) -> None:
        account = world.account()
        world.campaign(1)
        (late,) = deliveries(world)
        now = world.clock.now()
        busy = settlement(late.id, late.run_id, DeliveryState.READY, transient("busy"))

        def tell(tx: Tx) -> None:
            tx.accounts.update(account.id, removed_at=now)
            lane_writes.tell_owner(tx, account.id, [busy], now)

        world.write(tell)
        assert world.counts() == {"cancelled": 1}
        assert (the_run(world).state, world.state()) == ("failed", "finished")

    worlds.fresh().play(script)


def test_the_parts_that_follow_a_late_answer_are_called_off(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy=SHORT, finds=False)
        world.campaign(1, parts=TWO_PARTS)
        process = given_up(world, Outcome(OutcomeKind.ACCEPTED))
        await in_doubt(world)
        remove(world)
        await world.wait(5 * MINUTE)
        (late,) = deliveries(world)
        assert (late.state, late.parts_done, late.reason) == ("cancelled", 1, REMOVED)
        assert world.state() == "finished"
        await process.stop()

    worlds.fresh().play(script)


def test_a_person_who_knows_that_half_of_it_arrived_leaves_nothing_waiting(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy=SHORT, finds=False, lost_at=(1,))
        world.campaign(1, parts=TWO_PARTS)
        process = world.process()
        await in_doubt(world)
        remove(world)
        (lost,) = deliveries(world)
        world.write(lambda tx: control.resolve_unknown(tx, lost.id, "sent", world.clock.now()))
        (late,) = deliveries(world)
        assert (late.state, late.parts_done, late.reason) == ("cancelled", 1, REMOVED)
        assert world.state() == "finished"
        await process.stop()

    worlds.fresh().play(script)
