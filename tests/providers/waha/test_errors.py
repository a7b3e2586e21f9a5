"""The error table against the wire facts, and what a 404 is about."""

import re
from pathlib import Path

import pytest

from paceline.core.instants import SECOND, parse_instant
from paceline.core.outcome import REFUSALS, Outcome, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.retry import consequence
from paceline.core.signals import DEFAULT_SIGNALS
from paceline.engine.ports import Driver
from paceline.providers.answers import Answer
from paceline.providers.waha.errors import BY_STATUS, ERRORS, TABLE, WORDS, read_refusal
from tests.providers.loopback import HTML, Scripted, said
from tests.providers.waha.fake import (
    SESSION,
    STATES,
    FakeWaha,
    answer_of,
    error,
    failure,
    not_working,
)
from tests.providers.waha.stage import message, play, send

K = OutcomeKind
NOW = parse_instant("2026-11-15T09:00:00Z")
PAGE = Path(__file__).parents[3] / "docs" / "providers" / "waha.md"

# As the wire facts list them.
FACTS = {
    401: K.UNAUTHORISED,
    404: K.TRANSIENT,
    422: K.REJECTED,
    429: K.THROTTLED,
    500: K.UNKNOWN,
    502: K.UNKNOWN,
    504: K.UNKNOWN,
    503: K.UNAVAILABLE,
}


def read(scripted: Scripted, engine: str = "") -> Outcome:
    return read_refusal(Answer(scripted.status, {}, scripted.body), NOW, engine)


def test_the_table_has_everything_that_is_known() -> None:
    assert {status: TABLE.kind_of(status, "") for status in FACTS} == FACTS
    assert len(TABLE.by_code) == len(ERRORS), "a code is listed twice"
    assert set(WORDS.values()) <= set(TABLE.by_code)
    for state in STATES:
        assert f"session-{state.lower().replace('_', '-')}" in TABLE.by_code


def test_the_page_shows_the_whole_table() -> None:
    text = PAGE.read_text()
    codes = re.findall(r"^\| (\d{3}) \| `([\w-]+)` \| (\w+) \|", text, re.M)
    assert codes == [(str(row.status), row.code, row.kind.value) for row in ERRORS]
    statuses = re.findall(r"^\| (\d{3}) \|  \| (\w+) \|", text, re.M)
    assert statuses == [(str(status), kind.value) for status, kind in BY_STATUS.items()]


@pytest.mark.parametrize(
    ("scripted", "wait_us"), [(error(429), 60 * SECOND), (not_working("STARTING"), 20 * SECOND)]
)
def test_how_long_is_waited_where_nobody_says(scripted: Scripted, wait_us: int) -> None:
    """A minute after too fast, twenty seconds for a session that is away; longer if it goes on."""
    outcome = read(scripted)
    assert outcome.retry_after_us is None
    rule = DEFAULT_SIGNALS.rule_for("waha", "message", outcome)
    result = consequence(outcome, retries=0, setbacks=0, policy=Policy(), now=NOW, rule=rule)
    assert (result.event, result.hold_until_at) == ("retry", NOW + wait_us)
    assert result.slows == (scripted.status == 429)


@pytest.mark.parametrize(
    ("state", "kind", "reason"),
    [
        ("STARTING", K.UNAVAILABLE, "offline: WAHA says the session is 'STARTING'"),
        ("STOPPED", K.UNAVAILABLE, "offline: WAHA says the session is 'STOPPED'; start it in WAHA"),
        ("BRAND_NEW", K.UNAVAILABLE, "Session status is not as expected. Try again later"),
        ("WORKING", K.UNAVAILABLE, "Session status is not as expected. Try again later"),
        ("", K.UNAVAILABLE, "Session status is not as expected. Try again later"),
        ("SCAN_QR_CODE", K.UNAUTHORISED, "not paired: WAHA says the session is 'SCAN_QR_CODE'"),
        ("FAILED", K.UNAUTHORISED, "not paired: WAHA says the session is 'FAILED'"),
        ("PASSKEY_REQUIRED", K.UNAUTHORISED, "not paired: "),
    ],
)
def test_a_session_that_does_not_work_says_what_is_wrong(
    fake: FakeWaha, state: str, kind: OutcomeKind, reason: str
) -> None:
    """One that will come back is waited for; one that has to be paired suspends the account."""
    outcome = send(fake, message(), not_working(state))
    assert outcome.kind is kind and outcome.reason.startswith(reason)
    assert not fake.messages


def test_a_session_that_stops_between_opening_and_sending(fake: FakeWaha) -> None:
    async def scene(driver: Driver) -> Outcome:
        fake.state = "STARTING"
        return await driver.send(message())

    assert play(fake.settings(), scene).kind is K.UNAVAILABLE


def test_a_refusal_of_the_same_status_is_told_apart() -> None:
    assert read(said(422, {"status": "STOPPED", "message": "x"})).code == "http-422"
    assert read(said(422, {"status": "STOPPED", "expected": ["WORKING"]})).kind is K.UNAVAILABLE
    assert read(said(422, {"message": "caption is too long"})).kind is K.REJECTED


@pytest.mark.parametrize("number", [400, 401, 403, 404, 420, 429, 463, 500, 503, 479, 999])
def test_what_whatsapp_itself_refused_is_not_in_doubt(fake: FakeWaha, number: int) -> None:
    """With any number that it says no with, listed or not."""
    outcome = send(fake, message(), failure(f"server returned error {number}"))
    assert outcome.kind in REFUSALS and outcome.code == str(number)
    row = TABLE.by_code.get(str(number))
    assert outcome.kind is (row.kind if row else K.TRANSIENT)


def test_any_other_failure_of_the_engine_leaves_a_doubt(fake: FakeWaha) -> None:
    for words in ("timed out waiting for message send response", "Connection Closed", "14 x", ""):
        outcome = send(fake, message(), failure(words, takes=True))
        assert outcome.kind is K.UNKNOWN, words


def test_the_words_of_the_message_itself_decide_nothing(fake: FakeWaha) -> None:
    """A failure tells the request once more, and people write anything."""
    scripted = failure("who knows")
    body = scripted.body.replace(b'"Hello"', b'"No sessions: server returned error 404"')
    assert b"server returned error 404" in body
    outcome = send(fake, message(), Scripted(500, body, scripted.headers, takes=True))
    assert (outcome.kind, outcome.code) == (K.UNKNOWN, "http-500")
    assert outcome.reason == "2 UNKNOWN: who knows"


def test_a_gateway_that_gave_up_leaves_a_doubt(fake: FakeWaha) -> None:
    for status in (500, 502, 504, 524):
        page = Scripted(status, b"<html>Gateway</html>", HTML, takes=True)
        assert send(fake, message(), page).kind is K.UNKNOWN


def test_a_failed_browser_starts_again_by_itself() -> None:
    assert read(answer_of("session-failed"), "GOWS").kind is K.UNAUTHORISED
    outcome = read(answer_of("session-failed"), "WEBJS")
    assert outcome.kind is K.UNAVAILABLE and outcome.reason.startswith("offline: ")


# ---------------------------------------------------------------------- what a 404 is about


@pytest.mark.parametrize(
    ("state", "kind", "reason"),
    [
        ("WORKING", K.TRANSIENT, "Told in words: 404."),
        ("STOPPED", K.UNAVAILABLE, "shop: offline: WAHA says the session is 'STOPPED'"),
        ("SCAN_QR_CODE", K.UNAUTHORISED, "shop: not paired: "),
        (None, K.UNAUTHORISED, "shop: no such session: Session not found"),
    ],
)
def test_a_session_that_is_gone_costs_nobody_their_message(
    fake: FakeWaha, state: str | None, kind: OutcomeKind, reason: str
) -> None:
    """WAHA says the same of one that is stopped, so it is asked for."""

    async def scene(driver: Driver) -> Outcome:
        fake.script.append(error(404))
        fake.state = state
        return await driver.send(message())

    outcome = play(fake.settings(), scene)
    assert outcome.kind is kind and outcome.reason.startswith(reason)


def test_a_stopped_session_in_waha_s_own_words(fake: FakeWaha) -> None:
    async def scene(driver: Driver) -> Outcome:
        fake.state = "STOPPED"
        return await driver.send(message())

    assert play(fake.settings(), scene).kind is K.UNAVAILABLE
    assert not fake.messages


@pytest.mark.parametrize(
    "told", [Scripted(502, b"<html>", HTML), Scripted(drops="read"), Scripted(hangs=True)]
)
def test_what_cannot_be_found_out_is_tried_again(
    fake: FakeWaha, told: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it takes no longer than it may: the message was refused already."""
    monkeypatch.setattr("paceline.providers.waha.driver.ASK_WITHIN_S", 0.2)

    async def scene(driver: Driver) -> Outcome:
        fake.script.append(error(404))
        fake.answers[f"/sessions/{SESSION}"] = told
        return await driver.send(message())

    outcome = play(fake.settings(), scene)
    assert (outcome.kind, outcome.reason) == (K.TRANSIENT, "Told in words: 404.")
