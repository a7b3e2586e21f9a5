"""Later steps in a plan: they take turns with first messages, from the account that wrote first."""

import random
from typing import Any

from paceline.core.calendar import day_of
from paceline.core.instants import DAY, HOUR, SECOND, Instant, parse_instant
from paceline.core.model import Ask
from paceline.core.plan import Layout, Queue, Seat, Want, lay_out
from paceline.core.policy import Policy
from paceline.core.presets import preset

NINE = parse_instant("2026-03-02T14:00:00Z")
"""A Monday, when offices open in New York."""
RANK = (True, 0, 1 << 62)


def sequence(
    people: int, *after_us: int, turns: bool = True, accounts: tuple[int, ...] = (1,)
) -> Queue:
    """So many people, each with a first message and what follows it, numbered by step."""
    wants = []
    for person in range(people):
        wants.append(Want(person, Ask(run_id=1)))
        for step, wait_us in enumerate(after_us, start=1):
            key = 1_000 * step + person
            follows = key - 1_000
            turn = step if turns else 0
            wants.append(Want(key, Ask(run_id=1), "", False, follows, wait_us, turn=turn))
    return Queue(1, RANK, wants, accounts)


def laid(*queues: Queue, accounts: int = 1, **policy: Any) -> Layout:
    limits = Policy.from_mapping(policy)
    seats = [Seat(number, limits) for number in range(1, 1 + accounts)]
    return lay_out(seats, queues, NINE, random.Random(1))


def order(layout: Layout) -> list[int]:
    return [slot.key for slot in layout.slots]


def test_what_has_no_minute_yet_takes_turns_by_step() -> None:
    layout = laid(sequence(6, 3 * SECOND), spacing="2s")
    # 1000 is due after 3 s and goes after 4 s; from then on there is always one of both.
    assert order(layout) == [0, 1, 1000, 2, 1001, 3, 1002, 4, 1003, 5, 1004, 1005]
    two = laid(sequence(4, 2 * SECOND, 2 * SECOND), spacing="2s")
    assert order(two)[:6] == [0, 1000, 2000, 1, 1001, 2001], "first, second and third in turns"


def test_what_has_its_minute_goes_by_it() -> None:
    layout = laid(sequence(4, 3 * SECOND, turns=False), spacing="2s")
    assert order(layout) == [0, 1, 2, 3, 1000, 1001, 1002, 1003], "all first ones were due before"


def test_what_follows_does_not_go_before_the_minute_that_it_was_given() -> None:
    given_at = NINE + 30 * SECOND
    later = Want(1, Ask(run_id=1, not_before_at=given_at), follows=0, after_us=SECOND)
    layout = laid(Queue(1, RANK, [Want(0, Ask(run_id=1)), later], (1,)))
    assert [slot.at for slot in layout.slots] == [NINE, given_at]


def test_nobody_waits_for_all_the_others_and_no_day_is_left_empty() -> None:
    """Cold e-mail to 400 people, 20 a day: twenty days of first messages and as many that follow.
    By what is due, the first to get a message would get the next one four weeks later."""
    layout = laid(sequence(400, 3 * DAY), **preset("cold-email") | {"daily": {"message": 20}})
    at = {slot.key: slot.at for slot in layout.slots}
    late_us = [at[1_000 + person] - at[person] - 3 * DAY for person in range(400)]
    assert min(late_us) >= 0
    assert max(late_us) < 8 * DAY
    days = {day_of(slot.at, "America/New_York") for slot in layout.slots}
    assert len(days) == 40, "as many as it takes at 20 a day"


def test_whoever_of_a_pool_wrote_first_writes_again() -> None:
    layout = laid(sequence(30, HOUR, accounts=(1, 2, 3)), accounts=3, spacing="1m..3m")
    by = {slot.key: slot.account_id for slot in layout.slots}
    assert {by[person] for person in range(30)} == {1, 2, 3}
    assert [by[1_000 + person] for person in range(30)] == [by[person] for person in range(30)]


def test_what_an_account_of_a_pool_has_to_itself_goes_by_its_minute_among_what_is_shared() -> None:
    def due(key: int, seconds: int) -> Want:
        at: Instant = NINE + seconds * SECOND
        return Want(key, Ask(run_id=1, not_before_at=at))

    shared = Queue(1, RANK, [due(key, 2 * key) for key in range(5)], (1, 2))
    own = Queue(1, RANK, [due(10, 3)], (1,))
    follows = Want(20, Ask(run_id=1), follows=10, after_us=SECOND)
    asleep = Seat(2, Policy.from_mapping({"hours": "Mon-Sun 20:00-21:00 UTC"}))
    awake = Seat(1, Policy.from_mapping({"spacing": "3s"}))
    queues = [own, Queue(1, RANK, [*shared.wants, follows], (1, 2))]
    layout = lay_out([awake, asleep], queues, NINE, random.Random(1))
    assert [(slot.key, slot.account_id) for slot in layout.slots] == [
        (0, 1),
        (1, 1),
        (10, 1),
        (2, 1),
        (3, 1),
        (20, 1),
        (4, 1),
    ]
