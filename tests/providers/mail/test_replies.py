"""What servers answer, against answers that real ones give and against what the design settles."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.instants import MINUTE, SECOND, parse_instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.retry import consequence
from paceline.providers.mail.replies import (
    BY_CODE,
    BY_COMMAND,
    BY_STATUS,
    BY_WORDS,
    GREYLISTED,
    ROWS,
    Command,
    Reply,
    outcome_of,
    reply_in,
    row_for,
)
from tests.providers.mail.corpus import CORPUS, LIKELY, Said

K = OutcomeKind
NOW = parse_instant("2026-11-15T09:00:00Z")
PAGE = Path(__file__).parents[3] / "docs" / "providers" / "smtp.md"
COMMANDS: tuple[Command, ...] = ("connect", "login", "mail", "rcpt", "data", "content")


def read(answer: str, to: Command = "rcpt") -> Outcome:
    return outcome_of(reply_in(answer, to))


# ---------------------------------------------------------------------- real answers


@pytest.mark.parametrize(
    "said", CORPUS + LIKELY, ids=lambda said: f"{said.whose}-{said.answer[:24]}"
)
def test_what_real_servers_say(said: Said) -> None:
    outcome = read(said.answer, said.to)
    assert outcome.kind is said.kind, (outcome, row_for(reply_in(said.answer, said.to)))
    assert outcome.reason.startswith(said.answer[:3]) and "\n" not in outcome.reason


def test_there_is_enough_of_everybody() -> None:
    assert len(CORPUS) >= 60 and len({said.answer for said in CORPUS}) == len(CORPUS)
    assert {"gmail", "exchange", "outlook", "yahoo", "postfix"} <= {said.whose for said in CORPUS}
    assert all(said.source.startswith("https://") for said in CORPUS)
    assert {said.kind for said in CORPUS} == set(K) - {K.ACCEPTED, K.UNKNOWN, K.WITHDRAWN}


def test_every_row_but_the_plainest_is_shown_by_a_real_answer() -> None:
    shown = {id(row_for(reply_in(said.answer, said.to))) for said in CORPUS + LIKELY}
    unshown = [row for row in (*BY_COMMAND, *BY_STATUS) if id(row) not in shown]
    assert len(unshown) <= len((*BY_COMMAND, *BY_STATUS)) // 4, [row.means for row in unshown]


# ---------------------------------------------------------------------- document C


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        # "Hard bounces - never retry": as the design narrows them, with the words that C names.
        ("550 user unknown", K.BOUNCED),
        ("550 mailbox not found", K.BOUNCED),
        ("user unknown", K.BOUNCED),
        ("mailbox not found", K.BOUNCED),
        ("550 5.1.1 no such user", K.BOUNCED),
        ("550 denied", K.REJECTED),
        # "Soft bounces - retry with backoff".
        ("452 mailbox full", K.TRANSIENT),
        ("552 mailbox full", K.TRANSIENT),
        ("mailbox full", K.TRANSIENT),
        ("temporarily unavailable", K.TRANSIENT),
        # "SMTP server temporarily unavailable (421, 450, 451 codes)".
        ("421 try again", K.THROTTLED),
        ("450 try again", K.THROTTLED),
        ("451 try again", K.THROTTLED),
        # "Auth errors - don't retry, suspend account".
        ("535 authentication failed", K.UNAUTHORISED),
        ("authentication failed", K.UNAUTHORISED),
        ("invalid credentials", K.UNAUTHORISED),
        # "Rate limit - retry but warn".
        ("452 rate limit", K.THROTTLED),
        ("rate limit exceeded", K.THROTTLED),
        ("quota exceeded", K.THROTTLED),
        # "Permanent SMTP errors (550, 551, 552, 553, 554)".
        ("551 no", K.REJECTED),
        ("552 no", K.REJECTED),
        ("553 no", K.REJECTED),
        ("554 no", K.REJECTED),
        # "Unknown - retry to be safe".
        ("", K.TRANSIENT),
        ("what?", K.TRANSIENT),
    ],
)
def test_document_c(answer: str, kind: OutcomeKind) -> None:
    assert read(answer).kind is kind


@pytest.mark.parametrize(
    ("answer", "event", "waits_us", "climbs", "account"),
    [
        ("550 5.1.1 no such user", "bounce", None, False, None),
        ("452 4.2.2 mailbox full", "retry", MINUTE, True, None),
        ("421 4.7.0 slow down", "retry", MINUTE, False, None),
        ("450 4.2.0 Greylisted", "retry", 5 * MINUTE, True, None),
        ("535 5.7.8 no", "retry", 0, False, "suspend"),
        ("550 5.7.705 tenant has exceeded threshold", "retry", 0, False, "suspend"),
        ("554 5.7.1 spam", "fail", None, False, None),
    ],
)
def test_what_follows_from_them(
    answer: str, event: str, waits_us: int | None, climbs: bool, account: str | None
) -> None:
    outcome = read(answer)
    follows = consequence(outcome, retries=0, setbacks=0, policy=Policy(), now=NOW)
    assert (follows.event, follows.climbs, follows.account_event) == (event, climbs, account)
    assert follows.due_at == (None if waits_us is None else NOW + waits_us)
    assert follows.suppresses == (event == "bounce")


def test_greylisting_holds_back_one_recipient_and_a_throttle_the_account() -> None:
    grey = read("450 4.7.1 Greylisted, try again in 500 seconds")
    held = consequence(grey, retries=0, setbacks=0, policy=Policy(), now=NOW)
    assert (grey.code, held.hold_until_at, held.due_at) == (GREYLISTED, None, NOW + 500 * SECOND)
    given_up = consequence(grey, retries=3, setbacks=0, policy=Policy(), now=NOW)
    assert given_up.event == "fail"
    slow = read("450 4.7.1 Too many messages, wait 90 seconds")
    follows = consequence(slow, retries=0, setbacks=0, policy=Policy(), now=NOW)
    assert follows.hold_until_at == NOW + 90 * SECOND and follows.slows


# ---------------------------------------------------------------------- the table itself


def test_the_enhanced_code_comes_before_the_code_and_that_before_the_words() -> None:
    assert (*BY_COMMAND, *BY_STATUS, *BY_CODE, *BY_WORDS) == ROWS
    assert all(row.to for row in BY_COMMAND)
    assert all(row.status for row in BY_STATUS)
    assert all(row.code and not row.status for row in BY_CODE)
    assert all(not row.status and row.code in ("", "000") for row in BY_WORDS)


statuses = st.builds(
    "{}.{}.{}".format, st.sampled_from("45"), st.integers(0, 7), st.integers(0, 120)
)
words = st.lists(
    st.sampled_from(
        ["user unknown", "no such user", "mailbox full", "sender", "greylisted", "rate limit",
         "daily limit", "does not exist", "try again later", "spam", "authentication failed"]
    ) | st.text(max_size=20),
    max_size=4,
).map(" ".join)  # fmt: skip


@given(st.integers(400, 599), st.just("") | statuses, words, st.sampled_from(COMMANDS))
def test_nobody_is_suppressed_but_by_5_1_x_or_a_550_that_says_so(
    code: int, status: str, said: str, to: Command
) -> None:
    reply = Reply(code, f"{status} {said}", to)
    outcome = outcome_of(reply)
    assert outcome.kind not in (K.ACCEPTED, K.UNKNOWN, K.WITHDRAWN)
    assert outcome.reason and "\n" not in outcome.reason
    if reply.status.startswith("5.7.") or to in ("connect", "login", "mail") or code < 500:
        assert outcome.kind is not K.BOUNCED
    if outcome.kind is K.BOUNCED:
        assert reply.status.startswith("5.1.") or code == 550
    if 400 <= code < 500:
        assert outcome.kind not in (K.REJECTED, K.BOUNCED), "it said later, and not never"


@given(st.text(max_size=300), st.sampled_from(COMMANDS))
def test_anything_at_all_is_an_answer(said: str, to: Command) -> None:
    outcome = outcome_of(reply_in(said, to))
    assert outcome.kind is not K.ACCEPTED
    assert "\n" not in outcome.reason


def test_an_enhanced_code_that_contradicts_its_code_is_none() -> None:
    assert Reply(450, "5.1.1 user unknown").status == ""
    assert read("450 5.1.1 user unknown").kind is K.THROTTLED
    assert read("554 mx.example.com #5.1.1 bad address").kind is K.BOUNCED
    assert reply_in("smtp; 550-5.1.1 no such user").status == "5.1.1"


def test_how_long_they_ask_for() -> None:
    assert read("421 4.7.0 wait 5 minutes").retry_after_us == 5 * MINUTE
    assert read("450 greylisted for 300 s").retry_after_us == 300 * SECOND
    assert read("450 greylisted").retry_after_us == 5 * MINUTE
    assert read("421 4.7.0 back in 99999 hours").retry_after_us is None
    assert read("550 5.1.1 gone for 300 s").retry_after_us is None


def test_the_page_shows_the_whole_table() -> None:
    text = PAGE.read_text()
    shown = re.findall(
        r"^\| (?:`([^`]*)`)? \| (?:`([^`]*)`)? \| (.*?) \| (\w+) \| (.+?) \|$", text, re.M
    )
    expected = [(row.status, row.code, row.kind.value, row.means) for row in ROWS]
    assert [(status, code, kind, means) for status, code, _, kind, means in shown] == expected


def test_patterns_of_codes_are_patterns_of_codes() -> None:
    assert fnmatchcase("5.7.708", "5.7.7??") and not fnmatchcase("5.7.7", "5.7.7??")
