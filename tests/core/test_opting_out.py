"""Whether somebody asks not to be written to: only where that is all they wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.opting_out import DEFAULT, START, STOP, OptOut


@pytest.mark.parametrize("word", STOP)
def test_every_word_is_heard_however_it_is_written(word: str) -> None:
    for text in (word, word.upper(), f"  {word}. ", f"\u201c{word}\u201d!!", f"{word} \U0001f620"):
        assert DEFAULT.wish_in(text) == "stop"


@pytest.mark.parametrize("word", START)
def test_and_so_is_every_word_to_be_written_to_again(word: str) -> None:
    assert DEFAULT.wish_in(f"{word.title()}!") == "start"


def test_no_word_is_a_letter() -> None:
    assert all(len(word) > 1 for word in (*STOP, *START))


MORE = ("a", "stop by on Monday", "don't stop", "please stop the heating", "", "!!!", "restart")


@pytest.mark.parametrize("text", [*MORE, "stop " * 30])
def test_whoever_says_more_means_something_else(text: str) -> None:
    assert DEFAULT.wish_in(text) is None


def test_accents_do_not_count() -> None:
    assert DEFAULT.wish_in("arret") == DEFAULT.wish_in("Arr\u00eat") == "stop"


def test_words_of_one_s_own_and_the_careful_one_of_two() -> None:
    words = OptOut(stop=("genug", "egal"), start=("mehr", "egal"))
    found = [words.wish_in(text) for text in ("Genug.", "MEHR", "stop", "egal")]
    assert found == ["stop", "start", None, "stop"]


@given(st.text(max_size=200))
def test_whatever_is_written_is_understood_or_left_alone(text: str) -> None:
    assert DEFAULT.wish_in(text) in ("stop", "start", None)
