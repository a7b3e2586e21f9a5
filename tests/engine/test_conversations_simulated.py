"""What the simulator has found about conversations, each as small as it can be told."""

from __future__ import annotations

import asyncio

import pytest
import structlog

from paceline.core.errors import StoreUnavailable
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.states import TurnState
from paceline.engine import conversations
from paceline.engine.clock import SystemClock
from paceline.engine.commands import accounts, returns
from paceline.engine.looking import Looker
from paceline.engine.ports import Inbound, Tx
from paceline.engine.ports.answering import Answer, Burst
from paceline.sim.loop import run_virtual
from tests.engine.talking import EVA, Desk, Scripted, answered, conversation, hear, said, turns
from tests.engine.world import World


def test_a_message_that_took_long_to_be_written_down_does_not_end_the_burst_of_a_later_one(
    world: World,
) -> None:
    """A report is as old as its arrival, however slow the commit; others may have come since."""

    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        arrived_at, account = world.clock.now(), world.account_now()
        await world.wait(6 * SECOND)
        hear(world, "two")
        due_at = conversation(world).due_at
        slow = Inbound("slow", EVA, EVA, "one", arrived_at)
        world.write(lambda tx: returns.take_in(tx, account, [slow], arrived_at))
        assert conversation(world).due_at == due_at
        await world.wait(6 * SECOND)
        hear(world, "three")
        await world.wait(MINUTE)
        assert said(world) == ["re: one\ntwo\nthree"]
        await desk.stop()

    world.play(script)


def test_handed_back_it_is_answered_when_they_have_paused_however_slowly_it_was_written_down(
    world: World,
) -> None:
    async def script(world: World) -> None:
        answered(world)
        hear(world, "hi")
        number, account = conversation(world).id, world.account_now()
        world.write(lambda tx: conversations.take(tx, number, world.clock.now()))
        arrived_at = world.clock.now()
        await world.wait(6 * SECOND)
        hear(world, "two")
        due_at = conversation(world).due_at
        slow = Inbound("slow", EVA, EVA, "one", arrived_at)
        world.write(lambda tx: returns.take_in(tx, account, [slow], arrived_at))
        world.write(lambda tx: conversations.hand_back(tx, number, world.clock.now()))
        assert conversation(world).due_at == due_at

    world.play(script)


def told(world: World, *said: tuple[str, int]) -> None:
    """One report of what somebody wrote, each so many seconds ago, in the order of the report."""
    account, now = world.account_now(), world.clock.now()
    news = [Inbound(f"{text}-{ago}", EVA, EVA, text, now - ago * SECOND) for text, ago in said]

    def work(tx: Tx) -> None:
        returns.prepare(tx, news)
        returns.take_in(tx, account, news, now)

    world.write(work)


def test_start_that_was_written_before_stop_and_is_told_after_it_changes_nothing(
    world: World,
) -> None:
    async def script(world: World) -> None:
        answered(world)
        told(world, ("STOP", 1))
        told(world, ("START", 10))
        assert world.read(lambda tx: tx.suppressions.covers(EVA))
        await world.wait(SECOND)
        told(world, ("START", 0))
        assert not world.read(lambda tx: tx.suppressions.covers(EVA))

    world.play(script)


def test_wishes_of_one_report_are_obeyed_in_the_order_in_which_they_were_written(
    world: World,
) -> None:
    async def script(world: World) -> None:
        answered(world)
        told(world, ("STOP", 1), ("START", 5))
        assert world.read(lambda tx: tx.suppressions.covers(EVA))

    world.play(script)


class Counting(Looker):
    """Counts its looks."""

    looks = 0

    async def look(self) -> None:
        self.looks += 1


def test_who_looks_every_few_seconds_does_so_when_somebody_sets_the_clock_back() -> None:
    """Else nobody would be answered until the clock has come again to where it was."""

    class Machine(SystemClock):
        behind_us = 0

        def now(self) -> int:
            return self.monotonic_us() - self.behind_us

        def monotonic_us(self) -> int:
            return round(asyncio.get_running_loop().time() * SECOND)

    async def script() -> None:
        clock = Machine(sleep=asyncio.sleep, call_later=asyncio.get_running_loop().call_later)
        looker = Counting(clock, 2 * SECOND, structlog.get_logger(), "nothing")
        running = asyncio.create_task(looker.run())
        await asyncio.sleep(5)
        clock.behind_us = HOUR
        await asyncio.sleep(60)
        looker.stop()
        await running
        assert looker.looks == 33

    run_virtual(script())


def test_a_question_nobody_can_be_given_for_want_of_a_database_is_left_to_the_next_who_looks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def bug(burst: Burst) -> Answer:
        await world.clock.sleep(SECOND)
        raise ValueError("a defect")

    async def away(*_: object) -> None:
        raise StoreUnavailable("the database cannot be reached")

    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted(bug))
        monkeypatch.setattr(desk.answerer, "_hand_over", away)
        hear(world, "hi")
        await world.wait(8 * SECOND + SECOND // 2)
        (answering,) = desk.answerer._answering.values()
        await world.wait(5 * SECOND)
        assert answering.done() and answering.exception() is None
        monkeypatch.undo()
        await world.wait(MINUTE)
        assert conversation(world).mode == "human"
        await desk.stop()

    world.play(script)


def test_what_was_called_off_is_nobodys_to_answer_also_when_they_want_to_be_written_to_again(
    world: World,
) -> None:
    """Before anybody has looked at what became of the answer."""

    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, Scripted())
        pause(world)
        hear(world, "hi")
        await world.wait(10 * SECOND)
        (turn,) = turns(world)
        assert turn.state is TurnState.REPLYING
        told(world, ("STOP", 1))
        told(world, ("START", 0))
        pause(world, over=True)
        await world.wait(MINUTE)
        assert conversation(world).mode == "auto"
        assert said(world) == ["re: START"]
        await desk.stop()

    world.play(script)


def pause(world: World, *, over: bool = False) -> None:
    change = accounts.resume if over else accounts.pause
    world.write(lambda tx: change(tx, "ann", world.clock.now()))
