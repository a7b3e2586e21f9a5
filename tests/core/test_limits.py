"""What is planned against a limit, and the next slot at which it may go: one example for each."""

import random
from datetime import date
from itertools import pairwise
from typing import Any
from unittest import mock

import pytest

from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from paceline.core.limits import Booked, Breach, Openings, breaches
from paceline.core.model import Ask, Standing
from paceline.core.policy import Policy
from paceline.core.relocating import Relocation, rehoused
from paceline.core.repairing import KEEPS_ITS_OWN, relocated
from paceline.core.slots import Seat
from paceline.core.usage import Usage

MONDAY = parse_instant("2026-03-02T09:00:00Z")
OFFICE = "Mon-Fri 09:00-18:00 UTC"
EMAIL = Ask("email")


def seat(usage: Usage | None = None, **policy: Any) -> Seat:
    return Seat(1, Policy.from_mapping(policy), Standing(warm_since_at=MONDAY), usage or Usage())


def every(gap_us: int, count: int, from_at: int = MONDAY, ask: Ask = EMAIL) -> list[Booked]:
    return [Booked(number, from_at + number * gap_us, ask) for number in range(count)]


def moved(limits: Seat, booked: list[Booked]) -> Relocation:
    return relocated(limits, booked, random.Random(1))


def told(found: list[Breach]) -> list[tuple[str, str, str, int, int | None, tuple[int, ...]]]:
    return [(b.rule, b.day.isoformat(), b.action, b.count, b.cap, b.keys) for b in found]


def after(booked: list[Booked], relocation: Relocation) -> list[Booked]:
    hopeless = {never.key for never in relocation.nevers}
    return [
        one._replace(at=relocation.slots.get(one.key, one.at))
        for one in booked
        if one.key not in hopeless
    ]


def test_the_later_ones_beyond_a_daily_cap_offend_and_go_the_next_day() -> None:
    limits, booked = seat(hours=OFFICE, daily={"email": 3}), every(HOUR, 5)
    assert told(breaches(limits, booked)) == [("daily", "2026-03-02", "email", 5, 3, (3, 4))]
    tuesday = MONDAY + DAY
    assert moved(limits, booked).slots == {3: tuesday, 4: tuesday}


def test_what_the_ledger_has_used_counts_today_and_this_week_only() -> None:
    day_at = MONDAY - 9 * HOUR
    usage = Usage(day_at=day_at, day={"email": 2}, week_at=day_at, week={"email": 2})
    limits = seat(usage, daily={"email": 3}, weekly={"email": 6})
    booked = [*every(HOUR, 2), *every(HOUR, 3, MONDAY + DAY), *every(HOUR, 2, MONDAY + 7 * DAY)]
    booked = [one._replace(key=number) for number, one in enumerate(booked)]
    assert told(breaches(limits, booked)) == [("daily", "2026-03-02", "email", 4, 3, (1,))]
    tight = seat(usage, daily={"email": 3}, weekly={"email": 4})
    assert told(breaches(tight, booked)) == [
        ("daily", "2026-03-02", "email", 4, 3, (1,)),
        ("weekly", "2026-03-02", "email", 7, 4, (3, 4)),
    ]
    # Next week has room for two, one of them on its Monday; the third goes in the week after.
    midnight = MONDAY - 9 * HOUR
    assert moved(tight, booked).slots == {
        1: midnight + 7 * DAY,
        3: midnight + 8 * DAY,
        4: midnight + 14 * DAY,
    }


def test_each_action_has_its_own_cap() -> None:
    limits = seat(daily={"email": 2, "message": 1})
    booked = [*every(HOUR, 2), Booked(7, MONDAY, Ask("message")), Booked(8, MONDAY, Ask("inmail"))]
    assert breaches(limits, booked) == []
    booked.append(Booked(9, MONDAY + 1, Ask("message")))
    assert told(breaches(limits, booked)) == [("daily", "2026-03-02", "message", 2, 1, (9,))]


def test_every_part_counts() -> None:
    limits = seat(daily={"email": 3})
    booked = every(HOUR, 2, ask=Ask("email", parts=2))
    assert told(breaches(limits, booked)) == [("daily", "2026-03-02", "email", 4, 3, (1,))]


def test_the_warm_up_narrows_the_cap_from_day_to_day() -> None:
    limits = seat(warmup="2 +50%/day to 10", daily={"email": 4})
    booked = [Booked(10 * day + n, MONDAY + day * DAY, EMAIL) for day in range(4) for n in range(5)]
    caps = [(b.day, b.count, b.cap) for b in breaches(limits, booked)]
    days = [date(2026, 3, 2 + number) for number in range(4)]
    assert caps == [(days[0], 5, 2), (days[1], 5, 3), (days[2], 5, 4), (days[3], 5, 4)]


def test_a_reply_is_not_warmed_up_and_keeps_no_hours_and_no_gap() -> None:
    limits = seat(hours=OFFICE, min_gap="6m", warmup="1 +50%/day to 10", daily={"reply": 3})
    reply = Ask("email", reply=True)
    night = MONDAY - 5 * HOUR
    assert breaches(limits, every(SECOND, 3, night, reply)) == []
    assert told(breaches(limits, every(SECOND, 4, night, reply))) == [
        ("daily", "2026-03-02", "reply", 4, 3, (3,))
    ]


@pytest.mark.parametrize(
    ("rule", "policy", "ask", "opens_at"),
    [
        ("hours", {"hours": "Mon-Fri 09:00-18:00 UTC"}, EMAIL, MONDAY),
        ("hours", {"blackout": ["2026-03-02"]}, EMAIL, MONDAY + 15 * HOUR),
        ("window", {}, Ask("email", window=Hours.parse("10:00-12:00 UTC")), MONDAY + HOUR),
        ("window", {}, Ask("email", opens_at=MONDAY + 3 * HOUR), MONDAY + 3 * HOUR),
        (
            "recipient-hours",
            {},
            Ask("email", recipient_hours=Hours.parse("20:00-21:00 UTC")),
            MONDAY + 11 * HOUR,
        ),
    ],
)
def test_what_is_planned_while_something_is_shut_goes_when_it_opens(
    rule: str, policy: dict[str, Any], ask: Ask, opens_at: int
) -> None:
    limits, booked = seat(**policy), [Booked(1, MONDAY - HOUR, ask)]
    assert told(breaches(limits, booked)) == [(rule, "2026-03-02", "email", 1, None, (1,))]
    assert moved(limits, booked).slots == {1: opens_at}


def test_a_window_that_has_closed_leaves_no_slot() -> None:
    booked = [Booked(1, MONDAY, Ask("email", closes_at=MONDAY - 1))]
    assert [b.rule for b in breaches(seat(), booked)] == ["window"]
    (never,) = moved(seat(), booked).nevers
    assert never.why == "its window closes at 2026-03-02 08:59 UTC, before its next legal slot"


def test_the_gap_is_kept_to_both_neighbours() -> None:
    limits = seat(spacing="5m..20m", min_gap="6m")
    booked = [
        Booked(1, MONDAY, EMAIL),
        Booked(2, MONDAY + 2 * MINUTE, EMAIL),
        Booked(3, MONDAY + 10 * MINUTE, EMAIL),  # no room for one between them
        Booked(4, MONDAY + 22 * MINUTE, EMAIL),  # and just enough here
        Booked(5, MONDAY + 30 * MINUTE, EMAIL),
    ]
    assert told(breaches(limits, booked)) == [("gap", "2026-03-02", "email", 1, None, (2,))]
    assert moved(limits, booked).slots == {2: MONDAY + 16 * MINUTE}


def test_the_gap_is_drawn_and_never_under_the_least() -> None:
    limits = seat(spacing="5m..20m", min_gap="6m")
    booked = [Booked(number, MONDAY, EMAIL) for number in range(200)]
    slots = sorted([MONDAY, *moved(limits, booked).slots.values()])
    gaps = [later - earlier for earlier, later in pairwise(slots)]
    assert min(gaps) >= 6 * MINUTE
    assert max(gaps) <= 20 * MINUTE
    assert len(set(gaps)) > 100


def test_what_leaves_its_day_for_want_of_a_gap_leaves_its_room_behind() -> None:
    limits = seat(hours=OFFICE, min_gap="30m", weekly={"email": 2})
    evening = MONDAY + 8 * HOUR + 50 * MINUTE
    booked = [Booked(1, evening, EMAIL), Booked(2, evening + MINUTE, EMAIL)]
    assert moved(limits, booked).slots == {2: MONDAY + DAY}


class Draws:
    """Draws what it was told to."""

    def __init__(self, *draws_us: int) -> None:
        self._draws_us = list(draws_us)

    def randint(self, low: int, high: int) -> int:
        return self._draws_us.pop(0)


def test_hours_that_a_long_gap_has_led_past_are_still_there_for_others() -> None:
    limits = seat(hours="Mon-Fri 09:00-10:00 13:00-14:00 UTC", spacing="30m..5h")
    booked = [Booked(number, MONDAY + 50 * MINUTE, EMAIL) for number in range(3)]
    found = relocated(limits, booked, Draws(5 * HOUR, 3 * HOUR + 30 * MINUTE))
    assert found.slots == {1: MONDAY + DAY, 2: MONDAY + 4 * HOUR + 20 * MINUTE}


def test_a_rate_spreads_what_has_no_other_gap() -> None:
    limits = seat(rate="6/min", daily={"email": 4})
    slots = sorted(moved(limits, every(10 * SECOND, 8)).slots.values())
    tomorrow = MONDAY + 15 * HOUR
    assert slots == [tomorrow + number * 10 * SECOND for number in range(4)]


def test_the_rate_is_a_bucket_and_not_a_gap() -> None:
    limits = seat(rate="6/h burst 3")
    assert breaches(limits, every(0, 3)) == [], "what the bucket holds goes at once"
    (breach,) = breaches(limits, every(0, 5))
    assert (breach.rule, breach.count, breach.keys) == ("rate", 5, (3, 4))
    assert breach.text(limits.policy) == "rate 6/h burst 3: 5 planned between 09:00 and 09:00"
    assert moved(limits, every(0, 5)).slots == {3: MONDAY + 30 * MINUTE, 4: MONDAY + 40 * MINUTE}


def test_every_part_takes_a_token_when_it_comes() -> None:
    letters = every(10 * MINUTE, 3, ask=Ask("email", parts=2))
    assert breaches(seat(rate="6/h"), letters)[0].keys == (1,)
    # With several under way the second part of one may come after the first of another.
    assert breaches(seat(rate="6/h", concurrency=2), letters[:2]) == []


def test_who_moves_leaves_others_the_tokens_that_they_have_taken_ahead() -> None:
    limits = seat(rate="6/h burst 3", daily={"email": 7})
    tomorrow = MONDAY - 9 * HOUR + DAY
    ahead = [Booked(50 + n, tomorrow, EMAIL) for n in range(3)]
    later = [Booked(60 + n, tomorrow + 30 * MINUTE, EMAIL) for n in range(3)]
    booked = [*every(HOUR, 8), *ahead, *later]
    found = moved(limits, booked)
    assert found.slots == {7: tomorrow + 60 * MINUTE}
    assert breaches(limits, after(booked, found)) == []


def test_a_rate_s_day_is_told_from_the_one_before_the_first_that_offends() -> None:
    limits = seat(rate="1/h")
    found = breaches(limits, every(20 * MINUTE, 60))
    assert [(b.day.day, b.count, len(b.keys)) for b in found] == [(2, 45, 30), (3, 15, 10)]
    assert found[0].text(limits.policy) == "rate 1/h: 45 planned between 09:00 and 23:40"


def test_the_last_send_and_a_hold_are_waited_for() -> None:
    usage = Usage(last_at=MONDAY, gap_us=15 * MINUTE)
    limits = seat(usage, spacing="5m..20m")
    booked = [Booked(number, MONDAY + MINUTE, EMAIL) for number in range(2)]
    assert min(moved(limits, booked).slots.values()) >= MONDAY + 15 * MINUTE
    held = seat(usage._replace(hold_until_at=MONDAY + HOUR), spacing="5m..20m")
    assert min(moved(held, booked).slots.values()) >= MONDAY + HOUR


def test_what_cannot_be_moved_has_its_room_first() -> None:
    limits = seat(daily={"email": 2})
    booked = [*every(HOUR, 2), Booked(7, MONDAY + 3 * HOUR, EMAIL, movable=False)]
    assert breaches(limits, booked)[0].keys == (1,)
    close = [Booked(1, MONDAY, EMAIL), Booked(2, MONDAY + MINUTE, EMAIL, movable=False)]
    assert breaches(seat(min_gap="6m"), close)[0].keys == (1,)
    rigid = [one._replace(movable=False) for one in close]
    (never,) = moved(seat(min_gap="6m"), rigid).nevers
    assert (never.key, never.gate, never.why) == (2, "gap", KEEPS_ITS_OWN)


def test_what_is_due_and_waits_has_no_minute_that_could_be_wrong_but_takes_its_place() -> None:
    limits = seat(hours=OFFICE, min_gap="6m", daily={"email": 3})
    night = MONDAY - 9 * HOUR + DAY
    waiting = [Booked(number, night, EMAIL, waits=True) for number in range(3)]
    assert breaches(limits, waiting) == []
    planned = Booked(9, MONDAY + DAY + HOUR, EMAIL)
    assert told(breaches(limits, [*waiting, planned])) == [
        ("daily", "2026-03-03", "email", 4, 3, (9,))
    ]


@pytest.mark.parametrize(
    ("policy", "ask", "why"),
    [
        (
            {"daily": {"email": 0}},
            EMAIL,
            "no room for it within 400 days",
        ),
        (
            {"hours": OFFICE},
            Ask("email", window=Hours.parse("Sat 09:00-18:00 UTC")),
            "its hours are never open together within 400 days",
        ),
        (
            {"blackout": ["2026-03-02"]},
            Ask("email", expires_at=MONDAY + HOUR),
            "it expires at 2026-03-02 10:00 UTC, before its next legal slot",
        ),
    ],
)
def test_what_has_no_legal_slot_stays_and_says_why(
    policy: dict[str, Any], ask: Ask, why: str
) -> None:
    found = moved(seat(**policy), [Booked(1, MONDAY, ask)])
    assert (found.slots, [never.why for never in found.nevers]) == ({}, [why])


def test_words() -> None:
    policy = Policy.from_mapping({"hours": OFFICE, "min_gap": "6m"})
    day = date(2026, 3, 4)
    texts = {
        rule: Breach(rule, day, "email", 20, 10, (1,)).text(policy)  # type: ignore[arg-type]
        for rule in ("daily", "weekly", "gap", "hours", "window", "recipient-hours", "step")
    }
    assert texts == {
        "daily": "daily cap 10 on 2026-03-04 was planned to 20",
        "weekly": "weekly cap 10 in the week of 2026-03-04 was planned to 20",
        "gap": "closer than 6m to the one before",
        "hours": "outside business hours (Mon-Fri 09:00-18:00 UTC)",
        "window": "outside its campaign's window",
        "recipient-hours": "outside the recipient's hours",
        "step": "the message before it moves",
    }


CROWDS = {
    "days that are full": ({"hours": OFFICE, "daily": {"email": 30}}, MINUTE, EMAIL),
    "days in which nobody finds a gap": ({"hours": OFFICE, "spacing": "5m..20m"}, MINUTE, EMAIL),
    "a window of a few hours": (
        {"hours": OFFICE, "spacing": "5m..20m", "daily": {"email": 100}},
        0,
        Ask("email", window=Hours.parse("10:00-15:00 UTC")),
    ),
    "hours that never meet": (
        {"hours": OFFICE},
        MINUTE,
        Ask("email", window=Hours.parse("Sat 09:00-18:00 UTC")),
    ),
    "a cap of nothing": ({"daily": {"email": 0}}, MINUTE, EMAIL),
}


@pytest.mark.parametrize("crowd", CROWDS)
def test_a_crowd_is_moved_without_going_through_the_same_days_again_and_again(crowd: str) -> None:
    policy, gap_us, ask = CROWDS[crowd]
    limits, booked = seat(**policy), every(gap_us, 10_000, ask=ask)
    with mock.patch.object(Openings, "next", autospec=True, side_effect=Openings.next) as asked:
        found = moved(limits, booked)
    assert len(found.slots) + len(found.nevers) >= 5_000
    assert asked.call_count < 60_000
    assert breaches(limits, after(booked, found)) == []


def test_those_that_move_to_an_empty_day_keep_their_order_and_the_gaps_that_were_drawn() -> None:
    limits = seat(hours=OFFICE, spacing="5m..20m", min_gap="6m", daily={"email": 10})
    booked = every(20 * MINUTE, 20)
    draws = random.Random(1)
    gaps = [limits.policy.draw_gap_us(draws) for _ in range(10)]
    slots = moved(limits, booked).slots
    assert list(slots) == list(range(10, 20))
    instants = list(slots.values())
    assert instants[0] == MONDAY + DAY
    assert [later - sooner for sooner, later in pairwise(instants)] == gaps[1:]


def test_in_the_room_between_two_others_there_is_as_much_of_a_gap_as_fits() -> None:
    limits = seat(spacing="5m..20m", min_gap="6m", daily={"email": 3})
    tomorrow = MONDAY - 9 * HOUR + DAY
    neighbours = [Booked(7, tomorrow, EMAIL), Booked(8, tomorrow + 13 * MINUTE, EMAIL)]
    slots = moved(limits, [*every(HOUR, 4), *neighbours]).slots
    assert slots.keys() == {3}
    assert tomorrow + 6 * MINUTE <= slots[3] <= tomorrow + 7 * MINUTE


def homes(limits: Seat, booked: list[Booked], homeless: list[Booked]) -> Relocation:
    return rehoused(limits, booked, homeless, random.Random(1))


def test_who_has_lost_a_slot_takes_no_room_and_is_given_the_next_in_the_order_of_asking() -> None:
    limits = seat(hours=OFFICE, min_gap="6m", daily={"email": 4})
    tuesday = MONDAY + DAY
    booked = [Booked(10, tuesday, EMAIL), Booked(11, tuesday + 20 * MINUTE, EMAIL)]
    homeless = [Booked(key, tuesday, EMAIL) for key in (3, 1, 2)]
    found = homes(limits, booked, homeless)
    assert found.slots == {
        3: tuesday + 6 * MINUTE,
        1: tuesday + 12 * MINUTE,
        2: tuesday + DAY,
    }
    assert found.nevers == []
    everything = [*booked, *(one._replace(at=found.slots[one.key]) for one in homeless)]
    assert breaches(limits, everything) == []


def test_who_is_late_for_all_else_is_squeezed_in() -> None:
    """Nobody else is: what was drawn between two of them stays as it is."""
    limits = seat(spacing="6m..20m")
    late = Ask("email", expires_at=MONDAY + 19 * MINUTE)
    homeless = [Booked(0, MONDAY, EMAIL), Booked(1, MONDAY, EMAIL), Booked(2, MONDAY, late)]
    slots = homes(limits, [], homeless).slots
    assert slots[1] - slots[0] > 12 * MINUTE, "this seed leaves room"
    assert slots[0] < slots[2] < slots[1]
    hopeless = Booked(3, MONDAY, late._replace(expires_at=MONDAY + MINUTE))
    assert [one.key for one in homes(limits, [], [*homeless, hopeless]).nevers] == [3]
