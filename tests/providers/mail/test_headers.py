"""Nothing that anybody writes adds a line to what stands above a letter."""

from __future__ import annotations

import email
import email.policy
import re
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from paceline.core.instants import parse_instant
from paceline.core.model import Part
from paceline.core.outcome import Outcome
from paceline.engine.ports import Message, Thread
from paceline.providers.mail.headers import one_line
from paceline.providers.mail.letters import File, Sender, compose, message_id

AT = parse_instant("2026-11-15T09:00:00Z")
SENDER = Sender("anna@shop.example")

odd = st.one_of(
    st.text(max_size=80),
    st.lists(
        st.sampled_from(
            ["\r\n", "\n", "\r", "\x00", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", " ",
             "\t", "Bcc: eve@evil.example", "\r\n\r\n", "=?utf-8?q?=0d=0aBcc:_eve@evil.example?=",
             "=?utf-8?b?DQpCY2M6IGV2ZQ==?=", "=?", "?=", "é", "名前", "😀", '"', "\\", "<", ">",
             "a" * 100, "\n--=_words--\n", "\n--=_letter\n", ";", ",", ":", "\u202e", "(", ")", "@"]
        ),
        max_size=8,
    ).map("".join),
)  # fmt: skip

ABOVE = ["From", "To", "Subject", "Date", "Message-ID"]
BELOW = ["MIME-Version", "Content-Type", "Content-Transfer-Encoding"]


def made(message: Message, sender: Sender = SENDER, *files: File) -> bytes | None:
    letter = compose(sender, message, files, AT)
    if isinstance(letter, Outcome):
        assert letter.refused
        return None
    return letter.raw


def read(raw: bytes) -> Any:
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert b"\n" not in raw.replace(b"\r\n", b"")
    assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", raw), "something that steers"
    return email.message_from_bytes(raw, policy=email.policy.default)


@given(odd, odd)
@example("=?utf-8?q?=0d=0aBcc:_eve@evil.example?=", "")
@example("a\r\nBcc: eve@evil.example\r\n\r\nbody", "x")
@settings(max_examples=300)
def test_a_subject_is_one_line_and_says_what_it_said(subject: str, body: str) -> None:
    raw = made(Message("home-7-0", "bob@example.com", "email", Part("text", f"{body}.", subject)))
    if raw is None:
        return
    found = read(raw)
    assert sorted(found.keys()) == sorted(ABOVE + BELOW)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", str(found["Subject"]))
    assert " ".join(str(found["Subject"]).split()) == one_line(subject)
    assert [found[name] for name in ("From", "To")] == ["anna@shop.example", "bob@example.com"]
    assert found["Message-ID"] == message_id("home-7-0", SENDER)


@given(odd, odd)
@settings(max_examples=300)
def test_a_name_is_a_name(name: str, thread_subject: str) -> None:
    sender = Sender("anna@shop.example", name)
    thread = Thread(("home-1-0",), thread_subject)
    sent = Message("home-7-0", "bob@example.com", "email", Part("text", "x"), thread=thread)
    raw = made(sent, sender)
    if raw is None:
        return
    found = read(raw)
    assert sorted(found.keys()) == sorted([*ABOVE, "In-Reply-To", "References", *BELOW])
    assert [one.addr_spec for one in found["From"].addresses] == ["anna@shop.example"]


@given(st.one_of(odd, odd.map(lambda text: f"bob{text}@example.com"), odd.map("bob@{}".format)))
@settings(max_examples=300)
def test_a_target_is_one_address_or_none(target: str) -> None:
    raw = made(Message("home-7-0", target, "email", Part("text", "x", "A word")))
    if raw is None:
        return
    found = read(raw)
    assert sorted(found.keys()) == sorted(ABOVE + BELOW)
    (address,) = found["To"].addresses
    assert address.username and address.domain


@given(odd, odd, odd)
@example("=?utf-8?q?=0d=0aX-Evil:_1=0d=0a=0d=0a?=.png", "image/png", "")
@example("a.png", "image/png", "\n--=_words\nX-Evil: 1\n\n")
@settings(max_examples=300)
def test_files_and_pages_stay_below(name: str, mime: str, page: str) -> None:
    html = f"<p>{page}</p><img src='cid:{name}'>"
    sent = Message("home-7-0", "bob@example.com", "email", Part("text", "", "A", html))
    raw = made(sent, SENDER, File(name, mime, b"content"))
    if raw is None:
        return
    found = read(raw)
    assert set(found.keys()) == {*ABOVE, "MIME-Version", "Content-Type"}
    allowed = {*BELOW, "Content-Disposition", "Content-ID"}
    for part in list(found.walk())[1:]:
        assert set(part.keys()) <= allowed, part.keys()
    kinds = [part.get_content_type() for part in found.walk() if not part.is_multipart()]
    assert kinds[:2] == ["text/plain", "text/html"] and len(kinds) == 3
    files = [part for part in found.walk() if part.get_content_disposition() is not None]
    assert [part.get_payload(decode=True) for part in files] == [b"content"]
