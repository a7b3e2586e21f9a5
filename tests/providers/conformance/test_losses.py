"""Answers that never come: what is left behind, and what can be found out after a crash."""

from __future__ import annotations

import asyncio

import pytest

from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Capabilities, Driver, Found
from tests.providers.conformance.case import LOSSES, Case, Loss, Stage
from tests.providers.conformance.cases import CASES

PAIRS = [(case, LOSSES[name]) for case in CASES for name in sorted(case.losses)]
DOUBTS = [(case, loss) for case, loss in PAIRS if loss.kind is OutcomeKind.UNKNOWN]


def lose(stage: Stage, loss: Loss) -> Outcome:
    async def scene(driver: Driver) -> Outcome:
        stage.lose(loss)
        return await driver.send(stage.message())

    return stage.play(scene, hasty=loss.silent)


def expected(loss: Loss, able: Capabilities) -> str:
    """What a driver that is as good as its word finds."""
    if loss.takes:
        return "present" if able.finds else "unclear"
    return "absent" if able.proves_absence else "unclear"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_way_to_lose_an_answer_is_played(case: Case) -> None:
    assert case.losses <= set(LOSSES)
    kinds = {LOSSES[name].takes for name in case.losses}
    assert kinds == {True, False}, "both what went out and what did not must be tried"
    assert not case.speaks_http or case.losses == set(LOSSES)


@pytest.mark.parametrize(("case", "loss"), PAIRS, ids=lambda value: str(getattr(value, "name", "")))
def test_before_the_first_byte_it_is_safe_and_after_it_it_is_not(case: Case, loss: Loss) -> None:
    with case.stage() as stage:
        outcome = lose(stage, loss)
        assert outcome.kind is loss.kind, outcome
        assert outcome.reason
        assert len(stage.sent()) == loss.takes


@pytest.mark.parametrize(
    ("case", "loss"), DOUBTS, ids=lambda value: str(getattr(value, "name", ""))
)
def test_after_a_crash_it_is_found_as_the_capabilities_say(case: Case, loss: Loss) -> None:
    with case.stage() as stage:
        since_at = stage.now()
        assert lose(stage, loss).kind is OutcomeKind.UNKNOWN
        stage.restart()
        able = stage.provider.capabilities_of(stage.settings)
        sent = stage.message()
        found = stage.play(lambda driver: driver.find(sent, since_at))
        assert found.finding == expected(loss, able)
        assert len(stage.sent()) == loss.takes, "looking for a message must not send it"


def test_what_was_accepted_is_found_too(stage: Stage) -> None:
    """The answer came, and the process died before it could write it down."""
    since_at, sent = stage.now(), stage.message()
    accepted = stage.play(lambda driver: driver.send(sent))
    stage.restart()
    found = stage.play(lambda driver: driver.find(sent, since_at))
    if stage.provider.capabilities_of(stage.settings).finds:
        assert found == Found("present", accepted.provider_id)
    else:
        assert found == Found("unclear")


def test_another_message_is_not_this_one(stage: Stage) -> None:
    since_at = stage.now()
    stage.play(lambda driver: driver.send(stage.message("home-1-0", "Something else")))
    able = stage.provider.capabilities_of(stage.settings)
    sent = stage.message("home-2-0", "Hello")
    found = stage.play(lambda driver: driver.find(sent, since_at))
    assert found.finding == ("absent" if able.proves_absence else "unclear")


def test_not_being_told_is_no_answer(stage: Stage) -> None:
    since_at, sent = stage.now(), stage.message()
    stage.play(lambda driver: driver.send(sent))
    stage.mute()
    assert stage.play(lambda driver: driver.find(sent, since_at)) == Found("unclear")


def test_absence_is_proved_only_where_it_is_declared(stage: Stage) -> None:
    able = stage.provider.capabilities_of(stage.settings)
    assert able.finds or not able.proves_absence


@pytest.mark.parametrize("case", [case for case in CASES if case.speaks_http], ids=str)
def test_a_call_that_is_called_off_ends_and_the_next_one_works(case: Case) -> None:
    with case.stage() as stage:

        async def scene(driver: Driver) -> Outcome:
            stage.lose(LOSSES["silent, not taken"])
            call = asyncio.ensure_future(driver.send(stage.message()))
            fake = stage.fake  # type: ignore[attr-defined]
            before = len(fake.calls)
            assert await asyncio.to_thread(fake.await_calls, before + 1)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            return await driver.send(stage.message("home-8-0"))

        assert stage.play(scene).kind is OutcomeKind.ACCEPTED


@pytest.mark.parametrize("case", [case for case in CASES if case.speaks_http], ids=str)
def test_a_closed_account_writes_nothing(case: Case) -> None:
    with case.stage() as stage:

        async def scene(driver: Driver) -> Outcome:
            await driver.close()
            await driver.close()
            return await driver.send(stage.message())

        assert stage.play(scene).kind is OutcomeKind.TRANSIENT
        assert not stage.sent()
