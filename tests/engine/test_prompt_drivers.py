"""Calls that are begun without a task: one timer bounds them all, and to cancel one ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from paceline.core.errors import ProviderError
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.outcome import Outcome, accepted
from paceline.engine import drivers
from paceline.engine.deadline import Deadline
from paceline.engine.lane_names import on_whose_behalf
from paceline.engine.ports import Account, Driver, Message
from paceline.sim.loop import run_virtual
from tests.engine.doubles import Double, Watcher
from tests.engine.scenes import called, gaps, outcomes
from tests.engine.world import World
from tests.engine.worlds import Worlds

Call = asyncio.Future[Outcome | None]
Begin = Callable[[Message], Call | None]


class PromptDouble(Double):
    """A provider whose drivers begin at once, as a test wants it, as often as it wants; after that
    they do not begin."""

    def __init__(self, world: World, begin: Begin, times: int = 1) -> None:
        super().__init__(world.providers.get("sandbox"))
        self._begin, self._times = begin, times
        self.begun: list[Call | None] = []
        self.ready: list[str] = []
        self.made_ready_for: set[str | None] = set()
        self.came_to: dict[str, int] = {}
        """What became of all messages in the end."""

    async def open(self, account: Account) -> Driver:
        driver: Any = await super().open(account)
        driver.begin, driver.make_ready = self._next, self._make_ready
        return driver  # type: ignore[no-any-return]

    def _next(self, message: Message) -> Call | None:
        if self._times == len(self.begun):
            return None
        self.begun.append(None)
        self.begun[-1] = self._begin(message)
        return self.begun[-1]

    def _make_ready(self, message: Message) -> None:
        self.ready.append(message.key)
        self.made_ready_for.add(on_whose_behalf())
        raise ValueError("what is wrong with it is told when it is sent")


def future() -> Call:
    return asyncio.get_running_loop().create_future()


def answered(answer: Outcome | None) -> Call:
    call = future()
    call.set_result(answer)
    return call


def failing(error: BaseException) -> Call:
    call = future()
    call.set_exception(error)
    return call


def no_call() -> Any:
    """What somebody returns who has understood something else by a call."""
    return object()


def broken_off() -> Call:
    call = future()
    call.cancel()
    return call


def broken_off_later() -> Call:
    call = future()
    asyncio.get_running_loop().call_later(1, call.cancel)
    return call


def throw(error: BaseException) -> Call:
    raise error


def play(worlds: Worlds, begin: Begin, *, times: int = 1, **settings: Any) -> PromptDouble:
    """Three messages, of which the first is begun in this way."""
    doubles: list[PromptDouble] = []

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "timeout": "10s"}, finds=False, **settings)
        world.campaign(3)
        doubles.append(provider := PromptDouble(world, begin, times))
        watcher = Watcher()
        process = world.process(providers=provider.registry(), observer=watcher)
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert not watcher.crashes and not drivers._left_behind
        assert all(row.started_at is not None for row in outcomes(world)), "each has begun"

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]  # the sandbox has not seen them all
    world.play(script)
    (double,) = doubles
    double.came_to = world.counts_at_end
    return double


@pytest.mark.parametrize("nothing", [lambda _: None, lambda _: answered(None)], ids=["", "answer"])
def test_what_is_not_begun_after_all_is_sent_as_usual(worlds: Worlds, nothing: Begin) -> None:
    provider = play(worlds, nothing)
    assert provider.came_to == {"sent": 3}
    assert len(provider.begun) == 1 and provider.called["send"] == 3


def test_what_is_answered_is_not_sent_again(worlds: Worlds) -> None:
    provider = play(worlds, lambda _: answered(accepted("1")))
    assert provider.came_to == {"sent": 3}
    assert provider.called["send"] == 2


@pytest.mark.parametrize(
    "begin",
    [
        lambda _: throw(RuntimeError("a defect")),
        lambda _: throw(asyncio.CancelledError()),
        lambda _: failing(RuntimeError("a defect")),
        lambda _: failing(TimeoutError("its own")),
        lambda _: failing(asyncio.CancelledError()),
        lambda _: no_call(),
        lambda _: broken_off(),
        lambda _: broken_off_later(),
        lambda _: future(),
    ],
    ids=["raises", "raises a cancellation", "fails", "its own timeout", "fails with a cancellation",
         "is nothing at all", "breaks off", "breaks off later", "never answers"],
)  # fmt: skip
def test_whatever_becomes_of_it_is_a_doubt_and_the_lane_goes_on(
    worlds: Worlds, begin: Begin
) -> None:
    provider = play(worlds, begin)
    assert provider.came_to == {"unknown": 1, "sent": 2}
    assert provider.called["send"] == 2
    calls = [call for call in provider.begun if isinstance(call, asyncio.Future)]
    assert all(call.done() for call in calls)


def test_a_lane_that_is_killed_takes_its_call_along(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "timeout": "10m"})
        world.campaign(2)
        provider = PromptDouble(world, lambda _: future())
        process = world.process(providers=provider.registry())
        await world.until(lambda: len(provider.begun) == 1)
        assert process.supervisor.kill("ann")
        await world.until(lambda: not process.supervisor._running, MINUTE)
        (call,) = provider.begun
        assert call is not None and call.cancelled()
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 2}


def test_it_is_made_ready_once_while_its_intent_is_written(worlds: Worlds) -> None:
    """That it cannot be harms nobody; and who takes long for it is known by the lane's name."""
    provider = play(worlds, lambda _: None, times=0)
    assert provider.made_ready_for == {"lane ann"}
    assert len(provider.ready) == len(set(provider.ready)) == 3
    assert provider.came_to == {"sent": 3}


def test_gaps_are_kept_between_calls_that_take_no_time(worlds: Worlds) -> None:
    """The sandbox without latency begins at once by itself."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="0s")
        world.campaign(5)
        process = world.process()
        await world.until_finished(within_us=MINUTE)
        await process.stop()
        assert min(gaps(called(world))) >= SECOND
        assert [row.started_at for row in outcomes(world)] == called(world)

    worlds.fresh().play(script)


def test_one_of_the_sandbox_that_hangs_is_called_off_in_time(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        policy = {"rate": "60/min", "timeout": "10s"}
        world.account(policy=policy, latency="0s", timeout_at=(1,), timeout_latency="30s")
        world.campaign(2)
        process = world.process()
        await world.until(lambda: world.counts().get("unknown") == 1, MINUTE)
        (doubt, *_) = outcomes(world)
        assert doubt.started_at is not None
        assert doubt.at - doubt.started_at == pytest.approx(10 * SECOND, abs=SECOND)
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 2}


# ---------------------------------------------------------------------- the one timer


def soon() -> Call:
    call = future()
    asyncio.get_running_loop().call_soon(call.set_result, None)
    return call


async def late(deadline: Deadline, seconds: int) -> float:
    """When a call that is never answered is called off, counted from now."""
    loop, call = asyncio.get_running_loop(), future()
    began = loop.time()
    with pytest.raises(TimeoutError):
        await deadline.answer(call, seconds * SECOND)
    assert call.cancelled()
    return loop.time() - began


@pytest.mark.parametrize("seconds", [[10, 10], [10, 3], [3, 10], [10, 2, 20]])
def test_each_has_its_own_time_though_they_share_a_timer(seconds: list[int]) -> None:
    async def script() -> None:
        deadline = Deadline()
        for one in seconds:
            assert await late(deadline, one) == pytest.approx(one)

    run_virtual(script(), start_at=0)


def test_the_timer_of_one_that_was_answered_does_not_ring_for_the_next() -> None:
    async def script() -> None:
        loop, deadline = asyncio.get_running_loop(), Deadline()
        call = future()
        loop.call_later(9, call.set_result, None)
        assert await deadline.answer(call, 10 * SECOND) is None
        assert await late(deadline, 10) == pytest.approx(10)
        assert await deadline.answer(soon(), 10 * SECOND) is None
        assert await late(deadline, 2) == pytest.approx(2)

    run_virtual(script(), start_at=0)


def test_a_lane_that_has_ended_leaves_no_timer() -> None:
    async def script() -> None:
        deadline = Deadline()
        await deadline.answer(soon(), 10 * SECOND)
        timer = deadline._timer
        assert timer is not None
        deadline.drop()
        assert timer.cancelled()

    run_virtual(script(), start_at=0)


def test_one_that_breaks_off_is_told_from_one_that_is_late() -> None:
    async def script() -> None:
        for call in (broken_off(), broken_off_later()):
            with pytest.raises(ProviderError, match="broke off its own call"):
                await Deadline().answer(call, 10 * SECOND)

    run_virtual(script(), start_at=0)


def test_an_error_in_the_very_moment_of_a_cancellation_is_not_lost() -> None:
    async def script() -> None:
        call = future()
        waiting = asyncio.ensure_future(Deadline().answer(call, HOUR))
        await asyncio.sleep(1)
        call.set_exception(ValueError("a defect"))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    with capture_logs() as logged:
        run_virtual(script(), start_at=0)
    assert ["a defect" in line["error"] for line in logged] == [True]
