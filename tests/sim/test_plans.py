"""The plan against the play: without failures the real end is within 5 % of the planned one.

Both are given the same accounts and campaigns. The plan asks the pacer in virtual time; the play
runs the whole engine, its store and an imaginary provider that takes its time over every call.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, parse_instant
from paceline.core.model import Content, Part, Target
from paceline.core.plan import Layout, lay_out
from paceline.core.presets import preset
from paceline.core.states import DeliveryState
from paceline.engine import arrival
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.clock import LoopClock
from paceline.engine.commands.campaigns import find
from paceline.engine.ground import as_they_stand, gather
from paceline.engine.plan_view import Plan
from paceline.engine.planning import plan_campaign
from paceline.sim.mailing import ZONES, Mailing
from paceline.sim.simulation import perform
from paceline.sim.stage import Stage, set_stage
from paceline.sim.trace import Trace
from paceline.sim.worlds import Sender, World
from paceline.store.database import open_store

TWO = (Part("text", "one"), Part("text", "two"))
MONDAY = parse_instant("2026-03-02T09:00:00Z")
BEFORE_THE_CLOCKS_CHANGE = parse_instant("2026-10-26T12:00:00Z")
"""In New York they are put back on the Sunday after."""


def world(*mailings: Mailing, start_at: Instant = MONDAY, senders: int = 1, **policy: Any) -> World:
    """Fair weather from the beginning, and nobody who interferes; nor anybody who waits through
    nights in which nothing is due."""
    names = tuple(f"account-{number}" for number in range(senders))
    return World(
        "plan",
        start_at,
        lasts_us=0,
        calm_us=400 * DAY,
        senders=tuple(Sender(name, policy) for name in names),
        mailings=tuple(mailings),
        processes=1,
        poll_us=MINUTE,
        operated=False,
        tended=False,
        rests=True,
    )


def mailing(targets: int, name: str = "letters", senders: int = 1, **more: Any) -> Mailing:
    return Mailing(name, tuple(f"account-{n}" for n in range(senders)), targets, **more)


def launched(targets: int, **more: Any) -> Mailing:
    """A campaign that is laid out by its launch, as every real one is."""
    return mailing(targets, planned=True, **more)


class StillClock(LoopClock):
    """Nobody runs while a plan is made, so no time passes."""

    def now(self) -> Instant:
        return self.epoch_at


@contextmanager
def stage(of: World, folder: Path) -> Iterator[Stage]:
    """The accounts and campaigns of a world, and nobody who runs."""
    clock = StillClock(of.start_at)
    store = open_store(f"sqlite:///{folder / 'plan.db'}", clock=clock.now, durable=False)
    try:
        yield set_stage(of, "none", random.Random, clock, store, Trace(clock.now))
    finally:
        store.close()


def planned(of: World, folder: Path) -> Plan:
    """The plan of a world's last campaign before it is stored; the others are under way."""
    *others, sent = of.mailings
    spec = CampaignSpec(
        name=sent.name,
        accounts=sent.senders,
        content=Content(sent.parts),
        action=sent.action,
        window=sent.window,
        at_close=sent.at_close,
        recipient_hours=sent.recipient_hours,
        expire_after_us=sent.expire_after_us,
        assignment=sent.assignment,
        steps=sent.steps,
        priority=sent.priority,
    )
    targets = [
        Target(sent.address(number), {"zone": ZONES[number % len(ZONES)]})
        for number in range(sent.targets)
    ]
    before = replace(of, mailings=tuple(others))
    with stage(before, folder) as set_up, set_up.around.store.read() as tx:
        return plan_campaign(tx, spec, targets, set_up.house, of.start_at)


def expected(of: World, folder: Path) -> dict[str, Instant]:
    """When each campaign of a world that is launched and has not begun will be done."""
    found = {}
    with stage(of, folder) as set_up, set_up.around.store.read() as tx:
        for sent in of.mailings:
            ahead = arrival.eta(tx, find(tx, sent.name), of.start_at)
            assert ahead is not None and ahead.finish_at is not None and ahead.stuck == 0
            found[sent.name] = ahead.finish_at
    return found


def played(of: World, seed: int = 1) -> tuple[dict[str, Instant], Counter[DeliveryState]]:
    """When the last message of each campaign really leaves, and what becomes of all of them."""
    verdict, evidence = perform(seed, of, "none")
    assert verdict.violations == ()
    ends: dict[str, Instant] = {}
    for call in evidence.calls:
        name = evidence.runs[evidence.by_id[call.delivery_id].run_id].campaign
        ends[name] = max(ends.get(name, 0), call.at)
    return ends, Counter(delivery.state for delivery in evidence.deliveries)


def assert_near(plan_at: Instant, real_at: Instant, start_at: Instant) -> None:
    lasts_us, really_us = plan_at - start_at, real_at - start_at
    assert abs(really_us - lasts_us) <= 0.05 * lasts_us, (lasts_us / HOUR, really_us / HOUR)


COLD = {**preset("cold-email")}
WINDOW = Hours.parse("Mon-Sun 09:00-11:30 Europe/Paris")

SINGLE: dict[str, Callable[[], World]] = {
    "cold e-mail from five accounts over two weeks and a change of clocks": lambda: world(
        launched(900, senders=5, action="email"),
        start_at=BEFORE_THE_CLOCKS_CHANGE,
        senders=5,
        **COLD,
    ),
    "WhatsApp, forty a minute": lambda: world(launched(300), **preset("whatsapp-established")),
    "WhatsApp, two parts each": lambda: world(
        launched(150, parts=TWO), **preset("whatsapp-established")
    ),
    "parts one after the other": lambda: world(
        launched(100, parts=TWO), rate="60/min burst 5", part_gap="2s..4s"
    ),
    "document D, conservative": lambda: world(launched(300), spacing="5s", batch="50 then 60s"),
    "document D, optimised": lambda: world(launched(300), **preset("campaign-whatsapp")),
    "LinkedIn, daily and weekly caps": lambda: world(
        launched(160, action="connection_request"),
        **preset("linkedin"),
        zone="America/New_York",
    ),
    "a warm-up": lambda: world(
        launched(180, action="email"),
        **(COLD | {"daily": {"email": 60}, "spacing": "2m..6m", "min_gap": "2m"}),
        warmup="10 +25%/day to 60",
    ),
    "a window that goes on the next day": lambda: world(
        launched(300, window=WINDOW), spacing="30s..90s"
    ),
    "recipients in five zones with hours of their own": lambda: world(
        launched(120, recipient_hours="09:00-12:00"), spacing="1m..3m"
    ),
    "a mailbox under its quota": lambda: world(
        launched(1_100, action="email"), rate="60/min", zone="UTC", daily={"email": 500}
    ),
}


@pytest.mark.parametrize("name", SINGLE)
def test_the_real_end_is_within_five_per_cent_of_the_plan(name: str, tmp_path: Path) -> None:
    of = SINGLE[name]()
    plan = planned(of, tmp_path)
    assert plan.unreachable == () and plan.finish_at is not None
    ends, states = played(of)
    assert states == {DeliveryState.SENT: plan.messages}
    assert_near(plan.finish_at, ends["letters"], of.start_at)


def test_nobody_misses_anything_by_resting() -> None:
    """The same messages on the same days, in a fraction of the steps: nights are not played."""
    policy = {"daily": {"email": 20}, "spacing": "1m", "zone": "UTC"}
    rested = world(launched(50, action="email"), **policy)
    awake = replace(rested, rests=False)
    (one, seen), (other, watched) = (perform(1, of, "none") for of in (rested, awake))
    assert [call.at for call in seen.calls] == [call.at for call in watched.calls]
    assert one.violations == other.violations == ()
    assert one.events * 3 < other.events, (one.events, other.events)


# ---------------------------------------------------------------------- several campaigns


ASLEEP = {"recipient_hours": "12:00-20:00"}
CLOSES = Hours.parse("Mon-Sun 08:00-10:30 Europe/Paris")

SHARED: dict[str, Callable[[], World]] = {
    "two campaigns take turns": lambda: world(
        mailing(40, "one"), mailing(60, "two"), spacing="20s", batch="7 then 1m"
    ),
    "priorities": lambda: world(
        mailing(30, "one"), mailing(30, "two", priority=5), mailing(30, "three"), rate="20/min"
    ),
    "a window that closes leaves out the rest": lambda: world(
        mailing(100, "one"),
        mailing(100, "two", window=CLOSES, at_close="skip"),
        spacing="1m",
    ),
    "who sleeps steps aside": lambda: world(
        mailing(50, "one", **ASLEEP), mailing(50, "two"), spacing="2m", hours="08:00-18:00 UTC"
    ),
    "some expire": lambda: world(
        mailing(60, "one", expire_after_us=HOUR), mailing(20, "two"), spacing="1m"
    ),
    "each kind has a cap of its own": lambda: world(
        # Laid out beforehand: what two caps put off at two times goes in the order of those.
        mailing(50, "one", action="email", planned=True),
        mailing(50, "two", action="message", planned=True),
        daily={"email": 10, "message": 30},
        spacing="1m",
        zone="Europe/Paris",
    ),
    "nobody twice within a day": lambda: world(
        mailing(25, "one", audience="all"),
        mailing(25, "two", audience="all"),
        per_recipient="1/day",
        spacing="3m",
    ),
    "two accounts, one of them shared": lambda: world(
        mailing(40, "one", senders=2), mailing(40, "two"), senders=2, rate="30/min burst 4"
    ),
    "several parts, several at a time": lambda: world(
        mailing(40, "one", parts=TWO), mailing(40, "two"), rate="60/min", concurrency=3
    ),
}


@pytest.mark.parametrize("name", SHARED)
def test_every_message_leaves_when_and_in_the_order_that_was_planned(
    name: str, tmp_path: Path
) -> None:
    """To the second, and whatever is left out: nothing is drawn here, and calls take no time."""
    of = SHARED[name]()
    prompt = tuple(replace(sender, settings={"latency": "0s"}) for sender in of.senders)
    of = replace(of, senders=prompt)
    layout = laid_out(of, tmp_path)
    verdict, evidence = perform(1, of, "none")
    assert verdict.violations == ()
    really: dict[int, Instant] = {}
    for call in evidence.calls:
        really.setdefault(call.delivery_id, call.at)
    skipped = {d.id for d in evidence.deliveries if d.state is DeliveryState.SKIPPED}
    assert {never.key for never in layout.nevers} == skipped
    assert {slot.key for slot in layout.slots} == really.keys()
    for account_id in evidence.accounts:
        ours = [slot.key for slot in layout.slots if slot.account_id == account_id]
        assert ours == [key for key in really if evidence.by_id[key].account_id == account_id]
    late = [(slot.key, really[slot.key] - slot.at) for slot in layout.slots]
    assert [found for found in late if abs(found[1]) > SECOND] == []


def laid_out(of: World, folder: Path) -> Layout:
    with stage(of, folder) as set_up, set_up.around.store.read() as tx:
        ids = [account.id for account in tx.accounts.list()]
        ground = gather(tx, ids, of.start_at, not_before=as_they_stand)
        seats = list(ground.seats.values())
        return lay_out(seats, ground.queues, of.start_at, random.Random(1))


ONCE = {"per_recipient": "1/day", "spacing": "4m..6m"}


def same_people(*, laid_out: bool) -> World:
    """Two campaigns to the same people, each on an account of its own, and nobody twice a day."""
    first = mailing(60, "one", audience="all", planned=laid_out)
    second = Mailing("two", ("account-1",), 60, audience="all", planned=laid_out)
    return world(first, second, senders=2, **ONCE)


def test_the_plan_of_a_campaign_whose_people_another_account_writes_to_first(
    tmp_path: Path,
) -> None:
    of = same_people(laid_out=True)
    plan = planned(of, tmp_path)
    assert plan.finish_at is not None and plan.finish_at > of.start_at + DAY
    assert plan.gates["frequency"] > 0
    (tmp_path / "played").mkdir()
    ahead, (ends, states) = expected(of, tmp_path / "played"), played(of)
    assert states == {DeliveryState.SENT: 120}
    assert_near(plan.finish_at, ends["two"], of.start_at)
    for name in ("one", "two"):
        assert_near(ahead[name], ends[name], of.start_at)
    assert ends["one"] < of.start_at + DAY, "what was promised first is kept"


def test_the_time_of_arrival_where_two_accounts_get_in_each_others_way(tmp_path: Path) -> None:
    """Nobody has laid them out: whoever comes to somebody first writes, and the other waits."""
    of = same_people(laid_out=False)
    ahead, (ends, _) = expected(of, tmp_path), played(of)
    for name in ("one", "two"):
        assert_near(ahead[name], ends[name], of.start_at)
        assert ends[name] > of.start_at + DAY


def test_the_time_of_arrival_of_campaigns_that_share_an_account(tmp_path: Path) -> None:
    of = world(mailing(300, "one"), mailing(100, "two"), **preset("campaign-whatsapp"))
    ahead, (ends, _) = expected(of, tmp_path), played(of)
    for name in ("one", "two"):
        assert_near(ahead[name], ends[name], of.start_at)
    assert ahead["two"] < ahead["one"], "the smaller one is done first, in turns"
