"""People in a running system: opt-outs, erasures, and nobody written to on two channels at once."""

import pytest

from paceline.core.errors import ConflictError
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Target
from paceline.engine.audience_columns import Columns
from paceline.engine.commands import audiences, erasing, history, suppressions
from paceline.engine.commands.history import Past, PastRow
from paceline.engine.people import reached_by, recognised, revision_now, targets_of
from paceline.engine.routes import route
from tests.engine.scenes import deliveries, finish, until
from tests.engine.world import MONDAY_NINE, World

ONCE = {"per_recipient": "1/day", "rate": "60/min"}


def know(world: World, count: int, name: str = "news") -> None:
    """An audience whose members each have an e-mail address and a phone number."""
    columns = Columns.of(["email", "phone", "first_name"])
    rows = [
        columns.person(
            n, {"email": f"p{n}@example.com", "phone": f"+49151{10_000_000 + n}", "first_name": "P"}
        )
        for n in range(count)
    ]
    now = world.clock.now()
    audience_id = world.write(lambda tx: tx.audiences.open(name, now).id)
    world.write(lambda tx: audiences.take_in(tx, audience_id, rows, now))


def members(world: World, action: str, channel: str = "") -> list[Target]:
    return world.read(lambda tx: targets_of(tx, "news", route(action, [channel]))).targets


# ---------------------------------------------------------------------- opt-outs


def test_an_opt_out_is_in_force_before_the_next_message(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(targets=[Target(f"p{n}@example.com") for n in range(20)])
        process = world.process()
        await until(world, lambda: len(world.sends()) >= 3, every_us=SECOND // 10)
        gone = [effect.target for effect in world.sends()]
        left = [row.target for row in deliveries(world) if row.state == "ready"]
        now = world.clock.now()
        for target in left[:3]:
            assert world.write(lambda tx, to=target: suppressions.add(tx, to.upper(), "left", now))
        await finish(world, process=process)
        after = {effect.target for effect in world.sends()} - set(gone)
        assert not after & set(left[:3]), "read ahead or not, they are not written to"

    world.play(script)
    assert world.counts_at_end == {"sent": 17, "skipped": 3}


# ---------------------------------------------------------------------- how often


def test_nobody_gets_a_mail_and_a_message_on_the_same_day(calm: None, world: World) -> None:
    """Two accounts on two channels begin at the same instant with the same person."""

    async def script(world: World) -> None:
        know(world, 12)
        world.account("mail", policy=ONCE)
        world.account("chat", policy=ONCE)
        world.campaign(name="spring", on=("mail",), targets=members(world, "email"), action="email")
        chats = members(world, "message", "whatsapp")
        world.campaign(name="hello", on=("chat",), targets=chats)
        process = world.process(poll_us=HOUR)
        await world.wait(HOUR)
        assert len(world.sends()) == 12, "one for each, today"
        await finish(world, "spring", "hello", process=process, every_us=HOUR, within_us=3 * DAY)

    world.play(script)
    people: dict[int, list[tuple[str, int]]] = {}
    for effect in world.sends():
        number = (
            int(effect.target[-5:])
            if effect.target[0] == "+"
            else int(effect.target[1:].split("@")[0])
        )
        people.setdefault(number, []).append((effect.account, effect.called_at))
    assert len(people) == 12
    for calls in people.values():
        (one, first_at), (other, second_at) = sorted(calls, key=lambda call: call[1])
        assert {one, other} == {"mail", "chat"}
        assert second_at - first_at >= DAY - SECOND


def test_two_processes_do_not_get_in_first_together(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        know(world, 1)
        for name in ("ann", "bob", "cleo"):
            world.account(name, policy=ONCE)
            action = "email" if name == "ann" else "message"
            world.campaign(name=name, on=(name,), targets=members(world, action), action=action)
        processes = [world.process(name, poll_us=HOUR) for name in ("one", "two", "three")]
        await world.wait(MINUTE)
        assert len(world.sends()) == 1
        await world.wait(DAY)
        assert len(world.sends()) == 2
        for process in processes:
            await process.stop()

    world.play(script)


# ---------------------------------------------------------------------- erasing


def test_whoever_is_erased_while_a_campaign_runs_gets_nothing_more(world: World) -> None:
    async def script(world: World) -> None:
        know(world, 10)
        world.account(policy={"rate": "60/min"})
        world.campaign(targets=members(world, "email"), action="email")
        process = world.process()
        await until(world, lambda: len(world.sends()) >= 3, every_us=SECOND // 10)
        gone = world.sends()[0].target
        waiting = [row.target for row in deliveries(world) if row.state == "ready"][-1]
        now = world.clock.now()
        for target in (gone, waiting):
            done = world.write(lambda tx, to=target: erasing.erase(tx, to, now))
            assert (done.deliveries, done.cancelled) == (1, int(target == waiting))
        await finish(world, process=process)
        assert waiting not in {effect.target for effect in world.sends()}
        known = {row.target for row in deliveries(world)}
        assert not known & {gone, waiting}
        assert world.read(lambda tx: targets_of(tx, "news", route("email"))).audience.members == 8

    world.play(script)
    assert world.counts_at_end == {"sent": 9, "cancelled": 1}


def test_a_message_on_its_way_is_waited_for(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="5s")
        world.campaign(targets=[Target("eve@example.com")])
        process = world.process()
        await until(world, lambda: deliveries(world)[0].state == "sending", SECOND // 10)
        now = world.clock.now()
        with pytest.raises(ConflictError, match="on its way right now"):
            world.write(lambda tx: erasing.erase(tx, "eve@example.com", now))
        assert deliveries(world)[0].target == "eve@example.com", "nothing is half done"
        await finish(world, process=process)
        world.write(lambda tx: erasing.erase(tx, "eve@example.com", world.clock.now()))

    world.play(script)


def test_limits_still_hold_for_the_erased(calm: None, world: World) -> None:
    """Written to, erased, signed up again: it is still the same day."""

    async def script(world: World) -> None:
        know(world, 1)
        world.account(policy=ONCE)
        world.campaign(targets=members(world, "email"), action="email")
        await finish(world)
        now = world.clock.now()
        world.write(lambda tx: erasing.erase(tx, "p0@example.com", now))
        again = [Columns.of(["email"], opt_in="form").person(1, {"email": "P0@example.com"})]
        news = world.read(lambda tx: tx.audiences.find("news"))
        assert news is not None
        taken, rejects = world.write(
            lambda tx: audiences.take_in(tx, news.id, again, now, again=True)
        )
        assert (taken.changed, taken.joined, rejects) == (1, 1, [])
        world.campaign(name="again", targets=members(world, "email"), action="email")
        process = world.process("two", poll_us=HOUR)
        await world.wait(HOUR)
        assert len(world.sends()) == 1
        await finish(world, "again", process=process, every_us=HOUR, within_us=2 * DAY)
        assert len(world.sends()) == 2

    world.play(script)


# ---------------------------------------------------------------------- audiences


def test_an_audience_becomes_targets_by_what_is_sent(world: World) -> None:
    async def script(world: World) -> None:
        know(world, 2)
        world.account()
        columns = Columns.of(["linkedin", "name"])
        row = columns.person(1, {"linkedin": "linkedin.com/in/Cleo", "name": "Cleo"})
        news = world.write(lambda tx: tx.audiences.open("news", MONDAY_NINE))
        world.write(lambda tx: audiences.take_in(tx, news.id, [row], MONDAY_NINE))
        found = world.read(lambda tx: reached_by(tx, "news", "email", ["ann"], world.providers))
        assert [target.address for target in found.targets] == ["p0@example.com", "p1@example.com"]
        assert found.targets[0].fields == {
            "email": "p0@example.com",
            "phone": "+4915110000000",
            "first_name": "P",
        }
        assert [(who, why) for _, who, why in found.unreachable] == [
            ("Cleo", "has no e-mail address")
        ]
        assert found.settings() == {"audience": "news", "audience_revision": 2}
        assert world.read(lambda tx: revision_now(tx, found.settings())) == 2
        assert world.read(lambda tx: revision_now(tx, {})) is None
        (invited,) = members(world, "connection_request")
        assert (invited.address, invited.contact_id) == ("cleo", 3)
        assert len(members(world, "message", "whatsapp")) == 2
        assert len(members(world, "message")) == 3, "any address will do where nobody says which"

    world.play(script)


def test_targets_are_recognised_and_merged(world: World) -> None:
    async def script(world: World) -> None:
        know(world, 2)
        wanted = [Target("P1@example.com"), Target("+49151 10000001"), Target("p1@EXAMPLE.com")]
        found = world.write(lambda tx: recognised(tx, wanted))
        assert [(target.address, target.contact_id) for target in found] == [
            ("p1@example.com", 2),
            ("+4915110000001", 2),
        ]

    world.play(script)


# ---------------------------------------------------------------------- the past


def test_what_was_sent_before_counts_from_the_first_day(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        policy = {"daily": {"email": 5}, "spacing": "10m", "hours": "Mon-Sun 08:00-18:00 UTC"}
        world.account(policy=policy)
        now = world.clock.now()
        rows = [PastRow(n, now - n * MINUTE, "ann", "email", "") for n in range(1, 4)]
        new, rejects = world.write(
            lambda tx: history.take_in(tx, rows, Past(), world.providers, now)
        )
        assert (new, rejects) == (3, [])
        world.campaign(8, action="email")
        process = world.process(poll_us=HOUR)
        await world.wait(DAY // 2)
        first, second = world.sends()
        assert first.called_at - (now - MINUTE) >= 10 * MINUTE, "as far from the last as from ours"
        assert second.called_at - first.called_at >= 10 * MINUTE
        await finish(world, process=process, every_us=HOUR, within_us=4 * DAY)

    world.play(script)
