"""The error table: complete, and every row of it answered by a real server."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.instants import DAY, HOUR, SECOND, parse_instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.retry import consequence
from paceline.providers.answers import LONGEST_REASON, Answer, ErrorRow
from paceline.providers.unipile.errors import BY_STATUS, ERRORS, TABLE
from paceline.providers.unipile.recipients import LOOKUP_ERRORS
from paceline.providers.unipile.wire import Request, read_sent
from tests.providers.loopback import HTML, JSON, Scripted
from tests.providers.unipile.fake import KEY, FakeUnipile, error
from tests.providers.unipile.stage import letter, message, play, send

K = OutcomeKind
NOW = parse_instant("2026-11-15T09:00:00Z")
PAGE = Path(__file__).parents[3] / "docs" / "providers" / "unipile.md"

# As the wire facts list them, category by category, with what each is to become.
FACTS: dict[tuple[int, str], OutcomeKind] = {
    (401, "disconnected_account"): K.UNAUTHORISED,
    (401, "expired_credentials"): K.UNAUTHORISED,
    (401, "checkpoint_error"): K.UNAUTHORISED,
    (401, "missing_credentials"): K.UNAUTHORISED,
    (403, "account_restricted"): K.BANNED,
    (403, "feature_not_subscribed"): K.UNAUTHORISED,
    (429, "too_many_requests"): K.THROTTLED,
    (422, "limit_exceeded"): K.EXHAUSTED,
    (422, "cannot_resend_yet"): K.EXHAUSTED,
    (422, "already_invited_recently"): K.ACCEPTED,
    (422, "already_connected"): K.ACCEPTED,
    (422, "action_already_performed"): K.ACCEPTED,
    (422, "invalid_recipient"): K.REJECTED,
    (422, "no_connection_with_recipient"): K.REJECTED,
    (422, "blocked_recipient"): K.REJECTED,
    (422, "not_allowed_inmail"): K.REJECTED,
    (422, "insufficient_credits"): K.REJECTED,
    (400, "too_many_characters"): K.REJECTED,
    (500, "provider_error"): K.TRANSIENT,
    (500, "unexpected_error"): K.TRANSIENT,
    (504, "request_timeout"): K.UNKNOWN,
}
BARE = {
    400: K.REJECTED,
    401: K.UNAUTHORISED,
    403: K.TRANSIENT,
    404: K.TRANSIENT,
    409: K.TRANSIENT,
    413: K.REJECTED,
    415: K.REJECTED,
    422: K.TRANSIENT,
    429: K.THROTTLED,
    302: K.TRANSIENT,
    500: K.TRANSIENT,
    501: K.TRANSIENT,
    502: K.UNKNOWN,
    503: K.UNAVAILABLE,
    504: K.UNKNOWN,
    520: K.UNKNOWN,
    524: K.UNKNOWN,
}


def test_the_table_has_everything_that_is_known() -> None:
    table = {(row.status, row.code): row.kind for row in ERRORS}
    assert {key: table.get(key) for key in FACTS} == FACTS
    assert len(TABLE.by_code) == len(ERRORS), "a type is listed twice"
    assert set(BY_STATUS) <= set(BARE), "a status is judged that no test knows"


def test_the_page_shows_the_whole_table() -> None:
    shown = re.findall(r"^\| (\d{3}) \| `(\w+)` \| (\w+) \|", PAGE.read_text(), re.M)
    tables = (*LOOKUP_ERRORS, *ERRORS)
    assert shown == [(str(row.status), row.code, row.kind.value) for row in tables]


@pytest.mark.parametrize("row", ERRORS, ids=lambda row: row.code)
def test_every_row_is_answered_as_it_says(fake: FakeUnipile, row: ErrorRow) -> None:
    outcome = send(fake, message("connection_request"), error(row.status, row.code))
    title = row.code.replace("_", " ").capitalize()
    reason = f"{title}: Told in detail: {row.code}."
    assert outcome == Outcome(row.kind, reason, row.code, None, row.wait_us)
    assert not fake.sent


@pytest.mark.parametrize("status", BARE)
@pytest.mark.parametrize(
    "body",
    [b"", b"<html><h1>Oh</h1></html>", b'{"type": "errors/brand_new"}', b'"errors/x"', b"\xff{"],
    ids=["empty", "html", "new", "text", "broken"],
)
def test_without_a_known_type_the_status_decides(
    fake: FakeUnipile, status: int, body: bytes
) -> None:
    outcome = send(fake, letter(), Scripted(status, body, HTML))
    assert outcome.kind is BARE[status]
    new = body.startswith(b"{")
    assert outcome.code == ("brand_new" if new else f"http-{status}")
    expected = "brand_new" if new else f"answered {status} without a readable reason"
    assert outcome.reason == expected


def test_the_type_decides_before_the_status(fake: FakeUnipile) -> None:
    """LinkedIn's limits come as this and as that, and a gateway may put its own status on top."""
    assert send(fake, message(), error(500, "limit_exceeded")).kind is K.EXHAUSTED
    assert send(fake, message(), error(502, "too_many_requests")).kind is K.THROTTLED
    assert send(fake, message(), error(200, "disconnected_account")).kind is K.UNAUTHORISED
    assert send(fake, message(), error(500, "request_timeout")).kind is K.UNKNOWN


@pytest.mark.parametrize(
    ("scripted", "kind", "wait_us"),
    [
        (error(429, "too_many_requests", headers={"Retry-After": "90"}), K.THROTTLED, 90 * SECOND),
        (Scripted(503, b"", {"Retry-After": "7"}), K.UNAVAILABLE, 7 * SECOND),
        (error(422, "limit_exceeded", headers={"Retry-After": "3600"}), K.EXHAUSTED, HOUR),
        (error(422, "cannot_resend_yet"), K.EXHAUSTED, DAY),
        (error(422, "cannot_resend_yet", headers={"Retry-After": "3600"}), K.EXHAUSTED, HOUR),
        (error(403, "account_restricted", headers={"Retry-After": "3600"}), K.BANNED, HOUR),
        (error(500, "provider_error", headers={"Retry-After": "5"}), K.TRANSIENT, None),
        (error(429, "too_many_requests", headers={"Retry-After": "soon"}), K.THROTTLED, None),
    ],
)
def test_how_long_to_wait(
    fake: FakeUnipile, scripted: Scripted, kind: OutcomeKind, wait_us: int | None
) -> None:
    outcome = send(fake, message(), scripted)
    assert (outcome.kind, outcome.retry_after_us) == (kind, wait_us)


def test_what_follows_for_account_and_message() -> None:
    """The rows that matter most, through to the end: what the engine makes of them."""
    ends = {
        "already_invited_recently": ("accept", None),
        "disconnected_account": ("retry", "suspend"),
        "account_restricted": ("retry", "suspend"),
        "invalid_recipient": ("fail", None),
        "request_timeout": ("lose", None),
        "cannot_resend_yet": ("retry", None),
    }
    for type_, (event, account_event) in ends.items():
        scripted = error(TABLE.by_code[type_].status, type_)
        outcome = TABLE.outcome_of(Answer(scripted.status, {}, scripted.body), NOW)
        result = consequence(outcome, retries=0, setbacks=0, policy=Policy(), now=NOW)
        assert (result.event, result.account_event) == (event, account_event), type_
        assert not result.suppresses, "nothing here says that an address does not exist"
        if type_ == "cannot_resend_yet":
            assert result.hold_until_at == NOW + DAY


def test_words_are_kept_in_one_line_of_bearable_length(fake: FakeUnipile) -> None:
    said = {"type": "errors/invalid_recipient", "title": "No\n way", "detail": "x" * 5_000}
    outcome = send(fake, message(), Scripted(422, json.dumps(said).encode(), JSON))
    assert outcome.reason.startswith("No way: xxx") and outcome.reason.endswith("…")
    assert len(outcome.reason) == LONGEST_REASON


@pytest.mark.parametrize("padding", [0, 265, 280, 285])
def test_a_server_that_repeats_the_key_does_not_give_it_away(
    fake: FakeUnipile, padding: int
) -> None:
    escaped = json.dumps({"title": "Bad key", "detail": "." * padding + KEY + "."}).encode()
    for body in (escaped, escaped.replace(b"/", b"\\/")):
        outcome = send(fake, message(), Scripted(401, body, JSON))
        assert KEY[:3] not in outcome.reason
        assert outcome.kind is K.UNAUTHORISED


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (201, b"{}", K.ACCEPTED),
        (200, b'{"object": "ChatStarted", "message_id": 5}', K.ACCEPTED),
        (200, b'{"message_id": {"a": 1}}', K.ACCEPTED),
        (200, b"<html>Welcome to our hotel</html>", K.UNKNOWN),
        (200, b"", K.UNKNOWN),
        (204, b"", K.UNKNOWN),
        (200, b"[]", K.UNKNOWN),
    ],
)
def test_a_yes_counts_if_it_is_unipile_s(
    fake: FakeUnipile, status: int, body: bytes, kind: OutcomeKind
) -> None:
    assert send(fake, message(), Scripted(status, body)).kind is kind


anything = st.one_of(
    st.binary(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "title", "detail", "status", "object", "message_id"])
                | st.text(max_size=5),
                inner
                | st.sampled_from([f"errors/{row.code}" for row in ERRORS])
                | st.just("errors/"),
                max_size=5,
            )
        ),
        max_leaves=10,
    ).map(lambda value: json.dumps(value).encode()),
)


@given(status=st.integers(200, 599), body=anything, retry=st.none() | st.text(max_size=30))
def test_whatever_is_answered_is_an_outcome(status: int, body: bytes, retry: str | None) -> None:
    headers = {} if retry is None else {"retry-after": retry}
    outcome = read_sent(Answer(status, headers, body), Request("/chats", "message_id"), NOW)
    assert isinstance(outcome, Outcome)
    assert "\n" not in outcome.reason
    if outcome.kind is not K.ACCEPTED:
        assert outcome.reason
    elif status >= 300:
        assert TABLE.by_code[outcome.code].kind is K.ACCEPTED


def test_whatever_is_answered_over_a_real_connection_is_an_outcome(fake: FakeUnipile) -> None:
    from paceline.engine.ports import Driver

    bodies = (b"", b"{", b"\x00\xff", b"[1]", b"null", b"[" * 50_000, b'{"type":' + b"9" * 5_000)
    statuses = (200, 201, 204, 299, 300, 304, 399, 400, 418, 451, 499, 505, 511, 599)

    async def scene(driver: Driver) -> None:
        for status in statuses:
            for body in bodies:
                bare = status in (204, 304)
                fake.script.append(Scripted(status, b"" if bare else body))
                outcome = await driver.send(message())
                assert isinstance(outcome, Outcome), (status, body)
                assert outcome.kind is not K.ACCEPTED, (status, body)

    play(fake.settings(), scene)
