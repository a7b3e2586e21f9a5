"""Looking ahead: while a lane without a pace waits for an answer, its next intent is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from paceline.core.instants import HOUR, MILLISECOND, MINUTE, SECOND, Instant
from paceline.core.outcome import Outcome, OutcomeKind, accepted
from paceline.engine import drivers
from paceline.engine.lane_names import on_whose_behalf
from paceline.engine.lookahead import AT_ONCE_US, LONGEST_US, NO_YES, QUICK_US, SLOW, Lookahead
from paceline.engine.ports import Account, Driver, LedgerRow, Message
from paceline.sim.loop import run_virtual
from tests.engine.desk import TwoClocks
from tests.engine.doubles import Double, Watcher
from tests.engine.scenes import intents, outcomes
from tests.engine.world import MONDAY_NINE, World
from tests.engine.worlds import Worlds

Call = asyncio.Future[Outcome | None]
MS = MILLISECOND
YES = accepted("taken")
NO = Outcome(OutcomeKind.REJECTED, "no such thing", "550")
TOO_FAST = Outcome(OutcomeKind.THROTTLED, "not so fast", "421")
NOBODY = Outcome(OutcomeKind.BOUNCED, "nobody there", "5.1.1")

Script = Iterator[tuple[int, Outcome | None]]
"""What each call is answered, and after how long."""


class Server(Double):
    """A provider that begins at once and answers as it is told to; it sees what was called when,
    and how many intents were written down by then."""

    def __init__(self, world: World, answers: Script) -> None:
        super().__init__(world.providers.get("sandbox"))
        self._world = world
        self._answers = answers
        self.calls: list[tuple[str, Instant, int]] = []
        self.ends: list[Instant] = []
        self.open_calls = 0
        self.at_call: Callable[[int], None] = lambda number: None

    async def open(self, account: Account) -> Driver:
        driver: Any = await super().open(account)
        driver.begin = self._begin
        return driver  # type: ignore[no-any-return]

    def _begin(self, message: Message) -> Call:
        assert not self.open_calls, "two calls at a time"
        self.open_calls += 1
        call: Call = asyncio.get_running_loop().create_future()
        after_us, outcome = next(self._answers)
        self.calls.append((message.target, self._world.clock.now(), len(intents(self._world))))
        self._world.clock.timer(after_us, lambda: self._answer(call, outcome))
        call.add_done_callback(self._ended)
        try:
            self.at_call(len(self.calls))
        except BaseException:
            call.cancel()
            raise
        return call

    def _answer(self, call: Call, outcome: Outcome | None) -> None:
        if not call.done():
            call.set_result(outcome)

    def _ended(self, _: object) -> None:
        self.open_calls -= 1
        self.ends.append(self._world.clock.now())

    def written(self) -> list[int]:
        """How many intents there were when each was called."""
        return [count for _, _, count in self.calls]

    def whom(self) -> list[str]:
        return [target for target, _, _ in self.calls]


def answering(*first: tuple[int, Outcome | None], then: tuple[int, Outcome | None]) -> Script:
    yield from first
    while True:
        yield then


QUICKLY = (5 * MS, YES)


def play(
    worlds: Worlds,
    answers: Script,
    *,
    count: int = 6,
    policy: dict[str, Any] | None = None,
    at_call: Callable[[World, int], None] = lambda world, number: None,
    within_us: int = HOUR,
    **campaign: Any,
) -> tuple[World, Server, list[LedgerRow], list[LedgerRow]]:
    found: list[Any] = []

    async def script(world: World) -> None:
        world.account(policy={"timeout": "10s", **(policy or {})}, finds=False)
        world.campaign(count, **campaign)
        server = Server(world, answers)
        server.at_call = lambda number: at_call(world, number)
        watcher = Watcher()
        process = world.process(providers=server.registry(), observer=watcher)
        await world.until_finished(within_us=within_us, every_us=SECOND)
        await process.stop()
        assert not watcher.crashes and not drivers._left_behind
        found.extend((server, intents(world), outcomes(world)))

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]  # the sandbox has seen none of it
    world.play(script)
    server, intended, said = found
    return world, server, intended, said


def test_the_next_intent_is_written_while_a_call_is_out(worlds: Worlds) -> None:
    world, server, intended, _ = play(worlds, answering(then=QUICKLY))
    assert world.counts_at_end == {"sent": 6}
    assert len(intended) == 6 and len(set(server.whom())) == 6
    # The first shows that answers come quickly. From then on the next intent is there by the time
    # of the answer, and the calls follow each other without a moment between them.
    between = [
        began - ended
        for (_, began, _), ended in zip(server.calls[2:], server.ends[1:], strict=False)
    ]
    assert between == [0, 0, 0, 0]
    ahead = sorted(row.at for row in intended)[2:]
    assert all(at < ended for at, ended in zip(ahead, server.ends[1:], strict=False))


def test_calls_are_made_one_after_the_other_and_in_order(worlds: Worlds) -> None:
    """The server itself refuses two at a time; here they are seen not to change places."""
    _, server, intended, _ = play(worlds, answering(then=QUICKLY), count=20)
    assert [row.delivery_id for row in intended] == sorted(row.delivery_id for row in intended)
    assert server.whom() == sorted(server.whom())
    for ended, (_, began, _) in zip(server.ends, server.calls[1:], strict=False):
        assert ended <= began


def test_each_is_begun_in_the_name_of_its_lane(worlds: Worlds) -> None:
    """Whoever stands in everybody's way is known by it, though the loop calls it by itself."""
    names: list[str | None] = []

    def at_call(world: World, number: int) -> None:
        names.append(on_whose_behalf())

    play(worlds, answering(then=QUICKLY), at_call=at_call)
    assert names == ["lane ann"] * 6


@pytest.mark.parametrize("answer", [NO, TOO_FAST, NOBODY, Outcome(OutcomeKind.UNKNOWN, "lost")])
def test_nothing_follows_an_answer_that_is_no_yes_before_it_was_heard(
    worlds: Worlds, answer: Outcome
) -> None:
    """The third is refused while the intent of the fourth is written: that is taken back, what
    follows from the refusal is done, and then it is sent."""
    world, server, intended, said = play(
        worlds, answering(QUICKLY, QUICKLY, (5 * MS, answer), then=QUICKLY)
    )
    withdrawn = [row for row in said if row.outcome == "withdrawn"]
    assert [row.reason for row in withdrawn] == [NO_YES]
    (back,) = withdrawn
    refused = next(row for row in said if row.outcome == answer.kind)
    again = [row for row in intended if row.delivery_id == back.delivery_id]
    assert len(again) == 2 and again[1].at >= refused.at
    assert world.counts_at_end["sent"] >= 5 and len(server.whom()) == len(intended) - 1
    if answer is TOO_FAST:
        assert again[1].at >= refused.at + MINUTE, "the wait that was asked for"


def test_an_answer_that_takes_long_takes_the_next_intent_back(worlds: Worlds) -> None:
    """What people want may change meanwhile, so no intent lies about for longer than a moment."""
    world, server, intended, said = play(
        worlds, answering(QUICKLY, (5 * MS, YES), (8 * SECOND, YES), then=QUICKLY)
    )
    assert world.counts_at_end == {"sent": 6}
    (back,) = [row for row in said if row.outcome == "withdrawn"]
    assert back.reason == SLOW
    written = min(row.at for row in intended if row.delivery_id == back.delivery_id)
    assert back.at - written <= LONGEST_US + MS
    assert len(server.calls) == 6


@pytest.mark.parametrize(
    ("waited_us", "reason"), [(LONGEST_US, None), (LONGEST_US + 1, SLOW)], ids=["short", "long"]
)
def test_so_does_one_that_is_heard_too_late_by_a_loop_that_stood_still(
    waited_us: int, reason: str | None
) -> None:
    """Or by a machine that did: the answer is there, and nobody has looked for too long."""

    class Calls:
        dropped = prompt = False

    class Memory:
        usage = policy = None

    class Flight:
        started_at = MONDAY_NINE

    async def script() -> None:
        memory: Any = Memory()
        calls: Any = Calls()
        flight: Any = Flight()
        clock = TwoClocks()
        looking = Lookahead(memory, clock, calls, land=calls, beside=calls)
        looking._out = flight
        turn = asyncio.ensure_future(looking.turn(list))
        await asyncio.sleep(0)
        clock.pass_by(waited_us)
        looking.landed(flight, clock.now())
        assert await turn == reason

    run_virtual(script(), start_at=MONDAY_NINE)


def test_where_answers_take_long_nothing_is_written_ahead(worlds: Worlds) -> None:
    slowly = (QUICK_US + MS, YES)
    _, server, _, said = play(worlds, answering(then=slowly))
    assert server.written() == [1, 2, 3, 4, 5, 6]
    assert not [row for row in said if row.outcome == "withdrawn"]


def test_where_answers_come_at_once_there_is_nothing_to_do_beside_them(worlds: Worlds) -> None:
    _, server, _, _ = play(worlds, answering(then=(AT_ONCE_US // 2, YES)))
    assert server.written() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "policy",
    [
        {"rate": "50/s"},
        {"spacing": "20ms"},
        {"min_gap": "20ms"},
        {"breaker": {"above": "20%"}},
    ],
    ids=str,
)
def test_whoever_has_a_pace_or_a_breaker_looks_at_every_answer_first(
    worlds: Worlds, policy: dict[str, Any]
) -> None:
    _, server, _, _ = play(worlds, answering(then=QUICKLY), policy=policy)
    assert server.written() == [1, 2, 3, 4, 5, 6]


def test_what_nobody_has_heard_of_is_sent_the_usual_way_before_the_next(worlds: Worlds) -> None:
    world, server, _, said = play(worlds, answering(QUICKLY, QUICKLY, (5 * MS, None), then=QUICKLY))
    assert world.counts_at_end == {"sent": 6}
    assert server.called["send"] == 1
    third = next(row for row in said if row.provider_id != "taken" and row.outcome == "accepted")
    later = [began for _, began, _ in server.calls[3:]]
    assert all(third.at <= began for began in later), "the next waits for it"


def test_a_call_that_is_never_answered_is_called_off_in_time(worlds: Worlds) -> None:
    world, _, _, said = play(worlds, answering(QUICKLY, QUICKLY, (HOUR, YES), then=QUICKLY))
    assert world.counts_at_end == {"sent": 5, "unknown": 1}
    doubt = next(row for row in said if row.outcome == "unknown")
    assert doubt.started_at is not None and doubt.reason == "no answer within 10 s"
    assert 10 * SECOND <= doubt.at - doubt.started_at <= 11 * SECOND


def test_a_person_who_wants_nothing_more_gets_nothing_more(worlds: Worlds) -> None:
    """Suppressed while the message before is out, and its own intent not yet written."""

    def at_call(world: World, number: int) -> None:
        if number == 3:
            for name in waiting(world)[1:]:
                world.write(lambda tx, name=name: tx.suppressions.add(name, "asked", "manual", 0))

    world, _, _, _ = play(worlds, answering(then=QUICKLY), at_call=at_call, count=8)
    # One more may have been on its way by then, as its intent was written before.
    assert world.counts_at_end["sent"] <= 4
    assert world.counts_at_end["skipped"] >= 4


def waiting(world: World) -> list[str]:
    found = world.read(lambda tx: tx.deliveries.page(limit=100))
    return sorted(row.target for row in found if row.state == "ready")


def test_a_lane_that_dies_leaves_two_in_doubt_at_most_and_sends_none_twice(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"timeout": "10s"}, finds=False)
        world.campaign(6)
        server = Server(world, answering(QUICKLY, QUICKLY, (40 * MS, YES), then=QUICKLY))
        process = world.process(providers=server.registry())
        await world.until(lambda: len(server.calls) == 3, every_us=MS)
        await world.wait(5 * MS)
        assert len(intents(world)) == 4, "the next one's intent is written"
        assert process.supervisor.kill("ann")
        await world.until(lambda: not process.supervisor._running, MINUTE)
        assert server.open_calls == 0, "its call ends with it"
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        assert len(set(server.whom())) == len(server.whom()), "none twice"

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]
    world.play(script)
    assert world.counts_at_end == {"sent": 4, "unknown": 2}


def test_whoever_ended_is_not_called_for() -> None:
    """A call that was to begin in a moment, of a lane that has died in that moment."""

    async def script() -> None:
        class Calls:
            dropped = True

            def set_off(self, *_: Any) -> Any:
                raise AssertionError("nobody is there to hear of it")

            came_to = set_off

        looking = Lookahead(
            Any,
            Any,
            Calls(),
            land=Calls().set_off,
            beside=Calls().set_off,  # type: ignore[arg-type]
        )
        looking._begin(Any, Any)  # type: ignore[arg-type]
        call: Call = asyncio.get_running_loop().create_future()
        call.set_result(None)
        looking._answered(Any, Any, call)  # type: ignore[arg-type]

    run_virtual(script(), start_at=0)
