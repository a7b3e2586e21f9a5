"""The error table against the wire facts, and whose fault a refusal was."""

import re
from pathlib import Path

import pytest

from paceline.core.instants import SECOND, parse_instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.retry import consequence
from paceline.core.signals import DEFAULT_SIGNALS
from paceline.engine.ports import Driver
from paceline.providers.answers import Answer
from paceline.providers.wassenger.errors import BY_STATUS, ERRORS, TABLE, read_refusal
from tests.providers.loopback import HTML, Scripted, said
from tests.providers.wassenger.fake import DEVICE, PHONE, FakeWassenger, error
from tests.providers.wassenger.stage import message, picture, play, send

K = OutcomeKind
NOW = parse_instant("2026-11-15T09:00:00Z")
PAGE = Path(__file__).parents[3] / "docs" / "providers" / "wassenger.md"

# As the wire facts list them.
FACTS = {
    401: K.UNAUTHORISED,
    404: K.REJECTED,
    409: K.TRANSIENT,
    429: K.THROTTLED,
    503: K.UNAVAILABLE,
    502: K.UNKNOWN,
    504: K.UNKNOWN,
}


def test_the_table_has_everything_that_is_known() -> None:
    assert {status: TABLE.kind_of(status, "") for status in FACTS} == FACTS
    assert len(TABLE.by_code) == len(ERRORS), "a code is listed twice"
    assert TABLE.kind_of(500, "") is K.UNKNOWN, "it is handed to WhatsApp while the call lasts"


def test_the_page_shows_the_whole_table() -> None:
    text = PAGE.read_text()
    codes = re.findall(r"^\| (\d{3}) \| `(\w+)` \| (\w+) \|", text, re.M)
    assert codes == [(str(row.status), row.code, row.kind.value) for row in ERRORS]
    statuses = re.findall(r"^\| (\d{3}) \|  \| (\w+) \|", text, re.M)
    assert statuses == [(str(status), kind.value) for status, kind in BY_STATUS.items()]


@pytest.mark.parametrize(
    ("status", "code", "wait_us"),
    [(429, "", 60 * SECOND), (503, "device_not_connected", 20 * SECOND)],
)
def test_how_long_is_waited_where_nobody_says(status: int, code: str, wait_us: int) -> None:
    """A minute after too fast, twenty seconds for a phone that is away; longer if it goes on."""
    scripted = error(status, code)
    outcome = read_refusal(Answer(status, {}, scripted.body), NOW)
    assert outcome.retry_after_us is None
    rule = DEFAULT_SIGNALS.rule_for("wassenger", "message", outcome)
    result = consequence(outcome, retries=0, setbacks=0, policy=Policy(), now=NOW, rule=rule)
    assert (result.event, result.hold_until_at) == ("retry", NOW + wait_us)
    assert result.slows == (status == 429)


def test_the_code_decides_before_the_status(fake: FakeWassenger) -> None:
    assert send(fake, message(), error(400, "rate_limit_exceeded")).kind is K.THROTTLED
    assert send(fake, message(), error(502, "device_not_connected")).kind is K.UNAVAILABLE
    named = said(400, {"status": 400, "error": "message_too_long"})
    assert send(fake, message(), named).code == "message_too_long"


def test_the_body_s_status_decides_before_that_of_http(fake: FakeWassenger) -> None:
    assert send(fake, message(), said(502, {"status": 429, "message": "x"})).kind is K.THROTTLED
    assert send(fake, message(), said(400, {"status": "401"})).kind is K.REJECTED
    assert send(fake, message(), said(400, {"status": True})).kind is K.REJECTED


def test_a_gateway_that_gave_up_leaves_a_doubt(fake: FakeWassenger) -> None:
    for status in (500, 502, 504, 524):
        page = Scripted(status, b"<html>Gateway</html>", HTML, takes=True)
        assert send(fake, message(), page).kind is K.UNKNOWN


# ---------------------------------------------------------------------- whose fault it was


def test_a_person_who_is_not_on_whatsapp_bounces(fake: FakeWassenger) -> None:
    fake.strangers.add(PHONE)
    outcome = send(fake, message())
    assert (outcome.kind, outcome.code) == (K.BOUNCED, "not_on_whatsapp")
    assert not fake.messages


def test_one_who_is_there_and_cannot_be_reached_does_not(fake: FakeWassenger) -> None:
    outcome = send(fake, message(), error(404))
    assert (outcome.kind, outcome.code) == (K.REJECTED, "http-404")


@pytest.mark.parametrize(
    "told", [said(429, {"status": 429}), said(200, {}), Scripted(502, b"<html>", HTML)]
)
def test_whoever_is_not_known_to_be_missing_is_not_called_so(
    fake: FakeWassenger, told: Scripted
) -> None:
    fake.strangers.add(PHONE)
    fake.answers["/numbers/exists"] = told
    assert send(fake, message()).kind is K.REJECTED


@pytest.mark.parametrize(
    ("told", "kind", "reason"),
    [
        (
            said(404, {"status": 404, "message": "Device not found"}),
            K.UNAUTHORISED,
            "no such device",
        ),
        (said(401, {"status": 401, "message": "Bad token"}), K.UNAUTHORISED, "token refused"),
        (said(200, {"status": "disabled"}), K.UNAUTHORISED, "not operative"),
        (said(200, {"session": {"status": "unauthorized"}}), K.UNAUTHORISED, "not paired"),
        (said(200, {"session": {"status": "offline"}}), K.TRANSIENT, "Told in words: 404."),
        (Scripted(502, b"<html>", HTML), K.TRANSIENT, "Told in words: 404."),
        (Scripted(drops="read"), K.TRANSIENT, "Told in words: 404."),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_device_in_trouble_costs_nobody_their_message(
    fake: FakeWassenger, told: Scripted, kind: OutcomeKind, reason: str
) -> None:
    """It was there when the account was opened, and is not when the message is sent."""

    async def scene(driver: Driver) -> Outcome:
        fake.script.append(error(404))
        fake.answers[f"/devices/{DEVICE}"] = told
        return await driver.send(message())

    outcome = play(fake.settings(), scene)
    assert outcome.kind is kind and reason in outcome.reason


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_file_that_is_gone_is_found_out_by_asking(fake: FakeWassenger, status: int) -> None:
    outcome = send(fake, picture("f1"), error(status))
    assert outcome.handle_gone and outcome.code == "media-unknown"
    kept = {"id": "f2", "content": b"x", "expiresAt": "2026-11-15T08:00:00Z"}
    fake.files["f2"] = kept | {"expiresAt": "2020-01-01T00:00:00.000Z"}
    assert send(fake, picture("f2"), error(status)).handle_gone, "it is kept no longer"
    fake.files["f2"] = kept | {"expiresAt": "2999-01-01T00:00:00.000Z"}
    assert send(fake, picture("f2"), error(status)).code == f"http-{status}"


def test_what_cannot_be_found_out_is_tried_again(fake: FakeWassenger) -> None:
    for told in (Scripted(502, b"<html>", HTML), Scripted(drops="read"), Scripted(404, b"", HTML)):
        fake.answers["/files/f1"] = told
        outcome = send(fake, picture("f1"), error(400))
        assert (outcome.kind, outcome.code) == (K.TRANSIENT, "http-400")


def test_a_question_takes_no_longer_than_it_may(
    fake: FakeWassenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message was refused already; it must not fall into doubt because nobody says why."""
    monkeypatch.setattr("paceline.providers.wassenger.driver.ASK_WITHIN_S", 0.2)
    fake.answers["/files/f1"] = Scripted(hangs=True)
    assert send(fake, picture("f1"), error(400)).kind is K.TRANSIENT


def test_a_conflict_may_be_with_this_very_message(fake: FakeWassenger) -> None:
    """Should the gateway know our name of a message again, it went out before."""
    first = send(fake, message())
    again = send(fake, message(), error(409))
    assert again == Outcome(K.ACCEPTED, code="duplicate", provider_id=first.provider_id)
    other = send(fake, message(key="home-8-0"), error(409))
    assert (other.kind, other.code) == (K.TRANSIENT, "http-409")
    fake.answers["/messages"] = Scripted(502, b"<html>", HTML)
    assert send(fake, message(), error(409)).kind is K.TRANSIENT
