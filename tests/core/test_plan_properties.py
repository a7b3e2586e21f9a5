"""No plan breaks a rule, loses anybody or names anybody twice, whatever is to be planned.

``naive.py`` judges the slots: it counts by the wall clock and shares no line with what it judges.
"""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core import gates
from paceline.core import usage as usages
from paceline.core.durations import Chance
from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Ask, Standing
from paceline.core.plan import Layout, Queue, Seat, Want, lay_out
from paceline.core.policy import Policy
from paceline.core.usage import Usage
from tests.core import naive
from tests.core.naive import Rules, Sent
from tests.core.playing import policy_of, rules_around_changes

FAR = 1 << 62
MONDAY_AT = 1_771_239_600_000_000  # 2026-02-16 11:00 UTC

seeds = st.integers(0, 2**32)


@st.composite
def asks(draw: st.DrawFn, start_at: int, run_id: int) -> Ask:
    later_us = draw(st.sampled_from([0, 0, 0, 5 * MINUTE, 3 * HOUR, 2 * DAY]))
    hours = draw(st.sampled_from([None, None, None, "10:00-14:00 UTC", "Mon-Fri 20:00-22:00 UTC"]))
    expires_us = draw(st.sampled_from([None, None, None, 2 * HOUR, 3 * DAY]))
    return Ask(
        action=draw(st.sampled_from(["message", "message", "email"])),
        parts=draw(st.sampled_from([1, 1, 1, 2, 3])),
        run_id=run_id,
        not_before_at=start_at + later_us,
        expires_at=None if expires_us is None else start_at + later_us + expires_us,
        suppressed=draw(st.sampled_from([False] * 9 + [True])),
        recipient_hours=None if hours is None else Hours.parse(hours),
    )


@st.composite
def queues_from(draw: st.DrawFn, start_at: int, accounts: int) -> list[Queue]:
    """A few runs; each belongs to one account, or to all of them together."""
    made = []
    for run_id in range(1, draw(st.integers(1, 4)) + 1):
        wants = [
            Want(key, ask, f"person-{key}")
            for key, ask in enumerate(draw(st.lists(asks(start_at, run_id), max_size=12)))
        ]
        for key in draw(st.sets(st.integers(1, 11), max_size=4)):
            if key < len(wants):
                after_us = draw(st.sampled_from([0, MINUTE, DAY]))
                wants[key] = wants[key]._replace(follows=key - 1, after_us=after_us)
        everybody = tuple(range(1, accounts + 1))
        whose = draw(st.sampled_from([everybody, *((number,) for number in everybody)]))
        rank = (run_id != 4, -draw(st.integers(0, 1)), FAR)
        made.append(Queue(run_id, rank, wants, whose))
    return made


@contextmanager
def watched() -> Iterator[dict[int, list[Sent]]]:
    """Every part that the planner spends, by the policy of its account: one object each."""
    sends: dict[int, list[Sent]] = {}
    spend, spend_part = usages.spend, usages.spend_part

    def note(policy: Policy, ask: Ask, at: int, starts: bool, after: Usage) -> Usage:
        sent = Sent(at, at, at, ask.counted_as, ask.reply, starts, ask.run_id, after.gap_us)
        sends.setdefault(id(policy), []).append(sent)
        return after

    def starting(usage: Usage, policy: Policy, ask: Ask, at: int, rng: Chance) -> Usage:
        with mock.patch.object(usages, "spend_part", spend_part):
            after = spend(usage, policy, ask, at, rng)
        return note(policy, ask, at, True, after)

    def following(usage: Usage, policy: Policy, ask: Ask, at: int) -> Usage:
        return note(policy, ask, at, False, spend_part(usage, policy, ask, at))

    with (
        mock.patch.object(usages, "spend", starting),
        mock.patch.object(usages, "spend_part", following),
    ):
        yield sends


def laid(
    rules: Rules, start_at: int, queues: list[Queue], seed: int, accounts: int = 2
) -> tuple[Layout, list[list[Sent]]]:
    """The layout, and what each account has sent for it."""
    standing = Standing(warm_since_at=rules.warm_since_at)
    # Equal policies, but each a value of its own, so that they can be told apart.
    limits = [policy_of(rules, concurrency=2, part_gap="0s..2s") for _ in range(accounts)]
    seats = [Seat(number, policy, standing) for number, policy in enumerate(limits, start=1)]
    with watched() as sends:
        layout = lay_out(seats, queues, start_at, random.Random(seed))
    return layout, [sends.get(id(policy), []) for policy in limits]


@settings(max_examples=150)
@given(rules_around_changes(), st.data(), seeds)
def test_every_slot_is_legal_and_nobody_is_lost_or_named_twice(
    where: tuple[Rules, int], data: st.DataObject, seed: int
) -> None:
    rules, start_at = where
    queues = data.draw(queues_from(start_at, accounts=2))
    layout, sent = laid(rules, start_at, queues, seed)
    for sends in sent:
        assert naive.problems(sends, rules) == []
    wanted = Counter((queue.run_id, want.key) for queue in queues for want in queue.wants)
    found = [(slot.run_id, slot.key) for slot in layout.slots]
    found += [(never.run_id, never.key) for never in layout.nevers]
    assert Counter(found) == wanted
    asked = {(q.run_id, w.key): (q, w.ask) for q in queues for w in q.wants}
    for slot in layout.slots:
        queue, ask = asked[slot.run_id, slot.key]
        assert slot.account_id in queue.accounts
        assert ask.not_before_at <= slot.at <= slot.done_at
        assert not ask.suppressed
        assert ask.expires_at is None or slot.at < ask.expires_at
        assert ask.recipient_hours is None or ask.recipient_hours.is_open(slot.at)
    gone = {(slot.run_id, slot.key): slot for slot in layout.slots}
    for (run_id, key), slot in gone.items():
        want = next(w for w in asked[run_id, key][0].wants if w.key == key)
        if want.follows is not None:
            assert slot.at >= gone[run_id, want.follows].done_at + want.after_us
    assert [slot.at for slot in layout.slots] == sorted(slot.at for slot in layout.slots)
    assert (layout, sent) == laid(rules, start_at, queues, seed), "the same seed, the same plan"


@settings(max_examples=100)
@given(rules_around_changes(), st.integers(1, 3), st.integers(0, 40), seeds)
def test_the_order_of_a_queue_is_kept_unless_somebody_steps_aside(
    where: tuple[Rules, int], runs: int, number: int, seed: int
) -> None:
    rules, start_at = where
    queues = []
    for run_id in range(1, runs + 1):
        ask = Ask(run_id=run_id, not_before_at=start_at)
        wants = [Want(key, ask) for key in range(number)]
        queues.append(Queue(run_id, (True, 0, FAR), wants, (1, 2)))
    layout, _ = laid(rules, start_at, queues, seed)
    for run_id in range(1, runs + 1):
        keys = [slot.key for slot in layout.slots if slot.run_id == run_id]
        assert keys == sorted(keys)


@given(
    st.integers(1, 400),
    st.integers(1, 30),
    st.sampled_from([SECOND, 2 * SECOND, 5 * SECOND, MINUTE]),
    st.sampled_from([SECOND, 30 * SECOND, 60 * SECOND, 10 * MINUTE]),
)
def test_the_estimate_keeps_document_d_s_rule(n: int, b: int, d_us: int, p_us: int) -> None:
    """N·D + (N/B)·P: within 10 % for ten batches and more, else within one D + P."""
    policy = Policy.from_mapping({"spacing": f"{d_us}us", "batch": f"{b} then {p_us}us"})
    wants = [Want(key, Ask(run_id=1)) for key in range(n)]
    queue = Queue(1, (True, 0, FAR), wants, (1,))
    layout = lay_out([Seat(1, policy)], [queue], MONDAY_AT, random.Random(1))
    lasts_us = layout.slots[-1].done_at - MONDAY_AT
    formula_us = n * d_us + n * p_us / b
    if n >= 10 * b:
        assert abs(lasts_us - formula_us) <= formula_us / 10
    else:
        assert abs(lasts_us - formula_us) <= d_us + p_us


def test_the_judge_would_see_a_plan_that_breaks_a_rule() -> None:
    """The same judge, over a planner whose gates do not shut."""
    office = tuple(((540, 600),) if number < 5 else () for number in range(7))
    strict = {
        gates.RateGate: Rules(rate=(1, MINUTE, 2)),
        gates.SpacingGate: Rules(low_us=MINUTE, high_us=2 * MINUTE),
        gates.BatchGate: Rules(low_us=SECOND, high_us=SECOND, batch=(3, HOUR)),
        gates.DailyGate: Rules(daily={"message": 3}, zone="Asia/Tokyo"),
        gates.WeeklyGate: Rules(weekly={"message": 5}, zone="Asia/Tokyo"),
        gates.HoursGate: Rules(week=office, zone="America/New_York"),
    }
    wants = [Want(key, Ask(run_id=1)) for key in range(30)]
    queues = [Queue(1, (True, 0, FAR), wants, (1,))]
    for gate, rules in strict.items():
        _, (sends,) = laid(rules, MONDAY_AT, queues, 1, accounts=1)
        assert len(sends) == 30 and naive.problems(sends, rules) == []
        with mock.patch.object(gate, "earliest", lambda self, at, usage, ask: at):
            _, (sends,) = laid(rules, MONDAY_AT, queues, 1, accounts=1)
        assert naive.problems(sends, rules) != [], gate.__name__
