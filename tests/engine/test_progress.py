"""How far runs have come is told now and then, by one process; their end, with all its numbers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.states import RunState
from paceline.engine.ports import Progress
from paceline.engine.progress import Telling, is_news, tell_progress
from tests.engine.scenes import events, finish
from tests.engine.test_reminders import fresh, remind, runs_of
from tests.engine.world import World
from tests.store.counting import counted

NOW = 100 * MINUTE


def far(done: int, told_done: int = 0, told_us_ago: int = MINUTE, total: int = 100) -> Progress:
    return Progress(1, "spring", "campaign", done, done, total, told_done, NOW - told_us_ago)


@pytest.mark.parametrize(
    ("now_is", "expected"),
    [
        (far(5), True),
        (far(4), False),
        (far(50, told_us_ago=MINUTE - 1), False),
        (far(54, 50), False),
        (far(55, 50), True),
        (far(100, 50), False),
        (far(40, 50), True),
        (far(1, total=10), True),
        (far(0, total=10), False),
        (far(0, total=0), False),
        (far(49_999, total=1_000_000), False),
        (far(50_000, total=1_000_000), True),
    ],
)
def test_what_is_news(now_is: Progress, expected: bool) -> None:
    assert is_news(now_is, NOW) == expected


def test_a_run_is_told_of_once_a_minute_at_most_and_in_steps(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        remind(world, 400)
        one, two = world.process(), world.process("two")
        await world.until(lambda: bool(runs_of(world)), 2 * HOUR, SECOND)
        await world.until(lambda: runs_of(world)[0].state is RunState.SUCCESS, HOUR, SECOND)
        await one.stop()
        await two.stop()
        told = events(world, "run.progress")
        done = [event.data["done"] for event in told]
        assert 7 <= len(told) <= 10, "forty a minute are a tenth of all"
        assert min(b - a for a, b in pairwise(done)) >= 20
        assert min(b.at - a.at for a, b in pairwise(told)) >= MINUTE
        first = told[0].data
        assert (first["reminder"], first["campaign"], first["total"]) == ("standup", None, 400)
        assert told[0].text == f"standup: {done[0]} of 400 delivered, {done[0]} done"
        (finished,) = events(world, "run.finished")
        assert finished.data == {
            "run": runs_of(world)[0].id,
            "campaign": None,
            "reminder": "standup",
            "status": "success",
            "delivered": 400,
            "total": 400,
            "counts": {"sent": 400},
            "summary": "400 of 400 groups delivered from ann.",
        }

    fresh(tmp_path).play(script)


def test_a_run_that_is_over_soon_is_told_of_when_it_is_over(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/s"})
        world.campaign(50)
        await finish(world)
        assert events(world, "run.progress") == []
        assert [event.data["delivered"] for event in events(world, "run.finished")] == [50]

    world.play(script)


def test_two_that_look_at_once_tell_once(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(200)
        process = world.process()
        await world.wait(85 * SECOND)
        now = world.clock.now() + MINUTE
        told = await tell_progress(process.journal, now) + await tell_progress(process.journal, now)
        assert told == 1
        await process.stop()

    world.play(script)


def test_a_slow_run_is_not_looked_at_every_minute(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(1_000)
        process = world.process()
        await world.wait(20 * SECOND)
        await process.stop()
        started_at, looked = world.clock.now() - 20 * SECOND, []
        telling = Telling()

        def look(minute: int) -> list[int]:
            with counted() as asked:
                news = world.read(lambda tx: telling.look(tx, started_at + minute * MINUTE))
            added_up = [statement for statement in asked if "counters" in statement]
            assert len(added_up) == bool(telling.looked), "who is left alone costs nothing"
            if telling.looked:
                looked.append(minute)
            return news

        assert not any(look(minute) for minute in range(1, 61)), "twenty of a thousand"
        assert looked[:6] == [1, 2, 3, 5, 8, 12], "half as long again each time"
        assert max(b - a for a, b in pairwise(looked)) == 10
        look(0)
        assert looked[-1] == 0, "by a clock that was set back"

    world.play(script)


def test_whoever_has_just_started_looks_at_a_slow_run_no_more_often(world: World) -> None:
    """A service that dies every few minutes would add up all counters every few minutes."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(1_000)
        process = world.process()
        await world.wait(20 * SECOND)
        await process.stop()
        started_at = world.clock.now() - 20 * SECOND

        def looks(minute: int) -> bool:
            telling = Telling()
            world.read(lambda tx: telling.look(tx, started_at + minute * MINUTE))
            return telling.looked > 0

        looked = [minute for minute in range(1, 61) if looks(minute)]
        assert looked == [1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 40, 50, 60]

    world.play(script)


def test_to_look_costs_one_statement_however_many_runs_there_are(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        for number in range(5):
            world.campaign(10, name=f"campaign-{number}")
        with counted() as asked, world.store.read() as tx:
            assert len(tx.events.progress([run_id for run_id, _ in tx.events.told_at()])) == 5
        assert len([statement for statement in asked if "counters" in statement]) == 1

    world.play(script)
