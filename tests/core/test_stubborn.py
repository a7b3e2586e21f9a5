"""Whose trouble a throttle is, as values."""

from __future__ import annotations

from itertools import pairwise

import pytest

from paceline.core.holds import FORGOTTEN_US, NO_HOLDS, THROTTLED_KEPT, Holds, decoded
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.outcome import Outcome, OutcomeKind, accepted
from paceline.core.retry import Consequence
from paceline.core.signals import Scope
from paceline.core.stubborn import (
    AT_LAST,
    BY_ITSELF,
    LONGEST_ASIDE_US,
    OTHERS,
    elsewhere,
    noted,
    place_in_line,
    read_alone,
    stepping_aside,
)

NOW = 1_771_239_600_000_000
THROTTLED = Outcome(OutcomeKind.THROTTLED, "451 later", "451")
HELD = Consequence("retry", NOW + MINUTE, "451 later", hold_until_at=NOW + MINUTE)
SENT = Consequence("accept")


def throttled(times: int, *, passed: int = 0, others: int = 0) -> Holds:
    counts = {7: (times, NOW)} if times else {}
    return Holds(throttled=counts | {100 + one: (1, NOW) for one in range(others)}, passed=passed)


@pytest.mark.parametrize(
    ("times", "passed", "others", "alone"),
    [
        (0, 9, 0, False),
        (1, 9, 0, False),
        (2, 2, 0, False),
        (2, 3, 0, True),
        (2, 3, 5, True),
        (BY_ITSELF - 2, 0, 0, False),
        (BY_ITSELF - 1, 0, 0, True),
        (BY_ITSELF - 1, 0, 1, False),
        (AT_LAST - 2, 0, 1, False),
        (AT_LAST - 1, 0, 1, True),
    ],
)
def test_when_a_throttle_is_its_messages_own(
    times: int, passed: int, others: int, alone: bool
) -> None:
    read = read_alone(THROTTLED, throttled(times, passed=passed, others=others), 7, NOW)
    assert (read.kind is OutcomeKind.TRANSIENT) is alone
    assert read.code == "451" and read.reason.startswith("451 later")


@pytest.mark.parametrize("kind", sorted(set(OutcomeKind) - {OutcomeKind.THROTTLED}))
def test_no_other_answer_is_read_otherwise(kind: OutcomeKind) -> None:
    answer = Outcome(kind, "said")
    assert read_alone(answer, throttled(50, passed=50), 7, NOW) is answer


@pytest.mark.parametrize(
    ("times", "held_us", "aside_us"),
    [
        (0, MINUTE, 0),
        (1, MINUTE, 4 * MINUTE),
        (1, SECOND, 4 * MINUTE),
        (2, 2 * MINUTE, 32 * MINUTE),
        (3, 15 * MINUTE, LONGEST_ASIDE_US),
        (90, 15 * MINUTE, LONGEST_ASIDE_US),
    ],
)
def test_it_leaves_the_first_try_behind_a_hold_to_others(
    times: int, held_us: int, aside_us: int
) -> None:
    until_at = NOW + held_us
    held = HELD._replace(due_at=until_at, hold_until_at=until_at)
    aside = stepping_aside(held, THROTTLED, times, NOW)
    assert aside == held._replace(due_at=until_at + aside_us)


def test_nobody_steps_aside_who_holds_no_account_back() -> None:
    narrow = HELD._replace(scope=Scope.NEW_CONTACTS)
    alone = HELD._replace(hold_until_at=None)
    away = Outcome(OutcomeKind.UNAVAILABLE)
    assert stepping_aside(narrow, THROTTLED, 3, NOW) is narrow
    assert stepping_aside(alone, THROTTLED, 3, NOW) is alone
    assert stepping_aside(HELD, away, 3, NOW) is HELD


def test_what_is_counted_and_what_ends_it() -> None:
    holds = noted(NO_HOLDS, 7, THROTTLED, HELD, NOW)
    holds = noted(holds, 8, accepted(), SENT, NOW)
    holds = noted(holds, 9, accepted(), SENT, NOW)
    assert (holds.times_throttled(7), holds.passed) == (1, 2)
    climbs = Consequence("retry", NOW + MINUTE, climbs=True)
    assert noted(holds, 7, THROTTLED, climbs, NOW).passed == 2, "it says nothing of others"
    again = noted(holds, 7, THROTTLED, HELD, NOW)
    assert (again.times_throttled(7), again.passed) == (2, 0)
    for over in (noted(again, 7, accepted(), SENT, NOW), noted(
        again, 7, THROTTLED, Consequence("fail"), NOW
    )):  # fmt: skip
        assert over.left_at(NOW) is NO_HOLDS


def test_it_is_kept_with_the_checkpoint_for_a_while_and_within_bounds() -> None:
    holds = NO_HOLDS
    for number in range(THROTTLED_KEPT + 5):
        holds = holds.throttle(number, NOW + number)
    assert sorted(holds.throttled) == list(range(5, THROTTLED_KEPT + 5))
    holds = holds._replace(passed=3)
    assert decoded(holds.encoded()) == holds
    assert holds.left_at(NOW + HOUR) == holds
    assert holds.left_at(NOW + FORGOTTEN_US + HOUR) is NO_HOLDS


def accepts(holds: Holds, count: int, at: int = NOW) -> Holds:
    for number in range(count):
        holds = noted(holds, 1_000 + number, accepted(), SENT, at)
    return holds


def test_others_that_got_through_since_are_remembered_when_one_more_is_throttled() -> None:
    holds = accepts(throttled(2), OTHERS, NOW + SECOND)
    holds = noted(holds, 8, THROTTLED, HELD, NOW + 2 * SECOND)
    assert holds.passed == 0
    assert read_alone(THROTTLED, holds, 7, NOW + MINUTE).kind is OutcomeKind.TRANSIENT
    assert read_alone(THROTTLED, holds, 8, NOW + MINUTE) is THROTTLED
    # One that was throttled once behind a hold, but after them, is not told apart from anybody.
    twice = noted(holds, 8, THROTTLED, HELD, NOW + 3 * SECOND)
    assert read_alone(THROTTLED, twice, 8, NOW + MINUTE) is THROTTLED


def test_a_provider_that_singles_people_out_is_known_for_a_week() -> None:
    climbs = Consequence("retry", NOW + MINUTE, climbs=True)
    shown = noted(accepts(throttled(2), OTHERS), 7, THROTTLED, climbs, NOW)
    assert shown.single_at == NOW
    first = read_alone(THROTTLED, shown, 8, NOW + SECOND)
    assert first.kind is OutcomeKind.TRANSIENT and first.reason == "451 later (others get through)"
    asked = THROTTLED._replace(retry_after_us=MINUTE)
    assert read_alone(asked, shown, 8, NOW + SECOND) is asked, "that is what it asks of the account"
    # The next one holds the account back, unless others have got through meanwhile.
    after = noted(shown, 8, THROTTLED, climbs, NOW + SECOND)
    assert read_alone(THROTTLED, after, 9, NOW + SECOND) is THROTTLED
    again = accepts(after, OTHERS, NOW + SECOND)
    assert read_alone(THROTTLED, again, 9, NOW + SECOND).kind is OutcomeKind.TRANSIENT
    over = again.let_go(7).let_go(8)
    assert decoded(over.encoded()) == over
    assert over.left_at(NOW + HOUR) == over._replace(passed_at=0)
    assert read_alone(THROTTLED, over, 9, NOW + FORGOTTEN_US) is THROTTLED
    assert over.left_at(NOW + FORGOTTEN_US) is NO_HOLDS


def test_the_line_is_left_once_somebody_was_throttled_behind_a_hold() -> None:
    assert elsewhere(NO_HOLDS) == elsewhere(throttled(1, others=5)) == 0
    assert elsewhere(throttled(2, others=5)) == 1
    assert elsewhere(throttled(2, passed=OTHERS)) == 0, "it goes well: whoever is next is next"


def test_each_time_at_another_place() -> None:
    places = [place_in_line(nth, 64) for nth in range(1, 17)]
    assert len(set(places)) == len(places) and set(places) <= set(range(64))
    line = sorted([0, *places, 64])
    longest = max(later - place for place, later in pairwise(line))
    assert longest < 10, "no stretch is left out"
    assert place_in_line(5, 0) == 0
