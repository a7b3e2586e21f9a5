"""What a domain says about who may send for it: SPF, DKIM and DMARC, as receiving servers read it.

Only looked at, when an operator asks how an account is doing. What is missing keeps nobody from
sending; but many servers refuse such letters, or call them spam.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import dns.asyncresolver
import dns.exception
import dns.name
import dns.resolver

LOOK_WITHIN_S = 5.0
MOST_LABELS = 6


class Unreachable(Exception):
    """There is no DNS to be asked from here."""


def make_resolver() -> dns.asyncresolver.Resolver:
    """The one that this machine is set up with; without any it is an error of its own."""
    return dns.asyncresolver.Resolver()


async def _texts_at(name: str) -> list[str]:
    """The texts at a name, none where there are none; ``Unreachable`` where nobody answers."""
    try:
        answer = await make_resolver().resolve(name, "TXT", lifetime=LOOK_WITHIN_S)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return []
    except (dns.exception.DNSException, OSError) as error:
        raise Unreachable(str(error)) from None
    return [b"".join(record.strings).decode("utf-8", "replace") for record in answer]


async def advice(domain: str, selector: str = "", envelope: str = "") -> list[str]:
    """One line each on SPF, DKIM and DMARC of a domain; one in all where they cannot be seen.

    Servers ask the domain of the ``envelope`` for its SPF, where letters come back to another one
    than they are from."""
    bad = _bad_selector(selector)
    try:
        asked = (_spf(envelope or domain), _dkim(domain, "" if bad else selector), _dmarc(domain))
        told = list(await asyncio.gather(*asked))
    except Unreachable:
        return [f"SPF, DKIM and DMARC of {domain} were not looked up: there is no DNS here"]
    if bad:
        told[1] = f"DKIM: not looked up; {bad}"
    if envelope and not _kin(envelope, domain):
        told[0] += (
            f"; that is of {envelope}, which letters come back to, so for DMARC only DKIM counts"
        )
    return told


def _bad_selector(selector: str) -> str:
    """What is wrong with the name of a key, so that none can be there."""
    try:
        dns.name.from_text(f"{selector or 'none'}._domainkey")
    except dns.exception.DNSException:
        return f"no key can be called so: dkim_selector is {selector!r}"
    return ""


def _kin(one: str, other: str) -> bool:
    """Whether one of them is below the other, or both are the same: then DMARC takes one for the
    other, unless it says otherwise."""
    return f".{one}".endswith(f".{other}") or f".{other}".endswith(f".{one}")


async def _spf(domain: str) -> str:
    found = _of_kind(await _texts_at(domain), "v=spf1")
    if not found:
        return f"SPF: {domain} does not say who may send for it; many servers will not believe you"
    if len(found) > 1:
        return f"SPF: {domain} has {len(found)} records, and so has none: only one may be there"
    (record,) = found
    if any(word in ("all", "+all") for word in record.lower().split()):
        return f"SPF: {domain} lets anybody send for it ({record})"
    return f"SPF: {record}"


async def _dkim(domain: str, selector: str) -> str:
    if not selector:
        return "DKIM: not looked up; dkim_selector says under which name your server signs"
    name = f"{selector}._domainkey.{domain}"
    fields = [_fields(text) for text in await _texts_at(name)]
    keys = [one["p"] for one in fields if "p" in one]
    if not keys:
        return f"DKIM: there is no key at {name}, so what your server signs cannot be checked"
    return f"DKIM: a key is at {name}" if any(keys) else f"DKIM: the key at {name} was withdrawn"


async def _dmarc(domain: str) -> str:
    """At the domain itself, else at the nearest one above it that has an opinion."""
    labels = domain.split(".")[-MOST_LABELS:]
    for first in range(len(labels) - 1):
        name = ".".join(labels[first:])
        found = _of_kind(await _texts_at(f"_dmarc.{name}"), "v=dmarc1")
        if len(found) == 1:
            policy = _fields(found[0]).get("p", "none")
            return f"DMARC: {name} says p={policy}"
        if found:
            return f"DMARC: {name} has {len(found)} records, and so has none"
    return f"DMARC: {domain} has none; Gmail and Yahoo want one from whoever sends much"


def _of_kind(texts: Sequence[str], begins: str) -> list[str]:
    """The records that begin so, as a word of its own."""
    found = []
    for text in texts:
        head = text.strip().lower()
        if head == begins or head.startswith((f"{begins} ", f"{begins};")):
            found.append(" ".join(text.split()))
    return found


def _fields(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(";"))
    return {name.strip().lower(): value.strip() for name, equals, value in pairs if equals}
