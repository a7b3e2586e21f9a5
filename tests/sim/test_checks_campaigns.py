"""The checkers of campaigns: what each must report, and the near miss that it must let pass."""

from typing import Any

from paceline.core.instants import HOUR
from paceline.core.states import DeliveryState
from paceline.engine.ports import LedgerRow
from paceline.sim.checks import Evidence
from paceline.sim.operators import Release
from paceline.sim.witness import Look, Seen
from tests.sim.evidence import (
    DELIVERY,
    MINUTE,
    NOON,
    SECOND,
    broken,
    call,
    effect,
    evidence,
    replace,
)

STEP = {"never ahead of its step"}
CARE = {"never careless"}


def two_steps(*calls: Seen, **changes: Any) -> Evidence:
    """Delivery 1 and what follows it after a minute, delivery 2."""
    deliveries = [replace(DELIVERY, id=1), replace(DELIVERY, id=2, step=2)]
    known: dict[str, Any] = {
        "deliveries": deliveries,
        "planned": 2,
        "parts": {(1, 1): 1, (1, 2): 1},
        "waits": {(1, 2): MINUTE},
    }
    return evidence(*calls, **(known | changes))


def test_a_follow_up_that_is_too_early() -> None:
    assert broken(two_steps(call(1), call(2, MINUTE - 1))) == STEP
    assert broken(two_steps(call(1), call(2, MINUTE))) == set()


def test_a_follow_up_of_nothing() -> None:
    lost = effect(call(1), accepted=False, answer="unknown")
    states = [
        replace(DELIVERY, id=1, state=DeliveryState.FAILED),
        replace(DELIVERY, id=2, step=2),
    ]
    late = call(2, MINUTE)
    given = two_steps(call(1), late, effects=[lost, effect(late)], deliveries=states)
    assert broken(given) == STEP


def test_a_follow_up_from_another_account() -> None:
    other = call(2, MINUTE, account="lane-1", account_id=2)
    accounts = {1: "lane-0", 2: "lane-1"}
    assert broken(two_steps(call(1), other, accounts=accounts)) == STEP


def test_a_follow_up_is_judged_by_wrong_clocks_no_further_than_they_were_wrong() -> None:
    early = call(2, MINUTE - SECOND, clock_at=NOON + MINUTE)
    assert broken(two_steps(call(1), early)) == STEP
    assert broken(two_steps(call(1), early, spread_us=SECOND)) == set()


def test_a_follow_up_that_has_begun_goes_on_when_its_clock_is_set_back() -> None:
    """It began in time by the clocks of both, and these were set in between."""
    begun = call(2, MINUTE - SECOND, clock_at=NOON + MINUTE)
    further = call(2, MINUTE - 1, part=1, clock_at=NOON)
    parts = {(1, 1): 1, (1, 2): 2}
    assert broken(two_steps(call(1), begun, further, spread_us=HOUR, parts=parts)) == set()
    early = two_steps(call(1), replace(begun, clock_at=NOON), further, spread_us=HOUR, parts=parts)
    assert broken(early) == STEP


def test_a_follow_up_that_was_skipped_for_nothing() -> None:
    skipped = replace(
        DELIVERY, id=2, step=2, state=DeliveryState.SKIPPED, reason="step 1 was not delivered"
    )
    sent = replace(DELIVERY, id=1)
    assert broken(two_steps(call(1), deliveries=[sent, skipped])) == STEP
    opted_out = replace(skipped, reason="recipient is suppressed")
    assert broken(two_steps(call(1), deliveries=[sent, opted_out])) == set()


def test_a_message_from_an_account_that_has_not_taken_it() -> None:
    given = evidence(call(1, account_id=2), accounts={1: "lane-0", 2: "lane-1"})
    assert broken(given) == {"never by two"}


def row(number: int, outcome: str | None = None) -> LedgerRow:
    at = NOON + number * MINUTE
    return LedgerRow(
        delivery_id=number,
        part=0,
        attempt=1,
        kind="intent" if outcome is None else "outcome",
        account_id=1,
        run_id=1,
        action="message",
        at=at,
        intent_at=at,
        started_at=at,
        slots=1,
        policy_id=1,
        generation=1,
        outcome=outcome,
    )


def failing(*outcomes: str, policy: dict[str, Any], **changes: Any) -> Evidence:
    """A message a minute: before each call the witness sees its intent and the outcome before."""
    calls = [call(number, number * MINUTE) for number in range(1, len(outcomes) + 2)]
    looks = [
        Look(seen.at, tuple(rows))
        for seen, told in zip(calls, (None, *outcomes), strict=True)
        for rows in [
            [row(seen.delivery_id - 1, told), row(seen.delivery_id)]
            if told is not None
            else [row(seen.delivery_id)]
        ]
    ]
    return evidence(*calls, policy=policy, looks=looks, **changes)


BREAKER = {"breaker": {"above": "20%", "samples": 5}, "bounce_pause": "100%"}
GOOD, BAD = ("accepted",) * 4, ("rejected",) * 2


def test_a_campaign_that_goes_on_though_too_much_of_it_fails() -> None:
    # What is seen together with the failure that is one too many may have been there before it.
    assert broken(failing(*GOOD, *BAD, policy=BREAKER)) == set()
    assert broken(failing(*GOOD, *BAD, "accepted", policy=BREAKER)) == CARE
    assert broken(failing(*GOOD, "rejected", "accepted", "accepted", policy=BREAKER)) == set()


def test_somebody_has_let_the_campaign_go_on() -> None:
    resumed = Release(NOON + 7 * MINUTE + SECOND, campaign="word")
    given = failing(*GOOD, *BAD, "accepted", policy=BREAKER, releases=[resumed])
    assert broken(given) == set()
    another = Release(NOON + 7 * MINUTE + SECOND, campaign="other")
    given = failing(*GOOD, *BAD, "accepted", policy=BREAKER, releases=[another])
    assert broken(given) == CARE


def test_an_account_that_goes_on_though_too_much_of_it_comes_back() -> None:
    policy = {"bounce_pause": "5%", "zone": "UTC"}
    bounced = ("bounced", "bounced")
    assert broken(failing(*["accepted"] * 18, *bounced, policy=policy)) == set()
    assert broken(failing(*["accepted"] * 18, *bounced, "accepted", policy=policy)) == CARE
    assert broken(failing(*["accepted"] * 17, *bounced, "accepted", policy=policy)) == set()
    # Of the first twenty two had come back, and since then none.
    assert broken(failing(*bounced, *["accepted"] * 18, policy=policy)) == set()
    assert broken(failing(*bounced, *["accepted"] * 19, policy=policy)) == CARE
    released = [Release(NOON + 21 * MINUTE + SECOND, account="lane-0")]
    given = failing(*bounced, *["accepted"] * 20, policy=policy, releases=released)
    assert broken(given) == set(), "one more that arrives is no news"
    given = failing(*["accepted"] * 18, *bounced, "accepted", policy=policy, releases=released)
    assert broken(given) == set()


def test_a_campaign_that_is_not_slowed_down_by_errors() -> None:
    policy = {
        "spacing": "4s",
        "adaptive": {"above": "5%", "slow_by": 1.5, "between": "2s..10s"},
        "bounce_pause": "100%",
    }

    def after_us(gap_us: int, outcome: str) -> set[str]:
        first, second = call(1, gap_us=4 * SECOND), call(2, gap_us)
        looks = [Look(first.at, (row(1),)), Look(second.at, (row(1, outcome), row(2)))]
        return broken(evidence(first, second, policy=policy, looks=looks))

    assert after_us(6 * SECOND - 1, "rejected") == CARE
    assert after_us(6 * SECOND, "rejected") == set()
    assert after_us(4 * SECOND, "accepted") == set()
