"""No password is repeated, in whichever spelling a server says it."""

from __future__ import annotations

import base64
import html
import json

import pytest

from paceline.providers.mail.secrets import MASK, masking

PASSWORDS = (
    "plain",
    "two  spaces",
    " at the ends ",
    "back\\slash",
    "two\\\\of them",
    'it\'s "quoted"',
    "<b>&amp",
    "pässwört",
    "(.*)[a-z]+?",
    "f\u00fcnf \u20ac",
)


def spellings(password: str) -> set[str]:
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    plain = base64.b64encode(f"\0anna\0{password}".encode()).decode()
    return {
        password,
        " ".join(password.split()),
        repr(password)[1:-1],
        repr(quoted)[1:-1],
        repr(password.encode())[2:-1],
        json.dumps(password)[1:-1],
        quoted,
        html.escape(password),
        html.escape(password, quote=False),
        password.encode().decode("ascii", "replace"),
        base64.b64encode(password.encode()).decode(),
        plain,
        plain.rstrip("="),
    }


@pytest.mark.parametrize("password", PASSWORDS)
def test_every_spelling_is_masked(password: str) -> None:
    masked = masking("anna", password)
    first = password.split(maxsplit=1)[0]
    for spelled in spellings(password):
        told = masked(f"550 5.7.1 <{spelled}> is no password, {spelled}!")
        assert told.count(MASK) == 2 and first not in told, (spelled, told)


def test_what_is_no_password_stays_as_it_is() -> None:
    text = "550 5.1.1 User unknown"
    assert masking("anna", "two  words")(text) == text
    assert masking("anna", "")(text) == text
    assert masking("anna", "  ")(text) == text


def test_it_is_masked_before_it_is_cut() -> None:
    told = masking("anna", "a long password")(f"{'.' * 295} a long password")
    assert "a long" not in told and len(told) == 300
