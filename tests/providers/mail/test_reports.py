"""What letters say that come in: every form there is an example of, and whatever may be sent."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.engine.ports.webhooks import Inbound, News, Receipt, Returned
from paceline.providers.mail.ids import id_of
from paceline.providers.mail.incoming import (
    MOST_BYTES,
    addresses_in,
    taken_apart,
    words_in,
)
from tests.providers.mail.letters_in import KEY, NAME, WHOM, Came
from tests.providers.mail.letters_in.delays import DELAYS
from tests.providers.mail.letters_in.doubtful import DOUBTFUL
from tests.providers.mail.letters_in.encoded import ENCODED
from tests.providers.mail.letters_in.people import OTHERS
from tests.providers.mail.letters_in.prose import PROSE
from tests.providers.mail.letters_in.statuses import STATUSES
from tests.providers.mail.reading import AT, check, read

LETTERS = (*STATUSES, *PROSE, *DELAYS, *OTHERS, *DOUBTFUL, *ENCODED)


def one(text: str) -> News:
    (news,) = read(text.encode())
    return news


# ---------------------------------------------------------------------- every form


@pytest.mark.parametrize("letter", LETTERS, ids=lambda letter: letter.name)
def test_what_each_says(letter: Came) -> None:
    news = read(letter.raw)
    shown = [
        {name: getattr(each, name, "?") for name in expected}
        for each, expected in zip(news, letter.news, strict=True)
    ]
    assert shown == list(letter.news), news
    assert all(each.at == AT for each in news)


@pytest.mark.parametrize("letter", LETTERS, ids=lambda letter: letter.name)
def test_line_ends_make_no_difference(letter: Came) -> None:
    told = read(letter.raw)
    assert read(letter.text.encode()) == told
    assert read(letter.text.replace("\n", "\r").encode()) == told


def test_there_is_enough_of_everybody() -> None:
    assert len({letter.name for letter in LETTERS}) == len(LETTERS) >= 30
    assert all(letter.source for letter in LETTERS)
    kinds = {news.kind for letter in LETTERS for news in read(letter.raw)
             if isinstance(news, Returned)}  # fmt: skip
    assert kinds == {"bounced", "failed", "delayed", "complaint"}


@pytest.mark.parametrize("letter", (*STATUSES, *PROSE), ids=lambda letter: letter.name)
def test_a_report_that_does_not_know_our_name_is_not_believed(letter: Came) -> None:
    """Whatever else it has in it: only the name of a letter tells that it was ours."""
    raw = letter.raw.replace(b"pl.", b"xx.")
    assert all(each.key is None for each in read(raw) if isinstance(each, Returned | Receipt))


@pytest.mark.parametrize("letter", LETTERS, ids=lambda letter: letter.name)
def test_one_that_breaks_off_says_nothing_else(letter: Came) -> None:
    """Large letters are fetched in part. What was read then is no other news, only less of it."""
    whole = {each.kind for each in read(letter.raw) if isinstance(each, Returned)}
    end = letter.raw.find(b"Good morning!")
    if end >= 0:
        part = {each.kind for each in read(letter.raw[:end]) if isinstance(each, Returned)}
        assert part == whole


# ---------------------------------------------------------------------- bounces


FIELDS = """\
From: postmaster@client.example
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; client.example

{fields}

--b
Content-Type: text/rfc822-headers

Message-ID: {name}

--b--
"""


def fields(**values: str) -> News:
    lines = {"Final-Recipient": f"rfc822; {WHOM}"} | {
        name.replace("_", "-"): value for name, value in values.items()
    }
    text = "\n".join(f"{name}: {value}" for name, value in lines.items() if value)
    return one(FIELDS.format(fields=text, name=NAME))


@pytest.mark.parametrize(
    ("status", "diagnostic", "kind"),
    [
        ("5.1.1", "", "bounced"),
        ("5.1.2", "smtp; 550 host unknown", "bounced"),
        ("5.0.0", "smtp; 550 user unknown", "bounced"),
        ("", "smtp; 550 5.1.1 gone", "bounced"),
        ("", "smtp; host mx.client.example[192.0.2.1] said: 550 5.1.1 gone", "bounced"),
        ("5.1.1", "X-Postfix; unknown user: \"bert\"", "bounced"),
        # What the server itself said decides, and not what somebody on the way made of it.
        ("5.1.1", "smtp; 550 5.7.1 blocked", "failed"),
        ("5.7.1", "smtp; 550 5.7.1 user unknown", "failed"),
        ("5.2.2", "smtp; 552 5.2.2 over quota", "failed"),
        ("4.4.7", "smtp; 550 4.4.7 expired", "failed"),
        ("5.0.0", "smtp; 554 no", "failed"),
        ("", "", "failed"),
    ],
)  # fmt: skip
def test_only_an_address_that_does_not_exist_bounces(
    status: str, diagnostic: str, kind: str
) -> None:
    news = fields(Action="failed", Status=status, Diagnostic_Code=diagnostic)
    assert isinstance(news, Returned)
    assert (news.kind, news.address, news.key) == (kind, WHOM, KEY)
    assert news.reason


@pytest.mark.parametrize(
    ("action", "status", "kind"),
    [
        ("failed", "4.4.1", "failed"),
        ("Failed (permanently)", "5.1.1", "bounced"),
        ("error", "5.1.1", "bounced"),
        ("delayed", "4.4.1", "delayed"),
        ("delayed", "5.1.1", "delayed"),
        ("", "5.1.1", "bounced"),
        ("", "4.2.2", "delayed"),
    ],
)
def test_what_was_done_decides(action: str, status: str, kind: str) -> None:
    news = fields(Action=action, Status=status)
    assert isinstance(news, Returned) and news.kind == kind


@pytest.mark.parametrize("action", ["relayed", "expanded", "whatever", ""])
def test_what_is_no_news(action: str) -> None:
    text = f"Final-Recipient: rfc822; {WHOM}\nAction: {action}\nStatus: 2.0.0"
    assert read(FIELDS.format(fields=text, name=NAME).encode()) == []


def test_a_report_about_many_is_bounded() -> None:
    block = "Final-Recipient: rfc822; {}@client.example\nAction: failed\nStatus: 5.1.1"
    text = "\n\n".join(block.format(f"bert{number}") for number in range(200))
    news = read(FIELDS.format(fields=text, name=NAME).encode())
    assert len(news) == 50 and {each.kind for each in news if isinstance(each, Returned)} == {
        "bounced"
    }


def test_a_returned_letter_is_what_it_calls_itself() -> None:
    """Somebody wrote by hand to go on with one of ours, and that came back."""
    text = FIELDS.format(
        fields=f"Final-Recipient: rfc822; {WHOM}\nAction: failed\nStatus: 5.1.1",
        name=f"<by-hand@shop.example>\nReferences: {NAME}\nIn-Reply-To: {NAME}",
    )
    quoting = f"--b\nContent-Type: text/plain\n\n> Message-ID: {NAME}\n\n--b\n"
    news = one(text.replace("--b\n", quoting, 1))
    assert isinstance(news, Returned) and news.key is None


def test_the_first_name_in_prose_is_the_letters_own() -> None:
    other = id_of("another", "shop.example")
    text = f"""\
Return-Path: <>
From: MAILER-DAEMON@mx.client.example
Subject: failure notice

<{WHOM}>: 550 5.1.1 no such user

> References: {other}
> Message-ID: {NAME}
> Message-ID: {other}
"""
    news = one(text)
    assert isinstance(news, Returned) and news.key == KEY


# ---------------------------------------------------------------------- messages


@pytest.mark.parametrize(
    "header",
    [
        "Auto-Submitted: auto-replied", "Auto-Submitted: auto-generated; owner-email=x",
        "Precedence: auto_reply", "Precedence: Bulk", "X-Autoreply: yes", "X-Autorespond: away",
        "Return-Path: <>",
        "Subject: Out of Office: back soon", "Subject: Abwesend bis Montag",
        "Subject: Absence du bureau", "Subject: Respuesta automática: oferta",
        "Subject: Risposta automatica: offerta", "Subject: 自動応答: offer",
        "Subject: Автоматический ответ: offer", "Subject: Automatisch antwoord: aanbod",
    ],
)  # fmt: skip
def test_signs_of_a_program(header: str) -> None:
    news = one(f"{header}\nFrom: {WHOM}\nIn-Reply-To: {NAME}\n\nhello")
    assert isinstance(news, Inbound) and news.automatic and news.answers == KEY


@pytest.mark.parametrize(
    "header",
    [
        "Auto-Submitted: no", "X-Autoreply: no", "Precedence: normal", f"Return-Path: <{WHOM}>",
        "Subject: Re: Out of office furniture", "Subject: Your automatic reply machines",
        "Subject: Absentee votes", "X-Auto-Response-Suppress: None", "Precedence: list",
        "X-Auto-Response-Suppress: DR, OOF, AutoReply", "X-Auto-Response-Suppress: All",
        "List-Unsubscribe: <https://client.example/u>",
    ],
)  # fmt: skip
def test_no_signs_of_a_program(header: str) -> None:
    news = one(f"{header}\nFrom: {WHOM}\nIn-Reply-To: {NAME}\n\nhello")
    assert isinstance(news, Inbound) and not news.automatic


@pytest.mark.parametrize(
    ("header", "automatic"),
    [
        ("X-Auto-Response-Suppress: DR, OOF, AutoReply", True),
        ("X-Auto-Response-Suppress: None", False),
        ("Precedence: list", True),
    ],
)
def test_signs_of_a_program_that_answers_none_of_ours(header: str, automatic: bool) -> None:
    news = one(f"{header}\nFrom: {WHOM}\n\nhello")
    assert isinstance(news, Inbound) and news.automatic is automatic


def test_a_letter_without_a_name_is_given_one_that_stays() -> None:
    text = f"Received: by {{}}\nFrom: {WHOM}\nDate: today\nSubject: hi\n\nhello"
    first, again = one(text.format("one")), one(text.format("another"))
    other = one(f"From: {WHOM}\nDate: today\nSubject: hi\n\nhello!")
    assert isinstance(first, Inbound) and isinstance(again, Inbound) and isinstance(other, Inbound)
    assert first.provider_id == again.provider_id != other.provider_id
    assert first.provider_id.startswith("sha256:")


def test_a_name_that_is_too_long_is_none() -> None:
    news = one(f"From: {WHOM}\nMessage-ID: <{'x' * 300}@client.example>\n\nhello")
    assert isinstance(news, Inbound) and news.provider_id.startswith("sha256:")


def test_names_do_not_pass_for_addresses() -> None:
    assert addresses_in('"boss@bank.example" <Bert@Client.example>') == [WHOM]
    assert addresses_in('"<boss@bank.example>" <bert@client.example>') == [WHOM]
    assert addresses_in("bert@client.example (boss@bank.example)") == [WHOM]
    assert addresses_in("=?utf-8?q?=3Cboss=40bank=2Eexample=3E?= <bert@client.example>") == [WHOM]
    assert addresses_in("a@x.example, B <b@x.example>") == ["b@x.example"]
    assert addresses_in("nobody at all") == []


def test_several_pieces_of_text_are_one() -> None:
    news = one(
        f"From: {WHOM}\nContent-Type: multipart/mixed; boundary=m\n\n--m\n\nfirst\n--m\n"
        "Content-Type: text/plain\nContent-Disposition: attachment; filename=a.txt\n\nfile\n--m\n"
        "Content-Type: text/plain\n\nlast\n--m--\n"
    )
    assert isinstance(news, Inbound) and news.text == "first\nlast"


def test_html_as_mail_programs_write_it() -> None:
    page = (
        "<!--[if mso]><p>not read</p><![endif]--><style>p { a: b }</style><![if !supportLists]>"
        "<p>1 < 2 &amp; so on<img src='data:," + "x" * 5_000 + "'></p><!-- end"
    )
    news = one(f"From: {WHOM}\nContent-Type: text/html\n\n{page}")
    assert isinstance(news, Inbound) and news.text == "1 < 2 & so on"


def test_what_nobody_wrote_is_nothing() -> None:
    assert read(b"") == [] and read(b"\n\nhello") == [] and read(b"From: nobody\n\nhello") == []


# ---------------------------------------------------------------------- whatever anybody may send


@given(st.binary(max_size=2_000))
def test_any_bytes(raw: bytes) -> None:
    check(read(raw))
    check(read(b"From: bert@client.example\n" + raw))
    check(read(b"From: mailer-daemon@client.example\nReturn-Path: <>\n\n" + raw))


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A real letter with pieces of itself, of others and of nothing in the wrong places."""
    raw = bytearray(draw(st.sampled_from(LETTERS)).raw)
    for _ in range(draw(st.integers(1, 8))):
        at = draw(st.integers(0, len(raw)))
        end = min(len(raw), at + draw(st.integers(0, 200)))
        other = draw(st.sampled_from(LETTERS)).raw
        since = draw(st.integers(0, len(other)))
        put = draw(st.binary(max_size=40) | st.just(other[since : since + 300]) | st.just(b""))
        raw[at:end] = put
    return bytes(raw)


@given(mutated())
@settings(max_examples=300)
def test_letters_with_anything_in_them(raw: bytes) -> None:
    check(read(raw))


def test_only_the_beginning_is_read() -> None:
    raw = f"From: {WHOM}\n\nhello\n".encode() + b"x\n" * MOST_BYTES
    incoming = taken_apart(raw)
    assert len(incoming.source) <= MOST_BYTES
    assert incoming.text.startswith("hello")


def test_a_name_that_could_be_none_of_ours() -> None:
    for key in ("a\x00b", "a\nb", "", "x" * 201):
        news = one(f"From: {WHOM}\nIn-Reply-To: {id_of(key, 'shop.example')}\n\nhello")
        assert isinstance(news, Inbound) and news.answers is None


def test_what_steers_is_no_part_of_a_subject() -> None:
    assert words_in("=?utf-8?q?a=0d=0aBcc=3A_x=00?= b") == "a Bcc: x b"
