"""The table ``[opt_out]``: words of one's own, and a confirmation."""

from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.core.opting_out_settings import SUBJECT, Confirmation, OptingOut, opting_out_of


def test_words_are_added_to_the_built_in_ones() -> None:
    words = opting_out_of({"stop": ["Genug!"], "start": ["mehr davon"]}).words
    found = [words.wish_in(text) for text in ("genug", "STOP", "Mehr  davon.", "start")]
    assert found == ["stop", "stop", "start", "start"]


def test_or_stand_in_their_place() -> None:
    words = opting_out_of({"stop": ["genug"], "built_in": False}).words
    assert [words.wish_in(text) for text in ("genug", "stop", "start")] == ["stop", None, None]


def test_a_word_that_means_both_means_the_careful_one() -> None:
    assert opting_out_of({"stop": ["start"]}).words.wish_in("START") == "stop"


def test_nothing_said_is_the_built_in_words_and_no_confirmation() -> None:
    assert opting_out_of({}) == OptingOut()
    assert opting_out_of("{}") == OptingOut()


def test_a_confirmation() -> None:
    assert opting_out_of({"confirmation": " Done. "}).confirmation == Confirmation("Done.", SUBJECT)
    whole = {"confirmation": "Done.", "subject": "Good\nbye", "confirm_links": True}
    assert opting_out_of(whole).confirmation == Confirmation("Done.", "Good bye", True)
    in_one_line = '{ confirmation = "Done.", stop = ["genug"] }'
    assert opting_out_of(in_one_line).words.wish_in("Genug") == "stop"


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ({"stopp": ["x"]}, "did you mean"),
        ({"stop": "stop"}, "must be a list"),
        ({"stop": [7]}, "expected a text"),
        ({"stop": ["..."]}, "is no word"),
        ({"stop": ["x" * 81]}, "more than 80"),
        ({"built_in": False}, "built_in is false"),
        ({"built_in": "no"}, "true or false"),
        ({"confirmation": " "}, "must not be empty"),
        ({"confirmation": "x" * 1_001}, "more than 1000"),
        ({"subject": "Bye"}, "of no use without"),
        ({"confirm_links": True}, "of no use without"),
        ("stop", "is not a table"),
        ([], "expected a table"),
    ],
)
def test_what_cannot_be_is_refused(raw: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        opting_out_of(raw)


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"stop": ["genug"], "start": ["mehr"]},
        {"stop": ["genug"], "built_in": False},
        {"confirmation": "Done.", "subject": "Bye", "confirm_links": True},
    ],
)
def test_it_is_read_back_as_it_was(raw: dict[str, Any]) -> None:
    meant = opting_out_of(raw)
    assert opting_out_of(meant.to_mapping()) == meant
