"""The courier in virtual time: in order, patiently, and never in silence."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from paceline.core.errors import InputError, NotFoundError
from paceline.core.events import EventKind
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.engine.commands import webhooks
from paceline.engine.courier import GIVE_UP_US, PAGE, pause_after
from paceline.engine.ports import Alert, Posted
from tests.engine.receiver import (
    DOWN,
    OK,
    Receiver,
    courier_of,
    happen,
    hook,
    keep_looking,
    kinds,
)
from tests.engine.world import World


def alerts(world: World) -> list[Alert]:
    return world.read(lambda tx: tx.alerts.list())


def test_what_happens_is_brought_in_order_and_once(world: World) -> None:
    async def script(world: World) -> None:
        receiver = Receiver(world)
        happen(world, 3)
        courier = courier_of(world, receiver)
        assert await courier.look() == 0, "what happened before it was known is history"
        ids = happen(world, PAGE + 20)
        assert await courier.look() == len(ids)
        assert await courier.look() == 0
        assert receiver.taken == receiver.ids == ids
        _, name, event = receiver.tried[0]
        assert name == f"test-{ids[0]}"
        assert event == {
            "id": ids[0],
            "kind": "sending.resumed",
            "at": "2026-03-02T09:00:00Z",
            "text": "something",
            "data": {},
        }
        now_is = hook(world)
        assert (now_is.cursor, now_is.delivered, now_is.lease_until_at) == (ids[-1], len(ids), None)

    world.play(script)


def test_nobody_is_told_what_they_do_not_want_to_hear(world: World) -> None:
    async def script(world: World) -> None:
        receiver = Receiver(world)
        courier = courier_of(world, receiver, "sending.stopped")
        await courier.look()
        happen(world, 250)
        wanted = happen(world, kind=EventKind.SENDING_STOPPED)
        last = happen(world, 3)[-1]
        assert await courier.look() == 1
        assert receiver.ids == wanted
        assert hook(world).cursor == last
        happen(world, 2)
        assert await courier.look() == 0
        assert hook(world).cursor == last + 2, "they are not looked at again"

    world.play(script)


def test_what_is_not_taken_is_tried_again_ever_later_and_those_after_it_wait(
    world: World,
) -> None:
    async def script(world: World) -> None:
        receiver = Receiver(world, usual=DOWN)
        courier = courier_of(world, receiver)
        await courier.look()
        first, second = happen(world, 2)
        await keep_looking(world, courier, 10 * MINUTE, SECOND)
        assert set(receiver.ids) == {first}, "in order, or not at all"
        waits = [later[0] - before[0] for before, later in pairwise(receiver.tried)]
        assert waits == [10 * SECOND, 20 * SECOND, 40 * SECOND, 80 * SECOND, 160 * SECOND]
        assert len({(name, json.dumps(event)) for _, name, event in receiver.tried}) == 1
        now_is = hook(world)
        assert (now_is.failures, now_is.problem) == (6, "answered 500: oops")
        assert alerts(world) == [], "a quarter of an hour is given before anybody is woken"
        await keep_looking(world, courier, HOUR, SECOND)
        (alert,) = alerts(world)
        assert alert.text == (
            "webhook crm has taken nothing since 2026-03-02 09:00 UTC: answered 500: oops"
        )
        receiver.usual = OK
        await keep_looking(world, courier, HOUR, MINUTE)
        assert receiver.taken == [first, second]
        assert alerts(world) == []
        now_is = hook(world)
        assert (now_is.failures, now_is.failing_since_at, now_is.problem) == (0, None, "")

    world.play(script)


def test_pauses_end_at_an_hour_and_a_wish_to_wait_is_heeded(world: World) -> None:
    assert [pause_after(n) for n in (1, 2, 10, 99)] == [10 * SECOND, 20 * SECOND, HOUR, HOUR]

    async def script(world: World) -> None:
        asked = [
            Posted(503, "busy", 5 * MINUTE),
            Posted(429, "less", SECOND),
            Posted(429, "no", 9 * DAY),
        ]
        receiver = Receiver(world, answers=asked)
        courier = courier_of(world, receiver)
        await courier.look()
        happen(world)
        await keep_looking(world, courier, 2 * HOUR, SECOND)
        waits = [later[0] - before[0] for before, later in pairwise(receiver.tried)]
        assert waits == [5 * MINUTE, 20 * SECOND, HOUR]

    world.play(script)


def test_after_a_day_an_event_is_given_up_and_everybody_hears_which(world: World) -> None:
    async def script(world: World) -> None:
        receiver = Receiver(world)
        courier = courier_of(world, receiver)
        await courier.look()
        poison, other = happen(world, 2)
        receiver.refuses = lambda e: Posted(400, "never") if e["id"] == poison else None
        await keep_looking(world, courier, GIVE_UP_US - MINUTE)
        assert (receiver.taken, hook(world).skipped) == ([], 0)
        await keep_looking(world, courier, 2 * HOUR)
        (skipped,) = [
            event
            for event in world.read(lambda tx: tx.events.latest())
            if event.kind == "webhook.skipped"
        ]
        assert skipped.data == {
            "webhook": "crm",
            "event": poison,
            "kind": "sending.resumed",
            "problem": "never",
        }
        assert receiver.taken == [other, skipped.id], "it goes on, and is told what it has missed"
        assert hook(world).skipped == 1
        (alert,) = alerts(world)
        assert alert.kind == "webhook.skipped"
        assert f"has not taken event {poison} (sending.resumed) for a day" in alert.text
        assert 25 <= receiver.ids.count(poison) <= 40

    world.play(script)


def test_somebody_who_is_gone_for_a_week_gets_what_is_less_than_a_day_old(world: World) -> None:
    async def script(world: World) -> None:
        receiver = Receiver(world, usual=DOWN)
        courier = courier_of(world, receiver)
        await courier.look()
        by_day = []
        for _ in range(7):
            by_day.append(happen(world, 3))
            await keep_looking(world, courier, DAY, 10 * MINUTE)
        late = happen(world)
        assert hook(world).skipped >= 18, "each is given up in its turn, not one a day"
        assert 18 <= kinds(world).count("webhook.skipped") <= 21
        receiver.usual = OK
        await keep_looking(world, courier, 2 * HOUR)
        assert late[0] in receiver.taken
        assert not {id_ for day in by_day[:5] for id_ in day} & set(receiver.taken)
        every = {id_ for day in by_day for id_ in day}
        given_up = {
            event.data["event"]
            for event in world.read(lambda tx: tx.events.latest(limit=500))
            if event.kind == "webhook.skipped"
        }
        assert every == given_up | (every & set(receiver.taken)), "none is lost in silence"
        assert receiver.taken == sorted(receiver.taken)

    world.play(script)


def test_a_webhook_that_is_dead_is_not_told_of_itself_for_ever(world: World) -> None:
    async def script(world: World) -> None:
        receiver = Receiver(world, usual=DOWN)
        courier = courier_of(world, receiver)
        await courier.look()
        happen(world)
        await keep_looking(world, courier, 6 * DAY, 10 * MINUTE)
        assert kinds(world).count("webhook.skipped") == 1
        assert hook(world).skipped == 2, "the event, and what was said of it"

    world.play(script)


def test_whoever_answers_gone_hears_no_more_until_somebody_says_so(world: World) -> None:
    async def script(world: World) -> None:
        receiver = Receiver(world, answers=[OK, Posted(410, "answered 410")])
        courier = courier_of(world, receiver)
        await courier.look()
        first, second, third = happen(world, 3)
        assert await courier.look() == 1
        await keep_looking(world, courier, 2 * DAY, HOUR)
        assert receiver.ids == [first, second]
        assert hook(world).disabled_at is not None
        (alert,) = alerts(world)
        assert alert.text == "webhook crm is sent nothing any more: answered 410"
        now = world.clock.now()
        world.write(lambda tx: webhooks.resume(tx, "crm", now))
        assert alerts(world) == []
        await courier.look()
        assert receiver.taken[:3] == [first, second, third]
        assert kinds(world)[-1] == "webhook.disabled"

    world.play(script)


def test_an_operator_may_have_it_told_once_more(world: World) -> None:
    async def script(world: World) -> None:
        receiver = Receiver(world)
        courier = courier_of(world, receiver)
        await courier.look()
        first, second, third = happen(world, 3)
        await courier.look()
        now = world.clock.now()
        world.write(lambda tx: webhooks.resume(tx, "crm", now, from_event=second))
        assert await courier.look() == 2
        assert receiver.taken == [first, second, third, second, third]
        world.write(lambda tx: webhooks.resume(tx, "crm", now, from_event=third + 1))
        assert await courier.look() == 0
        with pytest.raises(InputError, match=f"there are events from 1 to {third}"):
            world.write(lambda tx: webhooks.resume(tx, "crm", now, from_event=third + 2))
        with pytest.raises(NotFoundError, match=r"no webhook named 'crn' .* did you mean 'crm'"):
            world.write(lambda tx: webhooks.resume(tx, "crn", now))

    world.play(script)
