"""The plan does what a lane would do: turns, steps aside, windows that close, pools, parts."""

import random
from collections import Counter
from typing import Any

import pytest

from paceline.core.durations import parse_duration
from paceline.core.health import Window
from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from paceline.core.model import Ask, Standing
from paceline.core.plan import CONCURRENCY, Layout, Queue, Seat, Want, lay_out
from paceline.core.policy import Policy
from paceline.core.presets import preset
from paceline.core.states import AccountState
from paceline.core.usage import Usage

NINE = parse_instant("2026-03-02T09:00:00Z")
"""A Monday."""
FAR = 1 << 62
ONE = 1


def seat(account_id: int = ONE, usage: Usage | None = None, **policy: Any) -> Seat:
    return Seat(account_id, Policy.from_mapping(policy), usage=usage or Usage())


def queue(
    number: int,
    *,
    run: int = 1,
    accounts: tuple[int, ...] = (ONE,),
    direct: bool = False,
    priority: int = 0,
    **ask: Any,
) -> Queue:
    wanted = Ask(run_id=run, **ask)
    closes_at = ask.get("closes_at") or FAR
    wants = [Want(key, wanted, f"person-{key}") for key in range(number)]
    return Queue(run, (not direct, -priority, closes_at), wants, accounts)


def laid(*parts: Seat | Queue, start_at: int = NINE, latency_us: int = 0) -> Layout:
    seats = [part for part in parts if isinstance(part, Seat)]
    queues = [part for part in parts if isinstance(part, Queue)]
    return lay_out(seats, queues, start_at, random.Random(1), latency_us=latency_us)


def instants(layout: Layout, run: int | None = None) -> list[int]:
    """When each starts, in seconds from the beginning."""
    slots = [slot for slot in layout.slots if run in (None, slot.run_id)]
    return [(slot.at - NINE) // SECOND for slot in slots]


def runs(layout: Layout) -> list[int]:
    return [slot.run_id for slot in layout.slots]


# ---------------------------------------------------------------------- the pace


@pytest.mark.parametrize(
    ("spacing", "batch", "lasts"),
    [("5s", "50 then 60s", "1h42m15s"), ("3s", "75 then 30s", "56m27s")],
    ids=["conservative", "optimised"],
)
def test_a_thousand_messages_as_document_d_reckons(spacing: str, batch: str, lasts: str) -> None:
    layout = laid(seat(spacing=spacing, batch=batch), queue(1_000))
    assert len(layout.slots) == 1_000
    assert layout.slots[-1].done_at - NINE == parse_duration(lasts)


def test_the_first_goes_at_once_and_each_slot_says_what_it_waited_for() -> None:
    layout = laid(seat(spacing="10s", batch="2 then 1m"), queue(4))
    assert instants(layout) == [0, 10, 80, 90]
    assert [slot.gate for slot in layout.slots] == ["", "spacing", "batch", "spacing"]


def test_what_has_cost_most_time_is_what_binds() -> None:
    """From the second day on a daily cap, however many gaps are kept within each day."""
    layout = laid(seat(spacing="10m", daily={"message": 20}, zone="UTC"), queue(60))
    assert Counter(slot.bound_by for slot in layout.slots) == {"": 1, "spacing": 19, "daily": 40}
    assert Counter(slot.gate for slot in layout.slots) == {"": 1, "spacing": 57, "daily": 2}


def test_what_is_used_up_already_counts() -> None:
    used = Usage(last_at=NINE - SECOND, gap_us=10 * SECOND, day_at=NINE - 9 * HOUR)
    used = used._replace(day={"message": 18}, week_at=NINE - 9 * HOUR, tat_at=NINE)
    layout = laid(seat(usage=used, spacing="10s", daily={"message": 20}, zone="UTC"), queue(3))
    assert instants(layout) == [9, 19, 15 * 3600]


def test_an_account_that_slowed_down_recovers_as_messages_are_accepted() -> None:
    """Six errors in a hundred: by half slower until they have left the window."""
    window = Window((0b111111) << 94, 100)
    slow = Usage(health={1: window})
    adaptive = {"above": "5%", "slow_by": 1.5, "between": "2s..10s"}
    layout = laid(seat(usage=slow, spacing="4s", adaptive=adaptive), queue(4))
    assert instants(layout) == [0, 4, 8, 12], "the first accepted one brings it to five in 100"
    stale = Usage(health={1: Window(0b1111111, 100)})
    layout = laid(seat(usage=stale, spacing="4s", adaptive=adaptive), queue(200))
    gaps = [b - a for a, b in zip(instants(layout), instants(layout)[1:], strict=False)]
    assert gaps[0] == 6 and gaps[-1] == 4 and gaps == sorted(gaps, reverse=True)


# ---------------------------------------------------------------------- between runs


def test_runs_of_one_rank_take_turns() -> None:
    layout = laid(seat(spacing="1s"), queue(3, run=1), queue(3, run=2))
    assert runs(layout) == [1, 2, 1, 2, 1, 2]


def test_direct_messages_go_first_then_priority_then_the_window_that_closes_first() -> None:
    layout = laid(
        seat(spacing="1s"),
        queue(2, run=1),
        queue(2, run=2, closes_at=NINE + HOUR),
        queue(2, run=3, priority=5),
        queue(2, run=4, direct=True),
    )
    assert runs(layout) == [4, 4, 3, 3, 2, 2, 1, 1]


def test_whoever_had_its_turn_last_waits_for_the_other() -> None:
    """The lane remembers it in the order of the error windows."""
    before = Usage(health={2: Window(0, 1), 1: Window(0, 1)})
    layout = laid(seat(usage=before, spacing="1s"), queue(2, run=1), queue(2, run=2))
    assert runs(layout) == [2, 1, 2, 1]


def test_what_is_not_due_yet_holds_up_nobody_else() -> None:
    later = queue(2, run=1, priority=9, not_before_at=NINE + 3 * SECOND + SECOND // 2)
    layout = laid(seat(spacing="1s"), later, queue(6, run=2))
    assert runs(layout) == [2, 2, 2, 2, 1, 1, 2, 2]
    assert instants(layout)[:4] == [0, 1, 2, 3]


def test_a_run_that_falls_due_while_another_waits_is_looked_at_in_time() -> None:
    """The cap of one kind is reached; the other kind comes up at noon and goes at once."""
    mail = queue(3, run=1, action="email")
    noon = queue(1, run=2, action="message", not_before_at=NINE + 3 * HOUR)
    layout = laid(seat(daily={"email": 1}, zone="UTC"), mail, noon)
    assert [(slot.run_id, (slot.at - NINE) // HOUR) for slot in layout.slots] == [
        (1, 0),
        (2, 3),
        (1, 15),
        (1, 39),
    ]


def test_what_was_begun_goes_ahead_of_its_run_when_it_is_due() -> None:
    fresh = queue(3)
    retry = Want(9, Ask(run_id=1, not_before_at=NINE + SECOND), begun=True)
    mixed = Queue(1, fresh.rank, [*fresh.wants, retry], (ONE,))
    layout = laid(seat(spacing="1s"), mixed)
    assert [slot.key for slot in layout.slots] == [0, 9, 1, 2]


# ---------------------------------------------------------------------- gates of the delivery


def test_who_sleeps_steps_aside_for_who_is_awake() -> None:
    asleep = Hours.parse("12:00-18:00 UTC")
    wants = [Want(0, Ask(run_id=1, recipient_hours=asleep)), Want(1, Ask(run_id=1))]
    layout = laid(seat(spacing="1m"), Queue(1, (True, 0, FAR), wants, (ONE,)))
    assert [(slot.key, (slot.at - NINE) // MINUTE) for slot in layout.slots] == [(1, 0), (0, 180)]
    assert layout.slots[1].gate == "recipient-hours"


def test_who_was_written_to_lately_steps_aside() -> None:
    wants = [
        Want(0, Ask(run_id=1, contacted=(NINE - HOUR,)), "anna"),
        Want(1, Ask(run_id=1), "bob"),
    ]
    layout = laid(seat(per_recipient="1/day"), Queue(1, (True, 0, FAR), wants, (ONE,)))
    assert [slot.key for slot in layout.slots] == [1, 0]
    assert layout.slots[1].at == NINE - HOUR + DAY


def test_one_person_in_two_campaigns_is_written_to_once_a_day_whoever_writes() -> None:
    limits = {"per_recipient": "1/day", "spacing": "1s"}
    seats = seat(1, **limits), seat(2, **limits)
    layout = laid(*seats, queue(2, run=1), queue(2, run=2, accounts=(2,)))
    first = {(slot.run_id, slot.key): slot.at for slot in layout.slots}
    assert len(first) == 4
    for person in (0, 1):
        assert abs(first[1, person] - first[2, person]) >= DAY


def test_a_window_that_closes_leaves_out_the_rest() -> None:
    closing = queue(5, opens_at=NINE, closes_at=NINE + 25 * SECOND)
    layout = laid(seat(spacing="10s"), closing)
    assert instants(layout) == [0, 10, 20]
    assert [(never.key, never.gate) for never in layout.nevers] == [(3, "window"), (4, "window")]
    assert layout.nevers[0].why == "delivery window closed"


def test_a_window_that_resumes_goes_on_the_next_day() -> None:
    window = Hours.parse("09:00-09:01 UTC")
    layout = laid(seat(spacing="30s"), queue(5, window=window))
    assert instants(layout) == [0, 30, 86400, 86430, 2 * 86400]
    assert layout.slots[2].gate == "window"


def test_what_expires_first_is_left_out_and_the_next_goes_on() -> None:
    wants = [
        Want(n, Ask(run_id=1, expires_at=NINE + (25 if n < 4 else 90) * SECOND)) for n in range(6)
    ]
    layout = laid(seat(spacing="10s"), Queue(1, (True, 0, FAR), wants, (ONE,)))
    assert [slot.key for slot in layout.slots] == [0, 1, 2, 4, 5]
    assert [(never.key, never.gate) for never in layout.nevers] == [(3, "expiry")]


def test_the_suppressed_are_left_out() -> None:
    wants = [Want(n, Ask(run_id=1, suppressed=n == 1)) for n in range(3)]
    layout = laid(seat(), Queue(1, (True, 0, FAR), wants, (ONE,)))
    assert [slot.key for slot in layout.slots] == [0, 2]
    (never,) = layout.nevers
    assert (never.key, never.gate, never.why) == (1, "suppression", "recipient is suppressed")


def test_hours_and_window_that_never_meet_are_refused() -> None:
    window = Hours.parse("Mon-Fri 06:00-07:00 UTC")
    layout = laid(seat(hours="Mon-Fri 09:00-17:00 UTC"), queue(2, window=window))
    assert layout.slots == [] and [never.gate for never in layout.nevers] == ["horizon"] * 2


def test_an_account_out_of_service_sends_nothing_and_says_why() -> None:
    out = Seat(ONE, Policy(), Standing(AccountState.PAUSED, reason="on holiday"))
    layout = laid(out, queue(2))
    assert layout.slots == []
    assert {never.why for never in layout.nevers} == {"account is paused: on holiday"}


def test_what_has_no_room_for_twenty_years_is_left_out() -> None:
    layout = laid(seat(rate="1/3000d"), queue(9))
    assert len(layout.slots) == 3 and len(layout.nevers) == 6
    assert layout.nevers[0].why == "no room for it within 20 years"


# ---------------------------------------------------------------------- pools


def test_of_a_pool_whoever_can_send_first_takes_the_next() -> None:
    fast, slow = seat(1, spacing="10s"), seat(2, spacing="30s")
    layout = laid(fast, slow, queue(8, accounts=(1, 2)))
    assert [slot.key for slot in layout.slots] == list(range(8))
    assert Counter(slot.account_id for slot in layout.slots) == {1: 6, 2: 2}
    assert instants(layout) == [0, 0, 10, 20, 30, 30, 40, 50]


def test_an_account_of_a_pool_that_is_out_leaves_everything_to_the_others() -> None:
    out = Seat(2, Policy(), Standing(AccountState.SUSPENDED))
    layout = laid(seat(1, spacing="1s"), out, queue(4, accounts=(1, 2)))
    assert len(layout.slots) == 4 and layout.nevers == []


def test_a_pool_without_limits_is_shared_all_the_same() -> None:
    layout = laid(seat(1), seat(2), queue(6, accounts=(1, 2)))
    assert Counter(slot.account_id for slot in layout.slots) == {1: 3, 2: 3}


# ---------------------------------------------------------------------- parts and answers


def test_every_part_takes_a_token() -> None:
    layout = laid(seat(rate="60/min"), queue(3, parts=2))
    assert instants(layout) == [0, 2, 4]
    assert [(slot.done_at - slot.at) // SECOND for slot in layout.slots] == [1, 1, 1]


def test_parts_of_one_target_keep_the_next_one_waiting_unless_several_may_be_under_way() -> None:
    alone = laid(seat(part_gap="10s"), queue(3, parts=2))
    assert instants(alone) == [0, 10, 20] and alone.slots[1].gate == CONCURRENCY
    beside = laid(seat(part_gap="10s", concurrency=3), queue(4, parts=2))
    assert instants(beside) == [0, 0, 0, 10]


def test_a_started_delivery_keeps_its_slots_of_the_day() -> None:
    """Three a day and two parts each: the second target does not fit into the first day."""
    capped = seat(daily={"message": 3}, zone="UTC", concurrency=3, part_gap="1s")
    layout = laid(capped, queue(2, parts=2))
    assert instants(layout) == [0, 15 * 3600]


def test_an_assumed_latency_counts_where_it_is_what_is_waited_for() -> None:
    slow = laid(seat(), queue(3), latency_us=2 * SECOND)
    assert instants(slow) == [0, 2, 4] and slow.slots[1].gate == CONCURRENCY
    hidden = laid(seat(spacing="5s"), queue(3), latency_us=2 * SECOND)
    assert instants(hidden) == [0, 5, 10]


# ---------------------------------------------------------------------- the same again


def test_the_same_seed_gives_the_same_plan_and_another_one_another() -> None:
    seats = [Seat(number, Policy.from_mapping(preset("cold-email"))) for number in (1, 2)]
    queues = [queue(50, accounts=(1,), action="email"), queue(50, accounts=(2,), action="email")]
    first, again, other = (lay_out(seats, queues, NINE, random.Random(n)) for n in (1, 1, 2))
    assert first == again and first != other


def test_one_account_more_does_not_reshuffle_the_others() -> None:
    cold = Policy.from_mapping(preset("cold-email"))
    queues = [queue(30, accounts=(number,), action="email") for number in (1, 2)]
    alone = lay_out([Seat(1, cold)], queues[:1], NINE, random.Random(1))
    both = lay_out([Seat(1, cold), Seat(2, cold)], queues, NINE, random.Random(1))
    assert [slot for slot in both.slots if slot.account_id == 1] == alone.slots


def test_what_has_started_when_the_plan_ends_is_not_lost() -> None:
    layout = laid(seat(rate="1/3660d"), queue(3, parts=3))
    assert len(layout.slots) == 1 and len(layout.nevers) == 2


def test_a_night_is_not_blamed_on_the_pace() -> None:
    """The gap after the last one of the day is over long before the next morning."""
    layout = laid(seat(spacing="10m", hours="09:00-10:00 UTC"), queue(12))
    assert [slot.gate for slot in layout.slots] == ["", *["spacing"] * 5, "hours", *["spacing"] * 5]
    assert layout.slots[-1].bound_by == "hours"


def test_what_the_first_one_waits_for_binds_nobody_who_waits_for_something_else() -> None:
    """Launched on a Sunday: it is not the weekend that makes it last so long."""
    office = seat(spacing="10m", hours="Mon-Fri 09:00-18:00 UTC", daily={"message": 6})
    layout = laid(office, queue(12), start_at=NINE - DAY)
    assert [slot.bound_by for slot in layout.slots] == [
        "hours",
        *["spacing"] * 5,
        *["daily"] * 6,
    ]
    nothing_else = laid(seat(), queue(3, not_before_at=NINE + HOUR))
    assert {slot.bound_by for slot in nothing_else.slots} == {"not-before"}


# ---------------------------------------------------------------------- later steps


def test_what_follows_goes_so_long_after_the_one_before_and_holds_up_nobody() -> None:
    first, second = Ask(run_id=1), Ask(run_id=1)
    wants = [
        want
        for key in range(3)
        for want in (Want(key, first), Want(10 + key, second, follows=key, after_us=5 * SECOND))
    ]
    layout = laid(seat(spacing="2s"), Queue(1, (True, 0, FAR), wants, (ONE,)))
    assert [(slot.key, (slot.at - NINE) // SECOND) for slot in layout.slots] == [
        (0, 0),
        (1, 2),
        (2, 4),
        (10, 6),
        (11, 8),
        (12, 10),
    ]
    lonely = laid(seat(), Queue(1, (True, 0, FAR), wants[:2], (ONE,)))
    assert [(slot.at - NINE) // SECOND for slot in lonely.slots] == [0, 5]
    assert lonely.slots[1].gate == "not-before"


def test_what_follows_counts_from_the_last_part_of_the_one_before() -> None:
    wants = [Want(0, Ask(run_id=1, parts=2)), Want(1, Ask(run_id=1), follows=0, after_us=SECOND)]
    layout = laid(seat(part_gap="10s"), Queue(1, (True, 0, FAR), wants, (ONE,)))
    assert [slot.at - NINE for slot in layout.slots] == [0, 11 * SECOND]


def test_nothing_follows_what_does_not_go() -> None:
    wants = [
        Want(0, Ask(run_id=1, suppressed=True)),
        Want(1, Ask(run_id=1), follows=0, after_us=SECOND),
        Want(2, Ask(run_id=1), follows=1, after_us=SECOND),
    ]
    layout = laid(seat(), Queue(1, (True, 0, FAR), wants, (ONE,)))
    assert layout.slots == []
    assert [(never.key, never.gate) for never in layout.nevers] == [
        (0, "suppression"),
        (1, "step"),
        (2, "step"),
    ]
