"""What a lane reads ahead: in few visits to the store, and never past what it has not seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
from paceline.core.model import Ask, Wait
from paceline.engine.chooser import Chooser
from paceline.engine.memory import policy_from, policy_of
from paceline.engine.pages import Page
from paceline.engine.ports import Delivery, Journal, Run
from paceline.engine.run_queue import RunQueue
from tests.engine.world import World


def read_at(patch: pytest.MonkeyPatch) -> list[Instant]:
    """When pages were read in a visit of their own."""
    visits: list[Instant] = []
    read = RunQueue.read

    async def watched(queue: RunQueue, now: Instant, *rest: object) -> None:
        visits.append(now)
        await read(queue, now, *rest)  # type: ignore[arg-type]

    patch.setattr(RunQueue, "read", watched)
    return visits


def test_a_lane_that_wakes_for_one_message_reads_no_page_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither before it, nor after it to find out when the next is due."""
    visits = read_at(monkeypatch)

    async def script(world: World) -> None:
        world.account(policy={"spacing": "5m"})
        world.campaign(6)
        process = world.process()
        await world.until_finished(within_us=2 * HOUR, every_us=MINUTE)
        await process.stop()
        assert len(world.sends()) == 6
        assert not visits

    world.play(script)


def test_what_falls_due_after_a_page_is_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits = read_at(monkeypatch)

    async def script(world: World) -> None:
        account = world.account(policy={"rate": "60/s"})
        world.campaign(3)
        start_at = world.clock.now()
        due = [start_at, start_at + 30 * SECOND, start_at + 90 * SECOND]
        with world.store.write() as tx:
            (run,) = tx.runs.of_campaign(tx.campaigns.list()[0].id)
            rows = tx.path.due(account.id, run.id, start_at, 3)
            for row, due_at in zip(rows, due, strict=True):
                tx.deliveries.postpone(row.id, due_at, "")
        process = world.process()
        await world.until_finished(within_us=HOUR, every_us=SECOND)
        await process.stop()
        sent = [effect.at for effect in world.sends()]
        late = [at - due_at for at, due_at in zip(sent, due, strict=True)]
        assert all(0 <= late_us < SECOND for late_us in late), late
        assert len(visits) == 2, "once for each that was not due at first"

    world.play(script)


def test_who_was_written_to_meanwhile_is_asked_for_anew(world: World) -> None:
    """What a delivery asks for is remembered while it waits, but not beyond what was learned."""

    async def script(world: World) -> None:
        account = world.account(policy={"per_recipient": "1/day"})
        world.campaign(1)
        now = world.clock.now()
        with world.store.read() as tx:
            (run,) = tx.runs.of_campaign(tx.campaigns.list()[0].id)
            (delivery,) = tx.path.due(account.id, run.id, now, 1)

        class Told:
            async def read(self, work: object) -> dict[str, tuple[Instant, ...]]:
                return {delivery.target: (now,)}

        queue = RunQueue(run, account.id, policy_of(account), cast("Journal", Told()))
        content = queue.content_of(delivery)
        before = queue.ask(delivery, content)
        assert queue.ask(delivery, content) is before
        assert not before.contacted
        assert await queue.contacted_anew(delivery, now)
        assert queue.ask(delivery, content).contacted == (now,)

    world.play(script)


NOW: Instant = 1_000 * HOUR


@pytest.mark.parametrize("page", [0, 1])
@pytest.mark.parametrize("next_due_at", [None, NOW - 1, NOW, NOW + 5])
@pytest.mark.parametrize("expected", [[], [NOW], [NOW + 3], [NOW + 9]])
@pytest.mark.parametrize("put_off", [None, NOW, NOW + 4])
@pytest.mark.parametrize("elsewhere", [0, 1])
@pytest.mark.parametrize("paced", [False, True])
def test_whoever_is_let_sleep_has_nothing_to_be_seen_to(
    page: int,
    next_due_at: Instant | None,
    expected: list[Instant],
    put_off: Instant | None,
    elsewhere: int,
    paced: bool,
) -> None:
    """And is woken when whoever looked would have said so."""
    run = cast("Run", SimpleNamespace(id=1, pooled=False, window=None))
    queue = RunQueue(run, 1, policy_from({}), None)
    rows = [cast("Delivery", SimpleNamespace(due_at=NOW - 2, target="a"))] * page
    queue.take(Page(rows, next_due_at, {}, NOW, paced))
    queue.usual = Ask()
    for due_at in expected:
        queue.expect(due_at)
    if put_off is not None and not page:
        queue._put_off = Wait(put_off, "hours", "shut")
    until_at = queue.asleep_until(NOW, elsewhere)
    idle = not queue.must_read(NOW, elsewhere) and queue.first is None
    if until_at is not None:
        assert idle and queue.waits_for(NOW) is None and queue.paced_at is None
        assert until_at == queue.next_due_at
    else:
        assert not idle or paced or queue._put_off or next_due_at is None


def test_runs_that_wait_for_their_day_are_not_gone_through_for_every_message(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: dict[str, int] = {}
    serve = Chooser._serve

    async def counted(self: Chooser, queue: RunQueue, *more: Any, **named: Any) -> Any:
        served[queue.run.campaign] = served.get(queue.run.campaign, 0) + 1
        return await serve(self, queue, *more, **named)

    monkeypatch.setattr(Chooser, "_serve", counted)

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        tomorrow = world.clock.now() + DAY
        for number in range(5):
            world.campaign(2, name=f"later-{number}", start_at=tomorrow)
        world.campaign(20)
        process = world.process()
        await world.until(lambda: len(world.sends()) == 20)
        assert served["spring"] >= 20
        assert all(count <= 1 for name, count in served.items() if name != "spring"), served
        await world.until(lambda: len(world.sends()) == 30, within_us=2 * DAY, every_us=MINUTE)
        await process.stop()

    world.play(script)
