"""Accounts that cannot be opened: tried again for as long as it takes, and people are told."""

from __future__ import annotations

from paceline.core.instants import HOUR, SECOND, parse_instant
from paceline.engine import alerts
from paceline.engine.away import AwayBook
from tests.engine.scenes import deliveries, finish, until
from tests.engine.world import World


def test_a_long_outage_costs_no_message_a_retry_and_is_told(world: World) -> None:
    async def script(world: World) -> None:
        world.account(unavailable=["2026-03-02T09:00Z..2026-03-02T09:10Z"])
        world.campaign(2)
        process = world.process()
        await world.wait(30 * SECOND)
        assert world.read(lambda tx: tx.alerts.list()) == [], "the first few times are nobody's"
        await until(world, lambda: bool(world.read(lambda tx: tx.alerts.list())))
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert alert.kind == "account.away" and alert.account_id is not None
        assert alert.text == (
            "account ann could not be opened 3 times in a row: "
            "the sandbox is away, so ann cannot be opened"
        )
        await finish(world, process=process, within_us=HOUR)
        assert {(row.retries, row.attempts) for row in deliveries(world)} == {(0, 1)}
        (later,) = world.read(lambda tx: tx.alerts.list())
        assert later.id == alert.id and later.count > 1
        quiet_at = world.clock.now() + alerts.QUIET_US
        assert world.write(lambda tx: alerts.clear_quiet(tx, quiet_at)) == 1

    world.play(script)
    assert world.counts_at_end == {"sent": 2}


def test_it_is_counted_in_a_row() -> None:
    book = AwayBook()
    assert [book.note(1), book.note(1), book.note(2), book.note(1)] == [1, 2, 1, 3]
    book.opened(1)
    assert (book.note(1), book.note(2)) == (1, 2)


def test_two_short_outages_are_told_to_nobody(world: World) -> None:
    async def script(world: World) -> None:
        periods = [f"2026-03-02T09:{at}:00Z..2026-03-02T09:{at}:30Z" for at in ("00", "20")]
        world.account(unavailable=periods)
        world.campaign(1)
        process = world.process()
        await until(world, lambda: world.state() == "finished")
        await world.wait(parse_instant("2026-03-02T09:20:00Z") - world.clock.now())
        world.campaign(1, name="autumn")
        await until(world, lambda: world.state("autumn") == "finished")
        await process.stop()
        assert world.read(lambda tx: tx.alerts.list()) == []

    world.play(script)
