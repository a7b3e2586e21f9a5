"""The plan and the people in it: how often they are written to, and who is a stranger to whom."""

import random
from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core.frequency_gate import FrequencyGate
from paceline.core.grammar import Frequency
from paceline.core.holds import Holds
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from paceline.core.model import Ask
from paceline.core.plan import Layout, Queue, Seat, Want, lay_out
from paceline.core.policy import Policy
from paceline.core.usage import Usage

NINE = parse_instant("2026-03-02T09:00:00Z")
RANK = (True, 0, 1 << 62)


def seat(account_id: int = 1, held_us: int = 0, **policy: Any) -> Seat:
    """An account; with ``held_us`` it writes to nobody new for so long."""
    holds = Holds(newcomers_until_at=NINE + held_us if held_us else 0, newcomers_reason="spam")
    return Seat(account_id, Policy.from_mapping(policy), usage=Usage(holds=holds))


def queue(wants: list[Want], *accounts: int, run: int = 1) -> Queue:
    return Queue(run, RANK, wants, accounts)


def laid(seats: list[Seat], *queues: Queue) -> Layout:
    return lay_out(seats, list(queues), NINE, random.Random(1))


def gone(layout: Layout) -> list[tuple[int, int, int]]:
    """Key, account and second of each, in the order of time."""
    return [(slot.key, slot.account_id, (slot.at - NINE) // SECOND) for slot in layout.slots]


# ---------------------------------------------------------------------- how often


def test_what_goes_to_another_address_of_the_same_person_counts() -> None:
    """Anna by her number in one campaign; in another only her address is known."""
    ask = Ask(run_id=1)
    known = queue([Want(1, ask, "#7", also=("anna@x",))], 1)
    address = queue([Want(2, ask, "anna@x")], 2, run=2)
    limit = {"per_recipient": "1/day"}
    layout = laid([seat(1, **limit), seat(2, **limit)], known, address)
    assert gone(layout) == [(1, 1, 0), (2, 2, 86_400)]
    assert layout.slots[1].gate == "frequency"
    # The other way round nobody knows that it is her, unless somebody has told.
    sooner = queue([Want(2, ask, "anna@x")], 2, run=2)
    later = queue([Want(1, ask._replace(not_before_at=NINE + HOUR), "#7", also=("anna@x",))], 1)
    layout = laid([seat(1, **limit), seat(2, **limit)], later, sooner)
    assert gone(layout) == [(2, 2, 0), (1, 1, 3_600)]
    told = queue([Want(2, ask, "anna@x", also=("#7",))], 2, run=2)
    layout = laid([seat(1, **limit), seat(2, **limit)], later, told)
    assert gone(layout) == [(2, 2, 0), (1, 1, 86_400)]


def test_a_reply_is_always_given_and_counts_for_the_others() -> None:
    """As a lane finds it: what was sent to somebody was sent to them, for whatever reason."""
    reply = queue([Want(1, Ask(run_id=1, reply=True), "anna")] * 1, 1)
    news = queue([Want(2, Ask(run_id=2, not_before_at=NINE + HOUR), "anna")], 1, run=2)
    layout = laid([seat(1, per_recipient="1/day")], reply, news)
    assert gone(layout) == [(1, 1, 0), (2, 1, 86_400)]


def test_an_account_that_does_not_mind_writes_and_is_counted() -> None:
    careless = queue([Want(1, Ask(run_id=1), "anna"), Want(2, Ask(run_id=1), "anna")], 1)
    careful = queue([Want(3, Ask(run_id=2), "anna")], 2, run=2)
    seats = [seat(1, spacing="1m"), seat(2, per_recipient="2/day")]
    layout = laid(seats, careless, careful)
    assert gone(layout) == [(1, 1, 0), (3, 2, 0), (2, 1, 60)]


def test_what_is_promised_is_gone_around() -> None:
    """Somebody else writes to anna in six hours, and again in four days: between there is room."""
    limit, promised = {"per_recipient": "1/day"}, {"anna": [NINE + 4 * DAY, NINE + 6 * HOUR]}
    wants = [Want(key, Ask(run_id=1), "anna") for key in range(4)]
    layout = lay_out([seat(**limit)], [queue(wants, 1)], NINE, random.Random(1), promised=promised)
    assert [(slot.at - NINE) // HOUR for slot in layout.slots] == [30, 54, 120, 144]
    careless = lay_out([seat()], [queue(wants, 1)], NINE, random.Random(1), promised=promised)
    assert {slot.at for slot in careless.slots} == {NINE}


def has_room(known: list[int], at: int, count: int, per_us: int) -> bool:
    """Counted out: no period that this one falls into holds more than it may."""
    together = sorted([*known, at])
    return all(
        sum(begin <= one < begin + per_us for one in together) <= count
        for begin in together
        if begin <= at < begin + per_us
    )


@settings(max_examples=500)
@given(
    st.lists(st.integers(0, 60), max_size=9).map(sorted),
    st.integers(0, 70),
    st.integers(1, 4),
    st.integers(1, 20),
)
def test_the_gate_finds_the_first_instant_with_room_before_and_after(
    known: list[int], at: int, count: int, per_us: int
) -> None:
    gate = FrequencyGate(Frequency(count, per_us))
    ask = Ask(contacted=tuple(known))
    found = gate.earliest(at, Usage(), ask)
    # Nobody asks for room in the past, and what has gone wrong there is no reason to wait.
    first = next(one for one in range(at, 200) if has_room(known, one, count, per_us))
    assert found == first
    if found > at:
        assert gate.reason(at, Usage(), ask).startswith("recipient ")
    assert gate.earliest(at, Usage(), ask._replace(reply=True)) == at


def test_the_gate_says_whether_somebody_was_or_will_be_written_to() -> None:
    gate = FrequencyGate(Frequency(1, DAY))
    before, after = Ask(contacted=(NINE - HOUR,)), Ask(contacted=(NINE - 2 * DAY, NINE + HOUR))
    assert gate.reason(NINE, Usage(), before) == "recipient was contacted already (at most 1/day)"
    assert gate.reason(NINE, Usage(), after) == (
        "recipient is about to be contacted by others (at most 1/day)"
    )


names = st.sampled_from(["#1", "#2", "#3", "a", "b"])
limits = st.sampled_from([None, "1/hour", "2/hour", "1/day", "3/2d"])


@st.composite
def wants_of(draw: st.DrawFn, run_id: int) -> list[Want]:
    wants = []
    for key in range(draw(st.integers(0, 8))):
        at = NINE + draw(st.sampled_from([0, 0, 10 * MINUTE, 2 * HOUR, DAY]))
        name = draw(names)
        others = tuple(draw(st.sets(names.filter(lambda other, name=name: other != name))))
        reply = draw(st.sampled_from([False, False, False, True]))
        ask = Ask(run_id=run_id, not_before_at=at, reply=reply)
        wants.append(Want(100 * run_id + key, ask, name, also=others))
    return wants


@settings(max_examples=200)
@given(st.data(), st.lists(limits, min_size=3, max_size=3), st.integers(0, 2**32))
def test_nobody_is_planned_to_be_written_to_more_often_than_the_account_may(
    data: st.DataObject, often: list[str | None], seed: int
) -> None:
    """Judged message by message, by whatever was planned before it under the same name."""
    seats = []
    for number, limit in enumerate(often, start=1):
        further = {} if limit is None else {"per_recipient": limit}
        seats.append(seat(number, spacing="7s", **further))
    everybody = (1, 2, 3)
    queues = [
        queue(
            data.draw(wants_of(run_id)),
            *data.draw(st.sampled_from([(1,), (2,), (3,), everybody])),
            run=run_id,
        )
        for run_id in (1, 2, 3)
    ]
    layout = lay_out(seats, queues, NINE, random.Random(seed))
    wants = {want.key: want for one in queues for want in one.wants}
    assert {slot.key for slot in layout.slots} == wants.keys() and layout.nevers == []
    written: dict[str, list[int]] = defaultdict(list)
    for slot in layout.slots:
        want, frequency = wants[slot.key], seats[slot.account_id - 1].policy.per_recipient
        if frequency is not None and not want.ask.reply:
            recent = [at for at in written[want.target] if slot.at - at < frequency.per_us]
            assert len(recent) < frequency.count, (slot, recent)
        for name in {want.target, *want.also}:
            written[name].append(slot.at)


# ---------------------------------------------------------------------- strangers


def met(*strangers: int, count: int = 4, new_to: tuple[int, ...] = (1,)) -> list[Want]:
    ask = Ask(run_id=1)
    return [
        Want(key, ask, f"p{key}", new_to=new_to if key in strangers else ()) for key in range(count)
    ]


def test_strangers_wait_until_the_hold_is_over_and_the_others_go_on() -> None:
    layout = laid([seat(held_us=HOUR, spacing="1m")], queue(met(0, 2), 1))
    assert gone(layout) == [(1, 1, 0), (3, 1, 60), (0, 1, 3_600), (2, 1, 3_660)]
    assert [slot.gate for slot in layout.slots] == ["", "spacing", "signal", "spacing"]


def test_a_stranger_to_one_account_of_a_pool_goes_from_another() -> None:
    seats = [seat(1, held_us=HOUR, spacing="1m"), seat(2, spacing="10m")]
    layout = laid(seats, queue(met(0, 1, 2), 1, 2))
    assert gone(layout) == [(3, 1, 0), (0, 2, 0), (1, 2, 600), (2, 2, 1_200)]


def test_the_held_one_of_a_pool_comes_back_when_its_hold_is_over() -> None:
    seats = [seat(1, held_us=30 * MINUTE, spacing="1m"), seat(2, spacing="20m")]
    layout = laid(seats, queue(met(*range(6), count=6), 1, 2))
    assert gone(layout) == [
        (0, 2, 0),
        (1, 2, 1_200),
        (2, 1, 1_800),
        (3, 1, 1_860),
        (4, 1, 1_920),
        (5, 1, 1_980),
    ]
    assert layout.slots[2].gate == "signal"


def test_each_of_a_pool_passes_by_those_that_are_strangers_to_itself() -> None:
    ask = Ask(run_id=1)
    strangers: list[tuple[int, ...]] = [(1, 2), (1,), (2,), ()]
    wants = [Want(key, ask, f"p{key}", new_to=new_to) for key, new_to in enumerate(strangers)]
    seats = [seat(1, held_us=HOUR, spacing="1m"), seat(2, held_us=2 * HOUR, spacing="1m")]
    layout = laid(seats, queue(wants, 1, 2))
    assert gone(layout) == [(2, 1, 0), (1, 2, 0), (3, 1, 60), (0, 1, 3_600)]


def test_what_follows_in_a_pool_passes_the_same_accounts_by() -> None:
    ask = Ask(run_id=1)
    wants = [
        Want(0, ask, "anna", new_to=(1,)),
        Want(1, ask, "anna", follows=0, after_us=MINUTE, new_to=(1,)),
    ]
    layout = laid([seat(1, held_us=HOUR), seat(2)], queue(wants, 1, 2))
    assert gone(layout) == [(0, 2, 0), (1, 2, 60)]


def test_what_was_begun_and_what_stepped_aside_keep_their_place_among_several_lots() -> None:
    ask = Ask(run_id=1)
    wants = [
        Want(0, ask, "p0"),
        Want(1, ask, "p1", new_to=(1,)),
        Want(2, ask._replace(contacted=(NINE - DAY + MINUTE,)), "p2", new_to=(1,)),
        Want(3, ask, "p3", begun=True, new_to=(1,)),
        Want(4, ask, "p4"),
    ]
    limit = {"spacing": "30s", "per_recipient": "1/day"}
    seats = [seat(1, held_us=HOUR, **limit), seat(2, **limit)]
    layout = laid(seats, queue(wants, 1, 2))
    assert gone(layout) == [(0, 1, 0), (3, 2, 0), (4, 1, 30), (1, 2, 30), (2, 2, 60)]


def test_a_pool_of_nobody_but_held_accounts_is_not_given_up() -> None:
    seats = [seat(1, held_us=HOUR), seat(2, held_us=2 * HOUR)]
    layout = laid(seats, queue(met(0, 1, count=2, new_to=(1, 2)), 1, 2))
    assert [(key, account) for key, account, _ in gone(layout)] == [(0, 1), (1, 1)]
    assert layout.nevers == []
