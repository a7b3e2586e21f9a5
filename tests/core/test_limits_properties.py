"""Whatever is booked: what is moved is moved to where it may go, and nothing else is moved at all.

``naive.py`` judges the slots by the wall clock, and the pacer itself is asked about each of them.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core import usage as usages
from paceline.core.calendar import place_of
from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.limits import Booked, breaches
from paceline.core.model import Ask, Go, Standing, Wait
from paceline.core.pacer import Pacer
from paceline.core.plan import lay_out
from paceline.core.policy import Policy
from paceline.core.relocating import Relocation, rehoused
from paceline.core.repairing import relocated
from paceline.core.slots import Queue, Seat, Want
from paceline.core.usage import Usage
from tests.core import naive
from tests.core.naive import Rules, Sent
from tests.core.playing import policy_of, rules_around_changes

FAR = 1 << 62
OPEN = {"10:00-14:00 UTC": range(10, 14), "20:00-22:00 UTC": range(20, 22)}
"""Hours that are easily judged without our code: those of the day in UTC."""

seeds = st.integers(0, 2**32)


@st.composite
def booked_from(draw: st.DrawFn, start_at: int) -> list[Booked]:
    """Up to a few dozen, crowded into a few days, some at the same instant."""
    number = draw(st.integers(0, 25))
    rng = random.Random(draw(seeds))
    crowded_us = draw(st.sampled_from([HOUR, 6 * HOUR, 3 * DAY]))
    found = []
    for key in range(number):
        at = start_at + rng.choice([0, rng.randrange(crowded_us), rng.randrange(crowded_us)])
        hours = rng.choice([None, None, None, *OPEN])
        window = rng.choice([None, None, None, *OPEN])
        ask = Ask(
            action=rng.choice(["message", "message", "email"]),
            parts=rng.choice([1, 1, 1, 2]),
            run_id=1,
            reply=rng.random() < 0.1,
            expires_at=rng.choice([None, None, at + rng.randrange(1, 4 * DAY)]),
            window=Hours.parse(window) if window else None,
            closes_at=rng.choice([None, None, None, start_at + 2 * DAY]),
            recipient_hours=Hours.parse(hours) if hours else None,
        )
        found.append(Booked(key, at, ask, movable=rng.random() < 0.9))
    return found


def calendar_of(rules: Rules) -> Rules:
    """The rules without those of pace, which lanes keep and plans need not."""
    return replace(rules, rate=None, batch=None, adaptive=None)


def seat_of(rules: Rules, start_at: int, used: int, rng: random.Random) -> tuple[Seat, list[Sent]]:
    """An account that has sent something already, as far as it was allowed to."""
    policy = policy_of(rules)
    place = place_of(start_at, rules.zone)
    first_day = place_of(rules.warm_since_at, rules.zone).day
    caps = [policy.cap_on("message", (place.day - first_day).days), rules.weekly.get("message")]
    used = min([used, *(cap for cap in caps if cap is not None)])
    counts = {"message": used}
    usage = Usage(day_at=place.day_at, day=counts, week_at=place.week_at, week=counts)
    sends = [_sent(start_at, Ask(reply=True), False)] * used
    sends = [replace(sent, action="message") for sent in sends]
    return Seat(1, policy, Standing(warm_since_at=rules.warm_since_at), usage), sends


def _sent(at: int, ask: Ask, starts: bool, drawn_us: int = 0) -> Sent:
    return Sent(at, at, at, ask.counted_as, ask.reply, starts, ask.run_id, drawn_us)


def sends_of(booked: Sequence[Booked], policy: Policy) -> list[Sent]:
    """What would be sent if everything went as it is booked, part by part."""
    return [
        _sent(one.at, one.ask, part == 0, policy.least_gap_us)
        for one in sorted(booked, key=lambda one: (one.at, one.key))
        for part in range(one.ask.parts)
    ]


def shut(one: Booked) -> bool:
    """Whether its window or its recipient's hours are shut, by the clock of UTC."""
    ask = one.ask
    if ask.reply:
        return False
    hour = one.at // HOUR % 24
    wanted = [str(hours) for hours in (ask.window, ask.recipient_hours) if hours is not None]
    closed = any(hour not in OPEN[text.removeprefix("Mon-Sun ")] for text in wanted)
    return closed or (ask.closes_at is not None and one.at >= ask.closes_at)


def after(booked: Sequence[Booked], found: Relocation) -> list[Booked]:
    """Everything that goes, where it goes."""
    hopeless = {never.key for never in found.nevers}
    return [
        one._replace(at=found.slots.get(one.key, one.at))
        for one in booked
        if one.key not in hopeless
    ]


@settings(max_examples=300)
@given(rules_around_changes(), st.data(), st.integers(0, 6), seeds)
def test_after_the_repair_nothing_is_planned_against_a_limit(
    where: tuple[Rules, int], data: st.DataObject, used: int, seed: int
) -> None:
    rules, start_at = calendar_of(where[0]), where[1]
    rng = random.Random(seed)
    seat, sent = seat_of(rules, start_at, used, rng)
    booked = data.draw(booked_from(start_at))
    found = relocated(seat, booked, random.Random(seed))
    repaired = after(booked, found)
    assert breaches(seat, repaired) == []
    assert naive.problems([*sent, *sends_of(repaired, seat.policy)], rules) == []
    assert not any(shut(one) for one in repaired)
    # Nobody is lost, and only those move that offend and can: to later, in time.
    by_key = {one.key: one for one in booked}
    offending = {key for breach in breaches(seat, booked) for key in breach.keys}
    hopeless = {never.key for never in found.nevers}
    assert set(found.slots) | hopeless == offending
    assert not set(found.slots) & hopeless
    for key, slot_at in found.slots.items():
        one = by_key[key]
        assert one.movable
        assert slot_at > one.at
        assert one.ask.expires_at is None or slot_at < one.ask.expires_at
    # A second time there is nothing left to do.
    assert relocated(seat, repaired, random.Random(seed)).slots == {}


@settings(max_examples=150)
@given(
    rules_around_changes(),
    st.sampled_from([(6, HOUR, 1), (6, HOUR, 3), (1, HOUR, 2), (20, MINUTE, 5)]),
    st.data(),
    seeds,
)
def test_after_the_repair_nothing_is_faster_than_the_rate(
    where: tuple[Rules, int], rate: tuple[int, int, int], data: st.DataObject, seed: int
) -> None:
    rules, start_at = replace(calendar_of(where[0]), rate=rate), where[1]
    seat, _ = seat_of(rules, start_at, 0, random.Random(seed))
    booked = [
        # Replies keep no pace of a plan, and when the parts of one go nobody knows.
        one._replace(ask=one.ask._replace(parts=1, reply=False))
        for one in data.draw(booked_from(start_at))
    ]
    repaired = after(booked, relocated(seat, booked, random.Random(seed)))
    assert breaches(seat, repaired) == []
    assert naive.problems(sends_of(repaired, seat.policy), rules) == []
    assert relocated(seat, repaired, random.Random(seed)).slots == {}


@settings(max_examples=150)
@given(rules_around_changes(), st.data(), st.integers(0, 6), seeds, st.integers(0, 2))
def test_who_has_lost_a_slot_is_given_a_legal_one_beside_the_others(
    where: tuple[Rules, int], data: st.DataObject, used: int, seed: int, after_days: int
) -> None:
    """As when a gate shuts: those in no slot at all, and a plan that offends nobody."""
    rules, start_at = calendar_of(where[0]), where[1]
    rng = random.Random(seed)
    seat, sent = seat_of(rules, start_at, used, rng)
    wanted = [one for one in data.draw(booked_from(start_at)) if one.movable]
    offending = {key for breach in breaches(seat, wanted) for key in breach.keys}
    booked = [one for one in wanted if one.key not in offending]
    opens_at = start_at + after_days * DAY
    homeless = [one._replace(at=opens_at) for one in wanted if one.key in offending]
    found = rehoused(seat, booked, homeless, random.Random(seed))
    housed = [one._replace(at=found.slots[one.key]) for one in homeless if one.key in found.slots]
    everything = [*booked, *housed]
    assert breaches(seat, everything) == []
    assert naive.problems([*sent, *sends_of(everything, seat.policy)], rules) == []
    assert not any(shut(one) for one in housed)
    assert set(found.slots) | {never.key for never in found.nevers} == offending
    for one in housed:
        assert one.at >= opens_at
        assert one.ask.expires_at is None or one.at < one.ask.expires_at


@settings(max_examples=150)
@given(rules_around_changes(), st.data(), st.integers(0, 6), seeds)
def test_a_plan_that_breaks_no_rule_is_left_alone(
    where: tuple[Rules, int], data: st.DataObject, used: int, seed: int
) -> None:
    """By the naive judge's word: whatever it finds nothing wrong with does not move."""
    rules, start_at = calendar_of(where[0]), where[1]
    seat, sent = seat_of(rules, start_at, used, random.Random(seed))
    sound: list[Booked] = []
    for one in sorted(data.draw(booked_from(start_at)), key=lambda one: one.at):
        trial = [*sound, one]
        sends = [*sent, *sends_of(trial, seat.policy)]
        if not shut(one) and not naive.problems(sends, rules):
            sound = trial
    assert breaches(seat, sound) == []
    assert relocated(seat, sound, random.Random(seed)) == Relocation()


@settings(max_examples=150)
@given(rules_around_changes(), st.data(), seeds)
def test_the_pacer_lets_each_go_at_its_slot_or_a_gap_later(
    where: tuple[Rules, int], data: st.DataObject, seed: int
) -> None:
    rules, start_at = calendar_of(where[0]), where[1]
    policy, rng = policy_of(rules), random.Random(seed)
    seat = Seat(1, policy, Standing(warm_since_at=rules.warm_since_at))
    booked = data.draw(booked_from(start_at))
    found = relocated(seat, booked, random.Random(seed))
    pacer, usage = Pacer(policy, seat.standing), Usage()
    longest_us = max(policy.min_gap_us, policy.spacing.high_us if policy.spacing else 0)
    for one in sorted(after(booked, found), key=lambda one: (one.at, one.key)):
        verdict = pacer.verdict(one.at, usage, one.ask)
        if one.key in found.slots and not isinstance(verdict, Go):
            # What is drawn on the way may be longer than what the plan has drawn, and the wait for
            # it may lead past a closing hour; but nothing but the gap is in the way.
            assert isinstance(verdict, Wait), verdict
            views = pacer.explain(one.at, usage, one.ask)
            assert [view.gate for view in views if not view.open] == ["spacing"]
            assert usage.last_at is not None
            assert usage.last_at + usage.gap_us <= one.at + longest_us
        usage = usages.spend(usage, policy, one.ask, one.at, rng)
        for _ in range(one.ask.parts - 1):
            usage = usages.spend_part(usage, policy, one.ask, one.at)


@settings(max_examples=150)
@given(rules_around_changes(), st.integers(0, 40), st.integers(1, 3), seeds)
def test_what_the_planner_has_laid_out_offends_nobody(
    where: tuple[Rules, int], number: int, parts: int, seed: int
) -> None:
    rules, start_at = where
    seat = Seat(
        1,
        policy_of(rules, concurrency=2, part_gap="0s..2s"),
        Standing(warm_since_at=rules.warm_since_at),
    )
    ask = Ask(run_id=1, parts=parts, not_before_at=start_at)
    queue = Queue(1, (True, 0, FAR), [Want(key, ask) for key in range(number)], (1,))
    layout = lay_out([seat], [queue], start_at, random.Random(seed))
    assert breaches(seat, [Booked(slot.key, slot.at, ask) for slot in layout.slots]) == []


def test_the_judge_would_see_slots_that_break_a_rule() -> None:
    """The same judge, over what has not been repaired."""
    start_at = 1_772_442_000_000_000  # 2026-03-02 09:00 UTC
    office = tuple(((540, 600),) if number < 5 else () for number in range(7))
    for rules in (
        Rules(low_us=MINUTE, high_us=2 * MINUTE),
        Rules(rate=(1, MINUTE, 2)),
        Rules(daily={"message": 3}),
        Rules(weekly={"message": 3}),
        Rules(week=office, zone="America/New_York"),
    ):
        seat, _ = seat_of(rules, start_at, 0, random.Random(1))
        booked = [Booked(key, start_at + key * SECOND, Ask()) for key in range(5)]
        assert naive.problems(sends_of(booked, seat.policy), rules)
        repaired = after(booked, relocated(seat, booked, random.Random(1)))
        assert naive.problems(sends_of(repaired, seat.policy), rules) == []
