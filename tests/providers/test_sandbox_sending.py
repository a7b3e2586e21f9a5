"""The sandbox answers as its settings, its addresses and its seed say, and records what it did."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paceline.core.errors import ProviderError
from paceline.core.instants import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Message
from paceline.providers.sandbox import FileEffects, MemoryEffects
from tests.providers.stage import START, Stage, message

A = OutcomeKind


def kinds(outcomes: list[Outcome]) -> list[OutcomeKind]:
    return [outcome.kind for outcome in outcomes]


def many(count: int) -> list[Message]:
    return [message(f"k{n}", f"contact{n}@example.com") for n in range(1, count + 1)]


def test_an_accepted_send_is_on_record() -> None:
    stage = Stage()
    (outcome,) = stage.send_all([message("k1", "anna@example.com", text="hello", action="email")])
    (effect,) = stage.effects.all()
    assert outcome.kind is A.ACCEPTED
    assert outcome.provider_id == effect.provider_id == "sandbox-1b313d79ef21beed4df4"
    assert (effect.kind, effect.account, effect.address) == ("send", "first", "first@example.com")
    assert (effect.key, effect.target, effect.action) == ("k1", "anna@example.com", "email")
    assert (effect.called_at, effect.at) == (START, START)
    assert (effect.answer, effect.accepted, effect.attempt) == ("accepted", True, 1)
    assert (effect.part.kind, effect.part.size) == ("text", 5)


def test_a_call_takes_its_latency_and_acts_within_it() -> None:
    stage = Stage()

    async def scene() -> list[tuple[int, int]]:
        driver = await stage.open(latency="20ms..80ms")
        times = []
        for each in many(40):
            called_at = stage.clock.now()
            await driver.send(each)
            times.append((called_at, stage.clock.now()))
        return times

    times = stage.play(scene)
    latencies = [answered_at - called_at for called_at, answered_at in times]
    assert all(20 * MILLISECOND <= latency <= 80 * MILLISECOND for latency in latencies)
    assert len(set(latencies)) > 30
    for effect, (called_at, answered_at) in zip(stage.effects.all(), times, strict=True):
        assert effect.called_at == called_at
        assert called_at <= effect.at <= answered_at


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_luck_does_not_depend_on_order_or_company(kind: str, tmp_path: Any) -> None:
    rates: dict[str, Any] = {
        "bounce_rate": 0.2,
        "transient_rate": 0.3,
        "latency": "1ms..9ms",
        "seed": 3,
    }

    def luck(name: str, messages: list[Message], together: bool) -> dict[str, tuple[Any, ...]]:
        effects = MemoryEffects() if kind == "memory" else FileEffects(tmp_path / name)
        stage = Stage(effects)

        async def scene() -> None:
            driver = await stage.open(**rates)
            if together:
                await asyncio.gather(*(driver.send(each) for each in messages))
            else:
                for each in messages:
                    await driver.send(each)

        stage.play(scene)
        return {e.key: (e.answer, e.at - e.called_at, e.provider_id) for e in stage.effects.all()}

    messages = many(60)
    forwards = luck("forwards", messages, together=False)
    assert luck("backwards", messages[::-1], together=False) == forwards
    assert luck("together", messages, together=True) == forwards
    assert {answer for answer, _, _ in forwards.values()} == {"accepted", "bounced", "transient"}


def test_another_seed_name_or_attempt_is_another_luck() -> None:
    def answers(name: str, seed: int, times: int = 1) -> list[str]:
        stage = Stage()

        async def scene() -> None:
            driver = await stage.open(name, seed=seed, transient_rate=0.5)
            for each in many(40) * times:
                await driver.send(each)

        stage.play(scene)
        return [e.answer for e in stage.effects.all()]

    assert answers("first", 1) == answers("first", 1)
    assert answers("first", 1) != answers("first", 2)
    assert answers("first", 1) != answers("second", 1)
    both = answers("first", 1, times=2)
    assert both[:40] != both[40:]


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_luck_does_not_depend_on_the_hash_seed(hash_seed: str) -> None:
    def luck() -> list[str]:
        outcomes = Stage().send_all(many(30), bounce_rate="30%", seed=5)
        return [f"{outcome.kind} {outcome.provider_id}" for outcome in outcomes]

    script = (
        "from tests.providers.test_sandbox_sending import *\n"
        "for o in Stage().send_all(many(30), bounce_rate='30%', seed=5):\n"
        "    print(o.kind, o.provider_id)"
    )
    root = str(Path(__file__).resolve().parents[2])
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": root}
    printed = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert printed.stdout.splitlines() == luck()


def test_rates_are_about_kept() -> None:
    outcomes = Stage().send_all(many(2000), bounce_rate="5%", reject_rate="10%", seed=11)
    found = kinds(outcomes)
    assert 70 <= found.count(A.BOUNCED) <= 130
    assert 150 <= found.count(A.REJECTED) <= 250


@pytest.mark.parametrize(
    ("fate", "kind", "held"),
    [
        ("bounce", A.BOUNCED, False),
        ("reject", A.REJECTED, False),
        ("transient", A.TRANSIENT, False),
        ("throttle", A.THROTTLED, False),
        ("unavailable", A.UNAVAILABLE, False),
        ("timeout", A.UNKNOWN, True),
        ("lost", A.UNKNOWN, False),
    ],
)
def test_every_fate_can_be_drawn_numbered_or_addressed(
    fate: str, kind: OutcomeKind, held: bool
) -> None:
    drawn, numbered, addressed = Stage(), Stage(), Stage()
    assert kinds(drawn.send_all(many(2), **{f"{fate}_rate": 1})) == [kind, kind]
    assert kinds(numbered.send_all(many(3), **{f"{fate}_at": [2]})) == [
        A.ACCEPTED, kind, A.ACCEPTED,
    ]  # fmt: skip
    assert kinds(addressed.send_all([message("k1", f"{fate}@example.com")])) == [kind]
    for stage, place in ((drawn, 0), (numbered, 1), (addressed, 0)):
        assert stage.effects.all()[place].accepted is held


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("bounce@example.com", [A.BOUNCED, A.BOUNCED]),
        ("anna+Bounce2@example.com", [A.BOUNCED, A.BOUNCED]),
        ("bounce-3", [A.BOUNCED, A.BOUNCED]),
        ("transient@example.com", [A.TRANSIENT, A.TRANSIENT]),
        ("flaky@example.com", [A.TRANSIENT, A.ACCEPTED]),
        ("throttle@example.com", [A.THROTTLED, A.ACCEPTED]),
        ("unavailable@example.com", [A.UNAVAILABLE, A.ACCEPTED]),
        ("exhausted@example.com", [A.EXHAUSTED, A.ACCEPTED]),
        ("ban@example.com", [A.BANNED, A.ACCEPTED]),
        ("unauthorised@example.com", [A.UNAUTHORISED, A.ACCEPTED]),
        ("lost@example.com", [A.UNKNOWN, A.ACCEPTED]),
        ("slow@example.com", [A.ACCEPTED, A.ACCEPTED]),
        ("bouncer@example.com", [A.ACCEPTED, A.ACCEPTED]),
        ("anna.bounce@example.com", [A.ACCEPTED, A.ACCEPTED]),
        ("anna@bounce.example.com", [A.ACCEPTED, A.ACCEPTED]),
    ],
)
def test_addresses_with_a_meaning(target: str, expected: list[OutcomeKind]) -> None:
    assert kinds(Stage().send_all([message("k1", target), message("k1", target)])) == expected


@pytest.mark.parametrize(("word", "held"), [("timeout", True), ("lost", False)])
def test_a_timeout_hangs_whether_or_not_it_happened(word: str, held: bool) -> None:
    stage = Stage()
    stage.send_all([message("k1", f"{word}@example.com")], timeout_latency="45s")

    async def scene() -> tuple[Outcome, int]:
        numbered: dict[str, Any] = {f"{word}_at": [2]}
        driver = await stage.open(timeout_latency="45s", **numbered)
        outcome = await driver.send(message("k2"))
        return outcome, stage.clock.now()

    outcome, answered_at = stage.play(scene)
    assert outcome == Outcome(A.UNKNOWN, reason="no answer within 45s")
    assert answered_at == START + 45 * SECOND
    effect = stage.effects.all()[-1]
    assert (effect.at, effect.accepted, effect.provider_id is not None) == (START, held, held)


def test_slow_is_accepted_late() -> None:
    stage = Stage()

    async def scene() -> int:
        driver = await stage.open()
        await driver.send(message("k1", "slow@example.com"))
        return stage.clock.now()

    assert stage.play(scene) == START + 30 * SECOND


def test_a_throttle_says_how_long_unless_told_not_to() -> None:
    (told,) = Stage().send_all(many(1), throttle_at=[1], retry_after="7s")
    (untold,) = Stage().send_all(many(1), throttle_at=[1], retry_after="none")
    assert told.retry_after_us == 7 * SECOND
    assert untold.retry_after_us is None


def test_every_so_many_sends_one_is_throttled() -> None:
    found = kinds(Stage().send_all(many(9), throttle_every=4))
    assert [n for n, kind in enumerate(found, 1) if kind is A.THROTTLED] == [4, 8]


def test_a_minute_s_quota_throttles_until_there_is_room() -> None:
    stage = Stage()

    async def scene() -> list[Outcome]:
        driver = await stage.open(quota_per_minute=2)
        outcomes = [await driver.send(message("a"))]
        await stage.clock.sleep_until(START + 20 * SECOND + 1)
        outcomes += [await driver.send(message("b")), await driver.send(message("c"))]
        await stage.clock.sleep_until(START + MINUTE)
        outcomes += [await driver.send(message("c")), await driver.send(message("d"))]
        return outcomes

    outcomes = stage.play(scene)
    assert kinds(outcomes) == [A.ACCEPTED, A.ACCEPTED, A.THROTTLED, A.ACCEPTED, A.THROTTLED]
    assert outcomes[2].retry_after_us == 40 * SECOND
    assert outcomes[4].retry_after_us == 21 * SECOND


def test_a_day_s_quota_is_exhausted_until_midnight() -> None:
    stage = Stage()

    async def scene() -> list[Outcome]:
        driver = await stage.open(quota_per_day=2)
        outcomes = [await driver.send(each) for each in many(3)]
        await stage.clock.sleep_until(START // DAY * DAY + DAY)
        return [*outcomes, await driver.send(message("k3"))]

    assert kinds(stage.play(scene)) == [A.ACCEPTED, A.ACCEPTED, A.EXHAUSTED, A.ACCEPTED]


def test_a_ban_without_an_end() -> None:
    outcomes = Stage().send_all(many(4), ban_after=2)
    assert kinds(outcomes) == [A.ACCEPTED, A.ACCEPTED, A.BANNED, A.BANNED]
    assert outcomes[-1].retry_after_us is None


def test_a_ban_with_an_end_begins_again_after_as_many_sends() -> None:
    stage = Stage()

    async def scene() -> list[Outcome]:
        driver = await stage.open(ban_after=2, ban_for="1h")
        outcomes = [await driver.send(each) for each in many(3)]
        await stage.clock.sleep_until(START + 10 * MINUTE)
        outcomes.append(await driver.send(message("again")))
        await stage.clock.sleep_until(START + HOUR)
        return outcomes + [await driver.send(each) for each in many(3)]

    outcomes = stage.play(scene)
    A2 = [A.ACCEPTED, A.ACCEPTED]
    assert kinds(outcomes) == [*A2, A.BANNED, A.BANNED, *A2, A.BANNED]
    waits = [outcomes[n].retry_after_us for n in (2, 3, 6)]
    assert waits == [HOUR, 50 * MINUTE, HOUR]


def test_an_address_that_bans_is_no_lasting_ban() -> None:
    found = Stage().send_all([message("k1", "ban@example.com"), message("k2")], ban_for="2h")
    assert kinds(found) == [A.BANNED, A.ACCEPTED]
    assert found[0].retry_after_us == 2 * HOUR


def test_credentials_that_turn_bad() -> None:
    found = kinds(Stage().send_all(many(3), unauthorised_after=2))
    assert found == [A.ACCEPTED, A.ACCEPTED, A.UNAUTHORISED]


def test_an_outage_refuses_everything_while_it_lasts() -> None:
    stage = Stage()

    async def scene() -> list[Outcome]:
        driver = await stage.open(unavailable=["2026-11-15T09:01Z..2026-11-15T09:02Z"])
        outcomes = []
        for second in (0, 60, 119, 120):
            await stage.clock.sleep_until(START + second * SECOND)
            outcomes.append(await driver.send(message(f"k{second}")))
        return outcomes

    found = kinds(stage.play(scene))
    assert found == [A.ACCEPTED, A.UNAVAILABLE, A.UNAVAILABLE, A.ACCEPTED]


def test_an_action_nobody_knows_is_refused() -> None:
    (outcome,) = Stage().send_all([message(action="telegram")])
    assert (outcome.kind, outcome.code) == (A.REJECTED, "action")


def test_the_same_key_twice_is_delivered_twice() -> None:
    stage = Stage()
    first, second = stage.send_all([message("k1"), message("k1")])
    assert kinds([first, second]) == [A.ACCEPTED, A.ACCEPTED]
    assert first.provider_id != second.provider_id
    assert [(e.key, e.attempt) for e in stage.accepted()] == [("k1", 1), ("k1", 2)]


def test_a_provider_that_tells_duplicates_keeps_the_first() -> None:
    stage = Stage()
    first, second, other = stage.send_all(
        [message("k1"), message("k1"), message("k2")], deduplicates=True
    )
    assert second.kind is A.ACCEPTED
    assert second.provider_id == first.provider_id != other.provider_id
    assert [e.key for e in stage.accepted()] == ["k1", "k2"]
    assert [e.code for e in stage.effects.all()] == ["", "duplicate", ""]


async def cancelled_after(stage: Stage, moment_us: int, key: str) -> None:
    driver = await stage.open(latency="10s")
    call = asyncio.create_task(driver.send(message(key)))
    await stage.clock.sleep_until(stage.clock.now() + moment_us)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


def test_cancelling_before_the_effect_leaves_none_and_after_it_cannot_take_it_back() -> None:
    probe = Stage()
    probe.send_all([message("k1")], latency="10s")
    (effect,) = probe.effects.all()
    acts_after_us = effect.at - effect.called_at
    assert 1 < acts_after_us < 10 * SECOND - 1

    before, after = Stage(), Stage()
    before.play(lambda: cancelled_after(before, acts_after_us - 1, "k1"))
    after.play(lambda: cancelled_after(after, acts_after_us + 1, "k1"))
    assert before.effects.all() == []
    assert [e.key for e in after.accepted()] == ["k1"]


def test_a_closed_account_sends_nothing() -> None:
    stage = Stage()

    async def scene() -> None:
        driver = await stage.open()
        await driver.close()
        with pytest.raises(ProviderError, match="first has been closed"):
            await driver.send(message())

    stage.play(scene)
    assert stage.effects.all() == []
