"""What a domain says about who may send for it: SPF, DKIM and DMARC, as receiving servers read it.

Only looked at, when an operator asks how an account is doing. What is missing keeps nobody from
sending; but many servers refuse such letters, or call them spam.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence

import dns.asyncresolver
import dns.exception
import dns.name
import dns.resolver

LOOK_WITHIN_S = 5.0
LINE_WITHIN_S = 12.0
"""For all that one line needs: a policy for DMARC may be looked for at several names."""
MOST_LABELS = 6

NO_DNS = "there is no DNS here"
SILENCE = "no name server answered in time"


class Unseen(Exception):
    """Nobody could say what is at a name: not that nothing is there."""

    def __init__(self, why: str, whole: str = "") -> None:
        super().__init__(why)
        self.whole = whole
        """What to say once where it is so for all of them; empty where it is about one name."""


def make_resolver() -> dns.asyncresolver.Resolver:
    """The one that this machine is set up with; without any it is an error of its own."""
    return dns.asyncresolver.Resolver()


async def _texts_at(name: str) -> list[str]:
    """The texts at a name, none where there are none; ``Unseen`` where nobody can tell."""
    try:
        answer = await make_resolver().resolve(name, "TXT", lifetime=LOOK_WITHIN_S)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return []
    except dns.exception.Timeout:
        why = f"nobody answered within {LOOK_WITHIN_S:g} seconds for {name}"
        raise Unseen(why, SILENCE) from None
    except dns.resolver.NoNameservers as error:
        raise _refused(name, error) from None
    except (dns.resolver.NoResolverConfiguration, OSError):
        raise Unseen(NO_DNS, NO_DNS) from None
    except dns.exception.DNSException as error:
        raise Unseen(f"{name} cannot be asked for: {error}") from None
    return [b"".join(record.strings).decode("utf-8", "replace") for record in answer]


def _refused(name: str, error: dns.resolver.NoNameservers) -> Unseen:
    """Every server that was asked has said that it cannot tell; or none of them can be reached."""
    tried = error.kwargs.get("errors") or ()
    said = sorted({str(one[3]) for one in tried if not isinstance(one[3], Exception)})
    if tried and not said:
        return Unseen(NO_DNS, NO_DNS)
    return Unseen(f"the name servers answered {' and '.join(said) or 'nothing'} for {name}")


async def advice(domain: str, selector: str = "", envelope: str = "") -> list[str]:
    """One line each on SPF, DKIM and DMARC of a domain; one in all where none can be seen, for the
    same reason.

    Servers ask the domain of the ``envelope`` for its SPF, where letters come back to another one
    than they are from."""
    bad = _bad_selector(selector)
    asked = {"SPF": _spf(envelope or domain), "DMARC": _dmarc(domain)}
    if selector and not bad:
        asked["DKIM"] = _dkim(domain, selector)
    found = await asyncio.gather(*map(_in_time, asked.values()))
    told = dict(zip(asked, found, strict=True))
    reasons = {one.whole if isinstance(one, Unseen) else "" for one in found}
    if len(reasons) == 1 and (reason := reasons.pop()):
        return [f"SPF, DKIM and DMARC of {domain} were not looked up: {reason}"]
    lines = {
        what: f"{what}: not looked up; {one}" if isinstance(one, Unseen) else one
        for what, one in told.items()
    }
    without = bad or "dkim_selector says under which name your server signs"
    lines.setdefault("DKIM", f"DKIM: not looked up; {without}")
    if envelope and not _kin(envelope, domain):
        lines["SPF"] += (
            f"; that is of {envelope}, which letters come back to, so for DMARC only DKIM counts"
        )
    return [lines["SPF"], lines["DKIM"], lines["DMARC"]]


async def _in_time(looking: Coroutine[None, None, str]) -> str | Unseen:
    """What there is to say, or why there is nothing: no line is lost to another."""
    try:
        async with asyncio.timeout(LINE_WITHIN_S):
            return await looking
    except TimeoutError:
        return Unseen(f"no answer within {LINE_WITHIN_S:g} seconds", SILENCE)
    except Unseen as unseen:
        return unseen


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
