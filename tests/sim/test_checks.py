"""Each checker by itself: what it must report, and the near miss that it must let pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.instants import DAY, HOUR
from paceline.core.states import DeliveryState
from paceline.engine.ports import Upload
from paceline.engine.ports.audit import TakingNote
from paceline.sim.checks import CHECKS
from paceline.sim.operators import Silence
from paceline.sim.witness import Heard, Loaded
from tests.sim.evidence import (
    DELIVERY,
    INTENT,
    MINUTE,
    NOON,
    RUN,
    SECOND,
    broken,
    call,
    effect,
    evidence,
    replace,
)

LEASE_US = 15 * SECOND
"""As the documentation has it, whatever the engine says of it."""


def test_a_quiet_world_breaks_no_promise() -> None:
    assert broken(evidence(call(1), call(2, MINUTE))) == set()


def test_a_part_that_was_taken_twice() -> None:
    first, second = call(1), call(1, MINUTE)
    assert "never twice" in broken(evidence(first, second))
    refused = effect(second, accepted=False, answer="rejected")
    assert broken(evidence(first, second, effects=[effect(first), refused])) == set()


def test_taken_twice_where_everybody_would_rather_have_it_so() -> None:
    assert broken(evidence(call(1), call(1, MINUTE), policy={"on_unknown": "resend"})) == set()


@pytest.mark.parametrize(
    "fact", [{"intent_at": None}, {"settled": True}, {"state": "ready"}], ids=str
)
def test_a_call_that_is_not_on_record(fact: dict[str, object]) -> None:
    assert broken(evidence(call(1, **fact))) == {"never unrecorded"}


def test_a_call_for_nothing_that_anybody_knows() -> None:
    assert broken(evidence(call(1, facts=None))) == {"never unrecorded"}


def test_a_delivery_that_is_gone() -> None:
    assert broken(evidence(call(1), planned=2)) == {"never lost"}


def test_a_delivery_that_exists_twice() -> None:
    assert broken(evidence(call(1), deliveries=[DELIVERY, DELIVERY])) == {"never lost"}


def test_a_delivery_that_is_said_to_be_sent() -> None:
    assert broken(evidence(call(1), effects=[])) == {"never lost"}
    failed = replace(DELIVERY, state=DeliveryState.FAILED)
    assert broken(evidence(call(1), effects=[], deliveries=[failed])) == set()
    assert broken(evidence(call(1), deliveries=[failed])) == {"never lost"}


def test_a_delivery_of_which_a_part_is_missing() -> None:
    whole, half = (call(1), call(1, SECOND, part=1)), (call(1),)
    assert broken(evidence(*whole)) == set()
    assert broken(evidence(*half, parts={(1, 1): 2})) == {"never lost"}


def test_a_delivery_that_is_sending_for_ever() -> None:
    sending = replace(DELIVERY, state=DeliveryState.SENDING)
    assert broken(evidence(call(1), deliveries=[sending])) == {"never lost"}


def test_a_world_that_does_not_come_to_rest() -> None:
    ready = replace(DELIVERY, state=DeliveryState.READY)
    found = list(CHECKS["never stuck"](evidence(deliveries=[ready], came_to_rest=False)))
    assert [violation.concerns for violation in found] == [("1",)]
    assert broken(evidence(call(1), came_to_rest=False)) == set()


@given(st.integers(0, 5_000_000))
def test_a_rate_is_kept_to_the_microsecond(after_us: int) -> None:
    found = broken(evidence(call(1), call(2, after_us), policy={"rate": "60/min"}))
    assert found == ({"never over"} if after_us < SECOND else set())


@given(st.lists(st.integers(0, 3 * SECOND), min_size=1, max_size=12), st.integers(1, 4))
def test_no_interval_holds_more_than_the_burst_and_the_rate(gaps: list[int], burst: int) -> None:
    instants = [sum(gaps[:number]) for number in range(len(gaps) + 1)]
    calls = [call(number, at) for number, at in enumerate(instants, start=1)]
    over = any(
        count > burst + (instants[first + count - 1] - instants[first]) / SECOND
        for first in range(len(instants))
        for count in range(1, len(instants) - first + 1)
    )
    found = broken(evidence(*calls, policy={"rate": f"60/min burst {burst}"}))
    assert found == ({"never over"} if over else set())


def test_a_clock_that_was_set_back_may_only_slow_down() -> None:
    slow = call(2, SECOND, clock_at=NOON - HOUR)
    assert broken(evidence(call(1), slow, policy={"rate": "60/min"})) == set()


def test_one_more_than_a_day_has_room_for() -> None:
    calls = [call(1), call(2, HOUR), call(3, 2 * HOUR)]
    policy = {"daily": {"message": 2}, "zone": "UTC"}
    assert broken(evidence(*calls, policy=policy)) == {"never over"}
    tomorrow = [*calls[:2], call(3, 12 * HOUR)]
    assert broken(evidence(*tomorrow, policy=policy)) == set()
    returned = [effect(seen) for seen in calls[1:]]
    failed = [replace(DELIVERY, id=1, state=DeliveryState.FAILED)]
    rest = [replace(DELIVERY, id=number) for number in (2, 3)]
    given_back = evidence(*calls, policy=policy, effects=returned, deliveries=failed + rest)
    assert broken(given_back) == set()


def test_one_more_than_a_week_has_room_for() -> None:
    policy = {"weekly": {"message": 1}, "zone": "UTC"}
    assert broken(evidence(call(1), call(2, 6 * DAY), policy=policy)) == {"never over"}
    assert broken(evidence(call(1), call(2, 7 * DAY), policy=policy)) == set()


def test_somebody_who_is_written_to_too_often() -> None:
    policy = {"per_recipient": "2/h"}
    calls = [call(1), call(2, MINUTE), call(3, HOUR - 1)]
    assert broken(evidence(*calls, policy=policy)) == {"never over"}
    assert broken(evidence(*calls[:2], call(3, HOUR), policy=policy)) == set()
    assert broken(evidence(*calls[:2], call(3, HOUR - 1, target="ben"), policy=policy)) == set()
    answer = call(3, HOUR - 1, reply=True)
    assert broken(evidence(*calls[:2], answer, policy=policy)) == set(), "it was asked for"
    parts = [*calls[:2], call(2, 2 * MINUTE, part=1)]
    found = broken(evidence(*parts, policy=policy, parts={(1, 1): 1}))
    assert found == set(), "a message is one, however many parts it has"


def test_a_call_whose_caller_died_is_as_old_as_its_intent() -> None:
    first = call(1, intent_at=NOON - 3 * SECOND)
    policy = {"per_recipient": "1/h"}
    assert broken(evidence(first, call(2, HOUR - 3 * SECOND), policy=policy)) == set()
    soon = call(2, HOUR - 3 * SECOND - 1)
    assert broken(evidence(first, soon, policy=policy)) == {"never over"}


def test_whoever_did_not_get_a_message_was_not_written_to() -> None:
    calls = [call(1), call(2, MINUTE)]
    failed = [replace(DELIVERY, id=1, state=DeliveryState.FAILED), replace(DELIVERY, id=2)]
    refused = [effect(calls[0], accepted=False, answer="rejected"), effect(calls[1])]
    given = {"policy": {"per_recipient": "1/h"}, "deliveries": failed, "effects": refused}
    assert broken(evidence(*calls, **given)) == set()


@pytest.mark.parametrize(
    ("hour", "found"), [(8, {"never out of hours"}), (9, set()), (18, {"never out of hours"})]
)
def test_business_hours_include_their_first_minute_and_not_their_end(
    hour: int, found: set[str]
) -> None:
    seen = call(1, (hour - 12) * HOUR)
    assert broken(evidence(seen, policy={"hours": "Mon-Fri 09:00-18:00 UTC"})) == found


def test_a_window_that_has_closed() -> None:
    run = replace(RUN, closes_at=NOON + MINUTE)
    assert broken(evidence(call(1, MINUTE), runs={1: run})) == {"never out of hours"}
    assert broken(evidence(call(1, MINUTE - 1), runs={1: run})) == set()
    started = [call(1, MINUTE - 1), call(1, MINUTE, part=1)]
    assert broken(evidence(*started, runs={1: run})) == set()


def test_a_gap_that_was_drawn_is_kept() -> None:
    before = call(1, gap_us=7 * SECOND)
    policy = {"spacing": "5s..9s"}
    assert broken(evidence(before, call(2, 7 * SECOND - 1), policy=policy)) == {"never too close"}
    assert broken(evidence(before, call(2, 7 * SECOND), policy=policy)) == set()
    assert broken(evidence(before, call(2, 1, reply=True), policy=policy)) == set()


def test_parts_keep_a_gap_of_their_own() -> None:
    policy = {"part_gap": "5s..9s", "spacing": "30s"}
    first, soon = call(1, gap_us=30 * SECOND), call(1, 5 * SECOND - 1, part=1)
    in_time = call(1, 5 * SECOND, part=1)
    assert broken(evidence(first, soon, policy=policy)) == {"never too close"}
    assert broken(evidence(first, in_time, policy=policy)) == set(), "spacing is between messages"


def test_a_message_beside_it_excuses_no_part() -> None:
    """Neither from the gap to the part before it, nor from that to another's message, but where
    several may be under way: then the parts of each go their own way."""
    several = {"part_gap": "5s..9s", "spacing": "2s", "concurrency": 2}
    first, other = call(1, gap_us=2 * SECOND), call(2, 3 * SECOND, gap_us=2 * SECOND)
    soon, in_time = call(1, 4 * SECOND, part=1), call(1, 5 * SECOND, part=1)
    sent = {"parts": {(1, 1): 1}}
    assert broken(evidence(first, other, soon, policy=several, **sent)) == {"never too close"}
    assert broken(evidence(first, other, in_time, policy=several, **sent)) == set()
    alone = {**several, "concurrency": 1}
    found = broken(evidence(first, call(2, 4 * SECOND), in_time, policy=alone, **sent))
    assert found == {"never too close"}


def test_a_call_beside_another_where_one_may_be_under_way() -> None:
    """A third one where there may be three is as many as there may be."""
    policy = {"concurrency": 3}
    assert broken(evidence(call(1), call(2, SECOND, beside=1))) == {"never too close"}
    assert broken(evidence(call(1), call(2, SECOND, beside=0))) == set()
    assert broken(evidence(call(1, beside=2), policy=policy)) == set()
    assert broken(evidence(call(1, beside=3), policy=policy)) == {"never too close"}


def test_a_batch_without_its_pause() -> None:
    policy = {"spacing": "1s", "batch": "2 then 30s"}
    calls = [call(number, number * SECOND) for number in (1, 2, 3)]
    assert broken(evidence(*calls, policy=policy)) == {"never too close"}
    paused = [*calls[:2], call(3, 33 * SECOND)]
    assert broken(evidence(*paused, policy=policy)) == set()


def test_parts_out_of_order() -> None:
    assert broken(evidence(call(1, SECOND), call(1, part=1))) == {"never too close"}
    assert broken(evidence(call(1), call(1, SECOND, part=1))) == set()


def test_a_call_to_somebody_who_is_suppressed() -> None:
    late = call(1, LEASE_US + 1)
    assert broken(evidence(late, suppressed_at={"anna": NOON})) == {"never to the suppressed"}
    assert broken(evidence(late, suppressed_at={"bob": NOON})) == set()
    under_way = call(1, LEASE_US)
    assert broken(evidence(under_way, suppressed_at={"anna": NOON})) == set()


def test_an_intent_for_somebody_who_is_suppressed_whenever_its_call_is_made() -> None:
    for part in (0, 1):
        late = INTENT._replace(part=part, suppressed=True)
        assert broken(evidence(call(1), intents=[late])) == {"never to the suppressed"}
    assert broken(evidence(call(1), intents=[INTENT])) == set()


@pytest.mark.parametrize(
    "order",
    [
        {"account": "paused"},
        {"account": "suspended"},
        {"account": "removed"},
        {"run": "paused"},
        {"run": "cancelled"},
    ],
    ids=str,
)
def test_an_intent_after_an_order_that_it_must_not_start(order: dict[str, str]) -> None:
    start = INTENT._replace(**order)
    assert broken(evidence(call(1), intents=[start])) == {"never against orders"}
    further = start._replace(part=1)
    assert broken(evidence(call(1), intents=[further])) == set(), "what has started may finish"


def test_an_intent_after_everything_was_stopped() -> None:
    for part in (0, 1):
        late = INTENT._replace(part=part, stopped="an alarm")
        assert broken(evidence(call(1), intents=[late])) == {"never against orders"}


def test_accounts_that_go_on_by_themselves_are_not_paused() -> None:
    for state in ("limit_reached", "cooling_down"):
        assert broken(evidence(call(1), intents=[INTENT._replace(account=state)])) == set()


def test_a_lane_that_is_taken_from_somebody_who_was_heard_of_just_now() -> None:
    taking = TakingNote(NOON, 1, 2, LEASE_US - 1)
    assert broken(evidence(call(1), takings=[taking])) == {"never by two"}
    in_time = taking._replace(silent_us=LEASE_US)
    assert broken(evidence(call(1), takings=[in_time])) == set()


def test_a_call_under_an_old_generation() -> None:
    assert broken(evidence(call(1, lane_generation=2))) == {"never by two"}
    assert broken(evidence(call(1, lane_generation=2, generation=2))) == set()


@pytest.mark.parametrize(
    "silence",
    [Silence(NOON), Silence(NOON, account="lane-0"), Silence(NOON, campaign="word")],
    ids=["stopped", "account", "campaign"],
)
def test_a_start_while_everything_should_be_silent(silence: Silence) -> None:
    late = call(1, LEASE_US + 1)
    assert broken(evidence(late, silences=[silence])) == {"never against orders"}
    over = replace(silence, until_at=NOON + LEASE_US)
    assert broken(evidence(late, silences=[over])) == set()


def test_the_silence_of_others_is_not_ours() -> None:
    silences = [Silence(NOON, account="lane-1"), Silence(NOON, campaign="spring")]
    assert broken(evidence(call(1, HOUR), silences=silences)) == set()


def test_whoever_was_asked_to_wait() -> None:
    first, later = call(1), call(2, 50 * SECOND)
    heard = Heard(NOON, NOON, "process-0", "lane-0", first.key, 1, MINUTE)
    assert broken(evidence(first, later, heard=[heard])) == {"never impatient"}
    assert broken(evidence(first, call(2, MINUTE), heard=[heard])) == set()


def test_an_upload_that_was_not_needed() -> None:
    load = Loaded(NOON, NOON, "process-0", "lane-0", "media", None, "process-0")
    assert broken(evidence(loaded=[load])) == set()
    known = Upload(1, "media", "first", NOON - HOUR, None)
    assert broken(evidence(loaded=[replace(load, known=known)])) == {"never wasteful"}
    expired = replace(known, expires_at=NOON)
    assert broken(evidence(loaded=[replace(load, known=expired)])) == set()


@pytest.mark.parametrize("owner", [None, "process-1"])
def test_an_upload_by_whoever_does_not_have_the_lane(owner: str | None) -> None:
    load = Loaded(NOON, NOON, "process-0", "lane-0", "media", None, owner)
    assert broken(evidence(loaded=[load])) == {"never by two"}


def test_whoever_calls_one_at_a_time_has_heard_that_it_must_wait() -> None:
    """Of several at a time, one may have been chosen by then."""
    first, next_one = call(1), call(2, 2)
    heard = Heard(NOON + 1, NOON + 1, "process-0", "lane-0", first.key, 1, MINUTE)
    assert broken(evidence(first, next_one, heard=[heard])) == {"never impatient"}
    several = {"concurrency": 3}
    assert broken(evidence(first, next_one, heard=[heard], policy=several)) == set()
    later = call(2, 2 * SECOND)
    assert broken(evidence(first, later, heard=[heard], policy=several)) == {"never impatient"}
