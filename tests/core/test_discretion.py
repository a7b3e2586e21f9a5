"""Texts that are told to others do not say whose message they were about."""

import pytest

from paceline.core.discretion import discreet, without

MAIL, PHONE = "anna@example.com", "+4915112345678"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("550 5.1.1 <anna@example.com>: unknown", "550 5.1.1 <(recipient)>: unknown"),
        ("no mailbox Anna@Example.COM.", "no mailbox (recipient)."),
        ("anna@example.com, anna@example.com", "(recipient), (recipient)"),
        ("joanna@example.com is full", "joanna@example.com is full"),
        ("anna@example.com.au is full", "anna@example.com.au is full"),
        ("x-anna@example.com", "x-anna@example.com"),
        ("mailto:anna@example.com?x", "mailto:(recipient)?x"),
        ("", ""),
        ("timed out", "timed out"),
    ],
)
def test_an_address_is_left_out_and_others_stay(text: str, told: str) -> None:
    assert discreet(text, MAIL, {}) == told
    assert discreet(told, MAIL, {}) == told


@pytest.mark.parametrize(
    "spelled",
    [
        "+4915112345678",
        "4915112345678",
        "004915112345678",
        "+49 151 12345678",
        "+49 (151) 1234-5678",
        "4915112345678@s.whatsapp.net",
        "4915112345678@c.us",
    ],
)
def test_a_number_in_whatever_groups(spelled: str) -> None:
    assert discreet(f"not on WhatsApp: {spelled}!", PHONE, {}) == "not on WhatsApp: (recipient)!"
    longer = f"message 9{spelled.lstrip('+0')}7"
    assert discreet(longer, PHONE, {}) == longer, "a longer number is another one"


def test_who_somebody_is_by_name() -> None:
    fields = {"name": "Max Muster", "first_name": "Max", "last_name": "Li", "city": "Bonn"}
    text = "Max Muster in Bonn: max retries reached, says Max (Li)"
    expected = "(recipient) in Bonn: max retries reached, says (recipient) (Li)"
    assert discreet(text, MAIL, fields) == expected


def test_what_is_too_short_to_be_told_from_words_stays() -> None:
    assert discreet("a is a letter", "a", {"name": "is"}) == "a is a letter"


def test_several_addresses_and_signs_that_patterns_know() -> None:
    odd = "a.b+c@x.com"
    text = "a.b+c@x.com, aXb+c@x.com and 1203@g.us"
    assert without(text, [odd, "1203@g.us"], ["(any)"], "(erased)") == (
        "(erased), aXb+c@x.com and (erased)"
    )
    assert without(r"say \1", [r"say \1"], [], r"\g<0>") == r"\g<0>"
