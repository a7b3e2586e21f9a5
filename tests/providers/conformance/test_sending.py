"""Texts and files reach the other side as they were given, and a file is handed over once."""

from __future__ import annotations

import pytest

from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Driver, Media, Prompt, Uploaded
from tests.providers.conformance.case import CONTENT, Case, Stage
from tests.providers.conformance.cases import CASES

PAPER = Media("a" * 64, "offer “1”.pdf", "application/pdf", len(CONTENT))


async def hand_over(driver: Driver) -> str:
    uploaded = await driver.upload(PAPER, CONTENT)
    assert isinstance(uploaded, Uploaded), uploaded
    return uploaded.handle


def test_a_text_is_accepted_and_arrives(stage: Stage) -> None:
    outcome = stage.play(lambda driver: driver.send(stage.message()))
    assert outcome.kind is OutcomeKind.ACCEPTED
    (seen,) = stage.sent()
    assert (seen.target, seen.text, seen.file) == (stage.message().target, "Hello", None)
    assert seen.key in (None, "home-7-0")


def test_every_message_is_one_of_its_own(stage: Stage) -> None:
    async def scene(driver: Driver) -> list[Outcome]:
        return [await driver.send(stage.message(f"home-{n}-0")) for n in range(3)]

    outcomes = stage.play(scene)
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.ACCEPTED] * 3
    assert len({outcome.provider_id for outcome in outcomes}) == 3
    assert len(stage.sent()) == 3


def test_one_that_is_begun_without_waiting_arrives_once(stage: Stage) -> None:
    """A driver that can do so need not do so every time; then it is sent as usual."""
    message = stage.message()

    async def scene(driver: Driver) -> Outcome:
        call = driver.begin(message) if isinstance(driver, Prompt) else None
        outcome = None if call is None else await call
        return outcome or await driver.send(message)

    assert stage.play(scene).kind is OutcomeKind.ACCEPTED
    assert [seen.text for seen in stage.sent()] == ["Hello"]


def test_one_that_was_called_off_can_be_sent(stage: Stage) -> None:
    """It may have been out by then. Nothing of it comes later, and nothing that was said to it is
    taken for an answer to what follows."""

    async def scene(driver: Driver) -> list[Outcome]:
        if isinstance(driver, Prompt):
            call = driver.begin(stage.message("home-1-0", "Before"))
            if call is not None:
                call.cancel()
                assert call.done()
        return [await driver.send(stage.message(f"home-{n}-0")) for n in (2, 3)]

    outcomes = stage.play(scene)
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.ACCEPTED] * 2
    texts = [seen.text for seen in stage.sent()]
    assert texts[-2:] == ["Hello"] * 2 and len(texts) <= 3


def test_a_file_is_uploaded_once_and_sent_many_times(shelf: Stage) -> None:
    async def scene(driver: Driver) -> None:
        handle = await hand_over(driver)
        for number in range(3):
            outcome = await driver.send(shelf.message(f"home-{number}-0", handle=handle))
            assert outcome.kind is OutcomeKind.ACCEPTED, outcome

    shelf.play(scene)
    assert [seen.file for seen in shelf.sent()] == [CONTENT] * 3
    assert shelf.uploads() <= 1


def test_a_handle_survives_the_process_or_is_said_to_be_gone(shelf: Stage) -> None:
    """What the engine does with that: it uploads again at once, and no retry is used up."""
    handle = shelf.play(hand_over)
    shelf.restart()

    async def scene(driver: Driver) -> None:
        outcome = await driver.send(shelf.message(handle=handle))
        if outcome.kind is not OutcomeKind.ACCEPTED:
            assert outcome.handle_gone, outcome
            outcome = await driver.send(shelf.message(handle=await hand_over(driver)))
        assert outcome.kind is OutcomeKind.ACCEPTED

    shelf.play(scene)
    assert [seen.file for seen in shelf.sent()] == [CONTENT]


def test_a_file_that_is_gone_is_said_to_be_and_can_be_uploaded_anew(shelf: Stage) -> None:
    handle = shelf.play(hand_over)
    shelf.forget_uploads()

    async def scene(driver: Driver) -> None:
        outcome = await driver.send(shelf.message(handle=handle))
        assert outcome.handle_gone, outcome
        again = await driver.send(shelf.message(handle=await hand_over(driver)))
        assert again.kind is OutcomeKind.ACCEPTED

    shelf.play(scene)
    assert [seen.file for seen in shelf.sent()] == [CONTENT]


def test_the_same_file_twice_is_one_handle_or_two(shelf: Stage) -> None:
    """After a crash the same file may be handed over again; both handles are good."""

    async def scene(driver: Driver) -> None:
        for number, handle in enumerate([await hand_over(driver), await hand_over(driver)]):
            outcome = await driver.send(shelf.message(f"home-{number}-0", handle=handle))
            assert outcome.kind is OutcomeKind.ACCEPTED, outcome

    shelf.play(scene)
    assert [seen.file for seen in shelf.sent()] == [CONTENT] * 2


@pytest.mark.parametrize("case", [case for case in CASES if not case.media], ids=str)
def test_a_file_that_cannot_be_sent_is_refused(case: Case) -> None:
    with case.stage() as stage:

        async def scene(driver: Driver) -> list[Uploaded | Outcome]:
            sent = stage.message(handle="made-up")
            return [await driver.upload(PAPER, CONTENT), await driver.send(sent)]

        for refused in stage.play(scene):
            assert isinstance(refused, Outcome) and refused.kind is OutcomeKind.REJECTED
        assert not stage.sent()


def test_what_it_can_send_is_what_it_says(case: Case, stage: Stage) -> None:
    able = stage.provider.capabilities_of(stage.settings)
    assert (able.actions, able.media) == (case.actions, case.media)
    odd = stage.message()._replace(action="fax")
    outcome = stage.play(lambda driver: driver.send(odd))
    assert outcome.kind is OutcomeKind.REJECTED
    assert not stage.sent()
