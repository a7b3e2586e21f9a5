"""Processes that hear of the same people in opposite order, on a real server: nobody waits for
somebody who waits for him."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from threading import Barrier, BrokenBarrierError

import pytest
from sqlalchemy import create_engine, text

from paceline.core.instants import SECOND
from paceline.core.opting_out import DEFAULT
from paceline.engine.catalogue import Catalogue
from paceline.engine.clock import SystemClock
from paceline.engine.commands import accounts, returns
from paceline.engine.commands.accounts import House, NewAccount
from paceline.engine.journal import GroupJournal, ThreadRunner
from paceline.engine.ports import Inbound, Store, Tx
from paceline.engine.ports.conversations import Turn
from paceline.providers.registry import Registry
from paceline.providers.sandbox import MemoryEffects, SandboxProvider
from paceline.store.database import open_store

ANN, BOB = "+4915112345678", "+4915112345679"
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
STEADY = "SELECT pg_stat_force_next_flush()"


class Fleet:
    """Two processes with a store and a journal each, on one database."""

    def __init__(self, url: str, opened: ExitStack) -> None:
        self.url = url
        self.clock = SystemClock()
        self.stores: list[Store] = []
        for _ in range(2):
            store = open_store(url, clock=None)
            opened.callback(store.close)
            self.stores.append(store)
        house = House(Registry([SandboxProvider(self.clock, MemoryEffects())]), Catalogue())
        with self.stores[0].write() as tx:
            new = NewAccount("shop", "sandbox")
            self.account = accounts.add(tx, new, house, self.clock.now())

    def journals(self) -> list[GroupJournal]:
        return [
            GroupJournal(
                store, self.clock, writer=ThreadRunner("writer"), reader=ThreadRunner("reader")
            )
            for store in self.stores
        ]

    def hear(self, tx: Tx, number: int, *chats: str) -> None:
        said = [Inbound(f"m{number}-{chat}", chat, chat, "Hello", 0) for chat in chats]
        returns.take_in(tx, self.account, said, self.clock.now(), DEFAULT)

    def ids(self) -> dict[str, int]:
        with self.stores[0].read() as tx:
            return {one.chat: one.id for one in tx.conversations.list()}

    def deadlocks(self) -> int:
        engine = create_engine(self.url)
        with engine.connect() as connection:
            connection.execute(text(STEADY))
            count = int(connection.execute(text(DEADLOCKS)).scalar_one())
        engine.dispose()
        return count


@pytest.fixture
def fleet(fresh_postgres_url: Callable[[], str]) -> Iterator[Fleet]:
    with ExitStack() as opened:
        yield Fleet(fresh_postgres_url(), opened)


def meeting() -> Callable[[], None]:
    """Both are here, or one of them has waited long enough for the other: whoever comes alone is
    not kept."""
    barrier = Barrier(2)

    def meet() -> None:
        try:
            barrier.wait(0.5)
        except BrokenBarrierError:
            barrier.reset()

    return meet


def test_turns_that_begin_together_hold_their_conversations_in_one_order(fleet: Fleet) -> None:
    with fleet.stores[0].write() as tx:
        fleet.hear(tx, 0, ANN, BOB)
    numbers, meet = fleet.ids(), meeting()

    def holding(chat: str) -> Callable[[Tx], None]:
        def work(tx: Tx) -> None:
            tx.conversations.hold(numbers[chat])
            meet()

        return work

    async def whole() -> None:
        one, two = fleet.journals()
        await asyncio.gather(
            *(one.write(holding(chat), talk=numbers[chat]) for chat in (ANN, BOB)),
            *(two.write(holding(chat), talk=numbers[chat]) for chat in (BOB, ANN)),
        )
        for journal in (one, two):
            await journal.close()

    asyncio.run(whole())
    assert fleet.deadlocks() == 0


def test_what_is_heard_together_and_turns_do_not_meet_in_one_transaction(fleet: Fleet) -> None:
    with fleet.stores[0].write() as tx:
        fleet.hear(tx, 0, ANN, BOB)
    numbers, meet = fleet.ids(), meeting()

    def hear(tx: Tx, chats: Sequence[str]) -> list[None]:
        tx.listening.hold({(fleet.account.id, chat): fleet.clock.now() for chat in chats})
        meet()
        return [None] * len(chats)

    def begin(chat: str) -> Callable[[Tx], None]:
        return lambda tx: tx.conversations.change(numbers[chat], last_at=1)

    async def whole() -> None:
        one, two = fleet.journals()
        await asyncio.gather(
            one.write_together(hear, ANN),
            one.write(begin(BOB), talk=numbers[BOB]),
            two.write_together(hear, BOB),
            two.write(begin(ANN), talk=numbers[ANN]),
        )
        for journal in (one, two):
            await journal.close()

    asyncio.run(whole())
    assert fleet.deadlocks() == 0


@pytest.mark.parametrize("known", [False, True])
def test_reports_of_many_hold_them_in_one_order(fleet: Fleet, known: bool) -> None:
    """Whether they are known already, or the first to write to us."""
    people = [f"+49151123{number:05}" for number in range(30)]
    if known:
        with fleet.stores[0].write() as tx:
            fleet.hear(tx, 0, *reversed(people))

    def report(number: int, chats: Sequence[str]) -> Callable[[Tx], None]:
        return lambda tx: fleet.hear(tx, number, *chats)

    async def whole() -> None:
        one, two = fleet.journals()
        await asyncio.gather(
            *(one.write(report(n, people), alone=True) for n in range(1, 20)),
            *(two.write(report(n, people[::-1]), alone=True) for n in range(20, 40)),
        )
        for journal in (one, two):
            await journal.close()

    asyncio.run(whole())
    assert fleet.deadlocks() == 0
    assert len(fleet.ids()) == len(people)


def test_turns_are_held_after_conversations_and_these_after_lanes(fleet: Fleet) -> None:
    """One process renews a turn and hears of its conversation in one transaction; another one
    holds the conversation, and then the turn."""
    with fleet.stores[0].write() as tx:
        fleet.hear(tx, 0, ANN)
        (number,) = (one.id for one in tx.conversations.list())
        turn = tx.turns.begin(number, "one", 15 * SECOND, fleet.clock.now())
    assert turn is not None
    meet = meeting()

    def renew(tx: Tx, turns: Sequence[Turn]) -> list[bool]:
        done = [tx.turns.renew(one, 15 * SECOND) for one in turns]
        meet()
        return done

    def hear(tx: Tx, chats: Sequence[str]) -> list[None]:
        tx.listening.hold({(fleet.account.id, chat): fleet.clock.now() for chat in chats})
        meet()
        return [None] * len(chats)

    def wake(tx: Tx) -> None:
        tx.lanes.touch(fleet.account.id, fleet.clock.now())
        meet()

    def take(tx: Tx) -> None:
        tx.lanes.touch(fleet.account.id, fleet.clock.now())
        tx.conversations.hold(number)
        meet()
        assert turn is not None
        tx.turns.renew(turn, 15 * SECOND)

    async def whole() -> None:
        one, two = fleet.journals()
        await asyncio.gather(
            one.write_together(renew, turn, holds="turns"),
            one.write_together(hear, ANN, holds="conversations"),
            one.write(wake),
            two.write(take, alone=True),
        )
        for journal in (one, two):
            await journal.close()

    asyncio.run(whole())
    assert fleet.deadlocks() == 0


def test_what_a_group_does_is_done_in_the_order_of_what_it_holds(fleet: Fleet) -> None:
    done: list[str] = []

    def noting(what: str) -> Callable[[Tx, Sequence[int]], list[None]]:
        def work(_: Tx, ones: Sequence[int]) -> list[None]:
            done.append(what)
            return [None] * len(ones)

        return work

    async def whole() -> None:
        one, two = fleet.journals()
        await asyncio.gather(
            one.write_together(noting("turns"), 1, holds="turns"),
            one.write_together(noting("conversations"), 1, holds="conversations"),
            one.write_together(noting("runs"), 1),
            one.write(lambda _: done.append("lanes")),
        )
        for journal in (one, two):
            await journal.close()

    asyncio.run(whole())
    assert done == ["runs", "lanes", "conversations", "turns"]


def test_what_lists_and_counts_is_planned_as_ever_beside_what_is_heard(fleet: Fleet) -> None:
    """Whoever looks conversations up tells the planner to use keys, until the transaction ends."""
    told: list[str] = []

    def hear(tx: Tx, chats: Sequence[str]) -> list[None]:
        number = fleet.account.id
        tx.listening.look([number], [], chats=[(number, chat) for chat in chats])
        told.append(planned(tx))
        return [None] * len(chats)

    def planned(tx: Tx) -> str:
        return str(tx._context.ask("SHOW enable_seqscan").fetchone()[0])  # type: ignore[attr-defined]

    async def whole() -> None:
        one, two = fleet.journals()
        _, other = await asyncio.gather(
            one.write_together(hear, ANN, holds="conversations"), one.write(planned)
        )
        told.append(other)
        for journal in (one, two):
            await journal.close()

    asyncio.run(whole())
    assert told == ["off", "on"]
