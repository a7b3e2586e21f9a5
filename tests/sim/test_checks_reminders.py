"""What a reminder's runs send and how they are told: each checker by itself, with near misses."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, Instant
from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports import Alert, Delivery
from paceline.sim.checks import fanouts, limits, reports
from paceline.sim.chronicle import Page
from paceline.sim.diary import Entry
from tests.sim.evidence import DELIVERY, NOON, call, effect, evidence, replace
from tests.sim.reminded import FIRED, GROUPS, OFF, READY, SENT, entry, page, terms, told
from tests.sim.test_checks_signals import row

# ---------------------------------------------------------------------- what is sent


def out_of_window(at: Instant, **raw: Any) -> list[str]:
    given = told(
        entry(),
        terms=[terms(**raw), OFF],
        calls=[call(1, at - NOON)],
    )
    return [found.detail for found in fanouts.out_of_window(given)]


def test_a_call_outside_the_window() -> None:
    assert out_of_window(NOON + HOUR - 1, window="6-13") == []
    assert len(out_of_window(NOON + HOUR, window="6-13")) == 1
    assert len(out_of_window(NOON - 1, window="12-13")) == 1
    assert out_of_window(NOON - 1, window="12-13", before_open="send") == []
    assert len(out_of_window(NOON + DAY, window="6-13")) == 1, "on another day"
    assert out_of_window(NOON + DAY, window="6-13", at_close="resume") == []
    assert len(out_of_window(NOON, window="6-13", zone="Asia/Tokyo")) == 1


def astray(*entries: Entry, **changes: Any) -> list[str]:
    return [found.detail for found in fanouts.astray(told(*entries, **changes))]


def test_a_group_that_is_written_to_by_whoever_is_no_member() -> None:
    there = call(1, target=GROUPS[0])
    assert astray(entry(), calls=[there], deliveries=list(SENT)) == []
    (found,) = astray(calls=[there], groups="2..9", deliveries=list(SENT))
    assert "which cannot write there" in found
    assert astray(calls=[call(1, target="anna")], groups="2..9", deliveries=list(SENT)) == []


def test_a_target_that_is_left_out_though_it_could_be_reached() -> None:
    out = tuple(replace(one, state=DeliveryState.SKIPPED) for one in READY)
    assert len(astray(entry(deliveries=out))) == 2
    assert astray(entry(deliveries=out), groups="5..9") == []
    assert len(astray(entry(), groups="5..9")) == 2


def test_a_part_that_comes_twice_or_from_two() -> None:
    first, second = call(1, target=GROUPS[0]), call(2, MINUTE, target=GROUPS[0])
    both = [replace(DELIVERY, id=number, target=GROUPS[0]) for number in (1, 2)]
    (twice,) = astray(entry(), calls=[first, second], deliveries=both)
    assert twice == f"{GROUPS[0]} has part 0 of run 1 2 times"
    parts = [first, call(1, MINUTE, part=1, target=GROUPS[0])]
    effects = [effect(parts[0]), effect(parts[1], account="lane-1")]
    (by_two,) = astray(entry(), calls=parts, effects=effects, deliveries=list(SENT))
    assert by_two == f"{GROUPS[0]} has run 1 from lane-0, lane-1"
    effects = [effect(part) for part in parts]
    assert astray(entry(), calls=parts, effects=effects, deliveries=list(SENT)) == []


def thrown_out(*pages: Page) -> list[str]:
    return [found.detail for found in fanouts.thrown_out(told(pages=pages))]


def test_an_account_that_goes_on_though_it_was_thrown_out() -> None:
    suspended = {1: ("suspended", 1, False)}
    banned, intended = row(call(1), "banned"), row(call(2, MINUTE))
    known = page(0, banned, accounts=suspended)
    assert thrown_out(page(), known, page(MINUTE)) == []
    (found,) = thrown_out(page(), known, page(MINUTE, intended, accounts=suspended))
    assert found == "delivery 2 was intended on lane-0, which is suspended"
    # What was intended in the commit that told of it had begun.
    assert thrown_out(page(), page(0, banned, intended, accounts=suspended)) == []
    (found,) = thrown_out(page(), page(0, banned))
    assert found == "lane-0 is active, though delivery 1 was banned"
    assert thrown_out(page(), page(0, replace(banned, generation=0))) == [], "heard too late"


# ---------------------------------------------------------------------- taking turns


def in_turn(*pages: Page, **changes: Any) -> int:
    """Two runs on one account, of which the first comes first; both have one delivery."""
    first = entry(1, deliveries=READY[:1])
    second = entry(2, deliveries=READY[1:], id=2, campaign="standup")
    found = fanouts.ahead_of_turn(
        told(first, second, pages=[page(), page(), page(), *pages], **changes)
    )
    return len(list(found))


def test_a_run_that_does_not_wait_for_its_turn() -> None:
    one, two = row(call(1, MINUTE)), row(call(2, MINUTE, run_id=2))
    assert in_turn(page(MINUTE, two), page(MINUTE, one)) == 1
    assert in_turn(page(MINUTE, one), page(MINUTE, two)) == 0
    paused = {1: "paused", 2: "running"}
    assert in_turn(page(0, runs=paused), page(MINUTE, two), page(MINUTE, one)) == 0
    elsewhere = replace(one, account_id=2)
    assert in_turn(page(MINUTE, two), page(MINUTE, elsewhere)) == 0
    moved = [(4, "standup")]
    assert in_turn(page(MINUTE, two), page(), page(MINUTE, one), reassigned=moved) == 0


def test_a_run_whose_window_closed_before_its_turn_came() -> None:
    two = row(call(2, MINUTE, run_id=2))
    cut_off = replace(READY[0], state=DeliveryState.SKIPPED, reason="delivery window closed")
    assert in_turn(page(MINUTE, two), deliveries=[cut_off]) == 1
    assert in_turn(page(MINUTE, two), deliveries=[replace(cut_off, reason="suppressed")]) == 0


def test_where_clocks_differ_what_was_chosen_before_goes_first() -> None:
    def begun(after_us: int, spread_us: int) -> int:
        one, two = row(call(1, HOUR)), row(call(2, after_us, run_id=2))
        return in_turn(page(after_us, two), page(HOUR, one), spread_us=spread_us)

    assert begun(MINUTE - 1, 0) == 1
    assert begun(MINUTE - 1, 1) == 0
    assert begun(MINUTE, 1) == 1


# ---------------------------------------------------------------------- never misreported


def alert(text: str, kind: str = "reminder.unfinished", **changes: Any) -> Alert:
    known = Alert(1, kind, kind, f"reminder standup: {text}", (), 1, NOON, NOON, None, None)
    return replace(known, **changes)


def reported(ended: Entry, *alerts: Alert, **changes: Any) -> list[str]:
    pages = [page(), page(), page(alerts={one.id: one for one in alerts})]
    given = told(entry(), replace(ended, new=False), pages=pages, **changes)
    return [found.detail.partition(": ")[2] for found in reports.misreported(given)]


def over(*deliveries: Delivery, **changes: Any) -> Entry:
    return entry(2, HOUR, deliveries=deliveries or SENT, **changes)


ALL = {"state": RunState.SUCCESS, "summary": "2 of 2 groups delivered from lane-0."}
FAILED = replace(SENT[1], state=DeliveryState.FAILED, reason="refused")
SOME_TOLD = "1 of 2 groups delivered from lane-0. Not delivered: 1 failed (refused)."
SOME = {"state": RunState.PARTIAL, "summary": SOME_TOLD}
ENDED = {"runs": {1: replace(FIRED, state=RunState.SUCCESS)}}


def test_a_run_that_is_told_as_it_was() -> None:
    assert reported(over(**ALL), **ENDED) == []
    assert reported(over(SENT[0], FAILED, **SOME), alert(SOME_TOLD), **ENDED) == []


def test_a_run_that_is_told_otherwise() -> None:
    wrong = {**ALL, "summary": "1 of 2 groups delivered from lane-0."}
    assert len(reported(over(**wrong), **ENDED)) == 1
    assert len(reported(over(SENT[0], FAILED, **ALL), **ENDED)) == 2
    open_yet = replace(SENT[1], state=DeliveryState.READY)
    assert any("delivery 2 is ready" in found for found in reported(over(SENT[0], open_yet, **ALL)))
    miscounted = {**over(**ALL).counted, DeliveryState.SENT: 1}
    (found,) = reported(over(**ALL, counted=miscounted), **ENDED)
    assert found.startswith("the counters say")
    (found,) = reported(over(**ALL, total=3), **ENDED)
    assert found == "its total is 3, there are 2"


CUT_OFF = replace(SENT[1], state=DeliveryState.SKIPPED, reason="delivery window closed")
CLOSED_AT = "Delivery window closed at 13:00 (UTC). 1 of 2 groups delivered from lane-0."
AT_CAPACITY = (
    f"{CLOSED_AT} This account is at capacity for this fan-out: consider sending the remainder "
    "from another paired account (paceline reminder fire standup --rest --run 1 --from ACCOUNT)."
)
BUSY = row(call(1, 58 * MINUTE))


def cut_off(summary: str, *rows: Any, **changes: Any) -> list[str]:
    """What is said of a run that began at noon, and whose window closed an hour later."""
    known = {"started_at": NOON, "state": RunState.PARTIAL, "summary": summary}
    before = changes.pop("before", {})
    ended = replace(over(SENT[0], CUT_OFF, **{**known, **changes}), new=False)
    pages = [page(), page(0, *rows, **before), page(alerts={1: alert(summary)})]
    given = told(entry(), ended, pages=pages, terms=[terms(window="6-13"), OFF], **ENDED)
    return [found.detail for found in reports.misreported(given)]


def test_a_run_that_its_window_cut_off() -> None:
    assert cut_off(AT_CAPACITY, BUSY) == []
    assert cut_off(AT_CAPACITY, started_at=NOON + 59 * MINUTE) == [], "it has hardly begun"
    ended = over(SENT[0], CUT_OFF, state=RunState.PARTIAL, summary=AT_CAPACITY)
    assert len(reported(ended, alert(AT_CAPACITY), **ENDED)) == 1, "it closes at midnight"


STOOD_STILL: list[tuple[str, dict[str, Any]]] = [
    ("the window closed, and nothing was sent from lane-0", {}),
    (
        "the window closed while lane-0 was cooling down: flooded",
        {"accounts": {1: ("cooling down", "flooded")}},
    ),
    (
        "the window closed while everything was stopped: an alarm",
        {"stopped": ("an alarm", NOON)},
    ),
    (
        "the window closed while it was paused: lunch",
        {"before": {"runs": {1: "paused"}}, "paused_because": "lunch"},
    ),
]


@pytest.mark.parametrize(("why", "facts"), STOOD_STILL)
def test_a_run_that_its_window_cut_off_when_it_stood_still(why: str, facts: dict[str, Any]) -> None:
    rows = [BUSY] if facts else [row(call(1, 40 * MINUTE))]
    told_why = f"{CLOSED_AT} Not delivered: 1 skipped ({why})."
    assert cut_off(told_why, *rows, **facts) == []
    assert len(cut_off(AT_CAPACITY, *rows, **facts)) == 1


def test_a_run_that_fell_short_and_nobody_was_told() -> None:
    short = over(SENT[0], FAILED, **SOME)
    assert len(reported(short, **ENDED)) == 1
    assert len(reported(short, alert(SOME_TOLD, cleared_at=NOON), **ENDED)) == 1
    assert len(reported(short, alert("something else"), **ENDED)) == 1
    assert len(reported(short, alert(SOME_TOLD, count=2), **ENDED)) == 1, "counted twice"
    (found,) = reported(over(**ALL), alert(SOME_TOLD), **ENDED)
    assert found.startswith("an alert is open yet")


def test_a_run_that_never_ends() -> None:
    given = told(entry())
    assert [found.detail for found in reports.misreported(given)] == ["run 1 is still waiting"]
    assert list(reports.misreported(replace(given, came_to_rest=False))) == []


# ---------------------------------------------------------------------- never wasteful


def test_a_file_that_was_sent_is_not_uploaded_again() -> None:
    def load(after_us: int, handle: str, **changes: Any) -> Any:
        return effect(call(9, after_us), kind="upload", key="file", provider_id=handle, **changes)

    picture = effect(call(1, MINUTE))
    used = replace(picture, part=type(picture.part)("media", 1, "", "file", "first"))
    again = load(HOUR, "second")

    def wasted(*effects: Any) -> int:
        return len(list(limits.wasteful(evidence(effects=effects, deliveries=[], planned=0))))

    assert wasted(load(0, "first"), used, again) == 1
    assert wasted(load(0, "first"), again) == 0, "whoever had it died before it was written down"
    assert wasted(load(0, "first"), used, replace(again, accepted=False)) == 0
    assert wasted(load(0, "first"), used, replace(again, account="lane-1")) == 0
    expired = NOON + HOUR + limits.GOOD_FOR_US
    assert wasted(load(0, "first", expires_at=expired), used, again) == 0
    assert wasted(load(0, "first", expires_at=expired + 1), used, again) == 1
