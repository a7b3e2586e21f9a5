"""An account that may write to nobody new, in a pool: it goes on with those it knows, and leaves
the strangers to the others."""

from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Content, Part, Wait
from paceline.engine import arrival, launching, planning, queries, run_queue
from paceline.engine.arrival import Eta
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.commands import signals
from paceline.engine.commands.campaigns import find
from paceline.engine.memory import take_snapshot
from paceline.engine.plan_view import Plan
from paceline.store.path_reads import PathReads
from paceline.store.waiting import Waiting
from tests.engine.scenes import deliveries, delivery, finish, send_direct, to, until
from tests.engine.world import Process, World

FAST = "10ms"


async def held(
    world: World, knows: dict[str, tuple[str, ...]], hold: str = "6h", **policies: dict[str, Any]
) -> Process:
    """Accounts, each of which knows some people and has just been told to write to nobody new."""
    now, providers = world.clock.now(), world.providers.names()
    said = {"scope": "new contacts", "for": hold}
    world.write(lambda tx: signals.set_rule(tx, "sandbox throttled", said, providers, now))
    for name, known in knows.items():
        policy = policies.get(name, {"rate": "60/min"})
        throttled = [len(known) + 1]
        world.account(name, policy=policy, throttle_at=throttled, retry_after=None, latency=FAST)
        world.campaign(name=f"of-{name}", targets=to(*known), on=(name,))
    process = world.process(poll_us=MINUTE)
    total = sum(map(len, knows.values()))
    await until(world, lambda: len(world.sends()) == total)
    # The next call meets the signal.
    for name, known in knows.items():
        send_direct(world, known[0], account=name)
    await until(world, lambda: len(world.sends()) == total + len(knows))
    return process


def sent(world: World, since: int = 0) -> list[tuple[str, str]]:
    return [(effect.account, effect.target) for effect in world.sends()][since:]


def test_the_lane_goes_on_with_those_it_knows_and_leaves_the_others(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        process = await held(world, {"ann": ("old-1", "old-2")})
        world.account("bob", policy={"hours": "12:00-13:00 UTC"}, latency=FAST)
        targets = to("new-1", "new-2", "old-1", "new-3", "old-2")
        world.campaign(targets=targets, on=("ann", "bob"), assignment="pooled")
        before = {row.target: row.due_at for row in deliveries(world) if row.state == "ready"}
        await until(world, lambda: len(world.sends()) == 5, within_us=3 * MINUTE)
        assert sent(world, 3) == [("ann", "old-1"), ("ann", "old-2")]
        waiting = [row for row in deliveries(world) if row.state == "ready"]
        assert [row.target for row in waiting] == ["new-1", "new-2", "new-3"]
        assert {row.account_id for row in waiting} == {None}, "nobody has taken them"
        assert all(row.due_at == before[row.target] for row in waiting), "nor moved them"
        why = world.read(lambda tx: queries.why_delivery(tx, waiting[0].id, world.clock.now()))
        assert isinstance(why.verdict, Wait) and why.account.name == "bob"
        await finish(world, process=process, every_us=MINUTE, within_us=DAY)
        # Bob is there at noon, and ann would not have been before three.
        assert {account for account, _ in sent(world, 5)} == {"bob"}

    world.play(script)
    assert world.counts_at_end == {"sent": 5}


def test_the_held_one_takes_the_strangers_when_its_hold_is_over(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        process = await held(world, {"ann": ("old-1", "old-2")}, hold="2h")
        world.account("bob", policy={"hours": "20:00-21:00 UTC"}, latency=FAST)
        over_at = world.clock.now() + 2 * HOUR
        world.campaign(targets=to("new-1", "old-1"), on=("ann", "bob"), assignment="pooled")
        await until(world, lambda: len(world.sends()) == 4, within_us=3 * MINUTE)
        # Somebody we know joins later, in another campaign, and does not wait for the first.
        await world.wait(HOUR)
        again = to("new-2", "old-2")
        world.campaign(name="more", targets=again, on=("ann", "bob"), assignment="pooled")
        await until(world, lambda: len(world.sends()) == 5, within_us=5 * MINUTE)
        assert sent(world, 3) == [("ann", "old-1"), ("ann", "old-2")]
        await finish(world, "spring", "more", process=process, every_us=MINUTE, within_us=DAY)
        assert {account for account, _ in sent(world, 5)} == {"ann"}
        assert world.sends()[-1].called_at < over_at + 5 * MINUTE

    world.play(script)
    assert world.counts_at_end == {"sent": 2}


def test_each_held_account_of_a_pool_goes_on_with_its_own(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        knows = {"ann": ("a-1", "a-2"), "bob": ("b-1", "b-2")}
        process = await held(world, knows)
        targets = to("new-1", "b-1", "a-1", "new-2", "b-2", "a-2")
        world.campaign(targets=targets, on=("ann", "bob"), assignment="pooled")
        await until(world, lambda: len(world.sends()) == 10, within_us=3 * MINUTE)
        assert sorted(sent(world, 6)) == [
            ("ann", "a-1"),
            ("ann", "a-2"),
            ("bob", "b-1"),
            ("bob", "b-2"),
        ]
        assert {delivery(world, name).account_id for name in ("new-1", "new-2")} == {None}
        await finish(world, process=process, every_us=MINUTE, within_us=DAY)

    world.play(script)
    assert world.counts_at_end == {"sent": 6}


def test_many_strangers_are_looked_at_once_and_not_with_every_message(
    calm: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    acquainted = PathReads.acquainted

    def noted(self: PathReads, *values: Any) -> Any:
        found = acquainted(self, *values)
        looked.append(len(found))
        return found

    monkeypatch.setattr(PathReads, "acquainted", noted)
    monkeypatch.setattr(run_queue, "STRETCH", 50)

    async def script(world: World) -> None:
        known = tuple(f"old-{number}" for number in range(20))
        process = await held(world, {"ann": known})
        world.account("bob", policy={"hours": "20:00-21:00 UTC"}, latency=FAST)
        strangers = [f"new-{number:03}" for number in range(400)]
        targets = to(*strangers[:300], *known[:10], *strangers[300:], *known[10:])
        world.campaign(targets=targets, on=("ann", "bob"), assignment="pooled")
        await until(world, lambda: len(world.sends()) == 41, within_us=3 * MINUTE)
        assert [target for _, target in sent(world, 21)] == list(known)
        await world.wait(HOUR)
        # All of them once, and for each message those right behind it.
        assert len(looked) < 50 and sum(looked) < 420 + 20 * 50 + 100
        before = len(looked)
        await world.wait(2 * HOUR)
        assert len(looked) <= before + 4, "a lane that has nobody left sleeps"
        await process.stop()

    world.play(script)


def test_a_hold_that_begins_while_a_stranger_is_next(calm: None, world: World) -> None:
    """It was read before the signal came, and nobody else is kept from it."""

    async def script(world: World) -> None:
        now, providers = world.clock.now(), world.providers.names()
        said = {"scope": "new contacts", "for": "6h"}
        world.write(lambda tx: signals.set_rule(tx, "sandbox throttled", said, providers, now))
        world.account("ann", policy={"rate": "60/min"}, throttle_at=[4], retry_after=None)
        world.account("bob", policy={"hours": "12:00-13:00 UTC"}, latency=FAST)
        world.campaign(name="before", targets=to("old-1", "old-2", "old-3"), on=("ann",))
        process = world.process(poll_us=MINUTE)
        await until(world, lambda: len(world.sends()) == 3)
        targets = to("new-1", "new-2", "old-1", "new-3", "old-2")
        world.campaign(targets=targets, on=("ann", "bob"), assignment="pooled")
        await until(world, lambda: len(world.sends()) == 5, within_us=3 * MINUTE)
        assert sent(world, 3) == [("ann", "old-1"), ("ann", "old-2")]
        await world.wait(30 * SECOND)
        free = [row.target for row in deliveries(world) if row.account_id is None]
        assert free == ["new-2", "new-3"], "the one that met the signal is ann's to try again"
        await finish(world, process=process, every_us=MINUTE, within_us=DAY)

    world.play(script)
    assert world.counts_at_end == {"sent": 5}


def test_a_stranger_that_was_read_just_before_the_hold_stays_where_it_is(
    calm: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, unaware = run_queue.RunQueue.read, ["once"]

    async def a_moment_before(
        self: run_queue.RunQueue, now: int, nobody_new: Wait | None = None, elsewhere: int = 0
    ) -> None:
        early = self.run.campaign == "spring" and nobody_new is not None and unaware
        await read(self, now, None if early and unaware.pop() else nobody_new, elsewhere)

    monkeypatch.setattr(run_queue.RunQueue, "read", a_moment_before)

    async def script(world: World) -> None:
        process = await held(world, {"ann": ("old-1", "old-2")})
        world.account("bob", policy={"hours": "12:00-13:00 UTC"}, latency=FAST)
        targets = to("new-1", "old-1", "new-2", "old-2")
        world.campaign(targets=targets, on=("ann", "bob"), assignment="pooled")
        due = {row.target: row.due_at for row in deliveries(world)}
        await until(world, lambda: len(world.sends()) == 5, within_us=3 * MINUTE)
        assert sent(world, 3) == [("ann", "old-1"), ("ann", "old-2")] and not unaware
        for name in ("new-1", "new-2"):
            row = delivery(world, name)
            assert (row.account_id, row.due_at) == (None, due[name])
        await finish(world, process=process, every_us=MINUTE, within_us=DAY)

    world.play(script)
    assert {account for account, _ in sent(world, 5)} == {"bob"}


# ---------------------------------------------------------------------- foreseen


def foreseen(world: World, name: str = "spring") -> Eta:
    found = world.read(lambda tx: arrival.eta(tx, find(tx, name), world.clock.now()))
    assert found is not None
    return found


def test_the_plan_and_the_time_of_arrival_know_who_is_a_stranger(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        process = await held(world, {"ann": ("old-1", "old-2")})
        await process.stop()
        held_until_at = (
            world.read(lambda tx: take_snapshot(tx, world.account_now().id, world.clock.now()))
            .usage()
            .holds.newcomers_until_at
        )
        now = world.clock.now()
        assert now + 5 * HOUR < held_until_at
        spec = CampaignSpec("wanted", ("ann",), Content((Part("text", "hello"),)))
        targets = to("new-0", "new-1", "old-1", "new-2", "old-2")
        plan = planned_for(world, spec, *(target.address for target in targets))
        assert plan.finish_at == held_until_at + 2 * SECOND, "a second apart, right after it"
        assert plan.binding is not None
        assert plan.binding.words == "a signal's hold binds 60 % of messages"
        only = planned_for(world, spec, "old-1", "old-2")
        assert only.finish_at is not None and only.finish_at < now + MINUTE
        # Stored, and laid out at its launch: the strangers get slots after the hold.
        world.campaign(targets=targets, launch=False)
        launching.launch(world.store, "spring", now, world.providers)
        slots = {row.target: row.due_at for row in deliveries(world) if row.state == "ready"}
        assert slots["new-2"] == held_until_at + 2 * SECOND and slots["old-2"] < now + MINUTE
        # While only strangers are left it says what they wait for.
        world.campaign(name="strange", targets=to("new-3", "new-4"))
        ahead = foreseen(world, "strange")
        assert ahead.next_at is not None and ahead.next_at >= held_until_at
        assert ahead.waits_for.startswith("nobody is written to for the first time: throttled")
        process = world.process("two", poll_us=MINUTE)
        await finish(world, "spring", "strange", process=process, every_us=MINUTE, within_us=DAY)
        assert abs(world.sends()[-1].called_at - held_until_at) < 10 * SECOND

    world.play(script)


def planned_for(world: World, spec: CampaignSpec, *names: str) -> Plan:
    now = world.clock.now()
    return world.read(lambda tx: planning.plan_campaign(tx, spec, to(*names), world.house, now))


def test_the_time_of_arrival_of_a_pool_with_a_held_account_comes_true(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        known = tuple(f"old-{number}" for number in range(10))
        process = await held(world, {"ann": known}, ann={"spacing": "20s"})
        world.account("bob", policy={"spacing": "10m"}, latency=FAST)
        strangers = [f"new-{number}" for number in range(12)]
        targets = to(*strangers[:6], *known[:5], *strangers[6:], *known[5:])
        began_at, before = world.clock.now(), len(world.sends())
        world.campaign(targets=targets, on=("ann", "bob"), assignment="pooled")
        ahead = foreseen(world)
        assert ahead.finish_at is not None
        await finish(world, process=process, every_us=SECOND, within_us=DAY)
        really_us = world.sends()[-1].called_at - began_at
        assert abs(ahead.finish_at - began_at - really_us) <= 0.05 * really_us
        by_ann = [target for account, target in sent(world, before) if account == "ann"]
        assert set(by_ann) == set(known), "bob takes the strangers, and they are first in line"

    world.play(script)
    assert world.counts_at_end == {"sent": 22}


def test_nobody_asks_who_is_known_while_no_hold_stands(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("nobody needs to know")

    monkeypatch.setattr(Waiting, "known", refuse)
    monkeypatch.setattr(PathReads, "acquainted", refuse)

    async def script(world: World) -> None:
        for name in ("ann", "bob"):
            world.account(name, policy={"rate": "60/min"})
        world.campaign(6, on=("ann", "bob"), assignment="pooled")
        assert foreseen(world).left == 6
        await finish(world)

    world.play(script)
