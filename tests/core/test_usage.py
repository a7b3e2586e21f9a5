"""Usage: what a send takes, what an answer gives back, and what survives a restart."""

import json
import random
from collections import Counter
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core import usage as usages
from paceline.core.calendar import day_start_of, next_day_start, next_week_start, week_start
from paceline.core.health import Window
from paceline.core.holds import NO_HOLDS
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Ask
from paceline.core.outcome import Outcome, OutcomeKind, accepted
from paceline.core.policy import Policy
from paceline.core.recounting import recounted, uncounted
from paceline.core.usage import RUNS_REMEMBERED, Usage, gap_to_keep_us
from tests.core import naive, values

K = OutcomeKind
NOW = 1_771_239_600_000_000  # Monday 2026-02-16 11:00 UTC
RNG = random.Random(1)
MAIL = Ask(action="email", run_id=7)
REPLY = Ask(action="email", run_id=7, reply=True)
COLD = Policy.from_mapping({"spacing": "5m..20m", "min_gap": "6m", "daily": {"email": 20}})
FAST = Policy.from_mapping({"rate": "60/min burst 3"})


def spent(policy: Policy, *instants: int, ask: Ask = MAIL, usage: Usage | None = None) -> Usage:
    usage = usage or Usage()
    for at in instants:
        usage = usages.spend(usage, policy, ask, at, RNG)
    return usage


def test_a_send_takes_a_token_a_slot_and_draws_the_next_gap() -> None:
    usage = spent(COLD, NOW)
    assert usage.last_at == NOW
    assert 6 * MINUTE <= usage.gap_us <= 20 * MINUTE
    assert usage.day == usage.week == {"email": 1}
    assert usage.day_at == day_start_of(NOW, "UTC")
    assert usage.week_at == week_start(NOW, "UTC")
    assert spent(FAST, NOW).tat_at == NOW + SECOND
    assert spent(FAST, NOW, NOW, NOW).tat_at == NOW + 3 * SECOND
    assert spent(FAST, NOW, NOW + HOUR).tat_at == NOW + HOUR + SECOND


def test_a_reply_takes_a_token_and_its_own_slot_and_nothing_else() -> None:
    policy = Policy.from_mapping(
        {"rate": "1/s", "spacing": "5m", "batch": "2 then 1h", "daily": {"email": 99}}
    )
    before = spent(policy, NOW)
    after = spent(policy, NOW + MINUTE, ask=REPLY, usage=before)
    assert after.day == {"email": 1, "reply": 1}
    assert after.tat_at == NOW + MINUTE + SECOND
    for name in ("last_at", "gap_us", "batch_position"):
        assert getattr(after, name) == getattr(before, name)


def test_only_what_has_a_cap_is_counted() -> None:
    assert spent(Policy.from_mapping({"rate": "1/s"}), NOW).day == {}
    for capped in ({"weekly": {"email": 9}}, {"warmup": "20 +10%/day to 200"}):
        assert spent(Policy.from_mapping(capped), NOW).day == {"email": 1}


def test_a_further_part_takes_a_token_and_a_slot_but_no_new_gap_and_no_place_in_the_batch() -> None:
    policy = Policy.from_mapping(
        {"rate": "1/s", "spacing": "1m..9m", "batch": "2 then 1h", "daily": {"email": 99}}
    )
    before = spent(policy, NOW)
    after = usages.spend_part(before, policy, MAIL, NOW + 5 * SECOND)
    assert after.day == {"email": 2}
    assert (after.gap_us, after.batch_position) == (before.gap_us, 1)
    assert (after.last_at, after.tat_at) == (NOW + 5 * SECOND, NOW + 6 * SECOND)
    reply = usages.spend_part(before, policy, REPLY, NOW + 5 * SECOND)
    assert reply.last_at == NOW


def test_what_counts_is_the_call_and_not_the_intent() -> None:
    policy = Policy.from_mapping({"rate": "1/s", "spacing": "5m"})
    late = usages.started(spent(policy, NOW), NOW + 3 * SECOND, policy, reply=False)
    assert (late.tat_at, late.last_at) == (NOW + 4 * SECOND, NOW + 3 * SECOND)
    reply = usages.started(spent(policy, NOW), NOW + 3 * SECOND, policy, reply=True)
    assert (reply.tat_at, reply.last_at) == (NOW + 4 * SECOND, NOW)


@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 4000))))
def test_the_bucket_is_as_if_every_send_had_been_spent_at_its_call(
    burst: int, delays: list[tuple[int, int]]
) -> None:
    """However long commits take, the theoretical arrival time is that of the calls themselves."""
    policy = Policy.from_mapping({"rate": f"1/1ms burst {burst}"})
    usage, tat_at, now = Usage(), 0, NOW
    for idle_us, commit_us in delays:
        usage = spent(policy, now + idle_us, usage=usage)
        now += idle_us + commit_us
        usage = usages.started(usage, now, policy, reply=False)
        tat_at = max(tat_at, now) + 1_000
        assert usage.tat_at == tat_at


@pytest.mark.parametrize("kind", OutcomeKind)
def test_a_refusal_gives_the_slot_back_and_never_the_token(kind: OutcomeKind) -> None:
    policy = Policy.from_mapping(
        {"rate": "1/s", "spacing": "5m", "batch": "9 then 1h", "daily": {"email": 99}}
    )
    before = spent(policy, NOW, NOW + MINUTE)
    after = usages.settle(before, MAIL, Outcome(kind), NOW + MINUTE, 7)
    kept = 2 if kind in {K.ACCEPTED, K.UNKNOWN} else 1
    assert after.day == after.week == {"email": kept}
    for name in ("tat_at", "last_at", "gap_us", "batch_position", "throttled_at"):
        assert getattr(after, name) == getattr(before, name)


def test_settling_counts_sends_and_bounces_of_the_day() -> None:
    usage = spent(COLD, NOW, NOW, NOW, NOW)
    for kind in (K.ACCEPTED, K.BOUNCED, K.REJECTED, K.UNKNOWN):
        usage = usages.settle(usage, MAIL, Outcome(kind), NOW, 7)
    assert (usage.day_sends, usage.day_bounces) == (2, 1)
    tomorrow = spent(COLD, NOW + DAY, usage=usage)
    assert (tomorrow.day_sends, tomorrow.day_bounces) == (0, 0)


def test_a_new_day_starts_at_nothing_and_a_week_goes_on_until_monday() -> None:
    usage = spent(COLD, *(NOW + n * DAY for n in range(7)))
    assert (usage.day, usage.week) == ({"email": 1}, {"email": 7})
    usage = spent(COLD, NOW + 7 * DAY, usage=usage)
    assert (usage.day, usage.week) == ({"email": 1}, {"email": 1})


@pytest.mark.parametrize(("zone", "change"), values.CHANGES)
def test_days_and_weeks_roll_over_at_the_wall_clocks_midnight(zone: str, change: date) -> None:
    """Hour by hour through a change of the clock: each send is in exactly one day."""
    policy = Policy.from_mapping({"zone": zone, "daily": {"email": 99}})
    usage = Usage()
    days: Counter[date] = Counter()
    weeks: Counter[date] = Counter()
    for at in values.minutes_around(change, 4, 4)[::60]:
        usage = spent(policy, at, usage=usage)
        today, this_week = naive.day(at, zone), naive.monday(at, zone)
        days[today] += 1
        weeks[this_week] += 1
        assert usage.day == {"email": days[today]}
        assert usage.week == {"email": weeks[this_week]}


@pytest.mark.parametrize("kind", [K.REJECTED, K.WITHDRAWN, K.THROTTLED])
def test_a_slot_given_back_after_midnight_is_yesterdays(kind: OutcomeKind) -> None:
    late_at = next_day_start(NOW, "UTC") - SECOND
    usage = spent(COLD, late_at)
    for _ in range(3):
        lone = usages.settle(usage, MAIL, Outcome(kind), late_at, 7)
        assert lone.day == {"email": 0}
    usage = spent(COLD, late_at + 2 * SECOND, usage=usage)
    assert usage.day == {"email": 1}
    after = usages.settle(usage, MAIL, Outcome(kind), late_at, 7)
    assert (after.day, after.week) == ({"email": 1}, {"email": 1})


def test_a_slot_given_back_after_the_week_is_last_weeks() -> None:
    late_at = next_week_start(NOW, "UTC") - SECOND
    usage = spent(COLD, late_at, late_at + 2 * SECOND)
    after = usages.settle(usage, MAIL, Outcome(K.REJECTED), late_at, 7)
    assert (after.day, after.week) == ({"email": 1}, {"email": 1})


def test_a_count_never_falls_below_nothing() -> None:
    usage = usages.settle(Usage(), MAIL, Outcome(K.REJECTED), NOW, 7)
    assert usage.day["email"] == usage.week["email"] == 0


def test_a_clock_that_is_set_back_over_midnight_brings_no_allowance_back() -> None:
    monday_at = next_week_start(NOW, "UTC")
    usage = spent(COLD, monday_at, monday_at + SECOND)
    back = spent(COLD, monday_at - MINUTE, usage=usage)
    assert (back.day, back.week) == ({"email": 3}, {"email": 3})
    assert (back.day_at, back.week_at) == (monday_at, monday_at)
    assert back.used_on(day_start_of(monday_at - MINUTE, "UTC"), "email") == 3
    assert back.used_in_week(week_start(monday_at - MINUTE, "UTC"), "email") == 3
    assert back.used_on(next_day_start(monday_at, "UTC"), "email") == 0


def test_the_batch_position_starts_over_after_a_full_batch() -> None:
    policy = Policy.from_mapping({"batch": "3 then 1m"})
    usage, positions = Usage(), []
    for number in range(8):
        usage = spent(policy, NOW + number * HOUR, usage=usage)
        positions.append(usage.batch_position)
    assert positions == [1, 2, 3, 1, 2, 3, 1, 2]


def test_a_hold_lasts_as_long_as_the_longest_and_tells_its_reason() -> None:
    usage = usages.hold(Usage(), NOW + HOUR, "quota", None)
    usage = usages.hold(usage, NOW + MINUTE, "throttled", NOW)
    assert (usage.hold_until_at, usage.hold_reason) == (NOW + HOUR, "quota")
    assert (usage.setbacks, usage.throttled_at) == (2, NOW)
    usage = usages.hold(usage, NOW + 2 * HOUR, "away", None)
    assert (usage.hold_until_at, usage.hold_reason, usage.throttled_at) == (
        NOW + 2 * HOUR,
        "away",
        NOW,
    )
    assert usages.settle(usage, MAIL, Outcome(K.REJECTED), NOW, 7).setbacks == 3
    assert usages.settle(usage, MAIL, accepted(), NOW, 7).setbacks == 0


def test_after_a_throttle_tokens_cost_more_for_a_while() -> None:
    usage = usages.hold(Usage(), NOW, "throttled", NOW)
    policy = Policy.from_mapping({"rate": "1/s", "throttle": {"slow_by": 2, "recover": "10m"}})
    assert spent(policy, NOW, usage=usage).tat_at == NOW + 2 * SECOND
    half_at = NOW + 5 * MINUTE
    assert spent(policy, half_at, usage=usage).tat_at == half_at + 1_500_000
    assert spent(policy, NOW + HOUR, usage=usage).tat_at == NOW + HOUR + SECOND


def test_the_error_windows_are_kept_per_run_and_the_oldest_are_forgotten() -> None:
    usage = Usage()
    for run in range(1, RUNS_REMEMBERED + 3):
        usage = usages.settle(usage, MAIL, Outcome(K.REJECTED), NOW, run)
    assert len(usage.health) == RUNS_REMEMBERED
    assert usage.window_of(1) == usage.window_of(2) == Window()
    usage = usages.settle(usage, MAIL, accepted(), NOW, 3)
    usage = usages.settle(usage, MAIL, accepted(), NOW, 99)
    assert usage.window_of(3) == Window(0b10, 2)  # it had just settled, so it stays
    assert usages.forget_run(usage, 3).window_of(3) == Window()
    assert usages.settle(usage, MAIL, accepted(), NOW, 0).health == usage.health


def test_an_attempt_without_an_intent_took_no_slot() -> None:
    before = spent(COLD, NOW)
    after = usages.settle(before, MAIL, Outcome(K.REJECTED), 0, 7)
    kept = uncounted(after, before)
    assert (kept.day, kept.week) == (before.day, before.week)
    assert kept.window_of(7) == Window(1, 1)


# ---------------------------------------------------------------------- the gap that is kept


def test_the_drawn_gap_is_kept_as_far_as_the_policy_could_have_drawn_it_by_now() -> None:
    usage = Usage(last_at=NOW, gap_us=8 * MINUTE)
    assert gap_to_keep_us(COLD, usage, MAIL) == 8 * MINUTE
    assert gap_to_keep_us(COLD, usage._replace(gap_us=0), MAIL) == 6 * MINUTE
    stricter = Policy.from_mapping({"spacing": "10m..20m"})
    assert gap_to_keep_us(stricter, usage, MAIL) == 10 * MINUTE
    laxer = Policy.from_mapping({"spacing": "1m..2m", "min_gap": "90s"})
    assert gap_to_keep_us(laxer, usage, MAIL) == 2 * MINUTE
    assert gap_to_keep_us(Policy(), usage, MAIL) == 0


def test_a_throttle_stretches_the_gap_too_and_does_not_multiply_with_errors() -> None:
    policy = Policy.from_mapping(
        {
            "spacing": "4s",
            "adaptive": {"above": "5%", "slow_by": 1.5, "between": "2s..7s"},
            "throttle": {"slow_by": 1.25, "recover": "10m"},
        }
    )
    usage = Usage(last_at=NOW, gap_us=4 * SECOND, throttled_at=NOW)
    assert gap_to_keep_us(policy, usage, MAIL) == 5 * SECOND
    assert gap_to_keep_us(policy, usage._replace(last_at=NOW + 5 * MINUTE), MAIL) == 4_500_000
    assert gap_to_keep_us(policy, usage._replace(last_at=NOW + HOUR), MAIL) == 4 * SECOND
    ill = usage._replace(health={7: Window(1, 1)})
    assert gap_to_keep_us(policy, ill, MAIL) == 6 * SECOND
    harsher = replace(
        policy, throttle=replace(policy.throttle, slow_by=policy.throttle.slow_by * 2)
    )
    assert gap_to_keep_us(harsher, usage, MAIL) == 7 * SECOND  # within the adaptive bounds


# ---------------------------------------------------------------------- the checkpoint

windows = st.integers(0, 300).flatmap(
    lambda size: st.builds(Window, st.integers(0, 2**size - 1), st.just(size))
)
instants = st.integers(0, 2**53)
some_usage = st.builds(
    Usage,
    tat_at=instants,
    last_at=st.none() | instants,
    gap_us=instants,
    batch_position=st.integers(0, 1000),
    day_at=instants,
    day_sends=st.integers(0, 1000),
    day_bounces=st.integers(0, 1000),
    hold_until_at=instants,
    hold_reason=st.text(),
    setbacks=st.integers(0, 100),
    throttled_at=st.none() | instants,
    health=st.dictionaries(st.integers(1, 2**63), windows, max_size=RUNS_REMEMBERED),
    holds=st.just(NO_HOLDS) | values.holds,
    # Left to the ledger.
    day=st.just({}),
    week_at=st.just(0),
    week=st.just({}),
)


@given(some_usage)
def test_a_checkpoint_is_the_same_by_hand_and_by_the_encoder(usage: Usage) -> None:
    assert json.loads(usages.to_json(usage)) == usages.encode(usage)


@given(some_usage)
def test_a_checkpoint_survives_json(usage: Usage) -> None:
    again = usages.decode(json.loads(json.dumps(usages.encode(usage))))
    assert again == usage
    assert list(again.health) == list(usage.health)  # also the order in which runs are forgotten


@given(some_usage)
def test_the_counts_are_left_to_the_ledger(usage: Usage) -> None:
    counted = usage._replace(day={"email": 5}, week_at=9, week={"email": 8})
    assert usages.decode(usages.encode(counted)) == usage
    restored = recounted(usage, day_at=4, day={"a": 1}, week_at=2, week={"a": 3})
    assert (restored.day_at, restored.day) == (4, {"a": 1})
    assert (restored.week_at, restored.week) == (2, {"a": 3})
    same_day = usage.day_at == 4
    assert restored.day_sends == (usage.day_sends if same_day else 0)


def test_the_first_checkpoint_of_all() -> None:
    assert usages.decode({}) == Usage()
    assert usages.decode(usages.encode(Usage())) == Usage()


def test_usage_is_never_changed_in_place() -> None:
    usage = spent(COLD, NOW)
    text = json.dumps(usages.encode(usage)) + str(usage.day) + str(usage.week)
    spent(COLD, NOW + DAY, usage=usage)
    usages.spend_part(usage, COLD, MAIL, NOW + SECOND)
    usages.settle(usage, MAIL, Outcome(K.REJECTED), NOW, 7)
    usages.hold(usage, NOW + DAY, "x", NOW)
    assert json.dumps(usages.encode(usage)) + str(usage.day) + str(usage.week) == text


# ---------------------------------------------------------------------- holds and wrong clocks


def test_a_whole_web_page_is_no_reason() -> None:
    held = usages.hold(Usage(), NOW + HOUR, "<html>" + "x" * 2_000_000, None)
    assert len(held.hold_reason) == usages.REASON_LENGTH
    assert held.hold_reason.startswith("<html>")


def test_the_reason_of_a_hold_is_forgotten_with_the_first_send_after_it() -> None:
    held = usages.hold(Usage(), NOW + HOUR, "slow down", NOW)
    during = usages.spend(held, FAST, MAIL, NOW, RNG)
    assert during.hold_reason == "slow down"
    for after in (
        usages.spend(held, FAST, MAIL, NOW + HOUR, RNG),
        usages.spend_part(held, FAST, MAIL, NOW + HOUR),
    ):
        assert (after.hold_reason, after.setbacks) == ("", 1)
        assert after.throttled_at == NOW


def test_what_an_honest_clock_wrote_is_plausible() -> None:
    for policy in (COLD, FAST):
        usage = spent(policy, NOW, NOW, NOW)
        usage = usages.hold(usage, NOW + 30 * DAY, "banned", NOW)
        assert usages.plausible(usage, policy, NOW) is usage
    counted_ahead = usages.started(spent(FAST, NOW, NOW), NOW + 3_000, FAST, reply=False)
    assert usages.plausible(counted_ahead, FAST, NOW) is counted_ahead
    assert usages.plausible(Usage(), FAST, NOW) == Usage()


def test_what_a_wrong_clock_wrote_holds_nobody_up_once_it_is_right() -> None:
    wrong = NOW + 365 * DAY
    usage = usages.hold(spent(FAST, wrong, wrong), wrong + MINUTE, "slow down", wrong)
    sane = usages.plausible(usage, FAST, NOW)
    assert (sane.last_at, sane.throttled_at) == (NOW, NOW)
    assert sane.hold_until_at == NOW + usages.LONGEST_HOLD_US
    assert sane.tat_at - NOW == usage.tat_at - wrong
    assert usages.plausible(sane, FAST, NOW) == sane


def test_a_wrong_clock_that_only_replies_have_seen() -> None:
    reply = Ask(reply=True)
    usage = usages.spend(Usage(), FAST, reply, NOW + 365 * DAY, RNG)
    assert usage.last_at is None
    assert usages.plausible(usage, FAST, NOW).tat_at == NOW
    soon = usages.spend(Usage(), FAST, reply, NOW + MINUTE, RNG)
    assert usages.plausible(soon, FAST, NOW) is soon


@given(ahead_us=st.integers(SECOND, 3650 * DAY), sends=st.integers(1, 5))
def test_a_clock_set_right_neither_grants_nor_takes_anything(ahead_us: int, sends: int) -> None:
    """As if the sends that lie in the future had been made at this very moment."""
    usage = spent(FAST, *[NOW + ahead_us] * sends)
    sane = usages.plausible(usage, FAST, NOW)
    assert sane.tat_at == spent(FAST, *[NOW] * sends).tat_at
    assert sane.last_at == NOW
    assert (sane.gap_us, sane.day, sane.week) == (usage.gap_us, usage.day, usage.week)
