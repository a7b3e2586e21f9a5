"""The error table: complete, shown on its page, and every body of it answered by a real server."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.instants import HOUR, MINUTE, SECOND, iso, parse_instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.retry import consequence
from paceline.engine.ports import Driver
from paceline.providers.answers import LONGEST_REASON, Answer
from paceline.providers.gmail.errors import (
    BY_NAME,
    BY_STATUS,
    ERRORS,
    TABLE,
    TOKEN_ERRORS,
    TOKEN_TABLE,
    no_token,
    outcome_of,
)
from tests.providers.gmail.bodies import BODIES, Body
from tests.providers.gmail.fake import FakeGmail, error, key_text, made_key, pem_of
from tests.providers.gmail.stage import letter, play, send
from tests.providers.loopback import HTML, Scripted, said

K = OutcomeKind
NOW = parse_instant("2026-11-15T09:00:00Z")
PAGE = Path(__file__).parents[3] / "docs" / "providers" / "gmail.md"

BARE = {
    302: K.TRANSIENT,
    400: K.TRANSIENT,
    401: K.UNAVAILABLE,
    403: K.TRANSIENT,
    404: K.TRANSIENT,
    409: K.TRANSIENT,
    413: K.REJECTED,
    429: K.THROTTLED,
    500: K.UNKNOWN,
    502: K.UNKNOWN,
    503: K.UNAVAILABLE,
    504: K.UNKNOWN,
}


def read(scripted: Scripted, now: int = NOW) -> Outcome:
    return outcome_of(Answer(scripted.status, {}, scripted.body), now)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_every_body_that_is_known_is_read_as_it_is_meant(fake: FakeGmail, body: Body) -> None:
    answers = [body.answer] * (2 if body.code == "authError" else 1)
    outcome = send(fake, letter(), *answers)
    assert (outcome.kind, outcome.code) == (body.kind, body.code), body.source
    words = " ".join(json.loads(body.answer.body)["error"]["message"].split())
    assert outcome.reason == words, "in Google's own words"
    assert not fake.sent


def test_the_tables_are_complete() -> None:
    assert len(TABLE.by_code) == len(ERRORS) and len(TOKEN_TABLE.by_code) == len(TOKEN_ERRORS)
    assert set(BY_NAME.values()) <= set(TABLE.by_code)
    assert {body.code for body in BODIES.values()} >= set(TABLE.by_code) - {
        "quotaExceeded",
        "uploadTooLarge",
        "internalError",
    }
    assert set(BY_STATUS) <= set(BARE), "a status is judged that no test knows"


def test_nobody_is_ever_given_up_for_good() -> None:
    """Gmail says of nobody that they do not exist; a letter that comes back does."""
    assert K.BOUNCED not in {row.kind for row in (*ERRORS, *TOKEN_ERRORS)}


def test_the_page_shows_the_whole_tables() -> None:
    shown = re.findall(r"^\| (\d{3}) \| `(\w+)` \| (\w+) \|", PAGE.read_text(), re.M)
    tables = (*TOKEN_ERRORS, *ERRORS)
    assert shown == [(str(row.status), row.code, row.kind.value) for row in tables]


@pytest.mark.parametrize("status", BARE)
@pytest.mark.parametrize(
    "body",
    [b"", b"<html><h1>Oh</h1></html>", b'{"error": "x"}', b'"x"', b"\xff{", b'{"error": {}}'],
    ids=["empty", "html", "oauth", "text", "broken", "bare"],
)
def test_without_a_known_reason_the_status_decides(status: int, body: bytes) -> None:
    outcome = read(Scripted(status, body, HTML))
    assert outcome.kind is BARE[status]
    assert outcome.code == f"http-{status}"


def test_only_google_itself_refuses_a_mailbox() -> None:
    """What somebody in between says with a 401 is about them, and passes."""
    refused = {"code": 401, "message": "Request had invalid authentication credentials."}
    for error_of in (refused, {"code": 401}, refused | {"status": "NEW"}):
        assert read(said(401, {"error": error_of})).kind is K.UNAUTHORISED, error_of
    others = ({"error": {"message": "x"}}, {"error": {"code": "401"}}, {"error": {"code": 403}})
    for body in (*others, {"error": "login"}, {"message": "Log in"}, [refused]):
        assert read(said(401, body)).kind is K.UNAVAILABLE, body
    page = Answer(401, {"retry-after": "90"}, b"<html>Log in</html>")
    assert outcome_of(page, NOW).retry_after_us == 90 * SECOND
    asked = json.dumps({"error": refused}).encode()
    assert outcome_of(Answer(401, {"retry-after": "90"}, asked), NOW).retry_after_us is None


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (403, "rateLimitExceededUnreg", K.THROTTLED),
        (429, "concurrentLimitExceeded", K.THROTTLED),
        (403, "servingLimitExceeded", K.THROTTLED),
        (403, "limitExceeded", K.THROTTLED),
        (403, "userDailyLimitExceeded", K.EXHAUSTED),
        (403, "uploadSizeLimitExceeded", K.UNAUTHORISED),
        (403, "limitExceededByFar", K.UNAUTHORISED),
        (400, "recipientLimitExceeded", K.UNAUTHORISED),
    ],
)
def test_a_limit_by_any_name_is_a_limit(status: int, reason: str, kind: OutcomeKind) -> None:
    assert read(error(status, reason, "x", name="PERMISSION_DENIED")).kind is kind


def test_a_reason_nobody_knows_is_read_by_the_name_of_its_status() -> None:
    new = [{"reason": "brandNew", "message": "x"}]
    for name, code in BY_NAME.items():
        body = {"error": {"code": 418, "message": "x", "errors": new, "status": name}}
        outcome = read(said(418, body))
        assert (outcome.kind, outcome.code) == (TABLE.by_code[code].kind, code), name
    told = read(said(418, {"error": {"message": "x", "errors": new, "status": "NEW"}}))
    assert (told.kind, told.code) == (K.TRANSIENT, "brandNew")


@pytest.mark.parametrize(
    ("words", "kind", "wait_us"),
    [
        ("User-rate limit exceeded.  Retry after {}", K.THROTTLED, 15 * MINUTE),
        ("User-rate limit exceeded.  Retry after {} (Mail sending)", K.EXHAUSTED, 15 * MINUTE),
        ("Mail sending limit exceeded", K.EXHAUSTED, None),
        ("User-rate limit exceeded.", K.THROTTLED, None),
        ("Retry after tomorrow", K.THROTTLED, None),
        ("Retry after 9999-12-31T23:59:59Z", K.THROTTLED, None),
        ("Retry after 2026-02-31T09:00:00Z", K.THROTTLED, None),
        # Gmail has been seen to name a time that was over.
        ("Retry after 2026-11-15T08:59:59.999Z", K.THROTTLED, None),
    ],
)
def test_how_long_to_wait_is_read_from_the_words(
    words: str, kind: OutcomeKind, wait_us: int | None
) -> None:
    said_so = words.format(iso(NOW + 15 * MINUTE))
    for status, reason in ((429, "rateLimitExceeded"), (403, "userRateLimitExceeded")):
        outcome = read(error(status, reason, said_so))
        assert (outcome.kind, outcome.retry_after_us) == (kind, wait_us)


def test_a_header_counts_for_more_than_the_words() -> None:
    told = error(429, "rateLimitExceeded", f"Retry after {iso(NOW + HOUR)}")
    outcome = outcome_of(Answer(429, {"retry-after": "90"}, told.body), NOW)
    assert outcome.retry_after_us == 90 * SECOND


def test_what_follows_for_account_and_message() -> None:
    """The bodies that matter most, through to the end: what the engine makes of them."""
    ends = {
        "guide: sending": ("retry", None),
        "guide: daily": ("retry", None),
        "429": ("retry", None),
        "no mailbox": ("retry", "suspend"),
        "domain": ("retry", "suspend"),
        "to": ("fail", None),
        "backend": ("lose", None),
    }
    for name, (event, account_event) in ends.items():
        result = consequence(
            read(BODIES[name].answer), retries=0, setbacks=0, policy=Policy(), now=NOW
        )
        assert (result.event, result.account_event) == (event, account_event), name
        assert not result.suppresses
        if name == "guide: daily":
            assert result.hold_until_at == parse_instant("2026-11-16T00:00:00Z")


def test_words_are_kept_in_one_line_of_bearable_length(fake: FakeGmail) -> None:
    outcome = send(fake, letter(), error(400, "badRequest", "No\n way " + "x" * 5_000))
    assert outcome.reason.startswith("No way xxx") and outcome.reason.endswith("…")
    assert len(outcome.reason) == LONGEST_REASON


@pytest.mark.parametrize("padding", [0, 265, 285])
def test_no_key_and_no_token_is_repeated(fake: FakeGmail, padding: int) -> None:
    """Whoever repeats what it was sent, or what it never should have seen."""
    lines = [line for line in pem_of(made_key()).splitlines() if not line.startswith("--")]

    async def scene(driver: Driver) -> list[Outcome]:
        secrets = [fake.issued[0], key_text(), pem_of(made_key()), lines[3], "".join(lines)]
        outcomes = []
        for secret in secrets:
            fake.script.append(error(403, "forbidden", "." * padding + f"{secret} is no token"))
            outcomes.append(await driver.send(letter()))
        return outcomes

    for outcome in play(fake.settings(), scene):
        assert outcome.kind is K.UNAUTHORISED
        assert "ya29" not in outcome.reason
        assert not any(line[:8] in outcome.reason for line in lines[:-1])


anything = st.one_of(
    st.binary(max_size=200),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["error", "errors", "reason", "message", "status", "code", "id"]),
                inner | st.sampled_from([*TABLE.by_code, *BY_NAME, *TOKEN_TABLE.by_code]),
                max_size=5,
            )
        ),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode()),
)


@given(status=st.integers(300, 599), body=anything, retry=st.none() | st.text(max_size=30))
def test_whatever_is_answered_is_an_outcome(status: int, body: bytes, retry: str | None) -> None:
    headers = {} if retry is None else {"retry-after": retry}
    answer = Answer(status, headers, body)
    outcome = outcome_of(answer, NOW)
    assert outcome.reason and "\n" not in outcome.reason
    assert outcome.kind not in (K.ACCEPTED, K.BOUNCED)
    assert no_token(answer, NOW).kind in (K.UNAUTHORISED, K.UNAVAILABLE)
