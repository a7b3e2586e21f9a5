"""What the library's words mean: every row, and what is in none."""

import re
from pathlib import Path

import pytest

from paceline.core.instants import HOUR, parse_instant
from paceline.core.outcome import OutcomeKind
from paceline.providers.whatsapp import errors
from paceline.providers.whatsapp.errors import of_query, of_send, of_standing, of_upload, told
from paceline.providers.whatsapp.wire import Standing
from tests.providers.whatsapp.stage import brief

NOW = parse_instant("2026-11-15T09:00:00Z")
PAGE = Path(__file__).parents[3] / "docs" / "providers" / "whatsapp.md"

K = OutcomeKind

SENDS = [
    # Fetched beforehand: nothing was sent, whatever went wrong.
    ("failed to get group members: info query timed out", K.TRANSIENT, "timeout"),
    ("failed to get group members: websocket not connected", K.UNAVAILABLE, "not-connected"),
    (
        "failed to get device list: websocket disconnected before info query returned response",
        K.UNAVAILABLE,
        "disconnected",
    ),
    ("failed to get device list: database is locked", K.TRANSIENT, "failed"),
    ("failed to get group members: that group does not exist", K.REJECTED, "no-such-group"),
    (
        "failed to get group members: you're not participating in that group",
        K.REJECTED,
        "not-in-group",
    ),
    (
        "failed to get device list: info query returned status 429: rate-overlimit",
        K.THROTTLED,
        "rate-overlimit",
    ),
    ("failed to get LID for PN x: no LID found for x from server", K.REJECTED, "not-on-whatsapp"),
    ("failed to send message node: websocket not connected", K.UNAVAILABLE, "not-connected"),
    # The write itself failed: it may have got through all the same.
    ("failed to send message node: write tcp: broken pipe", K.UNKNOWN, ""),
    # The message was written.
    ("timed out waiting for message send response", K.UNKNOWN, "timeout"),
    (
        "websocket disconnected before message send returned response",
        K.UNKNOWN,
        "disconnected",
    ),
    # The same words as above, but said after the message was written once.
    ("websocket not connected", K.UNKNOWN, ""),
    ("info query timed out", K.UNKNOWN, ""),
    # WhatsApp said no.
    ("server returned error 429", K.THROTTLED, "429"),
    ("server returned error 400", K.TRANSIENT, "400"),
    ("server returned error 463", K.EXHAUSTED, "463"),
    ("server returned error 403", K.REJECTED, "403"),
    ("server returned error 479", K.TRANSIENT, "479"),
    ("server returned error 503", K.UNAVAILABLE, "503"),
    # Nothing can be sent at all.
    ("the store doesn't contain a device JID", K.UNAUTHORISED, "not-paired"),
    ("can't send message to unknown server broadcast", K.REJECTED, "target"),
    ("message recipient must be a user JID with no device part", K.REJECTED, "target"),
    (
        "can't encrypt message for device: no signal session established",
        K.TRANSIENT,
        "no-session",
    ),
    ("client is nil", K.UNAVAILABLE, "not-connected"),
    # Nobody knows what this is.
    ("proto: cannot parse invalid wire-format data", K.UNKNOWN, ""),
    ("", K.UNKNOWN, ""),
]


@pytest.mark.parametrize(("text", "kind", "code"), SENDS)
def test_what_becomes_of_a_message(text: str, kind: OutcomeKind, code: str) -> None:
    outcome = of_send(text)
    assert (outcome.kind, outcome.code) == (kind, code)
    assert text in outcome.reason


def test_every_row_is_tried() -> None:
    texts = [text for text, _, _ in SENDS]
    for row in (*errors.EVER, *errors.AFTER, *errors.BEFORE):
        assert any(row.says in text for text in texts), row


@pytest.mark.parametrize("text", [text for text, _, _ in SENDS])
def test_looking_something_up_leaves_nothing_in_doubt(text: str) -> None:
    assert of_query(text).refused


@pytest.mark.parametrize("number", errors.BY_NUMBER)
def test_whatsapps_numbers_are_answers(number: int) -> None:
    kind, means = errors.BY_NUMBER[number]
    for text in (f"server returned error {number}", f"info query returned status {number}: x"):
        outcome = of_send(text)
        assert (outcome.kind, outcome.code) == (kind, str(number))
        assert outcome.refused and outcome.reason.startswith(means)


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        *((f"upload failed with status code {n}", k, f"upload-{n}")
          for n, (k, _) in errors.BY_UPLOAD.items()),
        ("upload failed with status code 500", K.TRANSIENT, "upload-500"),
        ("failed to refresh media connections: info query timed out", K.TRANSIENT, "timeout"),
        ("failed to refresh media connections: websocket not connected", K.UNAVAILABLE,
         "not-connected"),
        ("failed to execute request: connection reset by peer", K.TRANSIENT, "failed"),
        ("rate-overlimit", K.THROTTLED, "rate-overlimit"),
    ],
)  # fmt: skip
def test_uploads(text: str, kind: OutcomeKind, code: str) -> None:
    assert brief(of_upload(text)) == (kind, code)


def test_reasons_are_one_line_and_not_too_long() -> None:
    reason = of_send("line\nbreak " + "x" * 1000).reason
    assert "\n" not in reason and len(reason) <= 300


def test_a_ban_says_until_when() -> None:
    ban = Standing("banned", errors.BANS[4], "temporary-ban", HOUR)
    outcome = of_standing(ban, NOW, NOW + HOUR, "team")
    assert outcome is not None
    assert (outcome.kind, outcome.code, outcome.retry_after_us) == (K.BANNED, "temporary-ban", HOUR)
    assert outcome.reason == (
        "banned by WhatsApp: sent the same message too often, until 2026-11-15T10:00:00Z"
    )


def test_who_is_ready_has_nothing_in_the_way() -> None:
    assert of_standing(Standing("ready"), NOW, None, "team") is None


def test_what_to_do_is_said() -> None:
    assert told(Standing("unpaired"), "team") == (
        "not paired; pair it with: paceline account pair team"
    )
    assert told(Standing("logged_out", errors.LOGOUTS[2]), "team") == (
        "logged out: the device was removed on the phone; "
        "pair it again with: paceline account pair team"
    )


def test_the_page_tells_the_same() -> None:
    page = PAGE.read_text()
    for row in (*errors.EVER, *errors.AFTER):
        assert re.search(rf"\| `{re.escape(row.says)}[^|]*\| {row.kind} \|", page), row.says
    for number, (kind, means) in errors.BY_NUMBER.items():
        assert f"| {number} | {kind} | {means} |" in page
