"""Why not now? The answer names the gate, in words, with the instant it opens."""

import pytest

from paceline.core.errors import NotFoundError
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from paceline.core.model import Go, Refuse, Target, Wait
from paceline.core.states import AccountState, DeliveryState
from paceline.engine import queries
from paceline.engine.queries import Why
from tests.engine.scenes import (
    Begins,
    deliveries,
    delivery,
    finish,
    in_state,
    say,
    send_direct,
    sql,
    suppress,
    until,
)
from tests.engine.world import World

NOBODY = "no Paceline process is running: start one with 'paceline up'"


def why(world: World, about: str | int) -> Why:
    now = world.clock.now()
    return world.read(lambda tx: queries.delivery_or_account(tx, str(about), now))


def shut(answer: Why) -> dict[str, str]:
    return {gate.gate: gate.why for gate in answer.gates if not gate.open}


def test_a_reached_cap_is_named_with_its_numbers_and_its_end(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"email": 2}, "zone": "Europe/Paris"})
        world.campaign(3, action="email")
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.LIMIT_REACHED)
        waiting = delivery(world, "spring-0002")
        for about in ("ann", waiting.id):
            answer = why(world, about)
            midnight_at = parse_instant("2026-03-02T23:00:00Z")
            assert answer.verdict == Wait(midnight_at, "daily", "daily cap reached (2/2)")
            assert answer.delivery is not None and answer.delivery.id == waiting.id
            assert shut(answer) == {"daily": "daily cap reached (2/2)"}
            assert not answer.settled and answer.outside == []
        await process.stop()

    world.play(script)


@pytest.mark.parametrize(("begins", "shuts"), [("15:00", set()), ("20:30", {"hours"})])
def test_a_reached_cap_is_named_before_the_night_that_follows(
    calm: None, world_at: Begins, begins: str, shuts: set[str]
) -> None:
    world = world_at(parse_instant(f"2026-03-02T{begins}:00Z"))

    async def script(world: World) -> None:
        world.account(preset="cold-email", policy={"daily": {"email": 1}})
        world.campaign(3, action="email")
        process = world.process(poll_us=HOUR)
        await world.wait(3 * HOUR)
        answer = why(world, "ann")
        assert next(gate.gate for gate in answer.gates if not gate.open) == "daily"
        opens = {gate.gate: gate.opens_at for gate in answer.gates if not gate.open}
        assert opens["daily"] == parse_instant("2026-03-03T05:00:00Z")
        assert opens.keys() - {"not-before"} == {"daily", *shuts}
        # With a plan of its own from now on, it says so, and why.
        told = "scheduled for later: Daily cap reached (1/1)"
        text = "daily cap reached (1/1), then outside business hours"
        opens_at = parse_instant("2026-03-03T14:00:00Z")
        for waiting in in_state(world, DeliveryState.READY):
            verdict = why(world, waiting.id).verdict
            assert isinstance(verdict, Wait) and (verdict.until_at or 0) >= opens_at
            assert verdict.why == told or verdict.why.startswith(text)
        await process.stop()
        send_direct(world, "eve", action="email")
        direct = why(world, delivery(world, "eve").id).verdict
        office = "(Mon-Fri 09:00-18:00 America/New_York)"
        assert direct == Wait(opens_at, "daily", f"{text} {office}")

    world.play(script)


def test_closed_hours_are_named_with_their_opening(world_at: Begins) -> None:
    world = world_at(parse_instant("2026-03-07T12:00:00Z"))  # a Saturday

    async def script(world: World) -> None:
        world.account(preset="cold-email")
        world.campaign(1, action="email")
        answer = why(world, "ann")
        opens_at = parse_instant("2026-03-09T13:00:00Z")
        text = "outside business hours (Mon-Fri 09:00-18:00 America/New_York)"
        assert answer.verdict == Wait(opens_at, "hours", text)
        assert answer.outside == [NOBODY]

    world.play(script)


def test_a_spacing_a_rate_and_a_batch_are_named(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"spacing": "10m"})
        world.account("bob", policy={"rate": "6/h"})
        world.account("cid", policy={"spacing": "1m", "batch": "1 then 1h"})
        for name in ("ann", "bob", "cid"):
            world.campaign(2, name=f"of {name}", on=(name,))
        process = world.process()
        await until(world, lambda: len(world.sends()) == 3)
        await world.wait(MINUTE)
        assert shut(why(world, "ann")) == {"spacing": "spacing 10m since the last message"}
        assert shut(why(world, "bob")) == {"rate": "rate limit 6/h"}
        assert shut(why(world, "cid"))["batch"] == "batch of 1 done, pausing 1h"
        for name in ("ann", "bob", "cid"):
            verdict = why(world, name).verdict
            sent_at = world.calls(name)[0].called_at
            waits = {"ann": 10 * MINUTE, "bob": 10 * MINUTE, "cid": 61 * MINUTE}
            assert isinstance(verdict, Wait) and verdict.until_at == sent_at + waits[name]
        await process.stop()

    world.play(script)


def test_a_stop_a_paused_campaign_and_a_draft_are_told_beside_the_gates(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(1)
        world.campaign(1, name="draft", launch=False)
        assert why(world, "ann").outside == [NOBODY]
        assert isinstance(why(world, "ann").verdict, Go)
        say(world, "stop all")
        say(world, "pause campaign")
        answer = why(world, delivery(world, "spring-0000").id)
        assert answer.outside == [
            "everything is stopped: fire drill",
            "campaign spring is paused: paused by an operator",
            NOBODY,
        ]
        draft = why(world, delivery(world, "draft-0000").id)
        assert "campaign draft is waiting" in draft.outside
        assert not draft.settled

    world.play(script)


def test_a_paused_or_suspended_account_says_who_and_why(world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann")
        world.account("bob", unauthorised=True)
        world.campaign(2, on=("ann", "bob"))
        say(world, "pause account", "ann")
        process = world.process()
        await until(world, lambda: world.account_now("bob").state is AccountState.SUSPENDED)
        paused = why(world, "ann").verdict
        assert paused == Wait(None, "status", "account is paused: paused by an operator")
        suspended = why(world, "bob").verdict
        assert isinstance(suspended, Wait)
        assert suspended.why.startswith("account is suspended: the sandbox refuses the credentials")
        assert why(world, "ann").outside == []
        await process.stop()

    world.play(script)


def test_a_window_a_start_a_suppression_and_a_frequency_are_named(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"per_recipient": "1/day"})
        later_at = world.start_at + HOUR
        world.campaign(name="later", targets=[Target("later")], start_at=later_at)
        assert why(world, delivery(world, "later").id).verdict == Wait(
            later_at, "not-before", "scheduled for later"
        )
        send_direct(world, "eve")
        process = world.process()
        await until(world, lambda: len(world.sends()) == 1)
        await process.stop()
        world.campaign(name="again", targets=[Target("eve"), Target("adam")])
        suppress(world, "adam")
        twice, never = deliveries(world, lambda row: row.state is DeliveryState.READY)[1:]
        verdict = why(world, twice.id).verdict
        assert isinstance(verdict, Wait)
        assert verdict.why == "recipient was contacted already (at most 1/day)"
        assert abs((verdict.until_at or 0) - world.start_at - DAY) < 5 * SECOND
        assert why(world, never.id).verdict == Refuse("suppression", "recipient is suppressed")

    world.play(script)


def test_what_is_settled_is_past_the_question(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(targets=[Target("a"), Target("reject")])
        await finish(world)
        for name in ("a", "reject"):
            assert why(world, delivery(world, name).id).settled
        nothing = why(world, "ann")
        assert (nothing.delivery, nothing.settled) == (None, False)
        assert nothing.outside == ["nothing waits on this account", NOBODY]

    world.play(script)


def test_a_doubt_in_front_does_not_hide_what_really_waits(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"daily": {"message": 2}}, lost_at=[1], timeout_latency="1s", find_lag="10d"
        )
        world.campaign(4)
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.LIMIT_REACHED)
        (lost,) = in_state(world, DeliveryState.UNKNOWN)
        sql(world, "UPDATE deliveries SET due_at = 1 WHERE id = ?", lost.id)
        answer = why(world, "ann")
        assert answer.delivery is not None
        assert answer.delivery.state is DeliveryState.READY
        assert shut(answer) == {"daily": "daily cap reached (2/2)"}
        await process.stop()

    world.play(script)


def test_a_delivery_of_an_account_that_is_gone_is_answered_too(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(1)
        say(world, "remove account")
        answer = why(world, delivery(world, "spring-0000").id)
        assert answer.settled
        assert "account ann was removed" in answer.outside

    world.play(script)


@pytest.mark.parametrize("about", ["an", "999", "nobody at all"])
def test_what_nobody_knows_is_not_found(world: World, about: str) -> None:
    async def script(world: World) -> None:
        world.account()
        with pytest.raises(NotFoundError):
            why(world, about)

    world.play(script)


def test_an_account_may_be_named_by_a_number(world: World) -> None:
    async def script(world: World) -> None:
        world.account("4917")
        assert why(world, "4917").account.name == "4917"

    world.play(script)


def test_the_views_agree_with_what_was_sent(world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"rate": "60/min", "daily": {"message": 2}})
        world.account("bob", policy={"rate": "60/min"})
        world.campaign(8, on=("ann", "bob"))
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.LIMIT_REACHED)
        await world.wait(5 * SECOND)
        await process.stop()
        view = world.read(lambda tx: queries.campaign_view(tx, "spring"))
        assert view.total == 8
        assert (view.counts["sent"], view.counts["ready"]) == (6, 2)
        assert view.accounts["ann"]["sent"] == 2 and view.accounts["bob"]["sent"] == 4
        now = world.clock.now()
        account = world.read(lambda tx: queries.account_view(tx, "ann", now))
        assert account.usage.day == {"message": 2}
        assert account.lane.owner is None
        found = world.read(lambda tx: list(queries.deliveries_of(tx, view.campaign)))
        assert [row.position for row in found] == list(range(8))

    world.play(script)
