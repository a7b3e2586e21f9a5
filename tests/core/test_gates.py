"""Each gate by itself: when it opens, for whom it does not count, and in which words it is told."""

import random
from datetime import date
from typing import Any

import pytest

from paceline.core import gates
from paceline.core import usage as usages
from paceline.core.calendar import next_day_start, next_week_start
from paceline.core.gates import NEVER, Gate, account_gates
from paceline.core.health import Window
from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from paceline.core.model import Ask, Standing
from paceline.core.policy import Policy
from paceline.core.states import AccountState
from paceline.core.usage import Usage

NOW = parse_instant("2026-02-16T11:00:00Z")  # a Monday
MAIL = Ask(action="email", run_id=7)
REPLY = Ask(action="email", run_id=7, reply=True)
S = AccountState


def gate_of(name: str, standing: Standing | None = None, **settings: Any) -> Gate:
    """The one gate of that name among those a policy has."""
    policy = Policy.from_mapping(settings)
    (found,) = [g for g in account_gates(policy, standing or Standing()) if g.name == name]
    return found


def delivery_gate(name: str) -> Gate:
    (found,) = [gate for gate in gates.DELIVERY_GATES if gate.name == name]
    return found


def test_a_policy_has_only_the_gates_that_could_ever_shut() -> None:
    always = ["status", "hold", "signal"]
    assert [gate.name for gate in account_gates(Policy(), Standing())] == always
    full = Policy.from_mapping(
        {
            "rate": "1/s",
            "hours": "09:00-18:00 UTC",
            "spacing": "3s",
            "batch": "75 then 30s",
            "daily": {"email": 1},
            "weekly": {"email": 1},
            "per_recipient": "1/day",
        }
    )
    names = [gate.name for gate in account_gates(full, Standing())]
    wanted = "status hold signal hours weekly daily frequency spacing batch rate"
    assert " ".join(sorted(names)) == " ".join(sorted(wanted.split()))
    assert [g.name for g in account_gates(Policy(min_gap_us=1), Standing())][-1] == "spacing"


@pytest.mark.parametrize(
    ("state", "until_at", "opens_at"),
    [
        (S.ACTIVE, None, NOW),
        (S.LIMIT_REACHED, NOW + DAY, NOW),  # what enforces it is the cap gate
        (S.LIMIT_REACHED, None, NOW),
        (S.COOLING_DOWN, NOW + HOUR, NOW + HOUR),
        (S.COOLING_DOWN, NOW - HOUR, NOW),
        (S.COOLING_DOWN, None, NEVER),
        (S.PAUSED, None, NEVER),
        (S.PAUSED, NOW + HOUR, NEVER),
        (S.SUSPENDED, NOW - HOUR, NEVER),
    ],
)
@pytest.mark.parametrize("ask", [MAIL, REPLY], ids=["campaign", "reply"])
def test_status(state: AccountState, until_at: int | None, opens_at: int, ask: Ask) -> None:
    gate = gate_of("status", Standing(state, until_at, "too many bounces"))
    assert gate.earliest(NOW, Usage(), ask) == opens_at
    assert gate.reason(NOW, Usage(), ask) == (
        f"account is {state.replace('_', ' ')}: too many bounces"
    )
    assert not gate.final


def test_a_hold_binds_replies_as_well() -> None:
    gate, held = gate_of("hold"), Usage(hold_until_at=NOW + MINUTE, hold_reason="throttled: slow")
    for ask in (MAIL, REPLY):
        assert gate.earliest(NOW, held, ask) == NOW + MINUTE
        assert gate.earliest(NOW + HOUR, held, ask) == NOW + HOUR
    assert gate.reason(NOW, held, MAIL) == "throttled: slow"
    assert gate.reason(NOW, Usage(hold_until_at=1), MAIL) == "held back by the provider"


def test_the_rate_binds_replies_as_well_and_a_burst_is_a_burst() -> None:
    gate = gate_of("rate", rate="60/min burst 3")
    for tokens_used, opens_at in ((1, NOW), (2, NOW), (3, NOW + SECOND), (5, NOW + 3 * SECOND)):
        usage = Usage(tat_at=NOW + tokens_used * SECOND)
        for ask in (MAIL, REPLY, MAIL._replace(parts=5)):
            assert gate.earliest(NOW, usage, ask) == opens_at
    assert gate.reason(NOW, Usage(), MAIL) == "rate limit 60/min burst 3"


def test_the_rate_says_that_it_is_slowed_as_long_as_it_is() -> None:
    gate = gate_of("rate", rate="40/min", throttle={"to": "20/min", "recover": "30m"})
    usage = Usage(throttled_at=NOW)
    assert gate.reason(NOW + MINUTE, usage, MAIL) == "rate limit 40/min (slowed after a throttle)"
    assert gate.reason(NOW + 31 * MINUTE, usage, MAIL) == "rate limit 40/min"


def test_spacing_counts_from_the_last_paced_send_and_replies_ignore_it() -> None:
    gate = gate_of("spacing", spacing="5m..20m", min_gap="6m")
    usage = Usage(last_at=NOW, gap_us=7 * MINUTE)
    assert gate.earliest(NOW + MINUTE, usage, MAIL) == NOW + 7 * MINUTE
    assert gate.earliest(NOW + MINUTE, usage, REPLY) == NOW + MINUTE
    assert gate.earliest(NOW, Usage(), MAIL) == NOW
    assert gate.reason(NOW, usage, MAIL) == "spacing 7m since the last message"


def test_spacing_is_stretched_for_the_run_that_has_errors_and_for_no_other() -> None:
    adaptive = {"above": "5%", "slow_by": 1.5, "between": "2s..10s"}
    gate = gate_of("spacing", spacing="3s", adaptive=adaptive)
    usage = Usage(last_at=NOW, gap_us=3 * SECOND, health={7: Window(0b11, 10)})
    assert gate.earliest(NOW, usage, MAIL) == NOW + 4_500_000
    assert gate.earliest(NOW, usage, MAIL._replace(run_id=8)) == NOW + 3 * SECOND
    assert gate.reason(NOW, usage, MAIL) == (
        "spacing 4.5s since the last message (slowed: error rate above 5%)"
    )


def test_the_pause_after_a_batch_comes_on_top_of_the_spacing() -> None:
    gate = gate_of("batch", spacing="3s", batch="75 then 30s")
    usage = Usage(last_at=NOW, gap_us=3 * SECOND, batch_position=74)
    assert gate.earliest(NOW, usage, MAIL) == NOW
    full = usage._replace(batch_position=75)
    assert gate.earliest(NOW, full, MAIL) == NOW + 33 * SECOND
    assert gate.earliest(NOW, full, REPLY) == NOW
    assert gate.reason(NOW, full, MAIL) == "batch of 75 done, pausing 30s"


def test_hours_bind_campaigns_and_not_replies() -> None:
    gate = gate_of("hours", hours="Mon-Fri 09:00-18:00 America/New_York", blackout=["2026-02-16"])
    opens_at = parse_instant("2026-02-17T09:00", "America/New_York")
    assert gate.earliest(NOW, Usage(), MAIL) == opens_at
    assert gate.earliest(NOW, Usage(), REPLY) == NOW
    assert gate.reason(NOW, Usage(), MAIL) == (
        "outside business hours (Mon-Fri 09:00-18:00 America/New_York)"
    )


def counted(policy: dict[str, Any], number: int, ask: Ask = MAIL) -> Usage:
    usage, rng = Usage(), random.Random(1)
    for _ in range(number):
        usage = usages.spend(usage, Policy.from_mapping(policy), ask, NOW, rng)
    return usage


def test_the_daily_cap_of_an_action_type_opens_again_at_midnight_of_the_account() -> None:
    policy = {"daily": {"email": 20, "reply": 2}, "zone": "Asia/Tokyo"}
    gate = gate_of("daily", **policy)
    assert gate.earliest(NOW, counted(policy, 19), MAIL) == NOW
    full = counted(policy, 20)
    tomorrow_at = parse_instant("2026-02-17T00:00", "Asia/Tokyo")
    assert gate.earliest(NOW, full, MAIL) == tomorrow_at == next_day_start(NOW, "Asia/Tokyo")
    assert gate.earliest(tomorrow_at + HOUR, full, MAIL) == tomorrow_at + HOUR
    assert gate.earliest(NOW, full, MAIL._replace(action="message")) == NOW
    assert gate.earliest(NOW, full, REPLY) == NOW
    assert gate.reason(NOW, full, MAIL) == "daily cap reached (20/20)"
    replies = counted(policy, 2, REPLY)
    assert gate.earliest(NOW, replies, REPLY) == tomorrow_at
    assert gate.earliest(NOW, replies, MAIL) == NOW


@pytest.mark.parametrize("period", ["daily", "weekly"])
def test_a_delivery_needs_room_for_all_its_parts(period: str) -> None:
    policy = {period: {"email": 5}}
    gate, usage = gate_of(period, **policy), counted(policy, 3)
    start = {"daily": next_day_start, "weekly": next_week_start}[period](NOW, "UTC")
    assert gate.earliest(NOW, usage, MAIL._replace(parts=2)) == NOW
    assert gate.earliest(NOW, usage, MAIL._replace(parts=3)) == start
    assert gate.earliest(NOW, usage, MAIL._replace(parts=6)) == NEVER
    assert gate.earliest(NOW, Usage(), MAIL._replace(parts=6)) == NEVER
    assert gate.reason(NOW, usage, MAIL._replace(parts=6)) == (
        f"{period} cap 5 leaves no room for 6 sends"
    )
    none = gate_of(period, **{period: {"email": 0}})
    assert none.earliest(NOW, Usage(), MAIL) == NEVER
    assert none.reason(NOW, Usage(), MAIL) == f"{period} cap 0 leaves no room for 1 send"
    assert not gate.final  # a raised cap would let it go


def test_the_weekly_cap_opens_again_on_monday() -> None:
    policy = {"weekly": {"connection_request": 150}, "zone": "America/New_York"}
    ask = Ask(action="connection_request")
    gate, full = gate_of("weekly", **policy), counted(policy, 150, ask)
    monday_at = parse_instant("2026-02-23T00:00", "America/New_York")
    assert gate.earliest(NOW, full, ask) == monday_at
    assert gate.earliest(monday_at, full, ask) == monday_at
    assert gate.earliest(NOW, full, MAIL) == NOW
    assert gate.reason(NOW, full, ask) == "weekly cap reached (150/150)"


def test_a_clock_set_back_over_midnight_does_not_open_a_cap() -> None:
    policy = {"daily": {"email": 2}, "weekly": {"email": 2}}
    full = counted(policy, 2)
    for period in ("daily", "weekly"):
        gate = gate_of(period, **policy)
        assert gate.earliest(NOW - DAY, full, MAIL) == gate.earliest(NOW, full, MAIL) > NOW


def test_the_warm_up_narrows_the_cap_and_grows_from_day_to_day() -> None:
    policy = {"warmup": "2 +100%/day to 16", "daily": {"email": 10}, "zone": "Europe/London"}
    first_at = parse_instant("2026-03-27T12:00:00Z")  # two days before the clocks change
    gate = gate_of("daily", Standing(warm_since_at=first_at), **policy)
    for day, cap in enumerate([2, 4, 8, 10, 10]):
        at = first_at + day * DAY
        usage = Usage(day_at=next_day_start(at - DAY, "Europe/London"), day={"email": cap})
        below = usage._replace(day={"email": cap - 1})
        assert gate.earliest(at, below, MAIL) == at
        assert gate.earliest(at, usage, MAIL) == next_day_start(at, "Europe/London")
        ramp = " of the warm-up" if cap < 10 else ""
        assert gate.reason(at, usage, MAIL) == f"daily cap reached ({cap}/{cap}){ramp}"
    assert gate.earliest(first_at - 9 * DAY, Usage(), MAIL) == first_at - 9 * DAY


def test_a_warm_up_lets_no_delivery_start_that_it_has_no_room_for() -> None:
    policy = {"warmup": "2 +100%/day to 16"}
    gate = gate_of("daily", Standing(warm_since_at=NOW), **policy)
    third_day_at = next_day_start(NOW + DAY, "UTC")
    assert gate.earliest(NOW, Usage(), MAIL._replace(parts=5)) == third_day_at
    assert gate.earliest(NOW, Usage(), MAIL._replace(parts=16)) < NEVER
    assert gate.earliest(NOW, Usage(), MAIL._replace(parts=17)) == NEVER
    assert gate.earliest(NOW, Usage(), REPLY._replace(parts=99)) == NOW
    slow = gate_of("daily", Standing(warm_since_at=NOW), warmup="1 +0.01%/day to 9")
    assert slow.earliest(NOW, Usage(), MAIL._replace(parts=2)) == NEVER


def test_not_before_binds_everybody() -> None:
    gate = delivery_gate("not-before")
    for ask in (MAIL, REPLY):
        assert gate.earliest(NOW, Usage(), ask._replace(not_before_at=NOW + 5)) == NOW + 5
        assert gate.earliest(NOW, Usage(), ask._replace(not_before_at=NOW - 5)) == NOW
    assert gate.reason(NOW, Usage(), MAIL) == "scheduled for later"


def test_the_window_holds_until_it_opens_and_refuses_after_it_closed() -> None:
    gate = delivery_gate("window")
    window = Hours.window(12, 14, "UTC")
    ask = MAIL._replace(window=window, closes_at=NOW + 3 * HOUR)
    assert gate.earliest(NOW, Usage(), ask) == NOW + HOUR
    assert gate.earliest(NOW + 3 * HOUR - 1, Usage(), ask) == NOW + 3 * HOUR - 1
    assert gate.earliest(NOW + 3 * HOUR, Usage(), ask) == NEVER
    assert gate.reason(NOW, Usage(), ask) == "outside send window (12:00-14:00 UTC)"
    assert gate.reason(NOW + 3 * HOUR, Usage(), ask) == "delivery window closed"
    resumed = ask._replace(closes_at=None)
    assert gate.earliest(NOW + 3 * HOUR, Usage(), resumed) == NOW + 25 * HOUR
    assert gate.earliest(NOW, Usage(), MAIL._replace(opens_at=NOW + 9)) == NOW + 9
    assert gate.earliest(NOW + DAY, Usage(), ask._replace(reply=True)) == NOW + DAY
    assert gate.final


def test_expiry_and_suppression_spare_nobody() -> None:
    expiry, suppression = delivery_gate("expiry"), delivery_gate("suppression")
    for ask in (MAIL, REPLY):
        late = ask._replace(expires_at=NOW)
        assert expiry.earliest(NOW, Usage(), late) == NEVER
        assert expiry.earliest(NOW - 1, Usage(), late) == NOW - 1
        assert expiry.reason(NOW, Usage(), late) == "expired at 2026-02-16 11:00 UTC"
        assert suppression.earliest(NOW, Usage(), ask._replace(suppressed=True)) == NEVER
        assert suppression.earliest(NOW, Usage(), ask) == NOW
    assert suppression.reason(NOW, Usage(), MAIL) == "recipient is suppressed"
    assert expiry.final and suppression.final


def test_frequency_looks_at_the_contact_that_must_be_long_enough_ago() -> None:
    gate = gate_of("frequency", per_recipient="2/day")
    ask = MAIL._replace(contacted=(NOW - 30 * HOUR, NOW - 5 * HOUR, NOW - HOUR))
    assert gate.earliest(NOW, Usage(), ask) == NOW + 19 * HOUR
    assert gate.earliest(NOW, Usage(), ask._replace(contacted=(NOW,))) == NOW
    assert gate.earliest(NOW, Usage(), ask._replace(reply=True)) == NOW
    assert gate.reason(NOW, Usage(), ask) == "recipient was contacted already (at most 2/day)"


def test_the_recipients_hours_are_in_the_recipients_zone() -> None:
    gate = delivery_gate("recipient-hours")
    ask = MAIL._replace(recipient_hours=Hours.parse("09:00-17:00 Asia/Tokyo"))
    opens_at = parse_instant("2026-02-17T09:00", "Asia/Tokyo")
    assert gate.earliest(NOW, Usage(), ask) == opens_at
    assert gate.earliest(NOW, Usage(), ask._replace(reply=True)) == NOW
    assert gate.earliest(NOW, Usage(), MAIL) == NOW
    assert (
        gate.reason(NOW, Usage(), ask) == "outside the recipient's hours (09:00-17:00 Asia/Tokyo)"
    )


def test_hours_that_never_open_again_make_the_account_wait_and_a_window_refuse() -> None:
    dates = [date.fromordinal(date(2026, 2, 16).toordinal() + n) for n in range(401)]
    shut = Hours.always("UTC", blackout=dates)
    assert gates.HoursGate(shut).earliest(NOW, Usage(), MAIL) == NEVER
    ask = MAIL._replace(window=shut)
    assert delivery_gate("window").earliest(NOW, Usage(), ask) == NEVER
