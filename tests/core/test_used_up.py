"""Caps that are used up: asked by themselves, blamed before the night that follows, and told of
first."""

from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, Instant, parse_instant
from paceline.core.model import Ask, Go, Standing, Wait
from paceline.core.pacer import Pacer
from paceline.core.policy import Policy
from paceline.core.states import AccountState
from paceline.core.usage import Usage

MAIL = Ask(action="email")
MONDAY = parse_instant("2026-02-16T00:00:00Z")
FRIDAY = MONDAY + 4 * DAY
OFFICE = "Mon-Fri 09:00-18:00 UTC"
OUTSIDE = f"outside business hours ({OFFICE})"


def pacer_of(state: AccountState = AccountState.ACTIVE, **settings: Any) -> Pacer:
    return Pacer(Policy.from_mapping(settings), Standing(state))


def used(on: Instant, day: int, week: int = 0) -> Usage:
    return Usage(day_at=on, day={"email": day}, week_at=MONDAY, week={"email": week or day})


CAPS: dict[str, Any] = {"daily": {"email": 2}, "weekly": {"email": 5}, "hours": OFFICE}


@pytest.mark.parametrize(
    ("now", "usage", "expected"),
    [
        (MONDAY + 15 * HOUR, used(MONDAY, 1), None),
        (MONDAY + 20 * HOUR, used(MONDAY, 1), None),  # hours are no cap
        (MONDAY + 15 * HOUR, used(MONDAY, 2), (MONDAY + DAY, "daily", "daily cap reached (2/2)")),
        (MONDAY + 20 * HOUR, used(MONDAY, 2), (MONDAY + DAY, "daily", "daily cap reached (2/2)")),
        (FRIDAY + 10 * HOUR, used(FRIDAY, 2), (FRIDAY + DAY, "daily", "daily cap reached (2/2)")),
        (FRIDAY + DAY, used(FRIDAY, 2), None),  # a Saturday
        # Both: it is over when the last of them opens.
        (FRIDAY, used(FRIDAY, 2, 5), (MONDAY + 7 * DAY, "weekly", "weekly cap reached (5/5)")),
    ],
)
def test_a_cap_has_an_end_of_its_own(
    now: Instant, usage: Usage, expected: tuple[Instant, str, str] | None
) -> None:
    cap = pacer_of(**CAPS).cap(now, usage, MAIL)
    assert cap == (None if expected is None else Wait(*expected))


def test_a_cap_that_never_has_room_ends_with_what_waits_for_it() -> None:
    pacer = pacer_of(daily={"email": 0})
    why = "daily cap 0 leaves no room for 1 send"
    assert pacer.cap(MONDAY, Usage(), MAIL) == Wait(None, "daily", why)
    closes_at = MONDAY + HOUR
    assert pacer.cap(MONDAY, Usage(), MAIL._replace(closes_at=closes_at)) == Wait(
        closes_at, "daily", why
    )


def test_a_cap_speaks_of_its_own_action_and_of_all_parts() -> None:
    pacer, usage = pacer_of(**CAPS), used(MONDAY, 1)
    assert pacer.cap(MONDAY, usage, MAIL._replace(action="message")) is None
    assert pacer.cap(MONDAY, usage, MAIL._replace(reply=True)) is None
    both = pacer.cap(MONDAY, usage, MAIL._replace(parts=2))
    assert both == Wait(MONDAY + DAY, "daily", "daily cap reached (1/2)")


@pytest.mark.parametrize(
    ("now", "usage", "opens_at", "gate"),
    [
        # The rest of the day is shorter than the night, the weekend is longer than both.
        (MONDAY + 10 * HOUR, used(MONDAY, 2), MONDAY + 33 * HOUR, "daily"),
        (MONDAY + 17 * HOUR, used(MONDAY, 2), MONDAY + 33 * HOUR, "daily"),
        (FRIDAY + 10 * HOUR, used(FRIDAY, 2), FRIDAY + 81 * HOUR, "daily"),
        (FRIDAY + 10 * HOUR, used(FRIDAY, 2, 5), FRIDAY + 81 * HOUR, "weekly"),
        # Without its cap it would have to wait just as long.
        (MONDAY + 20 * HOUR, used(MONDAY, 2), MONDAY + 33 * HOUR, "hours"),
    ],
)
def test_what_a_cap_keeps_from_going_is_not_blamed_on_the_night_that_follows(
    now: Instant, usage: Usage, opens_at: Instant, gate: str
) -> None:
    pacer = pacer_of(**CAPS)
    verdict = pacer.verdict(now, usage, MAIL)
    assert isinstance(verdict, Wait)
    assert (verdict.until_at, verdict.gate) == (opens_at, gate)
    told = pacer.told(now, usage, MAIL)
    cap = pacer.cap(now, usage, MAIL)
    assert cap is not None
    assert told == Wait(opens_at, cap.gate, f"{cap.why}, then {OUTSIDE}")


def test_what_is_told_is_the_verdict_where_a_cap_is_not_what_it_waits_for() -> None:
    pacer = pacer_of(**CAPS)
    now = MONDAY + 10 * HOUR
    assert pacer.told(now, used(MONDAY, 1), MAIL) == Go()
    tomorrow = MAIL._replace(not_before_at=MONDAY + 34 * HOUR)
    assert pacer.told(now, used(MONDAY, 2), tomorrow) == Wait(
        MONDAY + 34 * HOUR, "not-before", "scheduled for later"
    )
    assert pacer.told(MONDAY + 20 * HOUR, used(MONDAY, 1), MAIL) == Wait(
        MONDAY + 33 * HOUR, "hours", OUTSIDE
    )
    alone = pacer_of(daily={"email": 2})
    assert alone.told(now, used(MONDAY, 2), MAIL) == alone.verdict(now, used(MONDAY, 2), MAIL)
    paused = pacer_of(AccountState.PAUSED, **CAPS)
    assert paused.told(now, used(MONDAY, 2), MAIL) == Wait(None, "status", "account is paused")


def test_explain_has_a_cap_that_is_used_up_first() -> None:
    pacer = pacer_of(**CAPS, spacing="5m")
    usage = used(MONDAY, 2)._replace(last_at=MONDAY + 20 * HOUR, gap_us=5 * MINUTE)
    views = pacer.explain(MONDAY + 20 * HOUR, usage, MAIL)
    shut = [(view.gate, view.opens_at) for view in views if not view.open]
    assert shut == [
        ("daily", MONDAY + DAY),
        ("hours", MONDAY + 33 * HOUR),
        ("spacing", MONDAY + 20 * HOUR + 5 * MINUTE),
    ]
