"""Who looks whether a pool can go on, how often, and what is told of it."""

from collections import Counter
from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
from paceline.core.model import Wait
from paceline.engine import pool_putting_off, queries
from paceline.engine.pooling import Claims
from tests.engine.scenes import send_direct
from tests.engine.test_pool_putting_off import FOUR, POOL, are_capped, due, pooled, put_off, told
from tests.engine.world import MONDAY_NINE, World


def test_of_the_lanes_of_a_process_one_looks_at_a_time() -> None:
    claims = Claims()
    assert claims.looks_over(1, 0)
    assert not claims.looks_over(1, SECOND)
    assert claims.looks_over(2, SECOND), "another run"
    assert claims.looks_over(1, MINUTE), "whoever looked is long gone"
    claims.has_looked(1)
    assert claims.looks_over(1, MINUTE + 1)


def test_who_finds_another_one_looking_comes_back(
    calm: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [False] * 3

    def looks_over(claims: Claims, run_id: int, now: Instant) -> bool:
        return answers.pop() if answers else True

    monkeypatch.setattr(Claims, "looks_over", looks_over)

    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 3}})
        world.campaign(5, on=("ann",), assignment="pooled")
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: len(put_off(world)) == 2, every_us=SECOND // 4)
        assert world.clock.now() - world.start_at > 2 * SECOND, "after a while each time"
        await process.stop()

    world.play(script)
    assert answers == []


def test_when_hours_end_for_all_of_them_one_looks(
    calm: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    work_out = pool_putting_off.work_out

    def counted(*args: Any) -> Any:
        found = work_out(*args)
        looks.append(sum(len(one.moves) for one in found))
        return found

    monkeypatch.setattr(pool_putting_off, "work_out", counted)
    names = tuple(f"a{n}" for n in range(8))

    async def script(world: World) -> None:
        for name in names:
            world.account(name, policy={"hours": "Mon-Fri 09:00-10:00 UTC", "spacing": "10m"})
        world.campaign(80, on=names, assignment="pooled")
        process = world.process(poll_us=MINUTE)
        await world.wait(2 * HOUR)
        await process.stop()
        assert world.counts() == {"sent": 48, "ready": 32}
        moved = put_off(world)
        opens_at = MONDAY_NINE + DAY
        assert Counter(due(row) for row in moved) == {
            opens_at + n * 10 * MINUTE: 8 for n in range(4)
        }

    world.play(script)
    assert [count for count in looks if count] == [32]


def why(world: World, name: str) -> queries.Why:
    return world.read(lambda tx: queries.why_account(tx, name, world.clock.now()))


def test_why_of_an_account_tells_of_what_waits_in_its_pools(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        for name in POOL:
            world.account(name, policy=FOUR)
        world.account("cyd")
        pooled(world, 12)
        first = why(world, "bob").delivery
        assert first is not None and first.account_id is None
        assert why(world, "cyd").delivery is None, "which is in no pool"
        told(world, "ann", 3)
        process = world.process(poll_us=MINUTE)
        await world.until(are_capped(world), every_us=MINUTE, within_us=DAY)
        await process.stop()
        for name in POOL:
            answer = why(world, name)
            assert answer.delivery is not None and answer.delivery.account_id is None
            assert isinstance(answer.verdict, Wait)
            assert (answer.verdict.gate, answer.verdict.why) == ("daily", "daily cap reached (4/4)")
            assert not any("nothing waits" in words for words in answer.outside)
        # Its own comes before what everybody may take.
        send_direct(world, "friend", account="bob")
        own = why(world, "bob").delivery
        assert own is not None and own.target == "friend"

    world.play(script)
