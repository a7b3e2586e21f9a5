"""Addresses that links begin with: whatever is accepted makes links that letters bear."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paceline.core import readers
from paceline.core.errors import InputError
from paceline.core.links import LONGEST_BASE, base_of, is_link
from paceline.core.model import Part
from paceline.engine.ports import Message
from paceline.engine.unsubscribing import Links
from paceline.providers.mail.letters import Letter, Sender, compose


@pytest.mark.parametrize(
    ("written", "base"),
    [
        ("https://münchen.example", "https://xn--mnchen-3ya.example"),
        ("https://MÜNCHEN.example:8443/a/", "https://xn--mnchen-3ya.example:8443/a"),
        ("https://x.example/ä", "https://x.example/%C3%A4"),
        ("https://x.example/<a>", "https://x.example/%3Ca%3E"),
        ("https://x.example/my%20mail", "https://x.example/my%20mail"),
        ("https://x.example./mail", "https://x.example/mail"),
        ("HTTP://[::1]:8470/", "http://[::1]:8470"),
        ("https://anna:a%40b@x.example", "https://anna:a%40b@x.example"),
        (" https://x.example/a=b,c+d ", "https://x.example/a=b,c+d"),
    ],
)
def test_it_is_written_as_links_are(written: str, base: str) -> None:
    assert readers.url(written) == base
    assert readers.url(base) == base, "so it is stored, and read again"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("https://<a>/", "is not an http or https address"),
        ("https://x_ü-.example", "is not an http or https address"),
        ("https://x.example/a\x00b", "is not an http or https address"),
        ("https://x.example/%zz", "has a path that nobody can call so"),
        ("https://x.example/a/../b", "has a path that nobody can call so"),
        ("https://x.example/%2e%2e/b", "has a path that nobody can call so"),
        (f"https://x.example/{'a' * LONGEST_BASE}", "cannot begin the links in a letter"),
    ],
)
def test_what_cannot_be_mended_is_refused_where_it_is_set(written: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        readers.url(written)


@given(st.text(max_size=60), st.text(max_size=60))
@example("x.example", "<a>")
@example("münchen.example", "ä")
@example("x.example", "\u2028")
@example("x.example", "a" * 790)
def test_what_is_accepted_makes_links_that_letters_bear(host: str, path: str) -> None:
    try:
        base_url = base_of(f"https://{host}/{path}")
    except InputError:
        return
    link = Links(base_url, b"key").of(2**63 - 1)
    assert is_link(link)
    message = Message("home-1-0", "a@example.com", "email", Part("text", "Hi"), unsubscribe=link)
    letter = compose(Sender("anna@shop.example"), message, (), 0)
    assert isinstance(letter, Letter)
    assert max(map(len, letter.raw.splitlines())) <= 998
    # An answer that is a base already stays so.
    assert base_of(base_url) == base_url
