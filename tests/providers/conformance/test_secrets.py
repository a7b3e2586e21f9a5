"""Nobody sees a key: not in reasons, errors, representations, nor in the log of any library."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
import structlog

from paceline.core.errors import InputError, PacelineError
from paceline.engine.ports import Driver, Media
from tests.providers import stage as stages
from tests.providers.conformance.case import CONTENT, LOSSES, Case, Stage
from tests.providers.conformance.cases import CASES
from tests.providers.conformance.web import WebStage
from tests.providers.loopback import said

KEYED = [case for case in CASES if case.secret and case.speaks_http]


def told(stage: Stage, act: Callable[[Stage], None], *, hasty: bool) -> list[str]:
    """All that a driver says while this is done to it: outcomes, errors, and of itself."""
    words: list[str] = []

    async def scene(driver: Driver) -> None:
        words.extend((repr(driver), str(driver), repr(stage.provider)))
        act(stage)
        words.append(repr(await driver.send(stage.message())))
        words.append(repr(await driver.upload(Media("a" * 64, "x", "text/plain", 1), CONTENT)))
        words.append(repr(await driver.find(stage.message(), stage.now())))

    try:
        stage.play(scene, hasty=hasty)
    except PacelineError as error:
        words.extend((str(error), repr(error), repr(error.__cause__)))
    return words


def assert_untold(case: Case, words: list[str]) -> None:
    assert words and case.secret is not None
    for text in words:
        assert case.secret not in text, text
        assert case.secret[:6] not in text, text


@pytest.fixture
def overheard(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """Everything that is logged, by us and by the libraries, on the lowest level there is."""
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as events:
        yield lambda: [*map(repr, events), *(record.getMessage() for record in caplog.records)]


@pytest.mark.parametrize("case", KEYED, ids=str)
def test_no_loss_gives_it_away(case: Case, overheard: Callable[[], list[str]]) -> None:
    for name in sorted(case.losses):
        loss = LOSSES[name]
        with case.stage() as stage:
            assert_untold(case, told(stage, lambda s, x=loss: s.lose(x), hasty=loss.silent))  # type: ignore[misc]
    heard = overheard()
    assert any("http" in line.lower() for line in heard), "nothing was heard, so nothing is shown"
    assert_untold(case, heard)


@pytest.mark.parametrize("case", KEYED, ids=str)
def test_no_refusal_gives_it_away(case: Case, overheard: Callable[[], list[str]]) -> None:
    """Some servers repeat what they were sent."""
    assert case.secret is not None
    answers = []
    for status in (200, 400, 401, 404, 409, 429, 500, 503):
        for padding in (0, 270, 290):
            echo = "." * padding + f" {case.secret} is not a key"
            body = {"status": status, "title": "Bad", "detail": echo, "message": echo}
            answers.append(said(status, {**body, "error": {"code": 100, "message": echo}}))
    words: list[str] = []
    with case.stage() as stage:
        assert isinstance(stage, WebStage)
        web = stage

        async def scene(driver: Driver) -> None:
            web.script(*answers)
            for number in range(len(answers)):
                words.append(repr(await driver.send(web.message(f"home-{number}-0"))))

        web.play(scene)
    assert len(words) == len(answers)
    assert_untold(case, words)
    assert_untold(case, overheard())


@pytest.mark.parametrize("case", KEYED, ids=str)
def test_an_account_that_cannot_be_opened_does_not_give_it_away(
    case: Case, overheard: Callable[[], list[str]]
) -> None:
    with case.stage() as stage:
        assert isinstance(stage, WebStage)
        stage.fake.leave()
        assert_untold(case, told(stage, lambda _: None, hasty=False))
        key = next(name for name, value in stage.settings.items() if value == case.secret)
        assert key in stage.provider.secrets
        for bad in ({"nonsense": case.secret}, {key: f"{case.secret} {case.secret}"}, {key: 7}):
            with pytest.raises(InputError) as refused:
                stage.provider.check({**stage.settings, **bad})
            assert_untold(case, [str(refused.value), repr(refused.value)])
        assert_untold(case, [repr(stages.account("sales", **stage.settings))])
    assert_untold(case, overheard())


@pytest.mark.parametrize("case", KEYED, ids=str)
def test_it_may_live_in_the_environment(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    assert case.secret is not None
    with case.stage() as stage:
        assert isinstance(stage, WebStage)
        key = next(name for name, value in stage.settings.items() if value == case.secret)
        stage.settings = {**stage.settings, key: "env:CONFORMANCE_KEY"}
        assert stage.provider.check(stage.settings)[key] == "env:CONFORMANCE_KEY"
        monkeypatch.delenv("CONFORMANCE_KEY", raising=False)
        with pytest.raises(PacelineError, match="CONFORMANCE_KEY holds no API key"):
            stage.play(_nothing)
        monkeypatch.setenv("CONFORMANCE_KEY", case.secret)
        stage.play(_nothing)


async def _nothing(driver: Driver) -> None:
    """Open, and close again."""
