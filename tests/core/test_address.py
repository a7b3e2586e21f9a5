"""Addresses: one spelling each, and clear words for what is none."""

import re

import pytest
from email_validator import EmailNotValidError, validate_email
from hypothesis import given
from hypothesis import strategies as st

from paceline.core import address
from paceline.core.address import (
    ERASED,
    KINDS,
    canonical,
    entries_for,
    guess_kind,
    is_domain,
    known_kind,
    known_region,
    normalise,
    normalise_domain,
)
from paceline.core.errors import InputError

SPELLINGS = [
    ("email", " Anna.B@Example.COM ", None, "anna.b@example.com"),
    ("email", "mailto:anna@example.com", None, "anna@example.com"),
    ("email", "Ännä@Exämple.com", None, "ännä@exämple.com"),
    ("email", "o'neil+list@sub.example.co.uk", None, "o'neil+list@sub.example.co.uk"),
    ("phone", "0151 12345678", "DE", "+4915112345678"),
    ("phone", "+49 (151) 1234-5678", None, "+4915112345678"),
    ("phone", "004915112345678", "FR", "+4915112345678"),
    ("phone", "tel:+4915112345678", None, "+4915112345678"),
    ("phone", "4915112345678", None, "+4915112345678"),
    ("phone", "4915112345678@s.whatsapp.net", None, "+4915112345678"),
    ("phone", "4915112345678:12@s.whatsapp.net", None, "+4915112345678"),
    ("group", "120363041234567890@G.US", None, "120363041234567890@g.us"),
    ("group", "Whoever", None, "Whoever"),
    ("linkedin", "https://www.linkedin.com/in/Anna-Smith/?trk=x", None, "anna-smith"),
    ("linkedin", "de.linkedin.com/in/J%C3%BCrgen", None, "jürgen"),
    ("linkedin", "ACoAAB1234567890abcdefgh", None, "ACoAAB1234567890abcdefgh"),
    ("linkedin", "linkedin.com/in/ADoAAB1234567890abcdefgh/", None, "ADoAAB1234567890abcdefgh"),
    ("other", " Room 7 ", None, "Room 7"),
]


@pytest.mark.parametrize(("kind", "text", "region", "spelled"), SPELLINGS)
def test_an_address_has_one_spelling(
    kind: str, text: str, region: str | None, spelled: str
) -> None:
    assert normalise(kind, text, region) == spelled
    assert normalise(kind, spelled, region) == spelled, "and that is its own"


@pytest.mark.parametrize(
    ("kind", "text", "region", "said"),
    [
        ("email", "", None, "the address is empty"),
        ("email", "anna", None, "'anna' is not an e-mail address: an email address must have"),
        ("email", "a@@example.com", None, "is not an e-mail address"),
        ("email", "a..b@example.com", None, "is not an e-mail address"),
        ("email", "anna@home", None, "is not an e-mail address"),
        ("email", "anna@x.test", None, "special-use"),
        ("email", "an\0na@example.com", None, r"control character in it \(U\+0000\)"),
        ("email", "an\ud800na@example.com", None, r"control character in it \(U\+D800\)"),
        ("phone", "0151 12345678", None, r"has no country code. Write it like \+49"),
        ("phone", "+999 12345678", None, "begins with a country code that nobody has"),
        ("phone", "hello", "DE", "is not a phone number"),
        ("phone", "+1 212 555 12345", None, "is too long or too short for a phone number"),
        ("phone", "+49 1511 000", None, "that nobody can have"),
        ("linkedin", "https://example.com/in/anna", None, "is no LinkedIn profile"),
        ("other", "x" * 501, None, "more than 500 characters"),
        ("emial", "a", None, "'emial' is no kind of address, did you mean 'email'"),
        ("smoke", "a", None, r"\(there are: email, phone"),
    ],
)
def test_what_is_no_address_is_told_in_plain_words(
    kind: str, text: str, region: str | None, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        normalise(kind, text, region)


def test_regions() -> None:
    assert known_region(" de ") == "DE"
    with pytest.raises(InputError, match=r"'Germany' is no country. Write its two letters"):
        known_region("Germany")


@pytest.mark.parametrize(
    ("text", "kind", "spelled"),
    [
        ("Anna@Example.com", "email", "anna@example.com"),
        ("+49 151 12345678", "phone", "+4915112345678"),
        ("4915112345678", "phone", "+4915112345678"),
        ("12345678", "other", "12345678"),
        ("0151 12345678", "phone", "0151 12345678"),
        ("1234567890-1234567890@g.us", "group", "1234567890-1234567890@g.us"),
        ("linkedin.com/in/Anna", "linkedin", "anna"),
        ("urn:li:person:Ab1", "linkedin", "urn:li:person:Ab1"),
        ("Adam", "other", "Adam"),
        ("Adam@sandbox", "email", "Adam@sandbox"),
        (" a b ", "other", "a b"),
        (f"{ERASED}0A", "other", f"{ERASED}0A"),
    ],
)
def test_what_an_address_is_can_be_guessed(text: str, kind: str, spelled: str) -> None:
    assert guess_kind(text) == kind
    assert canonical(text) == spelled, "what was legal before is never refused"


@given(st.text(max_size=40))
def test_the_one_spelling_is_its_own_whatever_was_written(text: str) -> None:
    once = canonical(text)
    assert canonical(once) == once
    assert guess_kind(text) in KINDS == tuple(map(known_kind, KINDS))


@given(st.from_regex(r"[a-z0-9.+_'-]{1,12}@([a-z0-9-]{1,6}\.){1,2}[a-z]{2,4}", fullmatch=True))
def test_the_short_way_agrees_with_the_long_one(text: str) -> None:
    try:
        expected = validate_email(text, check_deliverability=False).normalized.lower()
    except EmailNotValidError:
        with pytest.raises(InputError):
            normalise("email", text)
    else:
        assert normalise("email", text) == expected
        assert normalise("email", text.upper()) == expected, "capitals make no other person"


@pytest.mark.parametrize(
    ("written", "spelled"),
    [
        ("@Example.COM", "@example.com"),
        (" @mail.example.co.uk ", "@mail.example.co.uk"),
        ("@xn--mller-kva.de", "@müller.de"),
        ("@Müller.de", "@müller.de"),
    ],
)
def test_a_domain_has_one_spelling(written: str, spelled: str) -> None:
    assert is_domain(written) and normalise_domain(written) == spelled


@pytest.mark.parametrize("written", ["@", "@nodots", "@a b.com", "@x@y.com", "@-.com", "@.com"])
def test_what_is_no_domain_is_refused(written: str) -> None:
    with pytest.raises(InputError, match=r"is no domain\. Write it like @example.com"):
        normalise_domain(written)


def test_an_address_is_covered_by_itself_and_by_its_domain() -> None:
    assert entries_for("ann@example.com") == ("ann@example.com", "@example.com")
    assert entries_for("+4915112345678") == ("+4915112345678",)


def test_an_address_is_understood_once_for_a_while() -> None:
    """Every message that comes asks for it several times, and a phone number takes long."""
    canonical("+49 151 12345678")
    hits = canonical.cache_info().hits
    assert canonical("+49 151 12345678") == "+4915112345678"
    assert canonical.cache_info().hits == hits + 1


LOCAL = [
    "bob",
    "a.b-c+d",
    "1234567",
    "12345",
    "120363-04",
    "linkedin.com/in/bob",
    "urn:li:x",
    "o'n",
]
DOMAINS = [
    "example.com", "g.us", "C.US", "s.whatsapp.net", "x.net", "lid", "newsletter", "a.b.us",
    "bücher.example", "-.x", "example.com/in/x", "broadcast", "us.example", "1.2.3.4",
]  # fmt: skip


@given(
    st.one_of(
        st.tuples(st.sampled_from(LOCAL), st.sampled_from(DOMAINS)).map("@".join),
        st.from_regex(address._SURELY_EMAIL, fullmatch=True),
        st.text(st.sampled_from("ab1.@-+/: _us\n"), max_size=20),
    )
)
def test_what_is_seen_at_a_glance_is_what_a_closer_look_would_say(text: str) -> None:
    at_a_glance = guess_kind(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(address, "_SURELY_EMAIL", re.compile(r"(?!)"))
        assert guess_kind(text) == at_a_glance
