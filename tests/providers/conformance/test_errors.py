"""The error table: every row of it answered by the other side, and read as it says."""

from __future__ import annotations

import pytest

from paceline.core.outcome import REFUSALS, Outcome, OutcomeKind
from paceline.engine.ports import Driver
from tests.providers.conformance.case import Case
from tests.providers.conformance.cases import CASES
from tests.providers.conformance.web import WebStage
from tests.providers.loopback import JSON, Scripted

K = OutcomeKind
WEB = [case for case in CASES if case.speaks_http]
ROWS = [(case, row) for case in CASES for row in case.rows]


def play_row(case: Case, row: str) -> tuple[Outcome, int]:
    with case.stage() as stage:

        async def scene(driver: Driver) -> Outcome:
            stage.answer(row)
            return await driver.send(stage.message())

        outcome = stage.play(scene)
        return outcome, len(stage.sent())


@pytest.mark.parametrize(("case", "row"), ROWS, ids=str)
def test_every_row_is_answered_as_it_says(case: Case, row: str) -> None:
    outcome, sent = play_row(case, row)
    assert outcome.kind is case.rows[row], outcome
    if outcome.kind is not K.ACCEPTED:
        assert outcome.reason and "\n" not in outcome.reason
    if outcome.kind in REFUSALS:
        assert sent == 0, "a refusal that was none"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_table_knows_what_any_provider_may_say(case: Case) -> None:
    """Refused for good, too fast, away, and not let in: each has other consequences."""
    assert set(case.rows.values()) >= {K.REJECTED, K.THROTTLED, K.UNAVAILABLE, K.UNAUTHORISED}


def web_stage(case: Case, *answers: Scripted) -> list[Outcome]:
    """What sends come to when somebody answers like this."""
    with case.stage() as stage:
        assert isinstance(stage, WebStage)
        web = stage

        async def scene(driver: Driver) -> list[Outcome]:
            web.script(*answers)
            return [await driver.send(web.message(f"home-{n}-0")) for n in range(len(answers))]

        return web.play(scene)


@pytest.mark.parametrize("case", WEB, ids=str)
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, K.UNAUTHORISED),
        (403, K.TRANSIENT),
        (404, K.TRANSIENT),
        (413, K.REJECTED),
        (429, K.THROTTLED),
        (502, K.UNKNOWN),
        (503, K.UNAVAILABLE),
        (504, K.UNKNOWN),
        (520, K.UNKNOWN),
        (302, K.TRANSIENT),
        (200, K.UNKNOWN),
        (204, K.UNKNOWN),
    ],
)
def test_a_page_of_somebody_in_between(case: Case, status: int, kind: OutcomeKind) -> None:
    """Nobody is given up for the words of a proxy, and a yes of one is no yes."""
    body = b"" if status == 204 else b"<html><h1>Oh</h1></html>"
    (outcome,) = web_stage(case, Scripted(status, body, {"Content-Type": "text/html"}))
    assert outcome.kind is (case.shut_out if status == 401 else kind), outcome
    assert outcome.reason


@pytest.mark.parametrize("case", WEB, ids=str)
def test_whatever_is_answered_is_an_outcome(case: Case) -> None:
    bodies = (b"", b"{", b"\x00\xff", b"[1]", b"null", b"[" * 50_000, b'{"id":' + b"9" * 5_000)
    statuses = (200, 201, 299, 300, 304, 400, 404, 409, 418, 422, 500, 505, 511, 599)
    answers = [
        Scripted(status, b"" if status == 304 else body, JSON)
        for status in statuses
        for body in bodies
    ]
    for outcome in web_stage(case, *answers):
        assert isinstance(outcome, Outcome)
        assert outcome.kind is not K.ACCEPTED and "\n" not in outcome.reason


@pytest.mark.parametrize("case", WEB, ids=str)
def test_how_long_to_wait(case: Case) -> None:
    asked = {**JSON, "Retry-After": "90"}
    nonsense = {**JSON, "Retry-After": "soon"}
    outcomes = web_stage(
        case,
        Scripted(429, b"{}", asked),
        Scripted(503, b"", asked),
        Scripted(429, b"{}", nonsense),
        Scripted(400, b"{}", asked),
    )
    assert [outcome.retry_after_us for outcome in outcomes] == [90_000_000, 90_000_000, None, None]


@pytest.mark.parametrize("case", WEB, ids=str)
def test_an_endless_answer_is_cut_short(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.providers.http.MOST_BODY", 10_000)
    (outcome,) = web_stage(case, Scripted(200, b" " * 300_000 + b'{"id": "x"}', JSON))
    assert outcome.kind is K.UNKNOWN
