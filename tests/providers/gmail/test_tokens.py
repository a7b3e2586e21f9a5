"""Tokens: what is signed, how long one is kept, and what a refusal leaves."""

import asyncio
import json
from typing import Any

import pytest

from paceline.core.instants import SECOND
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Driver
from paceline.providers.answers import Answer
from paceline.providers.gmail import GmailProvider, tokens
from paceline.providers.gmail.errors import NOT_DELEGATED, TOKEN_ERRORS, no_token
from tests.providers.gmail import fake as fakes
from tests.providers.gmail.fake import EMAIL, MAILBOX, SENDS, STALE, FakeGmail
from tests.providers.gmail.stage import letter, nothing, play, send
from tests.providers.loopback import HTML, JSON, Scripted
from tests.providers.remote import account

K = OutcomeKind


class Later(SystemClock):
    """The same clock, moved on by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead_us = 0

    def monotonic_us(self) -> int:
        return super().monotonic_us() + self.ahead_us


def test_what_is_signed_is_what_google_wants_to_hear(fake: FakeGmail) -> None:
    """The fake has verified the signature, the header and the times by then."""
    play(fake.settings(), nothing)
    (claims,) = fake.claims
    assert claims["iss"] == EMAIL and claims["sub"] == MAILBOX
    assert set(claims["scope"].split()) == {fakes.SEND_SCOPE, fakes.READ_SCOPE}
    assert claims["aud"] == "https://oauth2.googleapis.com/token", "wherever it is sent"
    assert claims["exp"] - claims["iat"] == 3_600


def test_one_token_is_enough_for_many_letters(fake: FakeGmail) -> None:
    async def scene(driver: Driver) -> None:
        sent = [driver.send(letter(key=f"home-{number}-0")) for number in range(5)]
        assert {outcome.kind for outcome in await asyncio.gather(*sent)} == {K.ACCEPTED}

    play(fake.settings(), scene)
    assert len(fake.issued) == 1 and len(fake.sent) == 5


@pytest.mark.parametrize(
    ("expires_in", "kept_s"),
    [(3_599, 3_299), (300, 150), (0, 0), ("soon", 3_300), (None, 3_300), (10**12, 3_300)],
)
def test_a_token_is_replaced_before_it_ends(fake: FakeGmail, expires_in: Any, kept_s: int) -> None:
    clock = Later()
    fake.expires_in = expires_in

    async def scene() -> None:
        driver = await GmailProvider(clock).open(account(fake.settings()))
        before = len(fake.issued)
        clock.ahead_us = max(kept_s - 30, 0) * SECOND
        await driver.send(letter())
        assert len(fake.issued) == before + (kept_s == 0)
        clock.ahead_us = kept_s * SECOND
        await driver.send(letter(key="home-8-0"))
        assert len(fake.issued) > before
        await driver.close()

    asyncio.run(scene())
    assert len(fake.sent) == 2


def test_several_letters_at_once_ask_for_one_token(fake: FakeGmail) -> None:
    async def scene(driver: Driver) -> None:
        fake.revoke()
        sent = [driver.send(letter(key=f"home-{number}-0")) for number in range(4)]
        assert {outcome.kind for outcome in await asyncio.gather(*sent)} == {K.ACCEPTED}

    play(fake.settings(), scene)
    assert len(fake.issued) == 2 and len(fake.sent) == 4


def test_a_token_that_gmail_does_not_know_is_replaced_once(fake: FakeGmail) -> None:
    async def scene(driver: Driver) -> Outcome:
        fake.revoke()
        return await driver.send(letter())

    assert play(fake.settings(), scene).kind is K.ACCEPTED
    assert [call.path for call in fake.calls[2:]] == [SENDS[0], "/token", SENDS[0]]
    assert len(fake.sent) == 1


def test_a_late_refusal_of_an_old_token_does_not_cost_the_new_one(fake: FakeGmail) -> None:
    async def scene(driver: Driver) -> None:
        kept = driver._api._tokens  # type: ignore[attr-defined]
        first = await kept.get()
        kept.discard(first)
        second = await kept.get()
        kept.discard(first)
        assert await kept.get() == second != first

    play(fake.settings(), scene)
    assert len(fake.issued) == 2


def test_a_new_token_that_is_refused_as_well_is_the_end_of_it(fake: FakeGmail) -> None:
    outcome = send(fake, letter(), STALE, STALE)
    assert (outcome.kind, outcome.code) == (K.UNAUTHORISED, "authError")
    assert len(fake.sends()) == 2 and len(fake.issued) == 2 and not fake.sent


def test_a_refusal_by_its_name_alone_is_read_as_well(fake: FakeGmail) -> None:
    body = {"error": {"code": 401, "message": "No.", "status": "UNAUTHENTICATED"}}
    scripted = Scripted(401, json.dumps(body).encode(), JSON)
    assert send(fake, letter(), scripted).kind is K.ACCEPTED
    assert len(fake.issued) == 2


def test_whoever_in_between_wants_a_password_gets_no_second_call(fake: FakeGmail) -> None:
    outcome = send(fake, letter(), Scripted(401, b"<html>Log in", HTML))
    assert outcome.kind is K.UNAVAILABLE
    assert len(fake.sends()) == 1 and len(fake.issued) == 1


@pytest.mark.parametrize("status", [200, 500, 502])
def test_only_a_clear_refusal_is_answered_with_a_second_call(fake: FakeGmail, status: int) -> None:
    """Behind any other status the letter may be out, whatever the words are."""
    send(fake, letter(), fakes.error(status, "authError", "Invalid Credentials", takes=True))
    assert len(fake.sends()) == 1 == len(fake.sent)


def refreshed(fake: FakeGmail, *answers: Scripted) -> Outcome:
    """What a letter comes to whose token is not good any more, and that is all there is."""

    async def scene(driver: Driver) -> Outcome:
        fake.revoke()
        fake.later_token_answers.extend(answers)
        return await driver.send(letter())

    return play(fake.settings(), scene)


@pytest.mark.parametrize("row", TOKEN_ERRORS, ids=lambda row: row.code)
def test_every_refusal_of_a_token_means_what_the_table_says(fake: FakeGmail, row: Any) -> None:
    outcome = refreshed(fake, fakes.no_token(row.status, row.code, "Told in detail."))
    reason = f"no token from Google: {row.code}: Told in detail."
    if row.code in NOT_DELEGATED:
        reason = f"{reason[:-1]}; delegate {fakes.SEND_SCOPE},{fakes.READ_SCOPE}"
    assert outcome == Outcome(row.kind, reason, row.code)
    assert row.kind in (K.UNAUTHORISED, K.UNAVAILABLE), "nothing was sent, so nothing is in doubt"
    assert not fake.sent


@pytest.mark.parametrize(
    ("scripted", "kind"),
    [
        (fakes.no_token(400, "brand_new"), K.UNAUTHORISED),
        (fakes.no_token(403, "brand_new"), K.UNAUTHORISED),
        (fakes.no_token(500, "brand_new"), K.UNAVAILABLE),
        (fakes.no_token(429, "rate_limit_exceeded"), K.UNAVAILABLE),
        (Scripted(400, b"<html>", HTML), K.UNAVAILABLE),
        (Scripted(401, b"<html>", HTML), K.UNAVAILABLE),
        (Scripted(403, b"", HTML), K.UNAVAILABLE),
        (Scripted(502, b"<html>", HTML), K.UNAVAILABLE),
        (Scripted(302, b"", {"Location": "https://example.com/"}), K.UNAVAILABLE),
        (Scripted(200, b"<html>", HTML), K.UNAVAILABLE),
        (Scripted(200, b"{}", JSON), K.UNAVAILABLE),
        (Scripted(200, b'{"access_token": 5}', JSON), K.UNAVAILABLE),
        (Scripted(200, b'{"access_token": "a b\\r\\nX: y"}', JSON), K.UNAVAILABLE),
        (Scripted(drops="read"), K.UNAVAILABLE),
    ],
)
def test_nobody_is_suspended_for_what_google_has_not_said(
    fake: FakeGmail, scripted: Scripted, kind: OutcomeKind
) -> None:
    outcome = refreshed(fake, scripted)
    assert outcome.kind is kind and outcome.reason
    assert not fake.sent


def test_a_token_that_does_not_come_leaves_no_doubt(
    fake: FakeGmail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "WITHIN_S", 0.2)
    outcome = refreshed(fake, Scripted(hangs=True))
    assert (outcome.kind, outcome.code) == (K.UNAVAILABLE, "token")
    assert outcome.reason == "no token from Google: no answer in time"


def test_after_trouble_the_next_letter_asks_again(fake: FakeGmail) -> None:
    async def scene(driver: Driver) -> list[OutcomeKind]:
        fake.revoke()
        fake.later_token_answers.append(Scripted(503, b"", HTML))
        return [(await driver.send(letter())).kind for _ in range(2)]

    assert play(fake.settings(), scene) == [K.UNAVAILABLE, K.ACCEPTED]


def test_how_long_to_wait_for_tokens_is_heeded() -> None:
    answer = Answer(503, {"retry-after": "90"}, b'{"error": "temporarily_unavailable"}')
    assert no_token(answer, 0).retry_after_us == 90 * SECOND
