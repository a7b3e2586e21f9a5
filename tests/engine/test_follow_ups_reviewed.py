"""Follow-ups and opting out, where readers found them wanting: names, late reports, races."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE
from paceline.core.model import Target
from paceline.engine import bidding
from paceline.engine.commands import campaigns, returns
from paceline.engine.ports import Inbound
from paceline.store import bids
from tests.engine.following_up import (
    AGAIN,
    ON_REPLY,
    first_messages,
    first_to,
    outreach,
    second_messages,
)
from tests.engine.scenes import until
from tests.engine.talking import EVA, hear
from tests.engine.world import World

NAME, MEMBER = "anna-muster", "ACoAABcDMMQBODyLwZrRcgYhrkCafURGqva0U4F"


@pytest.mark.usefixtures("looked_after")
def test_whoever_is_called_otherwise_where_they_write_opts_out_all_the_same(world: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world, names=(NAME,), steps=(AGAIN,))
        await first_messages(world, 1)
        hear(world, "STOP", chat="chat:7", also=(MEMBER, NAME))
        await world.wait(DAY)
        assert [one.target for one in world.sends()] == [NAME]
        hear(world, "START", chat="chat:7", also=(MEMBER, NAME))
        assert world.read(lambda tx: tx.suppressions.find(NAME)) is None
        await process.stop()

    world.play(script)


@pytest.mark.usefixtures("looked_after")
@pytest.mark.parametrize(("text", "count"), [("STOP", 1), ("yes", 2)])
def test_an_answer_from_another_address_of_theirs_is_known_by_what_it_answers(
    world: World, text: str, count: int
) -> None:
    async def script(world: World) -> None:
        process = outreach(world, names=("eva@example.com",), steps=(AGAIN,), stop_on_reply=True)
        await first_messages(world, 1)
        letter = f"test-{first_to(world, 'eva@example.com').id}-0"
        hear(world, text, chat="eva@home.example", answers=letter)
        await world.wait(DAY)
        assert len(world.sends()) == count
        await process.stop()

    world.play(script)


def test_a_late_report_also_stops_what_follows_the_steps_that_went_out_meanwhile(
    world: World,
) -> None:
    async def script(world: World) -> None:
        process = outreach(
            world, names=(EVA,), steps=(AGAIN, AGAIN), stop_on_reply=True, follow_up=None
        )
        await first_messages(world, 1)
        await world.wait(HOUR)
        written_at = world.clock.now()
        await until(world, lambda: len(world.sends()) == 2, MINUTE, 3 * HOUR)
        hear(world, "no, thank you", at=written_at)
        await until(world, lambda: world.state() == "finished", HOUR, 3 * DAY)
        assert len(world.sends()) == 2
        await process.stop()

    world.play(script)


def test_whoever_answers_with_a_word_that_opts_in_has_answered(world: World) -> None:
    async def script(world: World) -> None:
        process = outreach(world)
        await first_messages(world)
        hear(world, "START")
        await world.wait(2 * MINUTE)
        assert [one.target for one in second_messages(world)] == [EVA]
        await process.stop()

    world.play(script)


# ---------------------------------------------------------------------- races


def test_what_is_settled_while_an_answer_is_taken_in_is_found(
    on_either: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lane commits between the two looks for what was sent."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="20s..20s")
        world.campaign(targets=[Target(EVA)], follow_up=ON_REPLY)
        process = world.process()
        await world.until(lambda: world.counts().get("sending") == 1)
        order: list[str] = []
        for name in ("_ON_ITS_WAY", "_SENT"):
            monkeypatch.setattr(bids, name, _Noted(getattr(bids, name), name, order))
        hear(world, "yes")
        assert order == ["_ON_ITS_WAY", "_SENT"], "whatever is settled in between is in the second"
        await world.wait(2 * MINUTE)
        assert [one.target for one in second_messages(world)] == [EVA]
        await process.stop()

    on_either.play(script)


class _Noted:
    def __init__(self, statement: Any, name: str, order: list[str]) -> None:
        self._statement, self._name, self._order = statement, name, order

    def run(self, context: Any, **values: Any) -> Any:
        self._order.append(self._name)
        return self._statement.run(context, **values)


def test_a_pause_and_an_answer_at_the_same_time_both_come_through(
    fresh_postgres_url: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes an answer in holds the lane and then the campaign; a pause does, too."""
    world = World(fresh_postgres_url())

    async def script(world: World) -> None:
        process = outreach(world, names=(EVA,), steps=(AGAIN,), stop_on_reply=True)
        await first_messages(world, 1)
        await process.stop()
        account, now = world.account_now(), world.clock.now()
        whole, held, go_on = bidding._stop, threading.Event(), threading.Event()

        def slowly(*arguments: Any) -> None:
            held.set()
            assert go_on.wait(20)
            whole(*arguments)

        monkeypatch.setattr(bidding, "_stop", slowly)
        message = Inbound("in-1", EVA, EVA, "yes", 0)
        came_to: dict[str, str] = {}

        def do(name: str, work: Any) -> None:
            try:
                world.write(work)
                came_to[name] = "done"
            except Exception as error:
                came_to[name] = repr(error)

        answer = threading.Thread(
            target=do, args=("answer", lambda tx: returns.take_in(tx, account, [message], now))
        )
        pause = threading.Thread(
            target=do, args=("pause", lambda tx: campaigns.pause(tx, "spring", now))
        )
        answer.start()
        assert held.wait(20)
        pause.start()
        await until(world, lambda: somebody_waits(world))
        go_on.set()
        answer.join(60)
        pause.join(60)
        assert came_to == {"answer": "done", "pause": "done"}

    world.play(script)


def somebody_waits(world: World) -> bool:
    """Whether somebody waits for somebody else's row."""

    def work(tx: Any) -> bool:
        cursor = tx._context.cursor()
        cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
        return cursor.fetchone() is not None

    return world.read(work)
