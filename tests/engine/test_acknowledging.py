"""Receipts move a message forward: delivered, read. What could not be delivered comes back."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.core.model import Part
from paceline.core.states import DeliveryState
from paceline.engine.commands.acknowledging import acknowledge
from paceline.engine.commands.receipts import Taken
from paceline.engine.ports import Receipt
from paceline.providers.sandbox.behaviour import new_id
from paceline.store.receipts import Receipts
from tests.engine.scenes import TWO_PARTS, delivery, events, finish, to, until
from tests.engine.world import World

ANNA = "+4915112345678"
GROUP = "120363000000000001@g.us"


def hear(world: World, receipt: Receipt, account: str = "ann") -> Taken:
    found, now = world.account_now(account), world.clock.now()
    return world.write(lambda tx: acknowledge(tx, found, receipt, now))


def name_of(world: World, target: str) -> str:
    name = delivery(world, target).provider_id
    assert name is not None
    return name


def arrived(world: World, target: str = ANNA) -> tuple[int | None, int | None]:
    found = delivery(world, target)
    return found.delivered_at, found.read_at


async def sent(world: World, *targets: str, **options: Any) -> None:
    world.account(**options)
    world.campaign(targets=to(*(targets or (ANNA,))))
    await finish(world)


@pytest.mark.parametrize("by", ["our key", "the provider's name"])
def test_what_was_delivered_and_read_is_known(world: World, by: str) -> None:
    async def script(world: World) -> None:
        await sent(world)
        now = world.clock.now()
        key, name = ("test-1-0", "") if by == "our key" else (None, name_of(world, ANNA))
        for state, at, known in (
            ("sent", now - 9, (None, None)),
            ("delivered", now - 7, (now - 7, None)),
            ("delivered", now - 6, (now - 7, None)),
            ("read", now - 3, (now - 7, now - 3)),
            ("delivered", now - 1, (now - 7, now - 3)),
            ("read", now, (now - 7, now - 3)),
        ):
            hear(world, Receipt(name, state, at, key=key))  # type: ignore[arg-type]
            assert arrived(world) == known

    world.play(script)
    assert world.counts_at_end == {"sent": 1}


def test_in_whichever_order_receipts_come_they_end_the_same(world: World) -> None:
    orders = list(itertools.permutations(("sent", "delivered", "read", "delivered")))
    people = [f"+49151123{number:05}" for number in range(len(orders))]

    async def script(world: World) -> None:
        await sent(world, *people)
        for person, order in zip(people, orders, strict=True):
            for state in order:
                hear(world, Receipt(name_of(world, person), state, 0))  # type: ignore[arg-type]
            assert None not in arrived(world, person), order

    world.play(script)


def test_what_was_read_was_delivered(world: World) -> None:
    async def script(world: World) -> None:
        await sent(world)
        hear(world, Receipt(name_of(world, ANNA), "read", 0))
        assert arrived(world) == (world.clock.now(),) * 2
        hear(world, Receipt(name_of(world, ANNA), "delivered", 7))
        assert arrived(world) == (world.clock.now(),) * 2, "that is late, and changes nothing"

    world.play(script)


def test_nothing_is_delivered_in_the_future(world: World) -> None:
    async def script(world: World) -> None:
        await sent(world)
        hear(world, Receipt(name_of(world, ANNA), "delivered", world.clock.now() + 10**12))
        assert arrived(world) == (world.clock.now(), None)

    world.play(script)


def test_of_several_parts_the_last_one_counts(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(targets=to(ANNA), parts=(*TWO_PARTS, Part("text", "three")))
        await finish(world)
        for part in (0, 1):
            hear(world, Receipt("", "read", 0, key=f"test-1-{part}"))
            assert arrived(world) == (None, None)
        hear(world, Receipt("", "delivered", 0, key="test-1-2"))
        assert arrived(world) == (world.clock.now(), None)

    world.play(script)


def test_a_doubt_that_ends_says_how_far_it_got(world: World) -> None:
    async def script(world: World) -> None:
        world.account(timeout_latency="2s", finds=False)
        world.campaign(targets=to("timeout"))
        await finish(world)
        assert hear(world, Receipt("wamid.1", "delivered", 0, key="test-1-0")) == "resolved"
        assert arrived(world, "timeout") == (world.clock.now(), None)

    world.play(script)
    assert world.counts_at_end == {"sent": 1}


def test_what_could_not_be_delivered_is_bounced_with_its_reason(world: World) -> None:
    async def script(world: World) -> None:
        await sent(world, ANNA, "b")
        lost = Receipt(name_of(world, ANNA), "failed", 0, "131026", f"{ANNA} is not on WhatsApp")
        assert hear(world, lost) == "resolved"
        found = delivery(world, ANNA)
        assert found.state is DeliveryState.BOUNCED
        assert found.reason == "not delivered: (recipient) is not on WhatsApp"
        assert not world.read(lambda tx: tx.suppressions.has(ANNA)), "that is not for it to say"
        for _ in range(2):
            assert hear(world, lost) == "nothing"
        hear(world, lost._replace(state="read"))
        assert arrived(world) == (None, None), "that cannot be"
        (told,) = events(world, "delivery.returned")
        assert told.data == {"delivery": found.id, "suppressed": False}

    world.play(script)
    assert world.counts_at_end == {"sent": 1, "bounced": 1}


@pytest.mark.parametrize("state", ["delivered", "read"])
def test_what_was_delivered_cannot_fail_any_more(world: World, state: Any) -> None:
    async def script(world: World) -> None:
        await sent(world)
        hear(world, Receipt(name_of(world, ANNA), state, 0))
        assert hear(world, Receipt(name_of(world, ANNA), "failed", 0)) == "nothing"

    world.play(script)
    assert world.counts_at_end == {"sent": 1}


def test_one_phone_that_cannot_fetch_a_file_takes_nothing_back_from_its_group(world: World) -> None:
    async def script(world: World) -> None:
        await sent(world, GROUP)
        failed = Receipt(name_of(world, GROUP), "failed", 0, "media-expired")
        assert hear(world, failed) == "nothing"

    world.play(script)
    assert world.counts_at_end == {"sent": 1}


def test_another_account_s_names_are_not_ours(world: World) -> None:
    async def script(world: World) -> None:
        world.account("bob")
        await sent(world)
        name = name_of(world, ANNA)
        for state in ("read", "failed"):
            for receipt in (Receipt(name, state, 0), Receipt("", state, 0, key="test-1-0")):  # type: ignore[arg-type]
                assert hear(world, receipt, "bob") == "nothing"
        assert arrived(world) == (None, None)

    world.play(script)
    assert world.counts_at_end == {"sent": 1}


def test_a_failure_without_a_name_of_ours_comes_again_while_something_is_under_way(
    world: World,
) -> None:
    async def script(world: World) -> None:
        world.account(latency="5s")
        world.campaign(targets=to(ANNA))
        process = world.process(poll_us=1_000_000)
        while world.counts() != {"sending": 1}:
            await world.wait(100_000)
        assert hear(world, Receipt("who knows", "failed", 0)) == "early"
        assert hear(world, Receipt("who knows", "delivered", 0)) == "nothing"
        await finish(world, process=process)
        assert hear(world, Receipt("who knows", "failed", 0)) == "nothing"

    world.play(script)


# ---------------------------------------------------------------------- before its name is known


@pytest.mark.parametrize("states", [("delivered",), ("read",), ("delivered", "read")])
def test_what_is_told_before_the_answer_is_written_down_is_kept(
    world: World, states: tuple[Any, ...]
) -> None:
    async def script(world: World) -> None:
        world.account(latency="5s")
        world.campaign(targets=to(ANNA))
        process = world.process(poll_us=SECOND)
        await until(world, lambda: world.counts() == {"sending": 1})
        name, told_at = new_id("sandbox", "ann", "test-1-0", 1), world.clock.now()
        for state in states:
            assert hear(world, Receipt(name, state, 0)) == "nothing"
        await finish(world, process=process)
        assert name_of(world, ANNA) == name
        world.process("two", poll_us=SECOND)
        await world.wait(2 * MINUTE)
        assert arrived(world) == (told_at, told_at if "read" in states else None)
        assert not world.read(lambda tx: tx.receipts.early())

    world.play(script)


def test_what_is_told_of_messages_that_are_none_of_ours_is_forgotten(world: World) -> None:
    async def script(world: World) -> None:
        world.account(latency="5s")
        assert hear(world, Receipt("typed-on-the-phone", "read", 0)) == "nothing"
        assert not world.read(lambda tx: tx.receipts.early()), "nothing of ours is under way"
        world.campaign(targets=to(ANNA))
        process = world.process(poll_us=SECOND)
        await until(world, lambda: world.counts() == {"sending": 1})
        assert hear(world, Receipt("typed-on-the-phone", "read", 0)) == "nothing"
        assert hear(world, Receipt("", "read", 0, key="test-99-0")) == "nothing"
        assert world.read(lambda tx: tx.receipts.early())
        await world.wait(62 * MINUTE)
        assert not world.read(lambda tx: tx.receipts.early())
        assert arrived(world) == (None, None)
        await process.stop()

    world.play(script)


@pytest.mark.parametrize("state", ["delivered", "failed"])
def test_what_is_settled_between_two_looks_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch, state: Any
) -> None:
    """Its lane commits just as we look whether anything is on its way."""
    named, under_way, settled = Receipts.named, Receipts.under_way, list[int]()

    def look(receipts: Receipts, account_id: int) -> bool:
        settled.append(account_id)
        return under_way(receipts, account_id)

    def name(receipts: Receipts, account_id: int, provider_id: str) -> int | None:
        return named(receipts, account_id, provider_id) if settled else None

    async def script(world: World) -> None:
        await sent(world)
        receipt = Receipt(name_of(world, ANNA), state, 0)
        monkeypatch.setattr(Receipts, "under_way", look)
        monkeypatch.setattr(Receipts, "named", name)
        assert hear(world, receipt) == ("resolved" if state == "failed" else "nothing")
        assert (arrived(world)[0] is not None) == (state == "delivered")

    world.play(script)
