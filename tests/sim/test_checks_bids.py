"""The checker of follow-ups by itself: what it must report, and what it must not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.core.turns import Patience
from paceline.engine.ports.inbox import Received
from paceline.sim.checks import Evidence, bids
from paceline.sim.minutes import Minute, Proceedings
from paceline.sim.operators import Silence
from paceline.sim.talk import FOLLOW_UP, OPENING, Talk, Wrote
from paceline.sim.witness import Seen
from tests.sim.evidence import DELIVERY, NOON, call, effect, evidence, replace

ANNA, LINE = "anna", "lane-0"
PLACE = 7
"""The number of the conversation with her."""
WITHIN = 20 * SECOND

FIRST = call(1)
SECOND_ONE = call(2, 30 * SECOND)
TEXTS = {FIRST.key: f"{OPENING} {ANNA}", SECOND_ONE.key: f"{FOLLOW_UP} {ANNA}"}
OTHER_ANSWER = "sim-9-0"


def wrote(after_s: float, number: int = 0, **changes: Any) -> Wrote:
    at = NOON + int(after_s * SECOND)
    given = Wrote(number, at, LINE, ANNA, f"word {number}", told_at=at)
    return replace(given, **changes)


def minute(one: Wrote, after_s: float) -> Minute:
    at = NOON + int(after_s * SECOND)
    return Minute(at, at, True, (), {}, frozenset(), (one.name,))


def stands(mode: str, after_s: float) -> Minute:
    at = NOON + int(after_s * SECOND)
    return Minute(at, at, False, (), {PLACE: mode, PLACE + 1: "muted"}, frozenset())


def kept(one: Wrote) -> Received:
    said = (ANNA, ANNA, "", one.text, "text", False, False, None)
    return Received(1, 1, one.name, *said, one.at, one.at, PLACE)


def found(
    *messages: Wrote,
    calls: Sequence[Seen] = (FIRST, SECOND_ONE),
    heard_s: float = 25,
    texts: dict[str, str] = TEXTS,
    stood: Sequence[Minute] = (),
    **about: Any,
) -> bool:
    """Whether anything is wrong where Anna is written to at noon, and once more after 30 s."""
    talk = Talk(1, (ANNA,), {LINE: Patience(SECOND, MINUTE)}, within_us=WITHIN)
    minutes = [minute(one, heard_s) for one in messages]
    talks = Proceedings(
        talk,
        messages,
        [],
        [],
        [],
        [],
        sorted([*minutes, *stood], key=lambda one: one.at),
        [kept(one) for one in messages],
        [],
        [],
        frozenset(),
        {**texts, OTHER_ANSWER: ""},
    )
    return bool(list(bids.unbidden(evidence(*calls, talks=talks, **about))))


@pytest.mark.parametrize(
    ("after_s", "wrong"),
    [(5, False), (-1.9, False), (-2.1, True), (21.9, False), (22.1, True)],
)
def test_a_follow_up_goes_to_whoever_answered_in_time(after_s: float, wrong: bool) -> None:
    assert found(wrote(after_s)) == wrong


@pytest.mark.parametrize(
    "unlike",
    [
        {"wish": "stop"},
        {"strange": "automatic"},
        {"account": "lane-1"},
        {"chat": "ben"},
        {"answers": OTHER_ANSWER},
    ],
    ids=lambda unlike: next(iter(unlike)),
)
def test_nothing_else_bids_one(unlike: dict[str, Any]) -> None:
    assert found(wrote(5, **unlike))
    assert not found(wrote(5, **unlike), wrote(6, 1))
    assert not found(wrote(5, **unlike), calls=[FIRST]), "nor has it to"


def test_nobody_knows_what_has_not_been_told_yet() -> None:
    assert found(wrote(5), heard_s=31)
    assert not found(wrote(5), heard_s=29)


def test_it_follows_what_has_arrived() -> None:
    assert found(wrote(5), calls=[SECOND_ONE])
    refused = [effect(FIRST, accepted=False), effect(SECOND_ONE)]
    assert found(wrote(5), effects=refused)
    elsewhere = replace(FIRST, account="lane-1")
    assert found(wrote(5), calls=[elsewhere, SECOND_ONE])


def test_what_was_in_doubt_counts_from_when_that_was_settled() -> None:
    rows = [replace(DELIVERY, sent_at=NOON + 8 * SECOND), replace(DELIVERY, id=2)]
    assert not found(wrote(24), deliveries=rows)
    assert found(wrote(31), deliveries=rows, calls=[FIRST, call(2, 40 * SECOND)], heard_s=35)


def test_one_for_each() -> None:
    once_more = call(3, 40 * SECOND)
    texts = {**TEXTS, once_more.key: f"{FOLLOW_UP} {ANNA}"}
    assert found(wrote(5), calls=[FIRST, SECOND_ONE, once_more], texts=texts)
    assert not found(wrote(5), calls=[FIRST, SECOND_ONE, once_more])


@pytest.mark.parametrize(("after_s", "wrong"), [(1, True), (19, True), (21, False), (-1, False)])
def test_whoever_answered_in_time_is_sent_one(after_s: float, wrong: bool) -> None:
    assert found(wrote(after_s), calls=[FIRST]) == wrong
    assert not found(wrote(after_s), calls=[FIRST], came_to_rest=False)
    cancelled = [Silence(NOON, campaign="news", for_good=True)]
    assert not found(wrote(after_s), calls=[FIRST], silences=cancelled)


def test_whoever_wants_none_is_sent_none() -> None:
    stop = wrote(6, 1, wish="stop")
    assert not found(wrote(5), stop, calls=[FIRST])
    again = wrote(7, 2, wish="start")
    assert not found(wrote(5), stop, again, wrote(8, 3), calls=[FIRST]), "it was called off"


def test_whoever_is_muted_is_sent_none() -> None:
    muted, answered = stands("muted", 26), stands("auto", 28)
    assert not found(wrote(5), calls=[FIRST], stood=[muted])
    assert not found(wrote(5), calls=[FIRST], stood=[muted, answered]), "it was called off"
    assert found(wrote(5), calls=[FIRST], stood=[answered]), "others are"
    before = [stands("muted", -9), stands("auto", -1)]
    assert found(wrote(5), calls=[FIRST], stood=before)
    assert not found(wrote(5), calls=[FIRST], stood=before[:1])


def test_what_was_tried_is_not_forgotten() -> None:
    refused = [effect(FIRST), effect(SECOND_ONE, accepted=False)]
    assert not found(wrote(5), effects=refused)


def test_by_a_clock_that_was_set_back_nobody_can_tell() -> None:
    assert not found(wrote(-30), spread_us=MINUTE)
    assert not found(wrote(5), calls=[FIRST], spread_us=MINUTE)


def test_other_worlds_have_none() -> None:
    given: Evidence = evidence(FIRST)
    assert not list(bids.unbidden(given))
