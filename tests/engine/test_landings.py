"""A yes that comes while the next intent is being committed: it is settled as it comes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import pytest

from paceline.core.errors import StoreUnavailable
from paceline.core.instants import HOUR, MILLISECOND, MINUTE, SECOND, Instant
from paceline.core.outcome import Outcome
from paceline.engine import lane_writes
from paceline.engine.commands import campaigns
from paceline.engine.lane import Lane
from paceline.engine.ports import Lease, Message, Settlement, Tx
from tests.engine.doubles import Double
from tests.engine.faults import TrippedStore
from tests.engine.scenes import intents, outcomes
from tests.engine.test_lookahead import NO, YES, Server, answering, play
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

T = TypeVar("T")

MS = MILLISECOND
COMMIT_MS = 40
COMMIT_US = COMMIT_MS * MS
"""Between what an answer takes and what is worth being looked past."""


class SlowDisk:
    """What is written is there at once, and takes its time to be heard of."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        answer = function()
        await self._world.wait(COMMIT_US)
        return answer

    def close(self) -> None:
        return


Act = Callable[[World, Process, TrippedStore], Any]


def amid(
    worlds: Worlds, *first: tuple[int, Any], act: Act, wait_us: int = 10 * SECOND, **policy: Any
) -> World:
    """A lane that writes the intent of a fifth letter when the fourth is called for, and is
    answered long before that is committed; ``act`` sees the beginning of it."""

    async def script(world: World) -> None:
        world.account(policy={"timeout": "10s", **policy}, finds=False)
        world.campaign(6)
        server = Server(world, answering(*first, then=(5 * MS, YES)))
        store = TrippedStore(world.store)
        process = world.process(providers=server.registry(), runner=SlowDisk(world), store=store)

        def at_call(number: int) -> None:
            if number == 4:
                act(world, process, store)

        server.at_call = at_call
        await world.until(lambda: len(server.calls) == 4, within_us=MINUTE, every_us=MS)
        await world.wait(wait_us)
        await process.kill()
        assert len(set(server.whom())) == len(server.whom()), "nobody twice"

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]  # the sandbox has seen none of it
    world.play(script)
    return world


def lane_of(process: Process) -> Lane:
    (running,) = process.supervisor._running.values()
    return running.lane


def in_the_outbox(world: World, process: Process) -> list[str]:
    names = {one.id: one.target for one in world.read(lambda tx: tx.deliveries.page())}
    return [names[one.settlement.delivery_id] for one in lane_of(process)._outbox._waiting]


def test_a_yes_is_settled_while_the_next_intent_is_committed(worlds: Worlds) -> None:
    """And is written down with the one after that: what is on its way now has been told."""
    found: list[tuple[list[str], int]] = []

    def act(world: World, process: Process, store: TrippedStore) -> None:
        def look() -> None:
            found.append((in_the_outbox(world, process), len(intents(world))))

        world.clock.timer(COMMIT_US // 2, look)

    world = amid(worlds, act=act)
    assert found == [(["spring-0002", "spring-0003"], 5)]
    assert world.counts() == {"sent": 6}


def test_anything_else_waits_for_the_lane(worlds: Worlds) -> None:
    found: list[list[str]] = []

    def act(world: World, process: Process, store: TrippedStore) -> None:
        world.clock.timer(COMMIT_US // 2, lambda: found.append(in_the_outbox(world, process)))

    yes, no = (5 * MS, YES), (5 * MS, NO)
    world = amid(worlds, yes, yes, yes, no, act=act)
    assert found == [["spring-0002"]]
    assert world.counts() == {"sent": 5, "failed": 1}


def test_a_yes_is_not_settled_before_a_no_that_came_before_it(worlds: Worlds) -> None:
    """Three at a time: the second and the third are answered while the fourth is committed."""
    found: list[list[str]] = []

    async def script(world: World) -> None:
        async def send(real: Any, message: Message) -> Outcome:
            number = int(message.target[-1])
            await world.clock.sleep_until(began_at + (600 + 5 * number) * MS)
            if number == 2:
                world.clock.timer(5 * MS, lambda: found.append(in_the_outbox(world, process)))
            return NO if number == 1 else YES

        world.account(policy={"timeout": "10s", "concurrency": 3}, finds=False)
        world.campaign(6)
        began_at = world.clock.now()
        provider = Double(world.providers.get("sandbox"), send=send)
        process = world.process(providers=provider.registry(), runner=SlowDisk(world))
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]  # the sandbox has seen none of it
    world.play(script)
    assert found == [["spring-0000"]]
    assert world.counts_at_end == {"sent": 5, "failed": 1}


def test_a_yes_counts_though_the_intent_beside_it_was_refused(worlds: Worlds) -> None:
    """Usage is put back to before that intent, but not to before the answer."""
    found: list[int] = []

    def look(lane: Lane) -> None:
        ((_, window),) = lane._memory.usage.health.items()
        found.append(window.size)

    def act(world: World, process: Process, store: TrippedStore) -> None:
        world.write(lambda tx: campaigns.pause(tx, "spring", world.clock.now()))
        world.clock.timer(COMMIT_US + MS, partial(look, lane_of(process)))

    world = amid(worlds, act=act)
    assert len(intents(world)) == 4, "the fifth was refused"
    assert found == [4]
    assert world.counts() == {"sent": 4, "ready": 2}


def test_a_yes_is_told_though_the_lane_was_lost_meanwhile(worlds: Worlds) -> None:
    def take_over(tx: Tx, lease: Lease) -> None:
        """Another process has it, as if ours had been thought dead."""
        assert tx.lanes.release(lease)
        other = tx.processes.join("other", HOUR)
        assert tx.lanes.take(lease.account_id, other.id) is not None

    def act(world: World, process: Process, store: TrippedStore) -> None:
        world.write(lambda tx: take_over(tx, lane_of(process)._lease))

    world = amid(worlds, act=act)
    assert len(intents(world)) == 4, "the fifth was refused"
    assert len(outcomes(world)) == 4
    assert world.counts() == {"sent": 4, "ready": 2}


@pytest.mark.parametrize("policy", [{}, {"on_unknown": "resend"}], ids=["hold", "resend"])
@pytest.mark.parametrize("away_ms", [COMMIT_MS - 10, COMMIT_MS + 20, 2 * COMMIT_MS + 20], ids=str)
def test_a_yes_is_told_though_the_store_is_away_when_the_lane_is_lost(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch, away_ms: int, policy: dict[str, Any]
) -> None:
    """Away when the owner is to be told of what was on its way with the intent; when that is done
    and the last answer is written down; or when the owner is to be told of that. Nobody else knows
    any of it."""
    told, tell, away = set[str](), lane_writes.tell_owner, set[bool]()

    def tell_owner(
        tx: Tx, account_id: int, late: list[Settlement], now: Instant, **how: bool
    ) -> bool:
        done = tell(tx, account_id, late, now, **how)
        if done and not away:  # or it is not committed
            told.update(tx.deliveries.get(one.delivery_id).target for one in late)
        return done

    def act(world: World, process: Process, store: TrippedStore) -> None:
        def trip(commit: int, moment: str) -> None:
            if away:
                raise StoreUnavailable("away")

        store.trip = trip
        world.write(lambda tx: tx.lanes.release(lane_of(process)._lease))
        world.clock.timer(away_ms * MS, lambda: away.add(True))
        world.clock.timer(SECOND, away.clear)

    monkeypatch.setattr(lane_writes, "tell_owner", tell_owner)
    world = amid(worlds, act=act, wait_us=10 * MINUTE, **policy)
    assert told == {"spring-0002", "spring-0003"}
    assert world.counts() == {"sent": 6}


def test_the_last_of_a_campaign_ends_it_all_the_same(worlds: Worlds) -> None:
    world, server, _, said = play(worlds, answering(then=(5 * MS, YES)), count=5)
    assert len(server.calls) == len(said) == 5
    assert world.counts_at_end == {"sent": 5}
