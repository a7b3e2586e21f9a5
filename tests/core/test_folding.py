"""Words are found however they are written, and not in other words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.folding import AnyOf, folded


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("PRECIO", "precio"),
        ("Cuánto", "cuanto"),
        ("cua\u0301nto", "cuanto"),
        ("Straße", "strasse"),
        ("İstanbul", "istanbul"),
        ("ёлка", "елка"),
        ("ｐｒｉｃｅ", "price"),
        ("don’t", "don't"),
        ("don´t", "don't"),
        ("pr\u200bice\u00ad", "price"),
        ("❤️", "❤"),
        ("がき", "がき"),
        ("가격", "가격"),
        ("กิน", "กิน"),
    ],
)
def test_what_does_not_count_is_gone(text: str, plain: str) -> None:
    assert folded(text) == plain


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("price", "Price?"),
        ("price", "(price)"),
        ("how much", "HOW \t\n much is it"),
        ("c++", "do you teach C++?"),
        ("❤", "so ❤️ it"),
        ("价格", "请问价格多少"),
        ("가격", "가격이 얼마예요"),
        ("ราคา", "ขอราคาหน่อย"),
        ("İSTANBUL", "istanbul"),
    ],
)
def test_a_word_is_found(word: str, text: str) -> None:
    assert AnyOf(["another", word]).found_in(folded(text))


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("price", "priceless"),
        ("price", "enterprices"),
        ("price", "price_list"),
        ("how much", "howmuch"),
        ("a.c", "abc"),
        ("か", "が"),
        ("stop", "nonstop flight"),
    ],
)
def test_a_word_is_not_found_in_another(word: str, text: str) -> None:
    assert AnyOf([word]).found_in(folded(text)) is None


def test_of_two_that_begin_alike_the_longer_one_is_found() -> None:
    assert AnyOf(["open", "open today"]).found_in("are you open today") == "open today"


@given(st.text(max_size=30))
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert folded(folded(text)) == folded(text)


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_letters_are_folded_the_short_way_to_the_same(text: str) -> None:
    # What is not plain takes the long way, and what stands before it is folded in the same way.
    assert folded(text) + "e" == folded(f"{text}é")
