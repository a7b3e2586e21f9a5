"""What follows from each outcome, as the design's table settles it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.errors import InputError
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.outcome import HANDLE_GONE, Outcome, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.retry import (
    ASK_AFTER_US,
    LONGEST_ASKED_US,
    Consequence,
    after_retries,
    consequence,
    most_resends,
    next_ask_at,
    retry_delay_us,
)
from paceline.core.signals import LONGEST_DOUBLED_US
from paceline.core.states import ACCOUNT, DELIVERY, AccountState, DeliveryState

K = OutcomeKind
NOW = 1_771_239_600_000_000  # 2026-02-16 11:00 UTC
DEFAULT = Policy()


def after(
    kind: OutcomeKind,
    *,
    retries: int = 0,
    setbacks: int = 0,
    retry_after_us: int | None = None,
    policy: Policy = DEFAULT,
    most: int | None = None,
) -> Consequence:
    outcome = Outcome(kind, "because", retry_after_us=retry_after_us)
    return consequence(
        outcome, retries=retries, setbacks=setbacks, policy=policy, now=NOW, most=most
    )


@pytest.mark.parametrize("kind", OutcomeKind)
def test_every_outcome_has_a_consequence_that_the_machines_allow(kind: OutcomeKind) -> None:
    result = after(kind)
    DELIVERY.next(DeliveryState.SENDING, result.event)
    if result.account_event is not None:
        ACCOUNT.next(AccountState.ACTIVE, result.account_event)
    assert (result.due_at is not None) == (result.event == "retry")
    assert result.reason or kind is K.ACCEPTED


def test_accepted_is_the_end_of_it() -> None:
    assert after(K.ACCEPTED) == Consequence("accept")


def test_permanent_never_comes_back_and_only_a_bounce_suppresses() -> None:
    assert after(K.REJECTED) == Consequence("fail", reason="because")
    assert after(K.BOUNCED) == Consequence("bounce", reason="because", suppresses=True)
    assert [kind for kind in OutcomeKind if after(kind).suppresses] == [K.BOUNCED]


@pytest.mark.parametrize("code", sorted(HANDLE_GONE))
def test_a_file_that_is_gone_is_a_refusal_to_whoever_does_not_know_how_old_it_was(
    code: str,
) -> None:
    outcome = Outcome(K.REJECTED, "because", code)
    result = consequence(outcome, retries=0, setbacks=0, policy=DEFAULT, now=NOW)
    assert result == Consequence("fail", reason="because")


def test_throttled_waits_for_retry_after_or_60_seconds_and_goes_slower() -> None:
    plain, asked = after(K.THROTTLED), after(K.THROTTLED, retry_after_us=90 * SECOND)
    assert (plain.due_at, plain.hold_until_at) == (NOW + MINUTE, NOW + MINUTE)
    assert (asked.due_at, asked.hold_until_at) == (NOW + 90 * SECOND, NOW + 90 * SECOND)
    assert plain.slows and asked.slows
    assert [kind for kind in OutcomeKind if after(kind).slows] == [K.THROTTLED]


def test_unavailable_waits_20_seconds() -> None:
    result = after(K.UNAVAILABLE)
    assert (result.event, result.due_at, result.slows) == ("retry", NOW + 20 * SECOND, False)
    assert result.hold_until_at == NOW + 20 * SECOND


@pytest.mark.parametrize(("kind", "base_us"), [(K.THROTTLED, MINUTE), (K.UNAVAILABLE, 20 * SECOND)])
def test_setbacks_in_a_row_double_the_wait_up_to_a_quarter_of_an_hour(
    kind: OutcomeKind, base_us: int
) -> None:
    for setbacks in (0, 1, 2, 3, 10, 1000):
        wait_us = min(base_us * 2 ** min(setbacks, 10), LONGEST_DOUBLED_US)
        assert after(kind, setbacks=setbacks).due_at == NOW + wait_us
        asked = after(kind, setbacks=setbacks, retry_after_us=7 * SECOND)
        assert asked.due_at == NOW + 7 * SECOND


@pytest.mark.parametrize("kind", [K.THROTTLED, K.UNAVAILABLE, K.EXHAUSTED])
@pytest.mark.parametrize(
    ("asked_us", "kept_us"),
    [(0, SECOND), (-5 * DAY, SECOND), (DAY, DAY), (10**24, LONGEST_ASKED_US)],
)
def test_a_retry_after_is_neither_an_endless_loop_nor_the_end_of_time(
    kind: OutcomeKind, asked_us: int, kept_us: int
) -> None:
    result = after(kind, retry_after_us=asked_us)
    assert result.due_at == result.hold_until_at == NOW + kept_us


def test_throttles_and_outages_use_up_no_retry() -> None:
    for kind in OutcomeKind:
        assert after(kind, retries=2).climbs == (kind is K.TRANSIENT)
    for kind in (K.THROTTLED, K.UNAVAILABLE, K.EXHAUSTED, K.WITHDRAWN):
        assert after(kind, retries=99).event == "retry"


def test_transient_climbs_the_ladder_and_fails_after_the_third_retry() -> None:
    ladder = [after(K.TRANSIENT, retries=n) for n in range(4)]
    waits = [result.due_at - NOW for result in ladder[:3] if result.due_at is not None]
    assert waits == [MINUTE, 5 * MINUTE, 15 * MINUTE]
    assert ladder[0].reason == "because; retry 1 of 3 in 1m"
    assert ladder[3] == Consequence("fail", reason="because (after 3 retries)")
    assert [after_retries(number) for number in (0, 1, 2)] == [
        "after 0 retries",
        "after 1 retry",
        "after 2 retries",
    ]
    assert all(result.hold_until_at is None for result in ladder)
    none = Policy.from_mapping({"retry": "none"})
    assert after(K.TRANSIENT, policy=none).event == "fail"


def test_a_transient_answer_may_ask_for_longer_than_the_ladder_waits_but_not_for_less() -> None:
    long, short = after(K.TRANSIENT, retry_after_us=DAY), after(K.TRANSIENT, retry_after_us=SECOND)
    assert (long.due_at, long.climbs) == (NOW + DAY, True)
    assert long.reason == "because; retry 1 of 3 in 1d"
    assert short.due_at == after(K.TRANSIENT).due_at == NOW + MINUTE
    assert long.hold_until_at is None, "only this message waits"
    assert after(K.TRANSIENT, retries=3, retry_after_us=DAY).event == "fail"


@given(st.integers(1, 3600), st.integers(1, 10))
def test_retry_delay_is_base_times_2_to_the_n_minus_1(seconds: int, retries: int) -> None:
    policy = Policy.from_mapping({"retry": f"{seconds}s doubling x{retries}"})
    for n in range(1, retries + 1):
        assert retry_delay_us(policy, n) == seconds * SECOND * 2 ** (n - 1)
        result = after(K.TRANSIENT, retries=n - 1, policy=policy)
        assert result.due_at == NOW + seconds * SECOND * 2 ** (n - 1)
    assert retry_delay_us(policy, retries + 1) is None
    assert after(K.TRANSIENT, retries=retries, policy=policy).event == "fail"


def test_at_most_three_unless_more_are_written() -> None:
    policy = Policy.from_mapping({"retry": "3s doubling"})
    assert [retry_delay_us(policy, n) for n in (1, 2, 3, 4)] == [
        3 * SECOND,
        6 * SECOND,
        12 * SECOND,
        None,
    ]
    with pytest.raises(InputError):
        Policy.from_mapping({"retry": "3s doubling x11"})


@pytest.mark.parametrize(
    ("ladder", "most", "waits"),
    [
        ("1m,5m,15m", None, [MINUTE, 5 * MINUTE, 15 * MINUTE]),
        ("1m,5m,15m", 0, []),
        ("1m,5m,15m", 1, [MINUTE]),
        # Document C: "ELSE NOW() + INTERVAL '1 hour'"
        ("1m,5m,15m", 5, [MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, HOUR]),
        ("1m,5m,20m", 5, [MINUTE, 5 * MINUTE, 20 * MINUTE, 20 * MINUTE, 20 * MINUTE]),
        ("3s doubling x2", 4, [3 * SECOND, 6 * SECOND, 12 * SECOND, 24 * SECOND]),
        ("none", 2, []),
    ],
)
def test_a_message_may_say_itself_how_often_it_is_tried_again(
    ladder: str, most: int | None, waits: list[int]
) -> None:
    policy = Policy.from_mapping({"retry": ladder})
    for retries, wait_us in enumerate(waits):
        result = after(K.TRANSIENT, retries=retries, policy=policy, most=most)
        assert (result.event, result.due_at, result.climbs) == ("retry", NOW + wait_us, True)
        assert f"retry {retries + 1} of {len(waits)} in " in result.reason
    last = after(K.TRANSIENT, retries=len(waits), policy=policy, most=most)
    assert (last.event, last.reason) == ("fail", f"because ({after_retries(len(waits))})")


def test_what_was_lost_is_sent_again_as_often_as_the_message_says_or_three_times_at_least() -> None:
    assert most_resends(Policy.from_mapping({"retry": "none"}), None) == 3
    assert most_resends(Policy.from_mapping({"retry": "1s doubling x5"}), None) == 5
    assert most_resends(DEFAULT, 0) == 0 and most_resends(DEFAULT, 7) == 7


def test_an_exhausted_quota_waits_for_the_accounts_own_tomorrow() -> None:
    policy = Policy.from_mapping({"zone": "America/New_York"})
    result = after(K.EXHAUSTED, policy=policy)
    assert result.due_at == result.hold_until_at == NOW - 6 * HOUR + 24 * HOUR


def test_refused_credentials_suspend_and_a_ban_with_an_end_cools_down() -> None:
    assert after(K.UNAUTHORISED).account_event == "suspend"
    assert after(K.BANNED).account_event == "suspend"
    timed = after(K.BANNED, retry_after_us=6 * HOUR)
    assert (timed.account_event, timed.account_until_at) == ("cool_down", NOW + 6 * HOUR)
    for result in (after(K.UNAUTHORISED), after(K.BANNED), timed):
        assert (result.event, result.due_at) == ("retry", NOW)  # nothing is lost by it
    events = {kind: after(kind).account_event for kind in OutcomeKind}
    assert {kind for kind, event in events.items() if event} == {K.UNAUTHORISED, K.BANNED}


def test_a_lost_answer_rests_until_it_is_resolved() -> None:
    assert after(K.UNKNOWN) == Consequence("lose", reason="because")


def test_what_was_withdrawn_is_due_again_at_once() -> None:
    assert after(K.WITHDRAWN) == Consequence("retry", NOW, "because")


def test_an_outcome_without_words_is_told_by_its_kind() -> None:
    result = consequence(Outcome(K.REJECTED), retries=0, setbacks=0, policy=DEFAULT, now=NOW)
    assert result.reason == "rejected"


def test_a_lost_message_is_asked_about_five_times_and_then_no_more() -> None:
    asked, now = [], NOW
    while (ask_at := next_ask_at(NOW, now)) is not None:
        asked.append(ask_at - NOW)
        now = ask_at
    assert asked == list(ASK_AFTER_US) == [30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR, 6 * HOUR]
    assert next_ask_at(NOW, NOW + 5 * MINUTE) == NOW + 10 * MINUTE
