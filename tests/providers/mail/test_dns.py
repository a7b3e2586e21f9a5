"""SPF, DKIM and DMARC as an operator is told of them, asked of a real server on this machine."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dns.asyncresolver
import dns.flags
import dns.message
import dns.rcode
import dns.resolver
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
def serving(records: Mapping[str, list[str] | None]) -> Iterator[int]:
    """A name server that knows these texts and nothing else, and fails at a name whose texts are
    None; its port."""
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


def _answer(asked: bytes, records: Mapping[str, list[str] | None]) -> bytes:
    query = dns.message.from_wire(asked)
    answer = dns.message.make_response(query)
    answer.flags |= dns.flags.RA
    name = query.question[0].name
    spelled = str(name).rstrip(".")
    texts = records.get(spelled)
    if texts is None:
        answer.set_rcode(dns.rcode.SERVFAIL if spelled in records else dns.rcode.NXDOMAIN)
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
    records: Mapping[str, list[str] | None],
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


@pytest.mark.parametrize(
    ("failing", "what"),
    [
        ("shop.example", "SPF"),
        ("s1._domainkey.shop.example", "DKIM"),
        ("_dmarc.shop.example", "DMARC"),
    ],
)
def test_a_name_that_servers_fail_at_is_told_of_that_alone(
    monkeypatch: pytest.MonkeyPatch, failing: str, what: str
) -> None:
    good, lines = told(monkeypatch, GOOD), told(monkeypatch, {**GOOD, failing: None})
    said = {line.partition(":")[0]: line for line in lines}
    assert said[what] == f"{what}: not looked up; the name servers answered SERVFAIL for {failing}"
    assert [line for line in lines if line != said[what]] == [
        line for line in good if not line.startswith(f"{what}:")
    ]


def test_servers_that_fail_at_every_name_are_there_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = told(monkeypatch, dict.fromkeys(GOOD))
    assert len(lines) == 3
    assert all("not looked up; the name servers answered SERVFAIL for" in line for line in lines)


def test_a_name_that_nobody_answers_for_loses_no_other_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither where one question is not answered, nor where one line takes too many of them."""
    known = mail_dns._texts_at

    async def texts_at(name: str) -> list[str]:
        if name.startswith("_dmarc."):
            await asyncio.Event().wait()
        return await known(name)

    monkeypatch.setattr(mail_dns, "_texts_at", texts_at)
    monkeypatch.setattr(mail_dns, "LINE_WITHIN_S", 0.2)
    spf, dkim, dmarc = told(monkeypatch, GOOD)
    assert spf.startswith("SPF: v=spf1") and dkim.startswith("DKIM: a key is at")
    assert dmarc == "DMARC: not looked up; no answer within 0.2 seconds"


def alone_with(monkeypatch: pytest.MonkeyPatch, port: int) -> list[str]:
    resolver = dns.asyncresolver.Resolver(configure=False)
    resolver.nameservers, resolver.port = ["127.0.0.1"], port
    monkeypatch.setattr(mail_dns, "make_resolver", lambda: resolver)
    monkeypatch.setattr(mail_dns, "LOOK_WITHIN_S", 0.2)
    return asyncio.run(advice("shop.example"))


UNSEEN = "SPF, DKIM and DMARC of shop.example were not looked up:"


def test_a_server_that_never_answers_is_told_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        told = alone_with(monkeypatch, silent.getsockname()[1])
    assert told == [f"{UNSEEN} no name server answered in time"]


def test_without_dns_that_is_all_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> dns.asyncresolver.Resolver:
        raise dns.resolver.NoResolverConfiguration

    monkeypatch.setattr(mail_dns, "make_resolver", none)
    assert asyncio.run(advice("shop.example")) == [f"{UNSEEN} there is no DNS here"]


def test_servers_that_cannot_be_reached_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    query = dns.message.make_query("shop.example", "TXT")
    refused = ("127.0.0.1", False, 53, ConnectionRefusedError("refused"), None)

    async def unreachable(*_: object, **__: object) -> object:
        raise dns.resolver.NoNameservers(request=query, errors=[refused])

    monkeypatch.setattr(dns.asyncresolver.Resolver, "resolve", unreachable)
    assert alone_with(monkeypatch, 53) == [f"{UNSEEN} there is no DNS here"]
