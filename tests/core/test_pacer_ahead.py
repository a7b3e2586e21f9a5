"""What may be written ahead of an account's pace: only what nothing else keeps waiting."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.calendar import day_start_of
from paceline.core.hours import Hours
from paceline.core.instants import HOUR, MILLISECOND, MINUTE, Instant, parse_instant
from paceline.core.model import Ask, Go, Standing, Wait
from paceline.core.pacer import PACE_GATES, Pacer
from paceline.core.policy import Policy
from paceline.core.states import AccountState
from paceline.core.usage import Usage

NINE: Instant = parse_instant("2026-02-16T09:00:00Z")  # a Monday
MIDNIGHT: Instant = parse_instant("2026-02-16T00:00:00Z")
BEFORE, OPENS = -60 * MILLISECOND, 40 * MILLISECOND
"""When it is asked, and when the pace opens, seen from an hour that strikes between."""
MAIL = Ask(action="email", run_id=7)
DAYTIME = "08:00-08:55 09:00-18:00 UTC"


def pace_alone(
    text: Ask = MAIL,
    strikes_at: Instant = NINE,
    standing: Standing | None = None,
    used: dict[str, Any] | None = None,
    **settings: Any,
) -> bool:
    gap_us = 10 * MINUTE
    last_at = strikes_at + OPENS - gap_us
    usage = Usage(last_at=last_at, gap_us=gap_us, **(used or {}))
    pacer = Pacer(Policy.from_mapping({"spacing": "10m", **settings}), standing or Standing())
    now, until_at = strikes_at + BEFORE, strikes_at + OPENS
    return pacer.waits_for_pace_alone(now, until_at, usage, text)


def test_an_account_that_has_nothing_but_its_pace() -> None:
    assert pace_alone()
    assert pace_alone(daily={"email": 20}, weekly={"email": 90})
    assert pace_alone(hours="08:00-18:00 UTC")
    assert pace_alone(MAIL._replace(closes_at=NINE + HOUR, expires_at=NINE + HOUR))


@pytest.mark.parametrize(
    "shut",
    [
        {"hours": DAYTIME},
        {"used": {"hold_until_at": NINE, "hold_reason": "throttled"}},
        {"standing": Standing(state=AccountState.COOLING_DOWN, until_at=NINE)},
        {"text": MAIL._replace(not_before_at=NINE)},
        {"text": MAIL._replace(opens_at=NINE)},
        {"text": MAIL._replace(window=Hours.parse(DAYTIME))},
        {"text": MAIL._replace(recipient_hours=Hours.parse(DAYTIME))},
    ],
    ids=["hours", "hold", "state", "not before", "opening", "window", "recipient"],
)
def test_not_what_something_else_keeps_waiting_as_well(shut: dict[str, Any]) -> None:
    """Though that opens first, and the pace is what is told of."""
    assert not pace_alone(**shut)


@pytest.mark.parametrize(
    "over",
    [
        {"hours": "08:00-09:00 UTC"},
        {"text": MAIL._replace(closes_at=NINE)},
        {"text": MAIL._replace(expires_at=NINE)},
        {"text": MAIL._replace(recipient_hours=Hours.parse("08:00-09:00 UTC"))},
    ],
    ids=["hours", "window", "expiry", "recipient"],
)
def test_nor_what_is_over_by_then(over: dict[str, Any]) -> None:
    assert not pace_alone(**over)


@pytest.mark.parametrize("cap", ["daily", "weekly"])
def test_nor_what_is_to_be_counted_on_a_day_that_has_not_begun(cap: str) -> None:
    """Whether or not there is room on the old one."""
    assert not pace_alone(strikes_at=MIDNIGHT, **{cap: {"email": 20}})
    assert not pace_alone(strikes_at=MIDNIGHT, warmup="20 +10%/day to 200")
    assert pace_alone(strikes_at=MIDNIGHT), "where nothing is counted a day is no matter"


@given(
    ahead_us=st.integers(0, 200 * MILLISECOND),
    gap_us=st.integers(0, 20 * MINUTE),
    tat_us=st.integers(0, 2 * MINUTE),
    used=st.integers(0, 3),
    strikes_at=st.sampled_from([NINE, MIDNIGHT, NINE + HOUR]),
    hours=st.sampled_from([None, DAYTIME]),
    text=st.builds(
        lambda after, ends: MAIL._replace(not_before_at=NINE + after, expires_at=ends),
        st.integers(-HOUR, 30 * MILLISECOND),
        st.sampled_from([None, NINE, NINE + 2 * HOUR]),
    ),
)
def test_whatever_is_written_ahead_may_go_then_and_waits_for_its_pace_now(
    *,
    ahead_us: int,
    gap_us: int,
    tat_us: int,
    used: int,
    strikes_at: Instant,
    hours: str | None,
    text: Ask,
) -> None:
    settings: dict[str, Any] = {"spacing": "10m", "rate": "2/min", "daily": {"email": 2}}
    if hours is not None:
        settings["hours"] = hours
    pacer = Pacer(Policy.from_mapping(settings), Standing())
    now = strikes_at - ahead_us
    day_at = day_start_of(now, "UTC")
    usage = Usage(
        tat_at=now + tat_us,
        last_at=now - 10 * MINUTE,
        gap_us=gap_us,
        day_at=day_at,
        day={"email": used},
    )
    verdict = pacer.verdict(now, usage, text)
    if not isinstance(verdict, Wait) or verdict.until_at is None:
        return
    until_at = verdict.until_at
    shut = {view.gate for view in pacer.explain(now, usage, text) if not view.open}
    wanted = (
        shut <= PACE_GATES
        and isinstance(pacer.verdict(until_at, usage, text), Go)
        and day_start_of(until_at, "UTC") == day_at
    )
    assert pacer.waits_for_pace_alone(now, until_at, usage, text) is wanted
