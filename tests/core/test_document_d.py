"""The eight correctness properties of document D, each under the name it has there.

Properties of one rule are judged by arithmetic of their own; properties of whole campaigns by
random runs of the real engine in virtual time, with the provider's own log as the witness.
"""

import random
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paceline.core.errors import InputError
from paceline.core.grammar import Ladder
from paceline.core.health import Window, adapted_gap_us
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.model import Ask
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.plan import Queue, Seat, Want, lay_out
from paceline.core.policy import Policy
from paceline.core.presets import preset
from paceline.core.retry import consequence
from paceline.core.states import DeliveryState
from paceline.engine.commands.control import resolve_unknown
from paceline.engine.ports import Tx
from tests.engine.scenes import (
    deliveries,
    in_state,
    say,
)
from tests.engine.world import Process, World

NOW = 1_771_239_600_000_000  # Monday 2026-02-16 11:00 UTC
LEAST_US, MOST_US = 2 * SECOND, 10 * SECOND
THRESHOLD = Fraction(5, 100)
UNSENT = (DeliveryState.PLANNED, DeliveryState.READY, DeliveryState.SENDING)

a_campaign = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**32)


def campaign_policy(spacing_us: int) -> dict[str, Any]:
    return preset("campaign-whatsapp") | {"spacing": f"{spacing_us}us"}


def play(seed: int, script: Any, **settings: Any) -> None:
    """One random campaign from beginning to end, in a world of its own."""
    with TemporaryDirectory() as folder:
        world = World(f"sqlite:///{Path(folder) / 'd.db'}")
        world.play(lambda world: script(world, random.Random(seed), **settings))


def moods(rng: random.Random) -> dict[str, Any]:
    """A provider that refuses, bounces, throttles, is away and loses answers, each now and then."""
    return {
        "seed": rng.randrange(1000),
        "latency": "10ms..2s",
        "reject_rate": rng.choice((0, 0.1)),
        "bounce_rate": rng.choice((0, 0.05)),
        "transient_rate": rng.choice((0, 0.2)),
        "throttle_rate": rng.choice((0, 0.05)),
        "unavailable_rate": rng.choice((0, 0.05)),
        "lost_rate": rng.choice((0, 0.1)),
        "timeout_rate": rng.choice((0, 0.05)),
        "timeout_latency": "3s",
        "retry_after": "5s",
    }


POLICY = {"spacing": "2s..4s", "batch": "5 then 10s", "retry": "3s doubling", "bounce_pause": "off"}


# ---------------------------------------------------------------------- Property 1


@given(st.integers(1, 20 * SECOND))
def test_property_1_configuration_validation(delay_us: int) -> None:
    """A delay from 2 to 10 seconds is accepted, any other is refused."""
    if LEAST_US <= delay_us <= MOST_US:
        policy = Policy.from_mapping(campaign_policy(delay_us))
        assert policy.spacing is not None
        assert (policy.spacing.low_us, policy.spacing.high_us) == (delay_us, delay_us)
    else:
        with pytest.raises(InputError, match=r"outside adaptive bounds 2s\.\.10s"):
            Policy.from_mapping(campaign_policy(delay_us))


@pytest.mark.parametrize("delay_us", [LEAST_US - 1, MOST_US + 1])
def test_property_1_at_its_edges(delay_us: int) -> None:
    with pytest.raises(InputError, match="outside adaptive bounds"):
        Policy.from_mapping(campaign_policy(delay_us))
    inside = delay_us + 1 if delay_us < LEAST_US else delay_us - 1
    Policy.from_mapping(campaign_policy(inside))


# ---------------------------------------------------------------------- Property 2


@given(st.integers(LEAST_US, MOST_US), st.integers(0, 100), st.integers(0, 100))
def test_property_2_adaptive_rate_limiting(base_us: int, sent: int, failed: int) -> None:
    """Above 5 % of errors the delay is exactly 50 % longer, and never above 10 seconds."""
    sent = min(sent, 100 - failed)
    window = Window()
    for outcome in [True] * failed + [False] * sent:
        window = window.push(outcome)
    policy = Policy.from_mapping(campaign_policy(base_us))
    total = sent + failed
    high = total > 0 and Fraction(failed, total) > THRESHOLD
    half_more_us = -(-base_us * 3 // 2)
    wanted_us = min(half_more_us, MOST_US) if high else base_us
    assert adapted_gap_us(policy, base_us, window) == wanted_us


def test_property_2_does_not_compound() -> None:
    policy = Policy.from_mapping(campaign_policy(3 * SECOND))
    window = Window()
    for _ in range(50):
        window = window.push(True)
        assert adapted_gap_us(policy, 3 * SECOND, window) == 4_500_000
    for _ in range(95):
        window = window.push(False)
    assert adapted_gap_us(policy, 3 * SECOND, window) == 3 * SECOND, "and it ends with the errors"


# ---------------------------------------------------------------------- Property 3


def lasts_us(n: int, b: int, d_us: int, p_us: int) -> int:
    """How long a campaign takes, laid out by the planner before a single message is sent."""
    body = campaign_policy(d_us) | {"batch": f"{b} then {p_us}us"}
    wants = [Want(key, Ask(run_id=1)) for key in range(n)]
    queue = Queue(1, (True, 0, 0), wants, (1,))
    layout = lay_out([Seat(1, Policy.from_mapping(body))], [queue], NOW, random.Random(1))
    return layout.slots[-1].done_at - NOW


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 600),
    st.integers(1, 100),
    st.integers(LEAST_US, MOST_US),
    st.integers(SECOND, 2 * MINUTE),
)
def test_property_3_completion_time_estimation(n: int, b: int, d_us: int, p_us: int) -> None:
    """The estimate is within 10 % of N x D + (N / B) x P. Of fewer than ten batches the last pause
    alone may be more than that; then it is within one D + P, as the design settles it."""
    formula_us = n * d_us + Fraction(n, b) * p_us
    off_us = abs(lasts_us(n, b, d_us, p_us) - formula_us)
    assert off_us <= (formula_us / 10 if n >= 10 * b else d_us + p_us)


@pytest.mark.parametrize(
    ("b", "d_s", "p_s", "told_s"), [(50, 5, 60, 6140), (75, 3, 30, 3390)], ids=["before", "after"]
)
def test_property_3_in_the_numbers_of_the_document(b: int, d_s: int, p_s: int, told_s: int) -> None:
    """1000 messages: 1 h 42 at 5 s/50/60 s, 56 min at 3 s/75/30 s, to within one delay."""
    took_us = lasts_us(1000, b, d_s * SECOND, p_s * SECOND)
    assert abs(took_us - told_s * SECOND) <= d_s * SECOND


# ---------------------------------------------------------------------- Property 4


async def _finish(world: World, processes: list[Process]) -> None:
    """Put right what stopped by itself, and settle doubts truly, until all is over."""
    for _ in range(600):
        if world.state() == "paused":
            say(world, "resume campaign")
        for lost in in_state(world, DeliveryState.UNKNOWN):
            if lost.due_at is None:
                went_out = f"test-{lost.id}-0" in {effect.key for effect in world.sends()}
                _resolve(world, lost.id, went_out=went_out)
        if world.state() == "finished" and not any(in_state(world, s) for s in UNSENT):
            break
        await world.wait(10 * SECOND)
    assert world.state() == "finished", world.counts()
    for process in processes:
        await process.stop()


def _resolve(world: World, delivery_id: int, *, went_out: bool) -> None:
    verdict: Any = "sent" if went_out else "resend"
    world.write(lambda tx: resolve_unknown(tx, delivery_id, verdict, world.clock.now()))


async def _interrupted(world: World, rng: random.Random) -> None:
    world.account(policy=POLICY, **moods(rng))
    world.campaign(rng.randint(5, 25))
    processes = [world.process("first")]
    for number in range(rng.randint(1, 5)):
        await world.wait(rng.randint(1, 30 * SECOND))
        settled = {
            row.id: row.state
            for row in deliveries(world)
            if row.state in (DeliveryState.SENT, DeliveryState.FAILED, DeliveryState.BOUNCED)
        }
        before = len(world.calls())
        if rng.random() < 0.5:
            await processes.pop().kill()
            await world.wait(rng.randint(0, 40 * SECOND))
            processes.append(world.process(f"next {number}"))
        elif world.state() == "running":
            say(world, "pause campaign")
            await world.wait(rng.randint(0, 40 * SECOND))
            if world.state() == "paused":  # else what was on its way was all that was left
                say(world, "resume campaign")
        await world.wait(5 * SECOND)
        again = {int(effect.key.split("-")[1]) for effect in world.calls()[before:]}
        assert not again & set(settled), "what was settled is not processed again"
    await _finish(world, processes)
    log = [effect.key for effect in world.sends()]
    assert len(log) == len(set(log)), "nobody is written to twice"
    sent = {f"test-{row.id}-0" for row in in_state(world, DeliveryState.SENT)}
    assert sent == set(log)


@a_campaign
@given(seeds)
def test_property_4_campaign_resume_after_interruption(seed: int) -> None:
    """Killed or paused at any moment and resumed: only what was pending is processed, and nothing
    is sent twice."""
    play(seed, _interrupted)


# ---------------------------------------------------------------------- Property 6


def _nudge(tx: Tx, run_id: int, now: int) -> None:
    tx.lanes.touch_run(run_id, now)
    tx.deliveries.release(run_id, now, now)


async def _asked_often(world: World, rng: random.Random) -> None:
    """Several processes that all want the same messages sent, and are told so again and again."""
    world.account(policy=POLICY | {"concurrency": 3}, **moods(rng))
    campaign = world.campaign(rng.randint(3, 15))
    processes = [world.process(f"process {n}") for n in range(rng.randint(1, 3))]
    for _ in range(rng.randint(5, 20)):
        await world.wait(rng.randint(1, 5 * SECOND))
        now = world.clock.now()
        for run in world.read(lambda tx: tx.runs.of_campaign(campaign.id)):
            # Every lane is told to look again; and what is waiting is released once more.
            world.write(partial(_nudge, run_id=run.id, now=now))
    await _finish(world, processes)
    log = [effect.key for effect in world.sends()]
    assert len(log) == len(set(log))
    for row in deliveries(world):
        times = log.count(f"test-{row.id}-0")
        assert times == (1 if row.state is DeliveryState.SENT else 0), row


@a_campaign
@given(seeds)
def test_property_6_idempotency_guarantee(seed: int) -> None:
    """However often and by whomever a message is asked to be sent, the provider takes it once."""
    play(seed, _asked_often)


# ---------------------------------------------------------------------- Property 7


@given(st.integers(SECOND, HOUR), st.integers(1, 10))
def test_property_7_exponential_backoff_retry(base_us: int, retries: int) -> None:
    """Retry N comes after base x 2^(N-1), and there is none after the last."""
    ladder = Ladder.doubled(base_us, retries)
    policy = Policy(retry=ladder)
    failed = Outcome(OutcomeKind.TRANSIENT, "timed out")
    for n in range(1, retries + 1):
        result = consequence(failed, retries=n - 1, setbacks=0, policy=policy, now=NOW)
        assert (result.event, result.climbs) == ("retry", True)
        assert result.due_at == NOW + base_us * 2 ** (n - 1)
    last = consequence(failed, retries=retries, setbacks=0, policy=policy, now=NOW)
    assert last.event == "fail"


def test_property_7_in_the_preset_of_the_document() -> None:
    ladder = Policy.from_mapping(preset("campaign-whatsapp")).retry
    assert [delay_us // SECOND for delay_us in ladder.delays_us] == [3, 6, 12]


# ---------------------------------------------------------------------- Property 8


async def _always_adds_up(world: World, rng: random.Random) -> None:
    world.account(policy=POLICY | {"breaker": {"above": "60%"}}, **moods(rng))
    total = rng.randint(5, 30)
    world.campaign(total)
    process = world.process()
    commands = ("pause campaign", "resume campaign")
    for _ in range(40):
        await world.wait(rng.randint(1, 4 * SECOND))
        if rng.random() < 0.1:
            possible = commands[world.state() == "paused"]
            if world.state() in ("running", "paused"):
                say(world, possible)
        counts = world.counts()
        sent, failed = counts.pop("sent", 0), counts.pop("failed", 0) + counts.pop("bounced", 0)
        pending = sum(counts.values())
        assert sent + failed + pending == total
        # And these are no mere numbers: each is that of the deliveries themselves.
        rows = deliveries(world)
        assert len(rows) == total
        assert sent == sum(row.state is DeliveryState.SENT for row in rows)
    await _finish(world, [process])
    assert sum(world.counts().values()) == total


@a_campaign
@given(seeds)
def test_property_8_progress_tracking_consistency(seed: int) -> None:
    """Sent, failed and pending add up to the recipients, whenever one looks."""
    play(seed, _always_adds_up)
