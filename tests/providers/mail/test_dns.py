"""SPF, DKIM and DMARC as an operator is told of them, asked of a real server on this machine."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import dns.asyncresolver
import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest

from paceline.providers.mail import dns as mail_dns
from paceline.providers.mail.dns import advice

GOOD = {
    "shop.example": ["google-site-verification=x", "v=spf1 include:_spf.example ~all"],
    "s1._domainkey.shop.example": ["v=DKIM1; k=rsa; p=MIGfMA0G"],
    "_dmarc.shop.example": ["v=DMARC1; p=reject; rua=mailto:x@shop.example"],
}


@contextmanager
def serving(records: dict[str, list[str]]) -> Iterator[int]:
    """A name server that knows these texts and nothing else; its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind(("127.0.0.1", 0))

        def serve() -> None:
            while True:
                asked, whom = bound.recvfrom(4096)
                if not asked:
                    return
                bound.sendto(_answer(asked, records), whom)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield bound.getsockname()[1]
        finally:
            bound.sendto(b"", bound.getsockname())
            thread.join()


def _answer(asked: bytes, records: dict[str, list[str]]) -> bytes:
    query = dns.message.from_wire(asked)
    answer = dns.message.make_response(query)
    answer.flags |= dns.flags.RA
    name = query.question[0].name
    texts = records.get(str(name).rstrip("."))
    if texts is None:
        answer.set_rcode(dns.rcode.NXDOMAIN)
    else:
        # Long ones come in pieces of at most 255.
        quoted = [
            " ".join(f'"{text[i : i + 200]}"' for i in range(0, len(text), 200)) for text in texts
        ]
        answer.answer.append(dns.rrset.from_text(name, 60, "IN", "TXT", *quoted))
    return answer.to_wire()


def _in_pieces(text: str) -> str:
    """As a zone has it: no piece may be longer than 255."""
    return " ".join(f'"{text[first : first + 200]}"' for first in range(0, len(text), 200))


def told(
    monkeypatch: pytest.MonkeyPatch,
    records: dict[str, list[str]],
    selector: str = "s1",
    envelope: str = "",
) -> list[str]:
    with serving(records) as port:

        def local() -> dns.asyncresolver.Resolver:
            resolver = dns.asyncresolver.Resolver(configure=False)
            resolver.nameservers, resolver.port = ["127.0.0.1"], port
            return resolver

        monkeypatch.setattr(mail_dns, "make_resolver", local)
        return asyncio.run(advice("shop.example", selector, envelope))


def test_a_domain_that_says_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, GOOD) == [
        "SPF: v=spf1 include:_spf.example ~all",
        "DKIM: a key is at s1._domainkey.shop.example",
        "DMARC: shop.example says p=reject",
    ]


def test_a_long_record_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    long = f"v=spf1 {' '.join(f'ip4:10.0.0.{n}' for n in range(40))} -all"
    assert told(monkeypatch, {**GOOD, "shop.example": [long]})[0] == f"SPF: {long}"


def test_a_domain_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    spf, dkim, dmarc = told(monkeypatch, {"example": ["v=DMARC1; p=none"]}, "")
    assert "does not say who may send" in spf
    assert "dkim_selector says under which name" in dkim
    assert dmarc.startswith("DMARC: shop.example has none")


@pytest.mark.parametrize(
    ("name", "texts", "words"),
    [
        ("shop.example", ["v=spf1 -all", "v=spf1 ~all"], "has 2 records, and so has none"),
        ("shop.example", ["v=spf1 +all"], "lets anybody send"),
        ("shop.example", ["v=spf10 -all"], "does not say who may send"),
        ("s1._domainkey.shop.example", ["v=DKIM1; p="], "was withdrawn"),
        ("s1._domainkey.shop.example", ["nonsense"], "there is no key"),
        ("_dmarc.shop.example", ["v=DMARC1; p=none", "v=DMARC1; p=reject"], "has 2 records"),
        ("_dmarc.shop.example", ["v=DMARC1"], "says p=none"),
    ],
)
def test_what_is_wrong_is_said(
    monkeypatch: pytest.MonkeyPatch, name: str, texts: list[str], words: str
) -> None:
    (line,) = [one for one in told(monkeypatch, {**GOOD, name: texts}) if words in one]
    assert line


@pytest.mark.parametrize(
    ("envelope", "spf"),
    [
        ("shop.example", "SPF: v=spf1 include:_spf.example ~all"),
        ("back.shop.example", "SPF: v=spf1 ip4:192.0.2.1 -all"),
        (
            "mail.example",
            "SPF: v=spf1 a -all; that is of mail.example, which letters come back to, "
            "so for DMARC only DKIM counts",
        ),
    ],
)
def test_where_letters_come_back_to_says_who_may_send_them(
    monkeypatch: pytest.MonkeyPatch, envelope: str, spf: str
) -> None:
    records = {
        **GOOD,
        "back.shop.example": ["v=spf1 ip4:192.0.2.1 -all"],
        "mail.example": ["v=spf1 a -all"],
    }
    first, dkim, dmarc = told(monkeypatch, records, envelope=envelope)
    assert first == spf
    assert (dkim, dmarc) == (
        "DKIM: a key is at s1._domainkey.shop.example",
        "DMARC: shop.example says p=reject",
    )


def test_the_domain_above_speaks_for_one_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    records = {"_dmarc.shop.example": ["v=DMARC1; p=quarantine"]}
    with serving(records) as port:
        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.nameservers, resolver.port = ["127.0.0.1"], port
        monkeypatch.setattr(mail_dns, "make_resolver", lambda: resolver)
        *_, dmarc = asyncio.run(advice("news.mail.shop.example"))
    assert dmarc == "DMARC: shop.example says p=quarantine"


@pytest.mark.parametrize("selector", ["a..b", "x" * 70])
def test_a_key_that_nobody_can_have(monkeypatch: pytest.MonkeyPatch, selector: str) -> None:
    spf, dkim, dmarc = told(monkeypatch, GOOD, selector=selector)
    assert dkim == f"DKIM: not looked up; no key can be called so: dkim_selector is {selector!r}"
    assert spf.startswith("SPF: v=spf1") and dmarc.endswith("p=reject")


def test_without_dns_that_is_all_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.nameservers, resolver.port = ["127.0.0.1"], silent.getsockname()[1]
        monkeypatch.setattr(mail_dns, "make_resolver", lambda: resolver)
        monkeypatch.setattr(mail_dns, "LOOK_WITHIN_S", 0.2)
        (line,) = asyncio.run(advice("shop.example"))
    assert line == "SPF, DKIM and DMARC of shop.example were not looked up: there is no DNS here"
