"""The checker of signals: what it must report, and the near miss that it must let pass."""

from typing import Any

import pytest

from paceline.core.policy import Policy
from paceline.engine.ports import LedgerRow
from paceline.sim.attention import Table
from paceline.sim.checks import Evidence
from paceline.sim.checks.signals import heedless
from paceline.sim.chronicle import Page
from paceline.sim.operators import Release
from paceline.sim.witness import Seen
from tests.sim.evidence import (
    MINUTE,
    NOON,
    RUN,
    SECOND,
    call,
    effect,
    evidence,
    replace,
)

HEED = {"never heedless"}
ACCOUNTS = {1: ("active", 1, False), 2: ("active", 1, False)}
NAMES = {1: "lane-0", 2: "lane-1"}
OTHER_RUN = replace(RUN, id=2, campaign="other")


def row(seen: Seen, outcome: str | None = None, **changes: Any) -> LedgerRow:
    assert seen.facts is not None
    written = LedgerRow(
        delivery_id=seen.delivery_id,
        part=seen.part,
        attempt=seen.facts.attempts,
        kind="intent" if outcome is None else "outcome",
        account_id=seen.facts.account_id,
        run_id=seen.facts.run_id,
        action="message",
        at=seen.at,
        intent_at=seen.at,
        started_at=seen.at,
        slots=1,
        policy_id=1,
        generation=1,
        outcome=outcome,
        code=outcome or "",
    )
    return replace(written, **changes)


def page(at: int, *rows: LedgerRow, **changes: Any) -> Page:
    return replace(Page(at, True, 0, rows, ACCOUNTS, {1: "running", 2: "running"}, {}), **changes)


def told(
    rule: dict[str, Any],
    second: Seen,
    *,
    answer: str = "rejected",
    said: dict[str, Any] | None = None,
    together: bool = True,
    **changes: Any,
) -> Evidence:
    """A call at noon is refused; another one is intended with the commit that says so, or, where
    they do not come together, before it."""
    first = call(1)
    refused = effect(first, answer=answer, code=answer, accepted=False, **(said or {}))
    intents = ((), (row(second),)) if together else ((row(second),), ())
    pages = [
        page(NOON, row(first), *intents[0]),
        page(NOON + SECOND, row(first, answer), *intents[1]),
        page(second.at + SECOND, row(second, "accepted")),
    ]
    known: dict[str, Any] = {
        "pages": pages,
        "tables": [Table(NOON - MINUTE, {f"* {answer}": rule})],
        "effects": [refused, effect(second)],
        "accounts": NAMES,
        "runs": {1: RUN, 2: OTHER_RUN},
        "policy": {"bounce_pause": "100%"},
    }
    return evidence(first, second, **(known | changes))


def found(given: Evidence) -> set[str]:
    """What this checker says: what became of the deliveries is left out here."""
    return {violation.invariant for violation in heedless(given)}


WHOLE = {"scope": "account", "for": "2m"}
CAMPAIGN = {"scope": "campaign", "for": "2m"}
STRANGERS = {"scope": "new contacts", "for": "2m"}
SOON = 2 * MINUTE - 1


def test_an_account_that_does_not_wait() -> None:
    assert found(told(WHOLE, call(2, SOON))) == HEED
    assert found(told(WHOLE, call(2, 2 * MINUTE))) == set()
    other = call(2, SOON, account="lane-1", account_id=2)
    assert found(told(WHOLE, other)) == set()
    # Replies and further parts wait as well.
    assert found(told(WHOLE, call(2, SOON, reply=True))) == HEED
    assert found(told(WHOLE, call(2, SOON, part=1))) == HEED


def test_what_was_intended_before_the_answer_was_known_may_go() -> None:
    assert found(told(WHOLE, call(2, SOON), together=False)) == set()


def test_an_answer_that_came_when_the_lane_had_another_owner_binds_nobody() -> None:
    given = told(WHOLE, call(2, SOON))
    late = [replace(one, accounts={**ACCOUNTS, 1: ("active", 2, False)}) for one in given.pages]
    assert found(replace(given, pages=late)) == set()


def test_a_table_that_changes_while_the_answer_is_under_way_binds_nobody() -> None:
    tables = [
        Table(NOON - MINUTE, {"* rejected": WHOLE}),
        Table(NOON + SECOND // 2, {"* rejected": {**WHOLE, "for": "20s"}}),
    ]
    assert found(told(WHOLE, call(2, SOON), tables=tables)) == set()
    same = [tables[0], replace(tables[0], at=NOON)]
    assert found(told(WHOLE, call(2, SOON), tables=same)) == HEED
    later = [tables[0], replace(tables[1], at=NOON + 2 * SECOND)]
    assert found(told(WHOLE, call(2, SOON), tables=later)) == HEED


def test_the_rule_that_says_most_exactly_what_it_means_holds() -> None:
    for exact in ("* code:rejected", "sandbox rejected", "* rejected message"):
        rules = {"* rejected": WHOLE, exact: {"scope": "account", "for": "none"}}
        tables = [Table(NOON - MINUTE, rules)]
        assert found(told(WHOLE, call(2, SOON), tables=tables)) == set(), exact
    rules = {"* rejected": WHOLE, "* rejected email": {"scope": "account", "for": "none"}}
    assert found(told(WHOLE, call(2, SOON), tables=[Table(0, rules)])) == HEED


def test_what_the_provider_asks_for_counts_for_more() -> None:
    asked = {"retry_after_us": 5 * MINUTE}
    given = told(WHOLE, call(2, 5 * MINUTE - 1), answer="throttled", said=asked)
    assert found(given) == HEED
    assert found(told(WHOLE, call(2, 5 * MINUTE), answer="throttled", said=asked)) == set()
    # A refusal asks for nothing.
    assert found(told(WHOLE, call(2, 3 * MINUTE), said=asked)) == set()


def test_a_campaign_that_does_not_wait() -> None:
    assert found(told(CAMPAIGN, call(2, SOON))) == HEED
    assert found(told(CAMPAIGN, call(2, 2 * MINUTE))) == set()
    assert found(told(CAMPAIGN, call(2, SOON, run_id=2))) == set()
    assert found(told(CAMPAIGN, call(2, SOON, account="lane-1", account_id=2))) == set()
    assert found(told(CAMPAIGN, call(2, SOON, part=1))) == set(), "what has started finishes"


def test_a_stranger_who_is_written_to() -> None:
    assert found(told(STRANGERS, call(2, SOON, target="eve"))) == HEED
    assert found(told(STRANGERS, call(2, 2 * MINUTE, target="eve"))) == set()
    assert found(told(STRANGERS, call(2, SOON, target="eve", reply=True))) == set()
    # Whoever refused the only message is a stranger still.
    assert found(told(STRANGERS, call(2, SOON))) == HEED


@pytest.mark.parametrize("outcome", ["accepted", "unknown", None])
def test_whoever_may_have_had_a_message_is_no_stranger(outcome: str | None) -> None:
    earlier, second = call(3, -MINUTE, target="eve"), call(2, SOON, target="eve")
    given = told(STRANGERS, second)
    rows = (row(earlier), *([row(earlier, outcome)] if outcome is not None else []))
    pages = [page(NOON - MINUTE, *rows), *given.pages]
    assert found(replace(given, calls=[earlier, *given.calls], pages=pages)) == set()
    elsewhere = replace(earlier, account="lane-1")
    assert found(replace(given, calls=[elsewhere, *given.calls], pages=pages)) == HEED


def test_what_waits_for_somebody() -> None:
    for scope, released in (("account", {"account": "lane-0"}), ("campaign", {"campaign": "word"})):
        rule = {"scope": scope, "for": "until resumed"}
        late = call(2, 90 * MINUTE)
        assert found(told(rule, late)) == HEED
        let_go = [Release(NOON + MINUTE, **released)]
        assert found(told(rule, late, releases=let_go)) == set()
        before = [Release(NOON, **released)]
        assert found(told(rule, late, releases=before)) == HEED
        other = [Release(NOON + MINUTE, account="lane-1", campaign="other")]
        assert found(told(rule, late, releases=other)) == HEED


def test_a_way_back_that_is_too_fast() -> None:
    slow = {"scope": "campaign", "for": "10s", "ramp": {"slow_by": 3, "recover": "10m"}}

    def gap(us: int, after_us: int = MINUTE, **policy: Any) -> set[str]:
        # The first after the hold is on another run, and counts as slow as the way back is by then.
        second, third = call(2, after_us, run_id=2), call(3, after_us + us, run_id=2)
        limits = {"rate": "60/min", "bounce_pause": "100%"} | policy
        given = told(slow, second, policy=limits)
        pages = [*given.pages, page(third.at, row(third))]
        return found(replace(given, calls=[*given.calls, third], pages=pages))

    # Ten seconds of hold and 50 of ten minutes are over: 3 s are 2.833… s by then.
    assert gap(2_833_333 - 1) == HEED
    assert gap(2_833_334) == set()
    assert gap(SECOND, after_us=11 * MINUTE) == set()
    assert gap(SECOND, rate="60/min burst 2") == set()


@pytest.mark.parametrize(
    ("rate", "judged"), [("60/min", HEED), ("60/min burst 2", set()), ("off", set())]
)
def test_a_way_back_of_an_account_whose_rate_was_changed_on_it(rate: str, judged: set[str]) -> None:
    """One that has a burst by now has a token more than it had at the call before."""
    slow = {"scope": "campaign", "for": "10s", "ramp": {"slow_by": 3, "recover": "10m"}}
    second = call(2, MINUTE, run_id=2)
    third = call(3, MINUTE + SECOND, run_id=2, policy_id=2)
    given = told(slow, second)
    limits = {1: "60/min", 2: rate}
    policies = {
        number: Policy.from_mapping({"rate": text, "bounce_pause": "100%"})
        for number, text in limits.items()
    }
    pages = [*given.pages, page(third.at, row(third))]
    calls = [*given.calls, third]
    assert found(replace(given, calls=calls, pages=pages, policies=policies)) == judged


def test_a_way_back_by_the_policy_and_a_drawn_gap() -> None:
    slow = {"scope": "campaign", "for": "10s", "ramp": "policy"}
    limits = {
        "spacing": "4s",
        "bounce_pause": "100%",
        "throttle": {"slow_by": 2, "recover": "100s"},
    }

    def gap(us: int, **changes: Any) -> set[str]:
        second = call(2, MINUTE, run_id=2, gap_us=4 * SECOND)
        third = call(3, MINUTE + us, run_id=2, **changes)
        given = told(slow, second, policy=limits)
        pages = [*given.pages, page(third.at, row(third))]
        return found(replace(given, calls=[*given.calls, third], pages=pages))

    assert gap(6 * SECOND - 1) == HEED
    assert gap(6 * SECOND) == set()
    assert gap(SECOND, reply=True) == set()


def test_somebody_who_is_held_back_for_longer_than_anybody_asked() -> None:
    given = told(WHOLE, call(2, 2 * MINUTE))

    def held(*until: int, **changes: Any) -> set[str]:
        first, *rest = given.pages
        pages = [first, *(replace(one, held={1: until}) for one in rest)]
        return found(replace(given, pages=pages, **changes))

    assert held(NOON + 2 * MINUTE, 0) == set()
    assert held(NOON + 2 * MINUTE + 1, 0) == HEED
    assert held(NOON + 2 * MINUTE, NOON + SECOND) == HEED, "of strangers nobody has said anything"
    # Where clocks were set a hold may be too long: that is safe.
    assert held(NOON + 9 * MINUTE, 0, spread_us=MINUTE) == set()
    doubling = told({"scope": "account", "for": "1m doubling"}, call(2, 4 * MINUTE))
    pages = [replace(one, held={1: (NOON + 4 * MINUTE, 0)}) for one in doubling.pages[1:]]
    assert found(replace(doubling, pages=[doubling.pages[0], *pages])) == set()
