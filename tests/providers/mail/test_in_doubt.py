"""Letters in doubt: what a person may have written is heard, above all where it says STOP."""

from __future__ import annotations

import pytest

from paceline.core.instants import parse_instant
from paceline.core.opting_out import DEFAULT
from paceline.engine.opting_out import wish_of
from paceline.engine.ports.webhooks import Inbound, News, Returned
from paceline.providers.mail.reports import read_letter
from tests.providers.mail.letters_in import KEY, NAME, OURS, VERP, Came
from tests.providers.mail.letters_in.doubtful import PEOPLE

AT = parse_instant("2026-11-16T12:00:00Z")


def read(text: str) -> News:
    (news,) = read_letter(text.encode(), ours=[OURS], at=AT)
    return news


def letter(text: str, *, head: str = "", subject: str = "Your letter", to: str = OURS) -> News:
    return read(
        f"{head}From: <mailer-daemon@client.example>\nTo: {to}\nSubject: {subject}\n"
        f"Message-ID: <1@client.example>\nIn-Reply-To: {NAME}\n\n{text}\n"
    )


@pytest.mark.parametrize("name", ["postmaster", "bounce", "bounces", "Bounce+us", "mail-delivery"])
@pytest.mark.parametrize("subject", ["Re: Your offer", "AW: Your offer", "Re: Undeliverable"])
def test_whoever_says_stop_is_heard(name: str, subject: str) -> None:
    news = read(
        f"From: {name}@client.example\nTo: {OURS}\nSubject: {subject}\n"
        f"Message-ID: <1@client.example>\nIn-Reply-To: {NAME}\n\nSTOP\n"
    )
    assert isinstance(news, Inbound) and not news.automatic
    assert wish_of(news, DEFAULT) == "stop"


def test_one_that_only_says_that_it_answers_is_heard_as_well() -> None:
    news = read(f"From: postmaster@client.example\nTo: {OURS}\nSubject: Re: Your offer\n\nSTOP\n")
    assert isinstance(news, Inbound) and wish_of(news, DEFAULT) == "stop"


@pytest.mark.parametrize("came", PEOPLE, ids=lambda came: came.name)
def test_what_people_write_is_of_no_program(came: Came) -> None:
    news = read(came.text)
    assert isinstance(news, Inbound) and not news.automatic


@pytest.mark.parametrize(
    "head",
    ["Return-Path: <>\n", "X-Failed-Recipients: bert@client.example\n", "Return-Path: < >\n"],
)
def test_what_it_answers_tells_nothing_where_nothing_is_quoted(head: str) -> None:
    """A name of a letter in a header that every answer has is no proof that one came back."""
    news = letter("Something went wrong.", head=head)
    assert isinstance(news, Inbound) and news.answers == KEY and news.automatic
    told = letter("Something went wrong: 550 5.1.1 no such user", head=head)
    assert isinstance(told, Returned) and (told.kind, told.key) == ("bounced", KEY)


def test_the_address_of_the_letter_is_proof_enough() -> None:
    news = letter("It is not there any more.", head="Return-Path: <>\n", to=VERP)
    assert isinstance(news, Returned) and (news.kind, news.key) == ("failed", KEY)


@pytest.mark.parametrize("text", ["550 5.1.1 no such user", f"It was {NAME}", "hello"])
def test_the_senders_name_alone_says_nothing(text: str) -> None:
    assert isinstance(letter(text), Inbound)
