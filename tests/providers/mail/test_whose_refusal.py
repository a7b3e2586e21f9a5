"""Whose trouble an answer is about: the account's, this recipient's, or this letter's.

The account is held back or suspended for the first only, and an address given up for the second.
"""

from __future__ import annotations

import pytest

from paceline.core.outcome import OutcomeKind
from paceline.providers.mail.replies import Command, outcome_of, reply_in

K = OutcomeKind


def read(answer: str, to: Command) -> OutcomeKind:
    return outcome_of(reply_in(answer, to)).kind


ONCE_NAMED: tuple[Command, ...] = ("rcpt", "data", "content")
ALL_THE_WAY: tuple[Command, ...] = ("mail", *ONCE_NAMED)


@pytest.mark.parametrize("to", ALL_THE_WAY)
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("550 Domain shop.example has exceeded the max emails per hour (9/8) allowed", K.THROTTLED),
        ("550 5.4.6 Unusual sending activity detected", K.THROTTLED),
        ("550 Maximum credits exceeded", K.EXHAUSTED),
        ("451 Maximum credits exceeded", K.EXHAUSTED),
        ("554 Message rejected: Sending paused for this account.", K.BANNED),
        ("550 This account has been suspended due to abuse", K.BANNED),
        ("550 authentication required", K.UNAUTHORISED),
        ("550 Authentication is required.", K.UNAUTHORISED),
        ("550 SMTP authentication required", K.UNAUTHORISED),
        ("550 5.7.1 Please turn on SMTP Authentication in your mail client", K.UNAUTHORISED),
        ("553 5.7.1 <anna@shop.example>: Sender address rejected: not owned by user anna",
         K.UNAUTHORISED),
        ("553 5.7.1 <anna@shop.example>: Sender address rejected: not logged in", K.UNAUTHORISED),
        ("550 The from address does not match a verified Sender Identity.", K.UNAUTHORISED),
    ],
)  # fmt: skip
def test_what_is_about_the_account(answer: str, kind: OutcomeKind, to: Command) -> None:
    assert read(answer, to) is kind


@pytest.mark.parametrize("to", ONCE_NAMED)
@pytest.mark.parametrize(
    "answer",
    [
        "550 The recipient has exceeded the max emails per hour",
        "550 bert@client.example has exceeded the max emails per hour",
        "550 5.4.6 Routing loop detected",
        "550 5.7.1 Unusual activity from 192.0.2.1",
        "550 The recipient's credits are exceeded",
        "554 Message rejected: receiving is paused for this account",
        "550 The recipient's account has been suspended due to abuse",
        "550 5.2.1 This account has been suspended due to abuse",
        "550 <bert@client.example>: this account has been suspended due to abuse",
        "550 This mailbox: this account has been suspended due to abuse",
        "550 This account has been suspended",
        "550 5.7.1 RESOLVER.RST.AuthRequired; authentication required",
        "550 <bert@client.example>: authentication required",
        "550 authentication required for this recipient",
        "550 DMARC: sender authentication required",
        "553 5.7.1 <bert@client.example>: Recipient address rejected: not owned by user",
        "550 5.7.1 <anna@shop.example>: Sender address rejected: Access denied",
        "550 The sender's identity could not be verified",
    ],
)
def test_what_is_not(answer: str, to: Command) -> None:
    assert read(answer, to) is K.REJECTED


def test_credits_are_used_up_at_the_login_too() -> None:
    assert read("451 Authentication failed: Maximum credits exceeded", "login") is K.EXHAUSTED
    assert read("535 Authentication failed: Maximum credits exceeded", "login") is K.EXHAUSTED
    assert read("535 Authentication failed: Bad username / password", "login") is K.UNAUTHORISED
    assert read("451 Authentication failed: try again", "login") is K.UNAVAILABLE


@pytest.mark.parametrize("to", ONCE_NAMED)
@pytest.mark.parametrize(
    "answer",
    [
        "550 Too many invalid recipients",
        "550 5.5.3 Too many unknown users",
        "550 5.0.0 Too many invalid recipients",
        "550 Message contains invalid e-mail header: From",
        "550 5.6.0 Message contains invalid e-mail header: From",
        "550 Invalid address in From header",
        "550 The domain of your address shop.example does not exist",
        "550 Your e-mail address does not exist",
        "Too many invalid recipients",
    ],
)
def test_what_is_about_us_gives_nobody_up(answer: str, to: Command) -> None:
    assert read(answer, to) not in (K.BOUNCED, K.UNAUTHORISED, K.BANNED)


@pytest.mark.parametrize("to", ONCE_NAMED)
@pytest.mark.parametrize(
    "answer",
    [
        "550 Invalid recipient",
        "550 No such user here",
        "550 5.0.0 User unknown",
        "550 User unknown; see your address book",
        "550 The e-mail address you entered does not exist",
    ],
)
def test_what_is_about_nobody_does(answer: str, to: Command) -> None:
    assert read(answer, to) is K.BOUNCED


@pytest.mark.parametrize("to", ONCE_NAMED)
@pytest.mark.parametrize("status", ["5.7.8", "5.7.9", "5.7.14", "5.7.139"])
def test_a_login_is_refused_by_its_code_or_where_it_is_asked_for(status: str, to: Command) -> None:
    """The same status is a letter's where the code is: Yahoo says 554 5.7.9 for its DMARC."""
    assert read(f"554 {status} Message not accepted for policy reasons", to) is K.REJECTED
    assert read(f"550 {status} refused", to) is K.REJECTED
    for code in (530, 534, 535, 538):
        assert read(f"{code} {status} refused", to) is K.UNAUTHORISED
    assert read(f"554 {status} refused", "mail") is K.UNAUTHORISED
    assert read(f"554 {status} refused", "login") is K.UNAUTHORISED


@pytest.mark.parametrize("to", ONCE_NAMED)
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("450 account blocked: sending rate too high, slow down", K.THROTTLED),
        ("450 4.2.1 account blocked: sending rate too high, slow down", K.THROTTLED),
        ("550 5.2.1 This mailbox has been blocked due to inactivity", K.REJECTED),
        ("450 4.2.1 mailbox is locked", K.TRANSIENT),
        ("450 mailbox locked by another session", K.TRANSIENT),
        ("450 4.2.1 mailbox temporarily unavailable", K.TRANSIENT),
        ("550 5.2.1 The account is temporarily disabled", K.TRANSIENT),
    ],
)
def test_blocked_is_not_locked(answer: str, kind: OutcomeKind, to: Command) -> None:
    assert read(answer, to) is kind
