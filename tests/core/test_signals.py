"""Signals: a table that reads and prints back, and what each scope holds back."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core import usage as usages
from paceline.core.errors import InputError
from paceline.core.holds import NO_HOLDS, RAMPS_KEPT, RUNS_HELD, Holds, decoded
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Ask, Go, Standing, Wait
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.pacer import Pacer
from paceline.core.policy import Policy
from paceline.core.retry import Consequence, consequence
from paceline.core.signals import (
    DEFAULT_SIGNALS,
    DEFAULT_TABLE,
    SIGNAL_KINDS,
    Lasting,
    Ramp,
    Rule,
    Scope,
    Signal,
    Signals,
    signals_from,
)
from paceline.core.tables import Throttle, table_of
from paceline.core.usage import Usage
from tests.core import values

K = OutcomeKind
NOW = 1_771_239_600_000_000  # Monday 2026-02-16 11:00 UTC
POLICY = Policy()

lastings = st.one_of(
    st.just(Lasting()),
    st.just(Lasting(day_end=True)),
    st.builds(Lasting, st.integers(SECOND, 30 * DAY)),
    st.builds(Lasting, st.integers(SECOND, 15 * MINUTE), st.just(True)),
)
ramps = st.one_of(st.just(Ramp()), st.just(Ramp(policy=True)), st.builds(Ramp, values.throttles))
rules = st.builds(Rule, st.sampled_from(Scope), lastings, ramps) | st.builds(
    Rule, st.sampled_from((Scope.ACCOUNT, Scope.CAMPAIGN)), st.just(Lasting(resumed=True)), ramps
)
words = st.text("abcdefgh_0123456789*?", min_size=1, max_size=12)
signals = st.builds(
    Signal,
    st.just("*") | words,
    st.none() | st.sampled_from(SIGNAL_KINDS),
    words,
    st.just("") | words,
) | st.builds(Signal, st.just("*") | words, st.sampled_from(SIGNAL_KINDS), st.just(""))


def rule(text: str) -> Rule:
    return Rule.from_mapping(table_of(text))


def after(outcome: Outcome, given: str, *, retries: int = 0, setbacks: int = 0) -> Consequence:
    return consequence(
        outcome, retries=retries, setbacks=setbacks, policy=POLICY, now=NOW, rule=rule(given)
    )


# ---------------------------------------------------------------------- reading and printing


@given(rules)
def test_a_rule_prints_as_it_is_read(made: Rule) -> None:
    assert Rule.from_mapping(table_of(str(made))) == made
    assert Rule.from_mapping(json.loads(json.dumps(made.to_mapping()))) == made


@given(signals)
def test_a_signal_prints_as_it_is_read(made: Signal) -> None:
    assert Signal.parse(str(made)) == made


def test_the_default_table_is_written_as_it_prints() -> None:
    assert {text: rule.to_mapping() for text, rule in DEFAULT_SIGNALS.rules.items()} == {
        text: dict(table) for text, table in DEFAULT_TABLE.items()
    }
    assert [str(Signal.parse(text)) for text in DEFAULT_TABLE] == list(DEFAULT_TABLE)


@pytest.mark.parametrize(
    ("read", "complaint"),
    [
        (lambda: Signal.parse("throttled"), "is no signal"),
        (lambda: Signal.parse("a b c d"), "is no signal"),
        (lambda: Signal.parse("* accepted"), "no sign of trouble"),
        (lambda: Signal.parse("* throtled"), "did you mean 'throttled'.*code:throtled"),
        (lambda: rule("{}"), "scope: is missing"),
        (lambda: rule('{ scope = "account" }'), "for: is missing"),
        (lambda: rule('{ scop = "account" }'), "did you mean 'scope'"),
        (lambda: rule('{ scope = "acount", for = "1m" }'), "did you mean 'account'"),
        (lambda: rule('{ scope = "account", for = "a while" }'), "for: .* no length of time"),
        (lambda: rule('{ scope = "account", for = "0s" }'), "for: .* no time at all"),
        (lambda: rule('{ scope = "account", for = "500ms" }'), "not between 1s and 30d"),
        (lambda: rule('{ scope = "account", for = "31d" }'), "not between 1s and 30d"),
        (lambda: rule('{ scope = "account", for = "1h doubling" }'), "15m at most"),
        (lambda: rule('{ scope = "account", for = "1m", ramp = "slow" }'), "no way back"),
        (lambda: rule('{ scope = "account", for = "1m", ramp = { slw_by = 2 } }'), "slow_by"),
        (lambda: rule('{ scope = "new contacts", for = "until resumed" }'), "by hand"),
        (lambda: Signals({"* throttled": {"scope": 3, "for": "1m"}}), "throttled.scope"),
    ],
)
def test_what_is_refused(read: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        read()


def test_words_may_be_written_loosely() -> None:
    assert Scope.parse("New_Contacts") is Scope.NEW_CONTACTS
    assert str(Lasting.parse("60s  doubling")) == "1m doubling"
    assert str(Signal.parse("  unipile   limit_exceeded ")) == "unipile limit_exceeded"


# ---------------------------------------------------------------------- which rule holds


def test_the_most_exact_signal_holds() -> None:
    table = Signals(
        {
            "* throttled": {"scope": "account", "for": "1s"},
            "sandbox throttled": {"scope": "account", "for": "2s"},
            "* 13*": {"scope": "account", "for": "3s"},
            "* 131048": {"scope": "account", "for": "4s"},
            "sandbox 131048": {"scope": "account", "for": "5s"},
            "sandbox 131048 message": {"scope": "account", "for": "6s"},
            "sandbox throttled:131048 message": {"scope": "account", "for": "7s"},
        }
    )

    def found(provider: str, action: str, kind: OutcomeKind, code: str) -> str:
        rule = table.rule_for(provider, action, Outcome(kind, code=code))
        return "" if rule is None else str(rule.lasts)

    assert found("other", "email", K.THROTTLED, "") == "1s"
    assert found("sandbox", "email", K.THROTTLED, "") == "2s"
    assert found("other", "email", K.REJECTED, "130000") == "3s"
    assert found("other", "email", K.REJECTED, "131048") == "4s"
    assert found("sandbox", "email", K.REJECTED, "131048") == "5s"
    assert found("sandbox", "message", K.REJECTED, "131048") == "6s"
    assert found("sandbox", "message", K.THROTTLED, "131048") == "7s"
    assert found("other", "email", K.REJECTED, "") == ""


def test_what_operators_say_goes_over_the_defaults_and_nowhere_else() -> None:
    table = signals_from({"* throttled": {"scope": "campaign", "for": "5m"}})
    assert str(table.rules["* throttled"].lasts) == "5m"
    assert table.rules["* unavailable"] == DEFAULT_SIGNALS.rules["* unavailable"]
    assert list(table.to_mapping()) == ["* throttled"]
    assert signals_from(None) is signals_from({}) is DEFAULT_SIGNALS


@pytest.mark.parametrize("kind", SIGNAL_KINDS)
@pytest.mark.parametrize("asked", [None, 90 * SECOND])
def test_by_default_nobody_asks_for_a_rule(kind: OutcomeKind, asked: int | None) -> None:
    """What follows by default is the same whether or not the table is looked up."""
    outcome = Outcome(kind, "why", retry_after_us=asked)
    known = {"retries": 1, "setbacks": 2, "policy": POLICY, "now": NOW}
    found = DEFAULT_SIGNALS.rule_for("sandbox", "message", outcome)
    assert consequence(outcome, **known, rule=found) == consequence(outcome, **known)


# ---------------------------------------------------------------------- what a rule leads to


def test_a_narrow_scope_lets_the_account_go_on() -> None:
    throttled = Outcome(K.THROTTLED, "slow down")
    held = after(throttled, '{ scope = "new contacts", for = "1d" }', setbacks=1)
    assert (held.scope, held.hold_until_at) == (Scope.NEW_CONTACTS, NOW + DAY)
    # The message itself is tried again as its kind says; whether it may go then, the gates say.
    assert (held.event, held.due_at) == ("retry", NOW + 2 * MINUTE)
    whole = after(throttled, '{ scope = "account", for = "1d" }')
    assert (whole.scope, whole.hold_until_at, whole.due_at) == (
        Scope.ACCOUNT,
        NOW + DAY,
        NOW + DAY,
    )


def test_a_person_may_be_needed() -> None:
    spam = Outcome(K.REJECTED, "spam", "131048")
    account = after(spam, '{ scope = "account", for = "until resumed" }')
    assert (account.event, account.account_event) == ("fail", "suspend")
    campaign = after(spam, '{ scope = "campaign", for = "until resumed" }')
    assert (campaign.event, campaign.account_event, campaign.pauses_run) == ("fail", None, True)


def test_what_the_provider_asks_for_counts_for_more() -> None:
    asked = Outcome(K.THROTTLED, retry_after_us=5 * MINUTE)
    assert after(asked, '{ scope = "campaign", for = "1d" }').hold_until_at == NOW + 5 * MINUTE
    rejected = Outcome(K.REJECTED, retry_after_us=5 * MINUTE)
    assert after(rejected, '{ scope = "campaign", for = "1d" }').hold_until_at == NOW + DAY


@settings(max_examples=500)
@given(
    st.sampled_from(SIGNAL_KINDS),
    rules,
    st.integers(0, 2),
    st.integers(0, 20),
    st.none() | st.integers(0, 10 * DAY),
)
def test_no_rule_makes_an_endless_loop(
    kind: OutcomeKind, given: Rule, retries: int, setbacks: int, asked: int | None
) -> None:
    """Whatever operators write: a message that comes back at once has an account or a campaign
    that does not, or has used a rung of its ladder."""
    outcome = Outcome(kind, "why", retry_after_us=asked)
    result = consequence(
        outcome, retries=retries, setbacks=setbacks, policy=POLICY, now=NOW, rule=given
    )
    if result.event != "retry" or result.climbs or result.account_event or result.pauses_run:
        return
    assert result.due_at is not None and result.due_at >= NOW + SECOND


def test_none_holds_nobody_back() -> None:
    none = '{ scope = "account", for = "none" }'
    throttled = after(Outcome(K.THROTTLED), none)
    assert (throttled.hold_until_at, throttled.due_at) == (None, NOW + MINUTE)
    banned = after(Outcome(K.BANNED), none)
    assert (banned.account_event, banned.climbs) == (None, True)


# ---------------------------------------------------------------------- holds and their gate


def verdict(usage: Usage, ask: Ask, **policy: Any) -> Any:
    return Pacer(Policy.from_mapping(policy), Standing()).verdict(NOW, usage, ask)


def test_only_first_contacts_wait() -> None:
    usage = Usage(holds=NO_HOLDS.newcomers(NOW + HOUR, "spam"))
    waits = verdict(usage, Ask(known=False))
    assert isinstance(waits, Wait)
    assert (waits.until_at, waits.gate) == (NOW + HOUR, "signal")
    assert waits.why == "nobody is written to for the first time: spam"
    assert verdict(usage, Ask(known=True)) == Go()
    assert verdict(usage, Ask(known=False, reply=True)) == Go()


def test_only_one_campaign_waits() -> None:
    usage = Usage(holds=NO_HOLDS.run(7, NOW + HOUR, "complaints"))
    waits = verdict(usage, Ask(run_id=7))
    assert isinstance(waits, Wait)
    assert (waits.until_at, waits.why) == (NOW + HOUR, "the campaign waits: complaints")
    assert verdict(usage, Ask(run_id=8)) == Go()


def test_of_two_holds_the_longer_stands_and_past_ones_are_forgotten() -> None:
    holds = NO_HOLDS.newcomers(NOW + DAY, "long").newcomers(NOW + HOUR, "short")
    assert (holds.newcomers_until_at, holds.newcomers_reason) == (NOW + DAY, "long")
    holds = holds.run(7, NOW + HOUR, "a").run(7, NOW + MINUTE, "b").run(8, NOW + SECOND, "c")
    assert holds.run_until_at(7) == NOW + HOUR
    left = holds.left_at(NOW + MINUTE)
    assert left.runs == {7: (NOW + HOUR, "a")}
    assert holds.left_at(NOW + DAY) is NO_HOLDS
    many = NO_HOLDS
    for run in range(1, 40):
        many = many.run(run, NOW + run, "x")
    assert len(many.runs) == RUNS_HELD
    assert many.run_until_at(39) == NOW + 39


def test_a_checkpoint_from_before_there_were_signals_still_reads() -> None:
    old = (
        '{"tat_at":5,"last_at":4,"gap_us":3,"batch_position":2,"day_at":1,"day_sends":1,'
        '"day_bounces":0,"hold_until_at":9,"hold_reason":"x","setbacks":1,"throttled_at":null,'
        '"health":{"7":["1",3]}}'
    )
    usage = usages.decode(json.loads(old))
    assert usage.holds is NO_HOLDS
    assert usages.to_json(usage) == old
    assert decoded({}) is NO_HOLDS


def test_a_wrong_clock_leaves_no_hold_for_ever() -> None:
    far = NO_HOLDS.newcomers(NOW + 900 * DAY, "x").run(7, NOW + 900 * DAY, "y")
    usage = usages.plausible(Usage(last_at=NOW + DAY, holds=far), POLICY, NOW)
    assert usage.holds.newcomers_until_at == NOW + 30 * DAY
    assert usage.holds.run_until_at(7) == NOW + 30 * DAY
    moved = usages.moved_with_the_clock(Usage(last_at=NOW, holds=far), HOUR)
    assert moved.holds.newcomers_until_at == NOW + 900 * DAY + HOUR
    assert usages.moved_with_the_clock(Usage(holds=far), -HOUR).holds == far


def test_after_the_hold_the_pace_comes_back_in_a_straight_line() -> None:
    policy = Policy.from_mapping({"rate": "60/min"})
    slow = Throttle.from_mapping({"slow_by": 3, "recover": "10m"})
    usage = Usage(tat_at=NOW, holds=NO_HOLDS.ramping(NOW, slow))

    def cost_us(at: int) -> int:
        return usages.spend_part(usage, policy, Ask(), at).tat_at - at

    assert [cost_us(NOW + m * MINUTE) for m in (0, 5, 10)] == [3 * SECOND, 2 * SECOND, SECOND]
    costs = [cost_us(NOW + m * SECOND) for m in range(0, 700, 7)]
    assert costs == sorted(costs, reverse=True)
    both = usage._replace(throttled_at=NOW + 5 * MINUTE)
    # Two ways back at once: the slower one counts, and they do not multiply.
    assert usages.spend_part(both, policy, Ask(), NOW + 5 * MINUTE).tat_at == (
        NOW + 5 * MINUTE + 2 * SECOND
    )


def test_a_mild_way_back_does_not_end_a_steep_one() -> None:
    """Each signal's way back is kept; at every instant the slowest of them counts."""
    policy = Policy.from_mapping({"rate": "60/min"})
    steep = Throttle.from_mapping({"slow_by": 9, "recover": "2m"})
    mild = Throttle.from_mapping({"slow_by": 2, "recover": "1h"})
    for first, second in ((steep, mild), (mild, steep)):
        holds = decoded(NO_HOLDS.ramping(NOW, first).ramping(NOW, second).encoded())
        usage = Usage(tat_at=NOW, holds=holds)
        costs = [usages.spend_part(usage, policy, Ask(), NOW + m * MINUTE).tat_at for m in (1, 30)]
        assert costs == [NOW + MINUTE + 5 * SECOND, NOW + 30 * MINUTE + 3 * SECOND // 2]
        assert not holds.left_at(NOW + HOUR).ramps


def test_the_same_way_back_begins_anew_and_never_earlier() -> None:
    slow = Throttle.from_mapping({"slow_by": 2, "recover": "1h"})
    again = NO_HOLDS.ramping(NOW, slow).ramping(NOW + MINUTE, slow)
    assert again.ramps == ((NOW + MINUTE, slow),)
    assert again.ramping(NOW, slow) == again


def test_ways_back_are_bounded_and_those_that_end_first_go_first() -> None:
    holds = NO_HOLDS
    for minutes in (9, *range(1, RAMPS_KEPT + 3)):
        holds = holds.ramping(NOW, Throttle.from_mapping({"recover": f"{minutes}m"}))
    kept = sorted(ramp.recover_us // MINUTE for _, ramp in holds.ramps)
    assert kept == list(range(3, RAMPS_KEPT + 3))


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_the_gate_never_answers_earlier_for_a_later_question(first: int, step: int) -> None:
    holds = Holds(2**39, "x", {7: (2**38, "y")})
    usage = Usage(holds=holds)
    for ask in (Ask(run_id=7), Ask(run_id=7, known=False), Ask(known=False)):
        gate = next(g for g in Pacer(POLICY, Standing())._gates if g.name == "signal")
        early, late = gate.earliest(first, usage, ask), gate.earliest(first + step, usage, ask)
        assert first <= early <= late
