"""Pooled campaigns: whoever can send first takes the next, and nobody is written to twice."""

from collections import Counter

from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Content, Part, Step
from paceline.core.states import DeliveryState
from paceline.engine import launching, queries
from paceline.engine.commands import accounts, campaigns
from tests.engine.scenes import deliveries, finish
from tests.engine.world import World

POOL = ("ann", "bob", "cyd")


def _pool(world: World, *rates: str) -> None:
    for name, rate in zip(POOL, rates, strict=False):
        world.account(name, policy={"rate": rate})


def test_the_quick_account_takes_what_the_slow_one_cannot(world: World) -> None:
    async def script(world: World) -> None:
        _pool(world, "60/min", "6/min")
        world.campaign(44, on=POOL[:2], assignment="pooled")
        assert world.counts() == {"ready": 44}
        assert {row.account_id for row in deliveries(world)} == {None}
        view = world.read(lambda tx: queries.campaign_view(tx, "spring"))
        assert view.accounts[queries.POOLED][DeliveryState.READY] == 44
        await finish(world)
        assert world.counts() == {"sent": 44}

    world.play(script)
    by_account = Counter(effect.account for effect in world.sends())
    # Ten times the rate, so about ten in eleven; split in halves the slow one would take minutes.
    assert by_account["ann"] >= 39
    assert by_account["bob"] >= 4
    assert max(effect.at for effect in world.sends()) - world.start_at <= 45 * SECOND


def test_two_processes_share_a_pool_without_sending_anything_twice(world: World) -> None:
    async def script(world: World) -> None:
        _pool(world, "60/min", "60/min", "60/min")
        world.campaign(60, on=POOL, assignment="pooled", parts=(Part("text", "a"),) * 2)
        processes = [world.process(name, poll_us=SECOND) for name in ("one", "two")]
        await world.until_finished(within_us=10 * MINUTE)
        for process in processes:
            await process.stop()
        assert world.counts() == {"sent": 60}

    world.play(script)
    assert len(world.sends()) == 120
    # Both parts of a message come from the same account.
    owners = {(e.key.rsplit("-", 1)[0], e.account) for e in world.sends()}
    assert len(owners) == 60
    assert set(Counter(account for _, account in owners)) == set(POOL)


def test_a_pool_goes_on_when_one_of_it_is_banned(world: World) -> None:
    async def script(world: World) -> None:
        _pool(world, "60/min", "60/min")
        world.account("eva", policy={"rate": "60/min"}, ban_after=3)
        world.campaign(40, on=("ann", "bob", "eva"), assignment="pooled")
        process = world.process()
        await world.until(lambda: world.account_now("eva").state == "suspended", every_us=SECOND)
        await world.until(lambda: not world.counts().get("ready", 0), every_us=SECOND)
        await process.stop()

    world.play(script)
    # What the banned account was refused is its own to try again; nothing else is left behind.
    assert world.counts_at_end["sent"] >= 39
    assert len(world.sends("eva")) == 3


def test_an_account_of_a_pool_that_sleeps_leaves_the_work_to_the_others(world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"hours": "Mon-Fri 20:00-22:00 UTC"})
        world.account("bob", policy={"daily": {"message": 4}})
        world.campaign(10, on=("ann", "bob"), assignment="pooled")
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: world.counts().get("sent") == 4, every_us=MINUTE)
        await world.wait(HOUR)
        waiting = next(row for row in deliveries(world) if row.state == "ready")
        why = world.read(lambda tx: queries.why_delivery(tx, waiting.id, world.clock.now()))
        # The evening comes before tomorrow: the answer is that of the account that will send it.
        assert why.account.name == "ann"
        await world.until_finished(every_us=MINUTE, within_us=2 * DAY)
        await process.stop()

    world.play(script)
    assert Counter(effect.account for effect in world.sends()) == {"bob": 4, "ann": 6}


def test_removing_the_last_account_of_a_pool_calls_off_what_is_nobodys(world: World) -> None:
    async def script(world: World) -> None:
        _pool(world, "60/min", "60/min")
        world.campaign(5, on=POOL[:2], assignment="pooled")
        world.write(lambda tx: accounts.remove(tx, "ann", world.clock.now()))
        assert world.counts() == {"ready": 5}
        world.write(lambda tx: accounts.remove(tx, "bob", world.clock.now(), cancel=True))
        assert world.counts() == {"cancelled": 5}
        assert {row.reason for row in deliveries(world)} == {"account bob removed"}

    world.play(script)


def test_pausing_and_cancelling_a_pooled_campaign(world: World) -> None:
    async def script(world: World) -> None:
        _pool(world, "60/min", "60/min")
        world.campaign(30, on=POOL[:2], assignment="pooled")
        process = world.process()
        await world.until(lambda: world.counts().get("sent", 0) >= 5)
        world.write(lambda tx: campaigns.pause(tx, "spring", world.clock.now()))
        await world.wait(5 * SECOND)
        sent = world.counts()["sent"]
        await world.wait(MINUTE)
        assert world.counts() == {"sent": sent, "ready": 30 - sent}
        world.write(lambda tx: campaigns.resume(tx, "spring", world.clock.now()))
        await world.until(lambda: world.counts()["sent"] >= sent + 4)
        world.write(lambda tx: campaigns.cancel(tx, "spring", world.clock.now()))
        await world.wait(MINUTE)
        assert set(world.counts()) == {"sent", "cancelled"}
        await process.stop()

    world.play(script)


def test_nobody_follows_up_for_an_account_that_was_removed(world: World) -> None:
    async def script(world: World) -> None:
        _pool(world, "60/min", "60/min")
        again = Step(HOUR, Content((Part("text", "again"),)))
        world.campaign(10, on=POOL[:2], assignment="pooled", steps=(again, again))
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: world.counts().get("sent", 0) == 10)
        mine = sum(row.account_id == world.account_now("ann").id for row in deliveries(world))
        assert 0 < mine < 10
        world.write(lambda tx: accounts.remove(tx, "ann", world.clock.now(), cancel=True))
        await world.until_finished(every_us=MINUTE, within_us=DAY)
        assert world.counts() == {"sent": 30 - 2 * mine, "cancelled": mine, "skipped": mine}
        gone = {row.reason for row in deliveries(world) if row.state is DeliveryState.CANCELLED}
        assert gone == {"account ann removed"}
        await process.stop()

    world.play(script)


def test_what_can_never_go_from_one_account_goes_from_another(calm: None, world: World) -> None:
    """The campaign is for Saturdays; one of the pool works on weekdays only."""
    window = Hours.parse("Sat 09:00-12:00 UTC")

    async def script(world: World) -> None:
        world.account("ann", policy={"hours": "Mon-Fri 09:00-18:00 UTC"})
        world.account("bob", policy={"rate": "6/min"})
        world.campaign(10, on=("ann", "bob"), assignment="pooled", window=window, launch=False)
        found = launching.launch(world.store, "spring", world.clock.now(), world.providers)
        assert (len(found.plan.slots), found.plan.nevers) == (10, ())
        await finish(world, every_us=HOUR, within_us=7 * DAY, poll_us=HOUR)

    world.play(script)
    assert Counter(effect.account for effect in world.sends()) == {"bob": 10}
