"""Accounts that cannot be opened: tried again for as long as it takes, and people are told."""

from __future__ import annotations

import pytest

from paceline.core.instants import HOUR, MILLISECOND, SECOND, parse_instant
from paceline.core.model import Go
from paceline.engine import alerts, queries
from paceline.engine.away import Away, AwayBook
from paceline.engine.ports import Account, Driver
from paceline.engine.queries import Why
from tests.engine.doubles import Act, Double
from tests.engine.scenes import deliveries, delivery, finish, until
from tests.engine.test_slow_commits import SlowRunner
from tests.engine.world import World
from tests.engine.worlds import Worlds

CLOSED = "the sandbox is away, so {} cannot be opened"


def why(world: World, about: str | int = "ann") -> Why:
    now = world.clock.now()
    return world.read(lambda tx: queries.delivery_or_account(tx, str(about), now))


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


# ---------------------------------------------------------------------- why not now?


def test_why_says_that_it_cannot_be_opened_and_when_it_is_tried_again(world: World) -> None:
    async def script(world: World) -> None:
        world.account(unavailable=["2026-03-02T09:00Z..2026-03-02T09:01Z"])
        world.campaign(2)
        assert why(world).away is None
        process = world.process()
        await world.wait(10 * SECOND)
        for about in ("ann", delivery(world, "spring-0001").id):
            answer = why(world, about)
            assert isinstance(answer.verdict, Go), "no gate keeps it"
            assert answer.away is not None
            at, again_at = answer.away.at, answer.away.again_at
            assert answer.away.reason == CLOSED.format("ann")
            assert again_at is not None and again_at - at == 20 * SECOND
            assert answer.outside == [
                f"ann could not be opened at 09:00:00 UTC: {CLOSED.format('ann')}; "
                "it is tried again at 09:00:20 UTC"
            ]
        view = world.read(lambda tx: queries.account_view(tx, "ann", world.clock.now()))
        assert view.held == answer.outside[0]
        await world.wait(20 * SECOND)
        later = why(world).away
        assert later is not None and later.at >= at + 20 * SECOND, "the last time counts"
        await until(world, lambda: world.state() == "finished")
        await process.stop()
        assert why(world).away is None

    world.play(script)
    assert world.counts_at_end == {"sent": 2}


@pytest.mark.parametrize("commit_us", [0, 40 * MILLISECOND])
def test_while_it_is_tried_again_and_from_then_on(
    calm: None, worlds: Worlds, commit_us: int
) -> None:
    """Opening takes a while and fails; the next time it takes as long, and does not. However long
    it took to write down the intent of what was sent then."""
    told: list[Away | None] = []

    async def script(world: World) -> None:
        real = world.providers.get("sandbox")

        async def slowly(opening: Act, account: Account) -> Driver:
            await world.wait(5 * SECOND)
            told.append(why(world).away)
            opened: Driver = await opening(account)
            return opened

        periods = ["2026-03-02T09:00:00Z..2026-03-02T09:00:20Z"]
        world.account(policy={"spacing": "10s"}, unavailable=periods)
        world.campaign(3)
        provider = Double(real, open=slowly)
        process = world.process(providers=provider.registry())
        process.journal._writer = SlowRunner(world, commit_us)
        await until(world, lambda: world.counts().get("sent") == 1)
        assert why(world).away is None, "it was opened, and waits for its own pace"
        await finish(world, process=process)

    worlds.fresh().play(script)
    assert told[0] is None
    assert told[1] is not None and told[1].again_at is None, "it is being tried just now"


@pytest.mark.parametrize(("spacing", "first"), [("12s", "ben"), ("1h", "ann")])
def test_of_a_pool_whoever_can_send_first_answers(
    calm: None, world: World, spacing: str, first: str
) -> None:
    async def script(world: World) -> None:
        world.account("ann", unavailable=["2026-03-02T09:00Z..2026-03-02T10:00Z"])
        world.account("ben", policy={"spacing": spacing})
        world.campaign(3, on=("ann", "ben"), assignment="pooled")
        process = world.process()
        await world.wait(10 * SECOND)
        waits = next(row for row in deliveries(world) if row.state == "ready")
        answer = why(world, waits.id)
        assert answer.account.name == first
        assert (answer.away is not None) is (first == "ann")
        await process.stop()

    world.play(script)
