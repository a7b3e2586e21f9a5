"""Somebody bids a follow-up in the very moment in which they are muted: whichever comes first, it
does not go out. The order of events is forced by the database's own locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from paceline.core.instants import MINUTE
from paceline.core.model import FollowUp
from paceline.core.states import DeliveryState
from paceline.engine import conversations, muting
from paceline.engine.commands import returns
from paceline.engine.muted import REASON
from paceline.engine.ports import Accepted, Inbound, News, Tx
from tests.engine.following_up import SECOND_MESSAGE, first_messages, outreach, second_messages
from tests.engine.talking import EVA, conversation, hear
from tests.engine.test_follow_ups_reviewed import somebody_waits
from tests.engine.test_muted_follow_ups import bidden
from tests.engine.world import World

BIDS: dict[str, tuple[FollowUp, News]] = {
    "reply": (FollowUp(SECOND_MESSAGE), Inbound("late", EVA, EVA, "yes please", 0)),
    "accepted": (FollowUp(SECOND_MESSAGE, on="accepted"), Accepted((EVA,), 0)),
}


@pytest.fixture
def on_postgresql(swept_postgres_url: Callable[[], str]) -> World:
    return World(swept_postgres_url())


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as made:
        yield made


def until_it_waits(world: World, pending: Future[object]) -> None:
    while not somebody_waits(world):
        assert not pending.done(), pending.result()


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("how", BIDS)
@pytest.mark.parametrize("first", ["bid", "mute"])
def test_nothing_follows_for_whoever_is_muted_meanwhile(
    on_postgresql: World, pool: ThreadPoolExecutor, first: str, how: str, everywhere: bool
) -> None:
    follow_up, news = BIDS[how]

    async def script(world: World) -> None:
        process = outreach(world, follow_up=follow_up)
        await first_messages(world)
        await process.stop()
        if how == "accepted":
            hear(world, "hello")
        else:
            # As of long ago: it bids nothing.
            hear(world, "hello", at=1)
        number, now, account = conversation(world).id, world.clock.now(), world.account_now()
        order = muting.mute_everywhere if everywhere else muting.mute

        def bid(tx: Tx) -> object:
            return returns.take_in(tx, account, [news], now)

        def mute(tx: Tx) -> object:
            return order(tx, number, now)

        one, other = (bid, mute) if first == "bid" else (mute, bid)
        with world.store.write() as tx:
            one(tx)
            late = pool.submit(world.write, other)
            until_it_waits(world, late)
        late.result()
        found = [(row.state, row.reason) for row in bidden(world)]
        assert found == [(DeliveryState.SKIPPED, REASON)]
        process = world.process(poll_us=MINUTE)
        await world.wait(5 * MINUTE)
        assert second_messages(world) == []
        await process.stop()

    on_postgresql.play(script)


def test_nor_by_a_name_and_in_a_chat_that_nobody_knew_of(
    on_postgresql: World, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are muted everywhere between what they bid and the conversation that begins with it: on
    an account where nobody has heard of them, by their profile."""

    async def script(world: World) -> None:
        process = outreach(world, names=("eva", "ben"))
        await first_messages(world)
        await process.stop()
        world.account("bea")
        hear(world, "hello", chat="chat:1", sender="ACoAAEva", account="bea")
        ((number, *_),) = world.read(lambda tx: tx.conversations.list())
        now = world.clock.now()
        account, whole = world.account_now(), conversations.hear

        def muted_before(*arguments: Any, **more: Any) -> object:
            done = pool.submit(world.write, lambda tx: muting.mute_everywhere(tx, number, now))
            done.result()
            return whole(*arguments, **more)

        monkeypatch.setattr(conversations, "hear", muted_before)
        late = Inbound("late", "chat:2", "ACoAAEva", "yes please", 0, also=("eva",))
        world.write(lambda tx: returns.take_in(tx, account, [late], now))
        found = [(row.state, row.reason) for row in bidden(world)]
        assert found == [(DeliveryState.SKIPPED, REASON)]

    on_postgresql.play(script)
