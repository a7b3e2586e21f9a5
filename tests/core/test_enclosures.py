"""Files that come with messages: what is kept of them, and how they are put into words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.enclosures import LONGEST_HANDLE, Enclosed, enclosed, in_words

VOICE = Enclosed(mime="audio/ogg", size=30_000, seconds=12, handle="https://files.example/secret")


@pytest.mark.parametrize(
    ("kind", "text", "files", "told"),
    [
        ("audio", "", (VOICE,), "[voice message, 12 s]"),
        ("ptt", "", (VOICE._replace(seconds=125),), "[voice message, 2 min 5 s]"),
        ("image", "my boots", (Enclosed(mime="image/png"),), "[image] my boots"),
        ("document", "", (Enclosed("a.pdf", size=2 << 20),), "[document, a.pdf, 2.0 MB]"),
        ("document", "", (Enclosed("a.pdf", size=90),), "[document, a.pdf, 90 bytes]"),
        ("file", "", (Enclosed("a]b [c.pdf"),), "[document, a)b (c.pdf]"),
        ("text", "two", (Enclosed(mime="image/png"), VOICE), "[image] [voice message, 12 s] two"),
        ("whatever", "", (Enclosed(),), "[document]"),
        ("image", "", (), "[image]"),
        ("text", " hello ", (), "hello"),
        ("poll", "", (), "[message without text]"),
    ],
)
def test_what_cannot_be_read_is_named(
    kind: str, text: str, files: tuple[Enclosed, ...], told: str
) -> None:
    assert in_words(kind, text, files) == told


def test_a_handle_is_not_shown_by_accident() -> None:
    assert "secret" not in f"{VOICE} {VOICE!r} {[VOICE]}"
    assert "secret" not in in_words("audio", "", (VOICE,))


def test_half_an_address_is_none() -> None:
    assert enclosed(handle="x" * LONGEST_HANDLE).handle
    assert enclosed(handle="x" * (LONGEST_HANDLE + 1)).handle == ""


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=3
)


@given(_JSON, _JSON, _JSON, _JSON, _JSON)
def test_whatever_a_provider_says_can_be_stored_and_read_again(
    name: object, mime: object, size: object, seconds: object, handle: object
) -> None:
    file = enclosed(name, mime, size, seconds, handle)
    assert Enclosed.from_mapping(json.loads(json.dumps(file.to_mapping()))) == file
    assert "\n" not in in_words("document", "", (file,))
