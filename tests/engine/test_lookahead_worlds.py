"""Looking ahead in worlds that are drawn by lot: answers of every kind after any time, commits that
take theirs, and something that happens in the middle of it.

Whatever happens, the provider sees one call at a time, no message again that it may have, and after
a no nothing whose intent was written before that was heard.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import pytest

from paceline.core.errors import StoreUnavailable
from paceline.core.instants import HOUR, MILLISECOND, SECOND, Instant
from paceline.core.outcome import Outcome, OutcomeKind, accepted
from paceline.engine import drivers
from paceline.engine.commands import accounts, campaigns
from paceline.engine.ports import Account, Driver, Message, Tx
from tests.engine.doubles import Double, Watcher
from tests.engine.faults import TrippedStore
from tests.engine.scenes import THREE_PARTS, change, deliveries, intents, sql, violations
from tests.engine.test_clock_steps import SetClock
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

T = TypeVar("T")

SEEDS = 10
COUNT = 20
MS = MILLISECOND
YES = accepted("taken")
WAIT_US = 2 * SECOND
NOES = (
    Outcome(OutcomeKind.REJECTED, "no", "550"),
    Outcome(OutcomeKind.THROTTLED, "not so fast", "421", retry_after_us=WAIT_US),
    Outcome(OutcomeKind.UNKNOWN, "lost"),
    None,
)
TIMES_MS = (0, 1, 2, 5, 20, 45, 49, 60, 150, 199, 200, 201, 400)
COMMITS_MS = (1, 5, 30, 100, 250)
SOON_US = SECOND
"""By when a stop is in force: a commit, and what was intended before it."""


@dataclass(slots=True)
class Call:
    key: str
    target: str
    at: Instant
    end_at: Instant = 0
    came_to: str = "nothing yet"


@dataclass(eq=False)
class Server(Double):
    """A provider that draws its answers, and sees what it must not see."""

    world: World
    rng: random.Random
    bad: float
    """How many of its answers are no yes."""
    most: int = 1
    """How many calls may be under way together."""
    calls: list[Call] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    under_way: int = 0

    def __post_init__(self) -> None:
        super().__init__(self.world.providers.get("sandbox"), send=self._send)

    async def open(self, account: Account) -> Driver:
        driver: Any = await super().open(account)
        driver.begin = self._begin
        return driver  # type: ignore[no-any-return]

    def _begin(self, message: Message) -> asyncio.Future[Outcome | None] | None:
        if self.rng.random() < 0.03:
            return None
        call, (after_us, outcome) = self._note(message), self._draw()
        future: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        future.add_done_callback(partial(self._ended, call, outcome))
        answer = partial(_answer, future, outcome)
        if after_us:
            self.world.clock.timer(after_us, answer)
        else:
            answer()
        return future

    async def _send(self, real: object, message: Message) -> Outcome:
        call, (after_us, outcome) = self._note(message), self._draw()
        try:
            await asyncio.sleep(after_us / SECOND)
            call.came_to = str((outcome or YES).kind)
            return outcome or YES
        finally:
            self.under_way -= 1
            call.end_at = self.world.clock.now()

    def _draw(self) -> tuple[int, Outcome | None]:
        after_ms = self.rng.choice(TIMES_MS) if self.rng.random() < 0.5 else 5
        outcome = self.rng.choice(NOES) if self.rng.random() < self.bad else YES
        return after_ms * MS, outcome

    def _note(self, message: Message) -> Call:
        if self.under_way >= self.most:
            self.wrong.append(f"{message.key} beside {self.under_way}")
        for call in self.calls:
            if call.key == message.key and call.came_to in ("nothing yet", "accepted", "unknown"):
                self.wrong.append(f"{message.key} again after {call.came_to}")
        call = Call(message.key, message.target, self.world.clock.now())
        self.calls.append(call)
        self.under_way += 1
        return call

    def _ended(self, call: Call, outcome: Outcome | None, future: asyncio.Future[Any]) -> None:
        self.under_way -= 1
        call.end_at = self.world.clock.now()
        if not future.cancelled():
            call.came_to = "unheard" if outcome is None else str(outcome.kind)


def _answer(call: asyncio.Future[Outcome | None], outcome: Outcome | None) -> None:
    if not call.done():
        call.set_result(outcome)


class Fitful:
    """A disk that is slow now and then, before a commit or after it."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world, self._rng = world, rng

    async def run(self, function: Callable[[], T], *, at_once: bool = False) -> T:
        await self._stand_still(0.3)
        answer = function()
        await self._stand_still(0.4)
        return answer

    async def _stand_still(self, share: float) -> None:
        if self._rng.random() < share:
            await self._world.wait(self._rng.choice(COMMITS_MS) * MS)

    def close(self) -> None:
        return


class Story:
    """A lane without a pace in the middle of its work, and whatever a test does to it."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world, self.rng = world, rng
        self.clock = SetClock(world.clock)
        self.watcher = Watcher()
        self.server = Server(world, rng, rng.choice([0, 0.1, 0.3]))
        self.store = TrippedStore(world.store)
        self.process: Process | None = None
        self.one_clock = self.in_order = True
        """Whether instants can be compared, and whether each call is to follow the one before."""
        self.one_owner = True
        """Whether whoever has the lane has heard every answer."""
        self.crashes = False
        self.stopped_at: Instant | None = None

    def begin(self, name: str = "one") -> Process:
        runner = Fitful(self.world, self.rng) if self.rng.random() < 0.5 else None
        self.process = self.world.process(
            name,
            providers=self.server.registry(),
            observer=self.watcher,
            clock=self.clock,
            store=self.store,  # type: ignore[arg-type]
            runner=runner,
        )
        return self.process

    @property
    def now(self) -> Process:
        assert self.process is not None
        return self.process

    def touch(self) -> None:
        for running in self.now.supervisor._running.values():
            running.lane.touch()

    async def moment(self, most_ms: int) -> None:
        await self.world.wait(self.rng.randint(1, most_ms) * MS)


# ---------------------------------------------------------------------- what happens


async def nothing(story: Story) -> None:
    return


async def touched(story: Story) -> None:
    for _ in range(20):
        story.touch()
        await story.moment(20)


async def account_paused(story: Story) -> None:
    world = story.world
    world.write(lambda tx: accounts.pause(tx, "ann", story.clock.now()))
    story.stopped_at = world.clock.now()
    await world.wait(5 * SECOND)
    world.write(lambda tx: accounts.resume(tx, "ann", story.clock.now()))


async def campaign_paused(story: Story) -> None:
    world = story.world
    world.write(lambda tx: campaigns.pause(tx, "spring", story.clock.now()))
    story.stopped_at = world.clock.now()
    await world.wait(5 * SECOND)
    if world.state() == "paused":  # what was out may have been the last of it
        world.write(lambda tx: campaigns.resume(tx, "spring", story.clock.now()))


async def suppressed(story: Story) -> None:
    for row in deliveries(story.world):
        story.world.write(partial(_suppress, target=row.target, at=story.clock.now()))
    story.stopped_at = story.world.clock.now()


def _suppress(tx: Tx, target: str, at: Instant) -> None:
    tx.suppressions.add(target, "asked", "manual", at)


async def stopped(story: Story) -> None:
    await story.now.stop()
    story.begin("two")


async def died(story: Story) -> None:
    story.one_owner = False
    await story.now.kill()
    await story.world.wait(story.rng.choice([0, 20 * SECOND]))
    story.begin("two")


async def lane_killed(story: Story) -> None:
    story.crashes, story.one_owner = True, False
    story.now.supervisor.kill("ann")


async def taken_over(story: Story) -> None:
    story.one_owner = False
    sql(story.world, "UPDATE lanes SET generation = generation + 1, owner = NULL")


async def store_away(story: Story) -> None:
    def away(number: int, moment: str) -> None:
        raise StoreUnavailable("away")

    trip, story.store.trip = story.store.trip, away
    await story.moment(3_000)
    story.store.trip = trip


async def three_at_a_time(story: Story) -> None:
    story.server.most, story.in_order = 3, False
    change(story.world, overrides={"concurrency": 3})
    story.touch()
    await story.moment(100)
    change(story.world, overrides={"concurrency": 1})
    story.touch()


async def given_a_rate(story: Story) -> None:
    change(story.world, overrides={"rate": "60/min"})
    story.touch()
    await story.world.wait(SOON_US)
    first = len(story.server.calls)
    await story.world.wait(10 * SECOND)
    begun = [call.at for call in story.server.calls[first:] if call.came_to != "unheard"]
    gaps = [later - at for at, later in pairwise(begun)]
    assert all(gap >= SECOND - MS for gap in gaps), gaps


async def set_back(story: Story) -> None:
    story.one_clock, story.clock.off_us = False, -HOUR


async def set_forward(story: Story) -> None:
    story.one_clock, story.clock.off_us = False, HOUR


# ---------------------------------------------------------------------- and what must not


def judge(story: Story) -> None:
    world, server = story.world, story.server
    assert not server.wrong
    assert story.crashes or not story.watcher.crashes
    assert not drivers._left_behind
    if story.one_clock:
        assert violations(world) == []
    if story.in_order:
        _judge_order(story)
    if story.stopped_at is not None:
        since, until = story.stopped_at + SOON_US, story.stopped_at + 5 * SECOND
        late = [c for c in server.calls if since < c.at < until and c.target.startswith("spring")]
        assert not late, "called although it was stopped"


def _judge_order(story: Story) -> None:
    written: dict[str, list[Instant]] = {}
    for row in intents(story.world):
        written.setdefault(f"test-{row.delivery_id}-{row.part}", []).append(row.at)
    calls = story.server.calls
    for before, call in pairwise(calls):
        if before.came_to == "throttled" and story.one_owner:
            assert call.at - before.end_at >= WAIT_US, "the wait that was asked for"
        if before.came_to in ("accepted", "unheard") or not story.one_clock:
            continue
        intended_at = max(at for at in written[call.key] if at <= call.at)
        assert intended_at >= before.end_at, f"{call.key} follows {before.came_to}"


async def play(
    world: World, rng: random.Random, happens: Callable[[Story], Awaitable[None]]
) -> None:
    wrong: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: wrong.append(context))
    policy = rng.choice([{}, {"daily": {"message": 500}}, {"per_recipient": "1/day"}])
    world.account(policy={"timeout": "10s", **policy}, finds=False)
    world.campaign(COUNT, parts=THREE_PARTS[: rng.choice([1, 1, 1, 2])])
    if rng.random() < 0.4:
        world.campaign(COUNT // 2, name="autumn")
    await world.wait(2 * HOUR)  # so that all of it is due by any clock
    story = Story(world, rng)
    story.begin()
    await story.world.until(lambda: bool(story.server.calls), every_us=MS)
    await story.moment(300)
    await happens(story)
    open_ones = ("planned", "ready", "sending")
    await world.until(
        lambda: not any(row.state in open_ones for row in deliveries(world)), 4 * HOUR, SECOND
    )
    await story.now.stop()
    await world.wait(SECOND)
    judge(story)
    assert not wrong
    assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing lives on"


@pytest.mark.parametrize(
    "happens",
    [
        nothing,
        touched,
        account_paused,
        campaign_paused,
        suppressed,
        stopped,
        died,
        lane_killed,
        taken_over,
        store_away,
        three_at_a_time,
        given_a_rate,
        set_back,
        set_forward,
    ],
)
def test_no_promise_is_broken_whatever_happens_while_a_lane_looks_ahead(
    worlds: Worlds, happens: Callable[[Story], Awaitable[None]]
) -> None:
    for seed in range(SEEDS):
        world = worlds.fresh()
        world.check = lambda: None  # type: ignore[method-assign]  # the sandbox has seen none of it
        try:
            world.play(lambda world, seed=seed: play(world, random.Random(seed), happens))
        except BaseException as error:
            error.add_note(f"it went wrong with seed {seed}")
            raise
