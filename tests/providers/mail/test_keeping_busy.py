"""Letters that are written to keep us busy: none takes long, or much memory, to be read."""

from __future__ import annotations

import base64
import encodings
import tracemalloc
from collections.abc import Iterator

import pytest

from paceline.engine.ports.webhooks import Inbound
from paceline.providers.mail.incoming import LONGEST_PAGE
from tests.providers.mail.letters_in import WHOM
from tests.providers.mail.reading import check, read

MOST_MEMORY = 32 * 2**20
"""Bytes. A letter is read up to 256 KiB, and so is everything that is made of it on the way."""

HEADS = {
    "many-parts": b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 60_000,
    "deep": b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(5_000)
    ),
    "letters-in-letters": b"Content-Type: message/rfc822\n\n" * 8_000,
    "long-type": b'Content-Type: multipart/mixed; "' + b";" * 250_000 + b"\n\nx",
    "folded-type": b"Content-Type: multipart/mixed" + b'\n ";' * 60_000 + b"\n\nx",
    "long-line": b"\n" + b"a" * 300_000,
    "at-signs": b"\n" + b"@" * 300_000,
    "comments": b"Reply-To: " + b"(" * 100_000 + b"\n\nx",
    "angles": b"Reply-To: " + b"<" * 100_000 + b"\n\nx",
    "quotes": b"To: " + b'"\\' * 60_000 + b"\n\nx",
    "words": b"Subject: " + b"=?utf-8?q?" * 20_000 + b"\n\nx",
    "references": b"References: " + b"<pl.aa.aaaaaa@x> " * 20_000 + b"\n\nx",
    "names": b"\n" + b"Message-ID: " * 20_000,
    "nothing": b"Content-Transfer-Encoding: base64\n\n" + base64.encodebytes(b"\n" * 180_000),
    "sealed": b"Content-Type: multipart/mixed; boundary=b\n\n"
    + b"--b\nContent-Type: message/x\nContent-Transfer-Encoding: base64\n\nMESSAGE/\n" * 8_000,
    "spaces": b"Content-Transfer-Encoding: base64\n\n" + base64.encodebytes(b" " * 180_000),
    "blocks": b"Content-Type: message/delivery-status\n\n" + b"a: b\n\n" * 60_000,
    "links": b"Content-Type: text/html\n\n" + b"<a href=b>y" * 10_000 + b"</a>" * 10_000,
    "comments-in-html": b"Content-Type: text/html\n\n" + b"<!" * 100_000,
    "open-tags": b"Content-Type: text/html\n\n" + b"<a " * 80_000,
    "open-comments": b"Content-Type: text/html\n\n" + b"<!--" * 60_000,
    "one-tag": b"Content-Type: text/html\n\n<a" + b" a='" * 60_000 + b">",
    "unknown-in-html": b"Content-Type: text/html\n\nhello <![what[ x",
    "base64": b"Content-Transfer-Encoding: base64\n\n"
    + base64.encodebytes(b"<a@" * 60_000),
    "punycode": b"Content-Type: text/plain; charset=punycode\n\n" + b"a" * 200_000,
    "uuencode": b"Content-Transfer-Encoding: x-uuencode\n\nbegin 644 a\nM\xff\xff\nend\n",
    "charset": b"Content-Type: text/plain; charset=\"utf\x008\"\n\nx\xff",
    "charset-in-two": b"Content-Type: text/plain; charset*=no''%ff\n\nx",
    "subject": b"Subject: =?no-such?b?////?= =?utf-8?b?!?= \x00\xff\n\nx",
    "lists-in-lists": b"Content-Type: text/html\n\n" + b"<ul><li>" * 30_000,
    "numbered-lists": b"Content-Type: text/html\n\n" + b"<ol>" * 8_000 + b"<li>" * 8_000,
    "pages-of-lists": b"Content-Type: multipart/mixed; boundary=b\n\n"
    + (b"--b\nContent-Type: text/html\n\n" + b"<ul><li>" * 8_000 + b"\n") * 4,
    "tables-in-tables": b"Content-Type: text/html\n\n" + b"<table><tr><td>" * 15_000,
    "links-in-links": b"Content-Type: text/html\n\n" + b"<a href=b>y" * 4_300 + b"</a>" * 4_300,
    "breaks-behind-much": b"Content-Type: text/html\n\n" + b"y" * 30_000 + b"<p>" * 30_000,
    "entities": b"Content-Type: text/html\n\n" + b"&CounterClockwiseContourIntegral" * 7_000,
    "ampersands": b"Content-Type: text/html\n\n" + b"&" * 200_000,
    "attributes": b"Content-Type: text/html\n\n" + (b"<a " + b"a=& " * 480 + b">") * 120,
    "scripts": b"Content-Type: text/html\n\n<script>" + b"</scrip" * 30_000,
    "punycode-spelled-oddly": b'Content-Type: text/plain; charset=" punycode"\n\n'
    + b"a" * 200_000,
}  # fmt: skip


@pytest.fixture
def memory() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.timeout(10)
@pytest.mark.parametrize("who", ["bert@client.example", "mailer-daemon@client.example"])
@pytest.mark.parametrize("name", HEADS)
def test_it_takes_neither_long_nor_much(name: str, who: str, memory: None) -> None:
    """What is slow or grows with much is given little."""
    raw = f"From: {who}\nReturn-Path: <>\n".encode() + HEADS[name]
    before, _ = tracemalloc.get_traced_memory()
    news = read(raw)
    _, most = tracemalloc.get_traced_memory()
    check(news)
    assert news, "it has a sender, so it is a message at least"
    assert most - before < MOST_MEMORY, f"{(most - before) >> 20} MiB for {len(raw) >> 10} KiB"


def test_all_pages_of_a_letter_are_bounded_together() -> None:
    page = "--b\nContent-Type: text/html\n\n{}\n"
    pages = page.format("ones" + "<br>" * (LONGEST_PAGE // 4)) + page.format("two")
    head = f"From: {WHOM}\nContent-Type: multipart/mixed; boundary=b\n\n"
    (news,) = read(f"{head}{pages}--b--\n".encode())
    assert isinstance(news, Inbound) and news.text == "ones"
    (news,) = read(f"{head}{page.format('one')}{page.format('two')}--b--\n".encode())
    assert isinstance(news, Inbound) and news.text == "one\ntwo"


def test_what_an_encoding_is_called_is_not_kept_for_good() -> None:
    """Python keeps every name that it was ever asked for, and letters may name any."""
    for name in ("made-up-by-somebody", "utf------8"):
        (news,) = read(f"From: {WHOM}\nContent-Type: text/plain; charset={name}\n\nhé".encode())
        assert isinstance(news, Inbound) and news.text == "hé"
        assert not {name, name.replace("-", "_")} & set(encodings._cache)  # type: ignore[attr-defined]
