"""Addresses in one spelling each: e-mail, phone, group, LinkedIn, and whatever else there is.

Suppressions, limits per person and duplicates are found by comparing addresses, so everything that
is stored or looked for goes through here first, and the same person is always spelled the same.

An e-mail address is written in lower case as a whole. By the letter of its standard the part before
the @ could tell Anna from anna; no mail house does, and to write to "Anna@" although "anna@" asked
not to be written to would be worse than anything that could be gained. A phone number is written as
E.164, ``+4915112345678``. Whether an address exists is not asked here: that would take the network.

The libraries that know phone numbers and unusual e-mail addresses are loaded where they are needed,
because nearly everything imports this module, and few commands meet an address.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal, get_args
from urllib.parse import unquote

from paceline.core.errors import InputError
from paceline.core.keepable import keepable_name
from paceline.core.nearest import did_you_mean

Kind = Literal["email", "phone", "group", "linkedin", "other"]
KINDS: tuple[Kind, ...] = get_args(Kind)

LONGEST = 500
"""Characters an address may have; what is longer is no address but a slip in a file."""

ERASED = "erased:"
"""What the hash begins with that stands for an address of somebody who was erased."""

# A part of what is allowed, recognised without taking it to pieces: nearly every address is plain,
# and a hundred thousand of them are read in one go.
_ATOM = r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[a-z0-9](?:[a-z0-9]|-(?!-)){0,61}(?<!-)"
_PLAIN_EMAIL = re.compile(rf"({_ATOM}(?:\.{_ATOM})*)@((?:{_LABEL}\.)+[a-z]{{2,24}})")
# What WhatsApp calls people and groups ends in ``.us`` or ``.net``, if there is a dot in it at all.
_SURELY_EMAIL = re.compile(
    r"[a-z0-9._+-]+@(?:[a-z0-9-]+\.)+(?!(?:us|net)\Z)[a-z]+", re.ASCII | re.IGNORECASE
)
_SPECIAL = re.compile(r"(?:^|\.)(?:arpa|invalid|local|localhost|onion|test|alt)$")
_PERSON_AT_WHATSAPP = re.compile(r"(\d{7,15})(?::\d+)?@(?:s\.whatsapp\.net|c\.us)", re.IGNORECASE)
# People who hide their number: as WhatsApp names them, and as it names them to one business.
_LID = re.compile(r"\d{5,20}@lid", re.IGNORECASE)
_BSUID = re.compile(r"[A-Z]{2}\.(?:[A-Z]{2,8}\.)?[A-Za-z0-9]{4,128}")
_GROUP = re.compile(r"[\d-]{5,40}@g\.us|\S+@(?:broadcast|newsletter)", re.IGNORECASE)
_PROFILE = re.compile(
    r"(?:https?://)?(?:[a-z]{2,3}\.)?linkedin\.com/in/([^/?#\s]+)/?(?:[?#].*)?", re.IGNORECASE
)
# The letters tell LinkedIn's products apart, the number after them begins with zeros.
_MEMBER = re.compile(r"urn:li:\S+|A(?:Co|Do|De|Cw|E[A-Za-z])AA[A-Za-z0-9_-]{18,}")
_DIALLED = re.compile(r"\+?[\d\s().\-/\u00a0\u2010-\u2015]{5,40}")
_DIGITS = re.compile(r"[1-9]\d{7,14}")


def normalise(kind: str, text: str, region: str | None = None) -> str:
    """The address in its one spelling; ``region`` is where a phone number without +… is from."""
    written = one_line(text)
    match known_kind(kind):
        case "email":
            return _email(written)
        case "phone":
            return _phone(written, region)
        case "group":
            return _group(written)
        case "linkedin":
            return _linkedin(written)
        case _:
            return written


@lru_cache(maxsize=4_096)
def canonical(text: str, region: str | None = None) -> str:
    """The same for an address of which nobody has said what it is.

    What is neither an e-mail address nor a phone number nor a profile stays as it was written: it
    may be whatever a provider takes for an address. Digits alone are a phone number only if they
    are one with a + before them, which is how WhatsApp writes them. Remembered for a while: whoever
    writes, writes several times.
    """
    written = keepable_name(text).strip()
    if written.startswith(ERASED):
        return written
    try:
        return normalise(guess_kind(written), written, region)
    except InputError:
        return written


def written_to(chat: str) -> str | None:
    """Where somebody is written to who writes from there; None for whoever was erased."""
    return None if chat.startswith(ERASED) else canonical(chat)


def understood(text: str, region: str | None = None) -> tuple[Kind, str]:
    """The same, and what it is; but what can be nobody's address is refused instead of kept.

    One word may be whatever a provider takes for an address. A street, or somebody's name, is none.
    """
    written = one_line(text)
    kind = guess_kind(written)
    if kind == "other" and any(map(str.isspace, written)):
        raise InputError(f"'{written}' is no address: it has a space in it")
    return kind, normalise(kind, written, region)


def guess_kind(text: str) -> Kind:
    """What an address most likely is, by its looks."""
    written = text.strip()
    if _SURELY_EMAIL.fullmatch(written):
        return "email"
    if _GROUP.fullmatch(written):
        return "group"
    if _PERSON_AT_WHATSAPP.fullmatch(written):
        return "phone"
    if _PROFILE.fullmatch(written) or _MEMBER.fullmatch(written):
        return "linkedin"
    if "@" in written and not any(map(str.isspace, written)):
        return "other" if _LID.fullmatch(written) else "email"
    if _DIGITS.fullmatch(written):
        return "phone" if _is_number(f"+{written}") else "other"
    return "phone" if _DIALLED.fullmatch(written) else "other"


def is_hidden(text: str) -> bool:
    """Whether somebody is known to WhatsApp by this, and hides their number."""
    written = text.strip()
    return bool(_LID.fullmatch(written) or is_business_scoped(written))


def is_business_scoped(text: str) -> bool:
    """Whether it is the name that WhatsApp has for somebody towards one business alone."""
    return _BSUID.fullmatch(text.strip()) is not None


def is_somebodys(chat: str) -> bool:
    """Whether a chat is a person's own address or number, which says by itself who writes there;
    others have an id that says nothing of that."""
    return chat.startswith(ERASED) or guess_kind(chat) in ("email", "phone")


def is_domain(text: str) -> bool:
    """Whether it stands for everybody there: ``@example.com``."""
    return text.strip().startswith("@")


def normalise_domain(text: str) -> str:
    """A domain in its one spelling, with the @ before it."""
    written = one_line(text)
    try:
        spelled = _email(f"somebody{written}")
    except InputError:
        raise InputError(f"'{written}' is no domain", hint="Write it like @example.com") from None
    return "@" + spelled.rpartition("@")[2]


def entries_for(address: str) -> tuple[str, ...]:
    """Whatever may be noted down for an address: itself, and the domain it is in."""
    _, at, domain = address.rpartition("@")
    return (address, f"@{domain}") if at else (address,)


def known_kind(kind: str) -> Kind:
    if kind not in KINDS:
        known = did_you_mean(kind, KINDS) or f" (there are: {', '.join(KINDS)})"
        raise InputError(f"'{kind}' is no kind of address{known}")
    return kind


def known_region(region: str) -> str:
    """A country by its two letters, as phone numbers know it."""
    import phonenumbers

    code = region.strip().upper()
    if code not in phonenumbers.SUPPORTED_REGIONS:
        raise InputError(f"'{region}' is no country", hint="Write its two letters, as in DE or US")
    return code


def one_line(text: str) -> str:
    """The text if it can be an address at all: something, not too much, and nothing that steers."""
    written = text.strip()
    if not written:
        raise InputError("the address is empty")
    if len(written) > LONGEST:
        raise InputError(f"the address has more than {LONGEST} characters")
    for letter in written:
        if unicodedata.category(letter) in ("Cc", "Zl", "Zp", "Cs"):
            raise InputError(f"the address has a control character in it (U+{ord(letter):04X})")
    return written


def _email(text: str) -> str:
    lowered = text.lower()
    if lowered.startswith("mailto:"):
        lowered = lowered.removeprefix("mailto:")
    plain = _PLAIN_EMAIL.fullmatch(lowered)
    if plain and len(plain[1]) <= 64 and len(lowered) <= 254 and not _SPECIAL.search(plain[2]):
        return lowered
    from email_validator import EmailNotValidError, EmailSyntaxError, validate_email

    try:
        found = validate_email(lowered, check_deliverability=False)
    except EmailSyntaxError as error:
        raise InputError(f"'{text}' is not an e-mail address: {_reason(error)}") from None
    except EmailNotValidError as error:
        raise InputError(f"'{text}' cannot get e-mail: {_reason(error)}") from None
    return found.normalized.lower()


def _reason(error: Exception) -> str:
    """The library's sentence, made part of ours."""
    sentence = str(error).rstrip(".")
    return sentence[:1].lower() + sentence[1:]


def _phone(text: str, region: str | None) -> str:
    import phonenumbers

    person = _PERSON_AT_WHATSAPP.fullmatch(text)
    written = f"+{person[1]}" if person else text.removeprefix("tel:")
    if region is None and _DIGITS.fullmatch(written) and _is_number(f"+{written}"):
        written = f"+{written}"
    try:
        number = phonenumbers.parse(written, region)
    except phonenumbers.NumberParseException as error:
        if error.error_type == phonenumbers.NumberParseException.INVALID_COUNTRY_CODE:
            if region is None and not written.startswith("+"):
                raise InputError(
                    f"'{text}' has no country code", hint="Write it like +4915112345678"
                ) from None
            raise InputError(f"'{text}' begins with a country code that nobody has") from None
        raise InputError(f"'{text}' is not a phone number") from None
    if not phonenumbers.is_possible_number(number):
        raise InputError(f"'{text}' is too long or too short for a phone number")
    if not phonenumbers.is_valid_number(number):
        raise InputError(f"'{text}' is a phone number that nobody can have")
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


@lru_cache(maxsize=4_096)
def _is_number(written: str) -> bool:
    import phonenumbers

    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(written, None))
    except phonenumbers.NumberParseException:
        return False


def _group(text: str) -> str:
    return text.lower() if _GROUP.fullmatch(text) else text


def _linkedin(text: str) -> str:
    """A profile by the name in its address, which knows no capitals; a member's id as it is, even
    where it takes the name's place."""
    profile = _PROFILE.fullmatch(text)
    if profile is None:
        if "/" in text or any(map(str.isspace, text)):
            raise InputError(
                f"'{text}' is no LinkedIn profile",
                hint="Write https://www.linkedin.com/in/NAME or the member's id",
            )
        return text
    name = unquote(profile[1])
    return name if _MEMBER.fullmatch(name) else name.lower()
