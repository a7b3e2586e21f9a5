"""Slots for what several accounts share: the first that any of them has, none beyond a limit."""

import random
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from paceline.core.calendar import place_of
from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, Instant, parse_instant
from paceline.core.limits import Booked
from paceline.core.model import Ask, Standing
from paceline.core.policy import Policy
from paceline.core.rehousing import Place, Shared, rehoused_among
from paceline.core.slots import Seat

MONDAY = parse_instant("2026-03-02T09:00:00Z")
TUESDAY = parse_instant("2026-03-03T00:00:00Z")
EMAIL = Ask("email")


def seat(number: int, **policy: Any) -> Seat:
    return Seat(number, Policy.from_mapping(policy), Standing(warm_since_at=MONDAY))


def place(number: int, booked: list[Booked] | None = None, **policy: Any) -> Place:
    return Place(seat(number, **policy), booked or [])


def shared(count: int, from_at: dict[int, Instant], first: int = 0) -> list[Shared]:
    return [Shared(first + n, EMAIL, from_at) for n in range(count)]


def slots(places: list[Place], homeless: list[Shared], *staying: Shared) -> list[Instant]:
    found = rehoused_among(places, staying, homeless, random.Random(1))
    assert found.nevers == []
    return [found.slots[one.key] for one in homeless]


def test_each_goes_where_it_can_go_first() -> None:
    places = [place(1, spacing="10m"), place(2, spacing="15m")]
    both = dict.fromkeys((1, 2), TUESDAY)
    minutes = [(at - TUESDAY) // MINUTE for at in slots(places, shared(6, both))]
    assert minutes == [0, 0, 10, 15, 20, 30]


def test_those_who_open_later_come_in_later() -> None:
    places = [place(1, spacing="10m"), place(2, spacing="10m")]
    found = slots(places, shared(4, {1: TUESDAY, 2: TUESDAY + 15 * MINUTE}))
    assert [(at - TUESDAY) // MINUTE for at in found] == [0, 10, 15, 20]


def test_what_stays_keeps_its_room_on_one_of_them() -> None:
    places = [place(number, daily={"email": 2}) for number in (1, 2)]
    both = dict.fromkeys((1, 2), TUESDAY)
    noon = dict.fromkeys((1, 2), TUESDAY + 12 * HOUR)
    found = slots(places, shared(4, both), *shared(2, noon, first=100))
    assert Counter(place_of(at, "UTC").day_at for at in found) == {TUESDAY: 2, TUESDAY + DAY: 2}


def test_what_is_booked_on_one_alone_leaves_the_room_of_the_other() -> None:
    own = [Booked(50 + n, TUESDAY + 12 * HOUR, EMAIL) for n in range(2)]
    places = [place(1, own, daily={"email": 2}), place(2, daily={"email": 2})]
    found = slots(places, shared(3, dict.fromkeys((1, 2), TUESDAY)))
    assert Counter(place_of(at, "UTC").day_at for at in found) == {TUESDAY: 2, TUESDAY + DAY: 1}


def test_what_no_account_can_send_in_time_has_no_slot() -> None:
    late = [Shared(1, EMAIL._replace(expires_at=TUESDAY - 1), {1: TUESDAY, 2: TUESDAY})]
    found = rehoused_among([place(1), place(2)], (), late, random.Random(1))
    assert (found.slots, [(one.key, one.gate) for one in found.nevers]) == ({}, [(1, "expiry")])


@given(
    count=st.integers(0, 40),
    stay=st.integers(0, 10),
    caps=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    gap=st.integers(5, 90),
    seed=st.integers(0, 99),
)
def test_together_they_stay_within_what_the_accounts_may(
    count: int, stay: int, caps: list[int], gap: int, seed: int
) -> None:
    hours = "Mon-Fri 09:00-18:00 UTC"
    places = [
        place(n, daily={"email": cap}, spacing=f"{gap}m", hours=hours) for n, cap in enumerate(caps)
    ]
    # What was planned before fits: one after the other, a day apart.
    noon = TUESDAY + 12 * HOUR
    staying = [
        Shared(100 + n, EMAIL, dict.fromkeys(range(len(caps)), noon + n % 4 * DAY))
        for n in range(min(stay, 4))
    ]
    homeless = shared(count, dict.fromkeys(range(len(caps)), TUESDAY))
    found = rehoused_among(places, staying, homeless, random.Random(seed))
    assert len(found.slots) == count and not found.nevers
    planned = [*found.slots.values(), *(min(one.from_at.values()) for one in staying)]
    assert all(Hours.parse(hours).is_open(at) for at in planned)
    days = Counter(place_of(at, "UTC").day_at for at in planned)
    assert max(days.values(), default=0) <= sum(caps)
    # In a stretch as long as the gap, each account has at most one.
    for at in planned:
        assert sum(at <= other < at + gap * MINUTE for other in planned) <= len(caps)
    assert list(found.slots.values()) == sorted(found.slots.values()), "they keep their order"
