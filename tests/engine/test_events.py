"""Every event on the list happens, and nothing happens that is not on it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import paceline
from paceline.core.events import EVENTS, EventKind
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
from paceline.core.model import Content, Part, Target
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.commands import (
    accounts,
    audiences,
    campaigns,
    control,
    erasing,
    freezing,
    reminder_runs,
    reminders,
    retrying,
    returns,
    signals,
)
from paceline.engine.commands.reassigning import reassign
from paceline.engine.ports import Event, Inbound, Posted, Returned, Tx
from paceline.engine.unsubscribing import unsubscribe
from tests.engine.receiver import Receiver, courier_of, happen, keep_looking
from tests.engine.scenes import change, finish, say, to, until
from tests.engine.test_people import know
from tests.engine.test_reminders import EIGHT, remind
from tests.engine.world import World

Script = Callable[[World], Coroutine[Any, Any, None]]

FAST = {"rate": "60/s"}


async def of_accounts(world: World) -> None:
    world.account(policy=FAST)
    change(world, overrides={"daily": {"message": 2}, "zone": "Atlantic/Azores"})
    say(world, "pause account")
    say(world, "resume account")
    world.campaign(3)
    process = world.process(park_after_us=0, poll_us=MINUTE)
    await until(world, lambda: world.account_now().state == "limit_reached")
    await until(world, lambda: world.account_now().state == "active", MINUTE, 2 * DAY)
    await process.stop()
    say(world, "remove account")


async def of_bans(world: World) -> None:
    world.account("ann", policy=FAST, ban_after=1, ban_for="1h")
    world.account("bob", policy=FAST, unauthorised_after=1)
    world.campaign(4, on=("ann", "bob"))
    process = world.process()
    for name, state in (("ann", "cooling_down"), ("bob", "suspended")):
        await until(world, lambda n=name, s=state: world.account_now(n).state == s)
    await process.stop()


async def of_campaigns(world: World) -> None:
    world.account(policy=FAST)
    world.campaign(targets=to("a", "reject"))
    say(world, "pause campaign")
    say(world, "resume campaign")
    await finish(world)
    now = world.clock.now()
    world.write(lambda tx: retrying.retry_failed(tx, "spring", now))
    world.campaign(2, name="autumn")
    say(world, "cancel campaign", "autumn")


async def of_people(world: World) -> None:
    world.account(policy=FAST)
    know(world, 2)
    now = world.clock.now()
    reached = {"audience": "news", "audience_revision": 0, "route": "email"}
    spec = CampaignSpec(
        name="spring",
        accounts=("ann",),
        content=Content((Part("text", "hello"),)),
        audience=reached,
        action="email",
    )
    targets = [Target("p0@example.com")]
    world.write(lambda tx: campaigns.create(tx, spec, targets, world.providers, now))
    world.write(lambda tx: freezing.freeze(tx, "spring", world.providers, now))
    world.write(lambda tx: erasing.erase(tx, "p0@example.com", now))
    world.write(lambda tx: audiences.remove(tx, "news", now))


async def of_operators(world: World) -> None:
    world.account(policy=FAST, finds=False, timeout_latency="1s")
    say(world, "stop all")
    say(world, "go on")
    now = world.clock.now()
    world.write(lambda tx: signals.set_rule(tx, "* throttled", {"for": "2m"}, ["sandbox"], now))
    world.campaign(targets=to("timeout"))
    await finish(world)
    world.write(lambda tx: control.resolve_unknown(tx, 1, "sent", world.clock.now()))


async def of_reminders(world: World) -> None:
    for name in ("ann", "bea"):
        world.account(name, preset="whatsapp-established")
    remind(world, 200)
    for act in (reminders.disable, reminders.enable, reminders.pause, reminders.resume):
        world.write(lambda tx, act=act: act(tx, "standup", world.clock.now()))
    new = {"window": "5-19"}
    now = world.clock.now()
    world.write(lambda tx: reminders.edit(tx, "standup", new, world.providers, now))
    process = world.process()
    await world.wait(HOUR + 3 * MINUTE)
    world.write(lambda tx: accounts.pause(tx, "ann", world.clock.now()))
    await world.wait(10 * SECOND)
    at = world.clock.now()
    world.write(lambda tx: reassign(tx, "standup", world.providers, at, to_accounts=["bea"]))
    await world.wait(HOUR)
    await process.stop()
    world.write(lambda tx: accounts.resume(tx, "ann", world.clock.now()))
    await world.wait(2 * DAY)
    late = world.process("late")
    await world.wait(MINUTE)
    await late.stop()
    now = world.clock.now()
    world.write(lambda tx: reminder_runs.cancel(tx, "standup", now))
    world.write(lambda tx: reminders.remove(tx, "standup", now))


async def of_letters(world: World) -> None:
    world.account()
    world.campaign(3)
    await finish(world)
    now, instance = world.clock.now(), world.read(lambda tx: tx.settings.get("instance"))
    back = Returned("bounced", "", "no such user", 0, key=f"{instance}-1-0")
    called_spam = Returned("complaint", "", "abuse", 0, key=f"{instance}-2-0")
    account = world.account_now()
    world.write(lambda tx: returns.take_in(tx, account, [back, called_spam], now))
    world.write(lambda tx: unsubscribe(tx, 3, now))


async def of_wishes(world: World) -> None:
    world.account()
    for word in ("STOP", "START"):
        news = [Inbound(word, "+34600111222", "+34600111222", word, 0)]
        world.write(partial(_taken_in, news=news, now=world.clock.now()))


def _taken_in(tx: Tx, news: list[Inbound], now: Instant) -> None:
    account = tx.accounts.find("ann")
    assert account is not None
    returns.prepare(tx, news)
    returns.take_in(tx, account, news, now)


async def of_webhooks(world: World) -> None:
    receiver = Receiver(world, usual=Posted(500, "down"))
    courier = courier_of(world, receiver)
    await courier.look()
    happen(world)
    await keep_looking(world, courier, DAY + 2 * HOUR, 10 * MINUTE)
    receiver.usual = Posted(410, "gone")
    await keep_looking(world, courier, 2 * HOUR, 10 * MINUTE)


K = EventKind
STORIES: list[tuple[Script, set[EventKind]]] = [
    (
        of_accounts,
        {
            *(K.ACCOUNT_ADDED, K.ACCOUNT_CHANGED, K.ACCOUNT_PAUSED, K.ACCOUNT_ACTIVE),
            *(K.ACCOUNT_LIMIT_REACHED, K.ACCOUNT_REMOVED),
        },
    ),
    (of_bans, {K.ACCOUNT_COOLING_DOWN, K.ACCOUNT_SUSPENDED}),
    (
        of_campaigns,
        {
            *(K.CAMPAIGN_CREATED, K.CAMPAIGN_LAUNCHED, K.CAMPAIGN_PAUSED, K.CAMPAIGN_RESUMED),
            *(K.CAMPAIGN_RETRIED, K.CAMPAIGN_CANCELLED, K.RUN_STARTED, K.RUN_FINISHED),
        },
    ),
    (of_people, {K.CAMPAIGN_FROZEN, K.CONTACT_ERASED, K.AUDIENCE_REMOVED}),
    (
        of_operators,
        {K.SENDING_STOPPED, K.SENDING_RESUMED, K.SIGNALS_CHANGED, K.UNKNOWN_RESOLVED},
    ),
    (
        of_reminders,
        {
            *(K.REMINDER_CREATED, K.REMINDER_EDITED, K.REMINDER_ENABLED, K.REMINDER_DISABLED),
            *(K.REMINDER_PAUSED, K.REMINDER_RESUMED, K.REMINDER_REASSIGNED),
            *(K.REMINDER_CANCELLED, K.REMINDER_REMOVED),
            *(K.RUN_FIRED, K.RUN_STARTED, K.RUN_PROGRESS, K.RUN_FINISHED, K.RUN_MISSED),
        },
    ),
    (of_letters, {K.DELIVERY_RETURNED, K.RECIPIENT_COMPLAINED, K.RECIPIENT_UNSUBSCRIBED}),
    (of_wishes, {K.RECIPIENT_OPTED_OUT, K.RECIPIENT_OPTED_IN}),
    (of_webhooks, {K.WEBHOOK_SKIPPED, K.WEBHOOK_DISABLED}),
]


@pytest.mark.parametrize(
    ("story", "expected"), STORIES, ids=[story.__name__ for story, _ in STORIES]
)
def test_it_happens(tmp_path: Path, story: Script, expected: set[EventKind]) -> None:
    world = World(str(tmp_path / "events.db"), EIGHT)
    found: list[Event] = []

    async def script(world: World) -> None:
        await story(world)
        found.extend(world.read(lambda tx: tx.events.latest(limit=10_000)))

    world.play(script)
    assert expected <= {event.kind for event in found}
    for event in found:
        assert set(event.data) == set(EVENTS[EventKind(event.kind)].fields)
        if event.kind.startswith("run."):
            assert event.data["run"] == event.run_id
            assert (event.data["campaign"] is None) != (event.data["reminder"] is None)


def test_every_one_on_the_list_happens_in_one_of_the_stories() -> None:
    told = set().union(*(kinds for _, kinds in STORIES))
    assert set(EventKind) - told == {EventKind.WEBHOOK_TEST}, "which is never stored"


def test_nobody_writes_a_kind_out(tmp_path: Path) -> None:
    """A kind that is spelled where it is raised would be found out only when it happens."""
    calls = []
    for path in Path(paceline.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".events.add"):
                kind = ast.unparse(node.args[0])
                assert kind == "kind" or kind.startswith("EventKind."), f"{path.name}: {kind}"
                calls.append(kind)
    assert len(calls) > 20
