"""Whom a report says to have reached, beside those it did not."""

from __future__ import annotations

import pytest

from paceline.core.instants import parse_instant
from paceline.engine.ports.webhooks import News, Returned
from paceline.providers.mail.reports import read_letter
from tests.providers.mail.letters_in import NAME, OURS, WHOM

AT = parse_instant("2026-11-16T12:00:00Z")
LEFT = "who.left@client.example"

REPORT = """\
Return-Path: <>
From: MAILER-DAEMON@mx.client.example
To: {ours}
Subject: Undelivered
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.client.example

{first}

{second}

--b
Content-Type: text/rfc822-headers

Message-ID: {name}

--b--
"""


def about(address: str, action: str, status: str, field: str = "Final-Recipient") -> str:
    return f"{field}: rfc822; {address}\nAction: {action}\nStatus: {status}"


def read(first: str, second: str) -> list[News]:
    raw = REPORT.format(ours=OURS, first=first, second=second, name=NAME).encode()
    return read_letter(raw, ours=[OURS], at=AT)


@pytest.mark.parametrize("action", ["expanded", "relayed", "Delivered (to the list)"])
def test_whom_it_reached_is_told_with_whom_it_did_not(action: str) -> None:
    reached, failed = about("Bert@Client.example", action, "2.1.5"), about(LEFT, "failed", "5.1.1")
    for news in (read(reached, failed), read(failed, reached)):
        (back,) = [one for one in news if isinstance(one, Returned)]
        assert (back.kind, back.address, back.reached) == ("bounced", LEFT, (WHOM,))


def test_a_member_of_an_alias_that_others_got_is_one_of_several() -> None:
    """Postfix names the address that was written to with each of those behind it."""
    original = f"Original-Recipient: rfc822;{WHOM}\n"
    news = read(
        original + about("cleo@client.example", "delivered", "2.0.0"),
        original + about(LEFT, "failed", "5.1.1"),
    )
    (back,) = [one for one in news if isinstance(one, Returned)]
    assert (back.address, back.reached) == (WHOM, (WHOM,))


def test_nobody_is_reached_by_one_that_is_late_or_lost() -> None:
    news = read(about(WHOM, "delayed", "4.4.1"), about(LEFT, "failed", "5.1.1"))
    assert [one.reached for one in news if isinstance(one, Returned)] == [(), ()]
