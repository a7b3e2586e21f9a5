"""Addresses as mail servers take them: domains in ASCII, and nothing that would steer a server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from email_validator import EmailNotValidError, validate_email

from paceline.core.address import guess_kind
from paceline.core.errors import InputError, ProviderRefused
from paceline.core.outcome import Outcome
from paceline.providers.answers import refusal

# Nearly every address is plain, and is known to be good without taking it to pieces.
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_PLAIN = re.compile(rf"({_ATOM}(?:\.{_ATOM})*)@(?:{_LABEL}\.)+{_LABEL}", re.ASCII)
# One that is even plainer is nothing else: no phone number or group of WhatsApp's looks like it.
_WORD = r"[A-Za-z0-9_+-]+"
_PLAINEST = re.compile(
    rf"(?=[^@]{{1,64}}@){_WORD}(?:\.{_WORD})*@(?:{_LABEL}\.)+(?!(?i:us|net)\Z)[A-Za-z]{{2,63}}",
    re.ASCII,
)


def recipient(text: str, *, utf8: bool = False) -> str | Outcome:
    """The address to write to, or why nobody can; ``utf8`` says that the server has SMTPUTF8."""
    if len(text) <= 254 and _PLAINEST.fullmatch(text):
        return text
    written = text.strip()
    # What looks like an encoded word would be read as whatever it is decoded to.
    if guess_kind(written) != "email" or not written.isprintable() or "=?" in written:
        return refusal("target", f"{written[:100]!r} is no e-mail address")
    try:
        address = wire_address(written)
    except ValueError as error:
        return refusal("target", str(error))
    if not address.isascii() and not utf8:
        return refusal(
            "smtputf8",
            f"{written!r} has letters before the @ that this mail server does not take (SMTPUTF8)",
        )
    return address


def wire_address(text: str) -> str:
    """The address with its domain in ASCII; ``ValueError`` says what is wrong with it."""
    plain = _PLAIN.fullmatch(text)
    if plain and len(plain[1]) <= 64 and len(text) <= 254:
        return text
    try:
        found = validate_email(text, check_deliverability=False, globally_deliverable=False)
    except EmailNotValidError as error:
        reason = str(error).rstrip(".")
        raise ValueError(
            f"{text[:100]!r} is no e-mail address: {reason[:1].lower()}{reason[1:]}"
        ) from None
    if len(found.local_part.encode()) > 64:
        raise ValueError(f"{text[:100]!r} is no e-mail address: it is too long before the @")
    return f"{found.local_part}@{found.ascii_domain}"


@contextmanager
def checking_own() -> Iterator[None]:
    """What would be refused when an account is opened is refused where its address is set."""
    try:
        yield
    except ProviderRefused as error:
        raise InputError(str(error), key="address") from None


def domain_of(address: str) -> str:
    return address.rpartition("@")[2].lower()
