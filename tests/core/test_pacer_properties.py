"""No sequence that the pacer allows breaks a rule, whatever the policy, the zone and the answers.

The lane of ``playing.py`` does whatever the pacer lets it do; ``naive.py`` judges. That the judge
sees anything at all is shown by breaking every gate in turn.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core import gates
from paceline.core.holds import NO_HOLDS
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.model import Go, Wait
from paceline.core.outcome import OutcomeKind
from paceline.core.pacer import Pacer
from tests.core import naive
from tests.core.naive import Rules
from tests.core.playing import Letter, Player, letters_from, policy_of, rules_around_changes

seeds = st.integers(0, 2**32)
concurrencies = st.sampled_from([1, 1, 3])
MONDAY_AT = 1_771_239_600_000_000  # 2026-02-16 11:00 UTC


def played(
    rules: Rules,
    start_at: int,
    seed: int,
    *,
    number: int = 40,
    latency_us: int = 2 * SECOND,
    **further: Any,
) -> Player:
    rng = random.Random(seed)
    letters = letters_from(start_at, number, rng)
    policy = policy_of(rules, **further)
    player = Player(rules, policy, start_at, letters, rng, latency_us=latency_us)
    player.play()
    return player


@settings(max_examples=200)
@given(rules_around_changes(), concurrencies, seeds, st.sampled_from([0, 2 * SECOND]))
def test_no_sequence_the_pacer_allows_breaks_rate_spacing_cap_or_hours(
    where: tuple[Rules, int], concurrency: int, seed: int, latency_us: int
) -> None:
    rules, start_at = where
    pace = {"concurrency": concurrency, "part_gap": "0s..2s"}
    player = played(rules, start_at, seed, latency_us=latency_us, **pace)
    assert naive.problems(player.sends, rules, player.settled, player.holds) == []


@settings(max_examples=80)
@given(rules_around_changes(), seeds, st.floats(0.01, 0.5))
def test_a_restart_at_any_moment_changes_no_verdict_and_no_instant(
    where: tuple[Rules, int], seed: int, chance: float
) -> None:
    """The gap is not drawn again, the bucket not filled again, the counts are the ledger's."""
    rules, start_at = where
    plain = played(rules, start_at, seed, number=25)
    crashes = random.Random(seed + 1)
    rng = random.Random(seed)
    letters = letters_from(start_at, 25, rng)
    restarted = Player(rules, plain.policy, start_at, letters, rng)
    restarted.play(between=lambda lane: lane.restart() if crashes.random() < chance else None)
    assert restarted.trace == plain.trace
    assert [sent.at for sent in restarted.sends] == [sent.at for sent in plain.sends]


@settings(max_examples=120)
@given(rules_around_changes(), seeds)
def test_every_wait_is_as_short_as_it_can_be(where: tuple[Rules, int], seed: int) -> None:
    """Nothing is wasted: one microsecond earlier some gate is shut, and at the instant none is."""
    rules, start_at = where
    player = played(rules, start_at, seed, number=12)
    rng = random.Random(seed)
    for letter in letters_from(start_at, 4, rng):
        ask, usage, now = letter.ask(), player.usage, player.now
        verdict = player.pacer.verdict(now, usage, ask)
        assert player.pacer.verdict(now, usage, ask) == verdict
        if isinstance(verdict, Wait) and verdict.until_at is not None:
            for earlier_at in (verdict.until_at - 1, rng.randrange(now, verdict.until_at)):
                if earlier_at > now:
                    early = player.pacer.verdict(earlier_at, usage, ask)
                    assert isinstance(early, Wait) and early.until_at == verdict.until_at
            assert player.pacer.verdict(verdict.until_at, usage, ask) == Go()


@given(rules_around_changes(), seeds, st.integers(0, 3 * HOUR), st.integers(0, 3 * HOUR))
def test_gates_that_need_not_be_asked_would_change_nothing(
    where: tuple[Rules, int], seed: int, ahead_us: int, held_us: int
) -> None:
    """A message without times of its own is asked of its account's limits alone."""
    rules, start_at = where
    player = played(rules, start_at, seed, number=12)
    pacer, now = player.pacer, player.now
    held = player.usage._replace(hold_until_at=now + held_us)
    newcomers = player.usage._replace(holds=NO_HOLDS.newcomers(now + held_us, "asked to"))
    for letter in letters_from(start_at, 3, random.Random(seed)):
        full = letter.ask()
        plain = full._replace(expires_at=None, window=None, opens_at=None, closes_at=None)
        plain = plain._replace(recipient_hours=None, not_before_at=now + ahead_us)
        asks = [full, plain, plain._replace(not_before_at=0), plain._replace(known=False)]
        asks += [asks[2]._replace(**one) for one in own_times(now + ahead_us)]
        for ask, usage in product(asks, (player.usage, held, newcomers)):
            verdict = pacer.verdict(now, usage, ask)
            with mock.patch.object(Pacer, "_to_ask", lambda pacer, *asked: pacer._gates):
                assert pacer.verdict(now, usage, ask) == verdict


def own_times(at: int) -> list[dict[str, Any]]:
    return [{"suppressed": True}, {"expires_at": at}, {"opens_at": at}, {"closes_at": at}]


@given(rules_around_changes(), seeds, st.lists(st.integers(-3 * HOUR, 200 * HOUR), min_size=6))
def test_every_gate_is_monotone_and_stays_open_once_it_is(
    where: tuple[Rules, int], seed: int, offsets: list[int]
) -> None:
    rules, start_at = where
    player = played(rules, start_at, seed, number=12)
    every = (*gates.DELIVERY_GATES, *gates.account_gates(player.policy, player.pacer.standing))
    instants = sorted(player.now + offset for offset in offsets)
    window = player.policy.hours
    for letter in letters_from(start_at, 2, random.Random(seed)):
        ask = letter.ask()._replace(window=window, recipient_hours=window)
        for gate in every:
            opens = [gate.earliest(at, player.usage, ask) for at in instants]
            assert opens == sorted(opens), gate.name
            for at, opens_at in zip(instants, opens, strict=True):
                assert opens_at >= at, gate.name
                if opens_at < gates.NEVER:
                    assert gate.earliest(opens_at, player.usage, ask) == opens_at, gate.name


@given(st.integers(1, 10), st.integers(1, 90 * SECOND), st.integers(1, 5), seeds)
def test_a_lane_limited_only_by_its_rate_wastes_nothing(
    count: int, per_us: int, burst: int, seed: int
) -> None:
    """After its burst, exactly one send per interval; a drained bucket refills at its rate."""
    rules = Rules(rate=(count, max(per_us, count), burst))
    letters = [Letter(due_at=MONDAY_AT) for _ in range(20)]
    player = Player(rules, policy_of(rules), MONDAY_AT, letters, random.Random(seed))
    player.kinds, player.latency_us = [OutcomeKind.ACCEPTED], 0
    player.play()
    interval_us = -(-max(per_us, count) // count)
    late = [max(0, number - burst + 1) * interval_us for number in range(20)]
    assert [sent.at - MONDAY_AT for sent in player.sends] == late


@given(st.integers(1, 60), st.integers(2, 6), st.integers(0, 20))
def test_a_bucket_drained_refills_at_its_rate(seconds: int, burst: int, rest: int) -> None:
    """After so many intervals of rest so many tokens are back, and never more than the burst."""
    interval_us = seconds * SECOND
    rules = Rules(rate=(1, interval_us, burst))
    first = [Letter(due_at=MONDAY_AT) for _ in range(burst)]
    later_at = MONDAY_AT + rest * interval_us
    second = [Letter(due_at=later_at) for _ in range(burst + 3)]
    player = Player(rules, policy_of(rules), MONDAY_AT, first + second, random.Random(1))
    player.kinds, player.latency_us = [OutcomeKind.ACCEPTED], 0
    player.play()
    at_once = [sent for sent in player.sends[burst:] if sent.at == later_at]
    assert len([sent for sent in player.sends[:burst] if sent.at == MONDAY_AT]) == burst
    assert len(at_once) == min(rest, burst)


# ---------------------------------------------------------------------- the judge bites


@contextmanager
def broken(gate: type) -> Iterator[None]:
    """The gate never shuts."""
    with mock.patch.object(gate, "earliest", lambda self, at, usage, ask: at):
        yield


OFFICE = tuple(((540, 600),) if number < 5 else () for number in range(7))
STRICT = {
    gates.RateGate: Rules(rate=(1, MINUTE, 2)),
    gates.SpacingGate: Rules(low_us=MINUTE, high_us=2 * MINUTE),
    gates.BatchGate: Rules(low_us=SECOND, high_us=SECOND, batch=(3, HOUR)),
    gates.DailyGate: Rules(daily={"message": 3, "email": 3}, zone="Asia/Tokyo"),
    gates.WeeklyGate: Rules(weekly={"message": 5, "email": 5}, zone="Asia/Tokyo"),
    gates.HoursGate: Rules(week=OFFICE, zone="America/New_York"),
    gates.HoldGate: Rules(),
}


@pytest.mark.parametrize("gate", STRICT, ids=lambda gate: gate.__name__)
def test_the_judge_sees_when_a_gate_is_broken(gate: type) -> None:
    rules = STRICT[gate]

    def judged() -> list[str]:
        rng = random.Random(5)
        letters = letters_from(MONDAY_AT, 60, rng, parts=1)
        player = Player(rules, policy_of(rules), MONDAY_AT, letters, rng, latency_us=0)
        player.play()
        return naive.problems(player.sends, rules, player.settled, player.holds)

    assert judged() == []
    with broken(gate):
        assert judged() != []


def test_the_judge_knows_hours_and_warm_up_by_itself() -> None:
    rules = Rules(week=OFFICE, zone="America/New_York", warmup=(1, 100, 8))
    sent = naive.Sent(MONDAY_AT, MONDAY_AT, MONDAY_AT, "message", False, True, 1, 0)
    (early,) = naive.problems([sent], replace(rules, warmup=None))
    assert early == "sent at Mon 06:00:00, out of hours"
    fitting = replace(sent, at=MONDAY_AT + 3 * HOUR)
    assert naive.problems([fitting], replace(rules, warmup=None)) == []
    warm = replace(rules, warm_since_at=MONDAY_AT)
    (over,) = naive.problems([fitting, replace(fitting, at=fitting.at + 1)], warm)
    assert over == "2 of 1 message in the day of 2026-02-16"
