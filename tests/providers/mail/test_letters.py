"""Letters, read back as whoever gets them reads them."""

from __future__ import annotations

import base64
import email
import email.policy
import hashlib
from email.message import EmailMessage
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.instants import SECOND, parse_instant
from paceline.core.model import Part
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Message, Thread
from paceline.providers.mail import letters
from paceline.providers.mail.letters import (
    File,
    Letter,
    Sender,
    compose,
    key_in,
    message_id,
)

AT = parse_instant("2026-11-15T09:00:00Z")
ANNA = Sender("anna@shop.example", "Anna Müller", "office@shop.example")
PNG = File("logo.png", "image/png", b"\x89PNG\r\n\x1a\n")
PDF = File("Angebot für Bob “1”.pdf", "application/pdf", b"%PDF\r\n.\r\n\x00\xff")


def message(target: str = "bob@example.com", text: str = "Hello", **more: Any) -> Message:
    rest = {name: more.pop(name) for name in ("thread", "unsubscribe", "key") if name in more}
    part = Part("text", text, **({"subject": "A word"} | more))
    return Message(rest.pop("key", "home-7-0"), target, "email", part, **rest)


def made(sent: Message, *files: File, sender: Sender = ANNA, **more: Any) -> Letter:
    letter = compose(sender, sent, files, AT, **more)
    assert isinstance(letter, Letter), letter
    return letter


def refused(sent: Message, *files: File, sender: Sender = ANNA, **more: Any) -> Outcome:
    outcome = compose(sender, sent, files, AT, **more)
    assert isinstance(outcome, Outcome) and outcome.kind is OutcomeKind.REJECTED, outcome
    return outcome


def parsed(letter: Letter) -> EmailMessage:
    found = email.message_from_bytes(letter.raw, policy=email.policy.default)
    assert isinstance(found, EmailMessage) and not found.defects
    assert all(not part.defects for part in found.walk())
    return found


def test_what_stands_above_a_letter() -> None:
    letter = made(message())
    read = parsed(letter)
    assert list(read.keys()) == [
        "From", "To", "Reply-To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type",
        "Content-Transfer-Encoding",
    ]  # fmt: skip
    assert read["From"].addresses[0].display_name == "Anna Müller"
    assert read["From"].addresses[0].addr_spec == "anna@shop.example"
    assert (read["To"], read["Reply-To"]) == ("bob@example.com", "office@shop.example")
    assert read["Date"].datetime.isoformat() == "2026-11-15T09:00:00+00:00"
    assert read["Message-ID"] == letter.message_id == message_id("home-7-0", ANNA)
    assert read.get_content() == "Hello\r\n"
    assert (letter.sender, letter.recipient) == ("anna@shop.example", "bob@example.com")
    assert letter.size == len(letter.raw)


def test_every_letter_has_its_own_second_and_its_own_sender() -> None:
    """Both are remembered from one letter to the next."""
    seen = []
    for at, sender in ((AT, ANNA), (AT + 999_999, Sender("ben@shop.example")), (AT + SECOND, ANNA)):
        letter = compose(sender, message(), (), at)
        assert isinstance(letter, Letter)
        read = parsed(letter)
        seen.append((read["Date"].datetime.second, read["From"].addresses[0].display_name))
        assert letter.sender == read["From"].addresses[0].addr_spec == sender.address
    assert seen == [(0, "Anna Müller"), (0, ""), (1, "Anna Müller")]


def test_what_is_not_given_does_not_stand_there() -> None:
    read = parsed(made(message(), sender=Sender("anna@shop.example")))
    for name in ("Reply-To", "In-Reply-To", "References", "List-Unsubscribe", "Auto-Submitted"):
        assert read[name] is None
    assert read["From"] == "anna@shop.example"


def test_lines_are_as_mail_servers_take_them() -> None:
    long = "Ein sehr langer Betreff mit Umlauten äöü " * 20
    letter = made(
        message(subject=long, text="x" * 5_000 + "\n.\nÄ\r\nfrom\n", html="<p>é</p>" * 500), PDF
    )
    assert letter.raw.isascii() and letter.raw.endswith(b"\r\n")
    lines = letter.raw.split(b"\r\n")
    assert max(map(len, lines)) <= 78
    assert b"\n" not in b"".join(lines) and b"\r" not in b"".join(lines)
    assert parsed(letter)["Subject"] == long.strip()


@given(st.text(max_size=40))
def test_an_id_has_the_key_in_base_32_and_the_beginning_of_a_hash(key: str) -> None:
    """They are in letters that were sent years ago, so they stay as they are."""

    def spelled(raw: bytes) -> str:
        return base64.b32encode(raw).decode().rstrip("=").lower()

    proof = spelled(hashlib.sha256(b"paceline " + key.encode()).digest())[:6]
    own = f"<pl.{spelled(key.encode())}.{proof}@shop.example>"
    assert message_id(key, ANNA) == own
    assert key_in(own) == (key or None)


# ---------------------------------------------------------------------- words and pictures


@pytest.mark.parametrize("length", [letters.SHORT, letters.SHORT + 1, letters.LONG + 1])
def test_a_page_that_is_the_same_for_all_and_one_of_ones_own(length: int) -> None:
    """What is remembered of one letter is not in another."""
    asked: list[str] = []

    def told(html: str) -> str:
        asked.append(html)
        return f"{html[-4:]} {'x' * length}"

    for end in ("one.", "two.", "one.", "tva.", "two."):
        page = f"{'<p>a</p>' * (length // 8)}{end:>{length % 8 + 4}}"
        read = parsed(made(message(text="", html=page), html_to_text=told))
        plain, shown = read.iter_parts()
        assert plain.get_content().startswith(f"{end} x")
        assert shown.get_content() == f"{page}\r\n"
        own = parsed(made(message(text=page)))
        assert own.get_content() == f"{page}\r\n"
    assert len(asked) == (3 if length <= letters.LONG else 5)


def test_html_has_a_text_beside_it() -> None:
    html = '<style>p{}</style><p>Hi <a href="https://x.example/a">there</a></p>'
    read = parsed(made(message(text="", html=html)))
    assert read.get_content_type() == "multipart/alternative"
    plain, page = read.iter_parts()
    assert plain.get_content() == "Hi there (https://x.example/a)\r\n"
    assert page.get_content() == f"{html}\r\n"
    own = parsed(made(message(text="Mine", html=html)))
    assert next(own.iter_parts()).get_content() == "Mine\r\n"
    other = parsed(made(message(text="", html=html), html_to_text=lambda _: "Told"))
    assert next(other.iter_parts()).get_content() == "Told\r\n"


def test_pictures_of_the_page_are_in_it_and_other_files_beside_it() -> None:
    spaced = File("my logo.png", "image/png", b"2")
    html = '<img src="cid:logo.png"><img src="cid:my%20logo.png"><a href="cid:logo.png2">x</a>'
    read = parsed(made(message(text="", html=html), PNG, spaced, PDF))
    assert read.get_content_type() == "multipart/mixed"
    page = read.get_body(("related",))
    assert page is not None and page.get_content_type() == "multipart/related"
    shown, *pictures = page.iter_parts()
    assert [part["Content-ID"] for part in pictures] == ["<logo.png>", "<picture-2>"]
    assert "cid:picture-2" in shown.get_content() and "my%20logo" not in shown.get_content()
    assert [part.get_content() for part in pictures] == [PNG.content, b"2"]
    assert {part.get_content_disposition() for part in pictures} == {"inline"}
    (attached,) = read.iter_attachments()
    assert (attached.get_filename(), attached.get_content()) == (PDF.name, PDF.content)


def test_files_without_a_page() -> None:
    read = parsed(made(message(text=""), PNG, PDF))
    assert [part.get_filename() for part in read.iter_attachments()] == ["logo.png", PDF.name]
    odd = File("../../etc/x\r\nBcc: y.txt", "nonsense; x=\r\n", b"1")
    (part,) = parsed(made(message(), odd)).iter_attachments()
    assert (part.get_filename(), part.get_content_type()) == (
        "x Bcc: y.txt",
        "application/octet-stream",
    )
    coded = File("=?utf-8?q?=0d=0aBcc:_x?=.png", "image/png", b"1")
    (part,) = parsed(made(message(), coded)).iter_attachments()
    assert part.get_filename() == coded.name, "it is no encoded word"
    long = File("é" * 100 + ".pdf", "application/pdf", b"1")
    (part,) = parsed(made(message(), long)).iter_attachments()
    assert part.get_filename() == long.name
    whole = File("old.eml", "message/rfc822", b"Subject: x\r\n\r\nHello \xff")
    (part,) = parsed(made(message(), whole)).iter_attachments()
    assert part.get_content() == whole.content


# ---------------------------------------------------------------------- threads and leaving


def test_what_follows_is_in_the_same_thread() -> None:
    thread = Thread(tuple(f"home-{n}-0" for n in range(3)), "Our offer")
    read = parsed(made(message(subject="", thread=thread)))
    ids = [message_id(key, ANNA) for key in thread.keys]
    assert read["Subject"] == "Re: Our offer"
    assert read["In-Reply-To"] == ids[-1]
    assert read["References"].split() == ids
    assert parsed(made(message(subject="New", thread=thread)))["Subject"] == "New"
    answered = Thread(("home-1-0",), "RE: Our offer")
    assert parsed(made(message(subject="", thread=answered)))["Subject"] == "RE: Our offer"
    assert parsed(made(message(subject="", thread=Thread((), ""))))["References"] is None


def test_ids_are_never_encoded_however_long() -> None:
    sender = Sender(f"anna@{'long-' * 11}label.{'other-' * 9}label.example")
    thread = Thread(tuple(f"{'instance' * 6}-{n}-0" for n in range(40)), "x")
    link = f"https://shop.example/unsubscribe/{'t' * 400}"
    letter = made(message(thread=thread, unsubscribe=link), sender=sender)
    read = parsed(letter)
    assert b"=?" not in letter.raw
    ids = read["References"].split()
    assert ids[0] == message_id(thread.keys[0], sender)
    assert ids[1:] == [message_id(key, sender) for key in thread.keys[-11:]]
    assert read["List-Unsubscribe"] == f"<{link}>"
    assert read["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


def test_only_what_must_not_be_cut_is_longer_than_a_line() -> None:
    link = f"https://shop.example/unsubscribe/{'t' * 120}"
    thread = Thread(tuple(f"{'instance' * 6}-{n}-0" for n in range(10)), "x" * 200)
    name = "ein sehr langer Name für eine Datei " * 4
    file = File(f"{name}.pdf", "application/pdf", b"x" * 500)
    text = f"{'wörter ' * 60}\n{'x' * 300}"
    letter = made(message(text=text, subject="Größe " * 40, thread=thread, unsubscribe=link), file)
    lines = letter.raw.decode("ascii").split("\r\n")
    cut = [line for line in lines if len(line) > 76]
    assert all(any(sign in line for sign in ("https://", "@", "name*")) for line in cut), cut
    assert max(map(len, lines)) <= 998


@pytest.mark.parametrize(
    ("link", "promised"),
    [
        ("https://shop.example/unsubscribe/1.x", True),
        ("http://shop.example/unsubscribe/1.x", False),
        ("http://127.0.0.1:8080/unsubscribe/1.x", True),
        ("http://localhost/unsubscribe/1.x", True),
    ],
)
def test_one_click_is_promised_of_encrypted_links_only(link: str, promised: bool) -> None:
    """RFC 8058, 3.1: the List-Unsubscribe header must have one HTTPS URI."""
    read = parsed(made(message(unsubscribe=link)))
    assert read["List-Unsubscribe"] == f"<{link}>"
    assert (read["List-Unsubscribe-Post"] is not None) == promised


def test_ids_are_the_same_for_every_attempt_and_are_known_again() -> None:
    first, again = made(message()), made(message(text="Hello"), at_other := PDF)
    assert at_other is PDF and first.message_id == again.message_id
    assert made(message(key="home-7-1")).message_id != first.message_id
    for text in (
        first.message_id,
        first.message_id.upper(),
        f"<x@y.example> {first.message_id} <z@y.example>",
        f"bounces+{first.message_id[1:].partition('@')[0]}@shop.example",
    ):
        assert key_in(text) == "home-7-0"
    assert key_in(f"{message_id('home-1-0', ANNA)} {message_id('home-2-0', ANNA)}") == "home-2-0"
    changed = first.message_id.replace("pl.n", "pl.m")
    for text in ("", "<x@y.example>", changed, "<pl.aaaa.bbbbbb@y.example>", "pl.a.b"):
        assert key_in(text) is None


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "target",
    [
        "", "bob", "bob@", "@example.com", "bob@exa mple.com", "bob@example.com\r\nBcc: x@y.org",
        "bob@example.com, eve@example.com", "<bob@example.com>", "Bob <bob@example.com>",
        "bob@example.com\x00", "bob\u2028@example.com", "120363041234567890@g.us", "+4915112345678",
        "=?utf-8?q?bob?=@example.com", "bob@-.example", "a" * 65 + "@example.com", "b..b@x.org",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(target: str) -> None:
    assert refused(message(target)).code == "target"


def test_domains_of_any_language() -> None:
    letter = made(message("bob@bücher.example"))
    assert letter.recipient == "bob@xn--bcher-kva.example" and not letter.needs_utf8
    assert parsed(letter)["To"] == "bob@xn--bcher-kva.example"
    sender = Sender("anna@müller.example")
    assert made(message(), sender=sender).sender == "anna@xn--mller-kva.example"


def test_letters_before_the_at_need_a_server_that_takes_them() -> None:
    outcome = refused(message("jürgen@bücher.example"))
    assert outcome.code == "smtputf8" and "SMTPUTF8" in outcome.reason
    letter = made(message("jürgen@bücher.example"), utf8=True)
    assert letter.needs_utf8 and letter.recipient == "jürgen@xn--bcher-kva.example"
    assert "To: jürgen@xn--bcher-kva.example\r\n".encode() in letter.raw


@pytest.mark.parametrize(
    "link",
    ["https://x.example/a b", "https://münchen.example/1", "js:x", f"https://x/{'a' * 900}"],
)
def test_a_link_that_letters_cannot_bear_is_no_letters_fault(link: str) -> None:
    """It would be in all of them, so the account has to wait, and no delivery fails."""
    outcome = compose(ANNA, message(unsubscribe=link), (), AT)
    assert isinstance(outcome, Outcome)
    assert (outcome.kind, outcome.code) == (OutcomeKind.UNAUTHORISED, "unsubscribe")
    assert "base_url" in outcome.reason


def test_nothing_and_too_much() -> None:
    assert refused(message(text=" \n")).code == "text"
    assert refused(message(text="\ud800")).code == "text"
    assert refused(message(subject="\ud800")).code == "text"
    big = File("big.bin", "application/octet-stream", b"x" * 80_000)
    assert refused(message(), big, largest=70_000).code == "too-large"
    outcome = refused(message(), big, largest=100_000)
    assert outcome.code == "too-large"
    assert outcome.reason.endswith("KiB, and 97.6 KiB can be sent")
    assert letters.too_large(1_001, 1_000).reason == (
        "the letter has 1.0 KiB, and 0.9 KiB can be sent"
    )
    assert "has 25.1 MiB, and 25.0 MiB" in letters.too_large(25 * 2**20 + 1, 25 * 2**20).reason
    assert made(message(), big, largest=120_000).size <= 120_000
