"""A receipt that names a message in doubt ends the doubt, once, and nobody is written to twice."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.core.model import Part
from paceline.core.states import DeliveryState
from paceline.engine.commands import accounts
from paceline.engine.commands.receipts import Taken, resolve_by_receipt
from paceline.engine.ports import LedgerRow, Receipt
from tests.engine.scenes import TWO_PARTS, delivery, finish, ledger, the_run, to, until
from tests.engine.world import World

SENT = Receipt("wamid.1", "sent", 0, key="test-1-0")
FAILED = SENT._replace(state="failed", code="131026", reason="timeout cannot be reached")


def blind(world: World, **policy: Any) -> None:
    """An account whose provider cannot be asked for a message."""
    world.account(policy={"rate": "60/min", **policy}, timeout_latency="2s", finds=False)


def hear(world: World, receipt: Receipt, account: str = "ann") -> Taken:
    found, now = world.account_now(account), world.clock.now()
    return world.write(lambda tx: resolve_by_receipt(tx, found.id, receipt, now))


def resolutions(world: World) -> list[LedgerRow]:
    return [row for row in ledger(world) if row.kind == "resolution"]


@pytest.mark.parametrize("state", ["sent", "delivered", "read"])
def test_what_the_provider_says_it_has_was_sent(world: World, state: Any) -> None:
    async def script(world: World) -> None:
        blind(world)
        world.campaign(targets=to("timeout", "a"))
        await finish(world)
        assert world.counts() == {"sent": 1, "unknown": 1}
        assert hear(world, SENT._replace(state=state)) == "resolved"
        (row,) = resolutions(world)
        assert (row.outcome, row.slots, row.provider_id) == ("accepted", 0, "wamid.1")
        assert delivery(world, "timeout").provider_id == "wamid.1"

    world.play(script)
    assert world.counts_at_end == {"sent": 2}
    assert len(world.calls()) == 2


def test_a_crash_after_the_call_is_cleared_up_by_the_receipt(world: World) -> None:
    async def script(world: World) -> None:
        world.account(latency="5s", finds=False)
        world.campaign(1)
        first = world.process(poll_us=SECOND)
        await until(world, lambda: len(world.calls()) == 1)
        assert world.counts() == {"sending": 1}
        await first.kill()
        assert hear(world, SENT) == "early", "nobody has found out yet that its process died"
        second = world.process("two", poll_us=SECOND)
        await until(world, lambda: world.counts() == {"unknown": 1})
        assert hear(world, SENT) == "resolved"
        await world.wait(10 * MINUTE)
        await second.stop()

    world.play(script)
    assert world.counts_at_end == {"sent": 1}
    assert len(world.calls()) == 1


def test_what_comes_while_the_call_is_under_way_comes_too_early(world: World) -> None:
    async def script(world: World) -> None:
        world.account(latency="5s", finds=False)
        world.campaign(1)
        process = world.process(poll_us=SECOND)
        await until(world, lambda: world.counts() == {"sending": 1})
        assert hear(world, SENT) == "early"
        await finish(world, process=process)
        assert not resolutions(world)

    world.play(script)
    assert world.counts_at_end == {"sent": 1}


def test_a_report_may_come_twice_and_late(world: World) -> None:
    async def script(world: World) -> None:
        blind(world)
        world.campaign(targets=to("timeout", "a"))
        await finish(world)
        heard = [hear(world, SENT._replace(state=state)) for state in ("read", "sent", "failed")]
        assert heard == ["resolved", "nothing", "nothing"]
        assert len(resolutions(world)) == 1

    world.play(script)
    assert world.counts_at_end == {"sent": 2}


def test_what_could_not_be_delivered_fails_with_its_reason(world: World) -> None:
    async def script(world: World) -> None:
        blind(world)
        world.campaign(targets=to("timeout", "a"))
        await finish(world)
        assert hear(world, FAILED) == "resolved"
        failed = delivery(world, "timeout")
        assert failed.state is DeliveryState.FAILED
        assert failed.reason == "(recipient) cannot be reached", "without saying whose it was"
        (row,) = resolutions(world)
        assert (row.outcome, row.slots) == ("rejected", 0), "it was taken, so its slot is used up"

    world.play(script)
    assert world.counts_at_end == {"sent": 1, "failed": 1}


@pytest.mark.parametrize(
    ("receipt", "reason"),
    [(FAILED._replace(reason=""), "131026"), (SENT._replace(state="failed"), "could not deliver")],
)
def test_a_failure_without_words_is_told_all_the_same(
    world: World, receipt: Receipt, reason: str
) -> None:
    async def script(world: World) -> None:
        blind(world)
        world.campaign(targets=to("timeout"))
        await finish(world)
        assert hear(world, receipt) == "resolved"
        assert reason in delivery(world, "timeout").reason

    world.play(script)


def test_a_failure_may_be_that_of_an_earlier_attempt(world: World) -> None:
    """All attempts have the same key, and only the last of them is in doubt."""

    async def script(world: World) -> None:
        world.account(
            policy={"retry": "1s"}, timeout_latency="2s", finds=False, transient_at=[1],
            timeout_at=[2],
        )  # fmt: skip
        world.campaign(1)
        await finish(world)
        assert delivery(world, "spring-0000").attempts == 2
        assert hear(world, FAILED) == "nothing"
        assert world.counts() == {"unknown": 1}
        assert hear(world, SENT) == "resolved"

    world.play(script)
    assert world.counts_at_end == {"sent": 1}


def test_the_parts_after_it_go_out_and_it_is_not_repeated(world: World) -> None:
    async def script(world: World) -> None:
        world.account(timeout_at=[2], timeout_latency="2s", finds=False)
        world.campaign(1, parts=(*TWO_PARTS, Part("text", "three")))
        await finish(world)
        assert world.counts() == {"unknown": 1}
        assert hear(world, SENT) == "nothing", "that part is not in doubt"
        assert hear(world, SENT._replace(key="test-1-2")) == "nothing", "nor is that one"
        assert hear(world, SENT._replace(key="test-1-1")) == "resolved"
        assert world.state() == "running", "there is more to be sent"
        await finish(world)

    world.play(script)
    assert world.counts_at_end == {"sent": 1}
    assert [effect.key for effect in world.calls()] == ["test-1-0", "test-1-1", "test-1-2"]


@pytest.mark.parametrize(
    "key",
    [
        None,
        "",
        "test",
        "test-1",
        "test-1-",
        "test--0",
        "test-1-0-0",
        "xtest-1-0",
        "other-1-0",
        "test-x-0",
        "test-1-x",
        "test-²-0",
        "test-2-0",
        "test-999-0",
        f"test-{'9' * 40}-0",
    ],
)
def test_a_key_that_names_nothing_of_ours_changes_nothing(world: World, key: str | None) -> None:
    async def script(world: World) -> None:
        blind(world)
        world.campaign(targets=to("timeout", "a"))
        await finish(world)
        assert hear(world, SENT._replace(key=key)) == "nothing"

    world.play(script)
    assert world.counts_at_end == {"sent": 1, "unknown": 1}


def test_another_account_s_receipt_is_not_believed(world: World) -> None:
    async def script(world: World) -> None:
        blind(world)
        world.account("bob")
        world.campaign(targets=to("timeout"))
        await finish(world)
        assert hear(world, SENT, "bob") == "nothing"
        assert hear(world, SENT) == "resolved"

    world.play(script)


def test_the_run_and_its_followers_learn_of_it(world: World) -> None:
    async def script(world: World) -> None:
        blind(world)
        world.campaign(targets=to("timeout", "a"))
        await finish(world)
        assert the_run(world).summary == "1 of 2 delivered (1 unknown)"
        hear(world, SENT)
        (event,) = world.read(
            lambda tx: [one for one in tx.events.latest(limit=20) if one.kind == "unknown.resolved"]
        )
        assert event.text == "delivery 1 resolved by a receipt: sent"
        assert event.data["verdict"] == "sent"

    world.play(script)


def test_a_run_that_waited_for_proof_ends_with_it(world: World) -> None:
    """Where the provider can be asked as well, whoever answers first ends the doubt."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, timeout_latency="2s", find_lag="1d")
        world.campaign(targets=to("timeout"))
        process = world.process(poll_us=SECOND)
        await until(world, lambda: world.counts() == {"unknown": 1})
        assert world.state() == "running", "it is about to ask"
        await process.stop()
        assert hear(world, SENT) == "resolved"
        assert (world.state(), the_run(world).summary) == ("finished", "1 of 1 delivered")

    world.play(script)
    assert len(world.calls()) == 1


def test_what_is_left_for_an_account_that_was_removed_is_called_off(world: World) -> None:
    async def script(world: World) -> None:
        world.account(timeout_at=[1], timeout_latency="2s", finds=False)
        world.campaign(1, parts=TWO_PARTS)
        await finish(world)
        now, gone = world.clock.now(), world.account_now()
        world.write(lambda tx: accounts.remove(tx, "ann", now))
        assert world.write(lambda tx: resolve_by_receipt(tx, gone.id, SENT, now)) == "resolved"
        left = world.read(lambda tx: tx.deliveries.get(1))
        assert (left.state, left.parts_done) == (DeliveryState.CANCELLED, 1)
        assert left.reason == "account ann removed"

    world.play(script)
