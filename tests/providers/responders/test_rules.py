"""A table of words: which rule wins, and what its reply is filled in with."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.engine.ports.answering import Answer, ResponderRefused, Said
from tests.providers.responders.fake import NOW, ask, burst, way

TABLE: list[dict[str, Any]] = [
    {"words": ["price", "how much", "cuánto cuesta"], "reply": "Ten euros, {{ name }}."},
    {"words": ["open", "öffnungszeiten"], "reply": "We are open from nine to five."},
    {"words": ["价格"], "reply": "十块。"},
]


def reply(*texts: str, otherwise: str | None = None, **fields: Any) -> Answer:
    more = {} if otherwise is None else {"otherwise": otherwise}
    chosen = way(responder="rules", rules=TABLE, **more)
    return ask(chosen, burst(*texts, fields={"name": "Ana", **fields}))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("What is the PRICE?", 1),
        ("how   much\nis it", 1),
        ("¿Cuanto cuesta?", 1),
        ("CUÁNTO CUESTA", 1),
        ("cua\u0301nto cuesta", 1),
        ("when are you open, and the price?", 1),
        ("when do you open", 2),
        ("die Offnungszeiten bitte", 2),
        ("请问价格多少", 3),
    ],
)
def test_the_first_rule_with_a_word_of_it_wins(text: str, number: int) -> None:
    answer = reply(text)
    assert answer.note.startswith(f"rule {number}, ")
    assert answer.text in {"Ten euros, Ana.", "We are open from nine to five.", "十块。"}


def test_all_that_was_said_is_looked_through() -> None:
    assert reply("hello", "and the price") == Answer("Ten euros, Ana.", "rule 1, 'price'")


@pytest.mark.parametrize(
    "text", ["priceless", "pri ce", "how very much", "openly", "reopen", "", "hello"]
)
def test_a_piece_of_another_word_is_none(text: str) -> None:
    assert reply(text, otherwise="A person will answer.") == Answer(
        "A person will answer.", "no rule fits"
    )


def test_where_no_rule_fits_a_person_is_asked_unless_it_is_said_what_else() -> None:
    with pytest.raises(ResponderRefused, match="no rule has a word of what was said") as refused:
        reply("hello")
    assert not refused.value.everybody
    assert reply("hello", otherwise="") == Answer("", "no rule fits")
    assert reply("hello", otherwise="Hi {{ name }}").text == "Hi Ana"


def test_the_caption_of_a_picture_is_searched_and_a_voice_is_not() -> None:
    chosen = way(responder="rules", rules=TABLE, otherwise="?")
    said = (Said("them", "", NOW, "audio"), Said("them", "the price of these", NOW, "image"))
    asked = burst("x", fields={"name": "Ana"})
    assert ask(chosen, asked._replace(said=said)).text == "Ten euros, Ana."
    assert ask(chosen, asked._replace(said=said[:1])).text == "?"


def test_what_is_known_of_somebody_is_no_template() -> None:
    answer = reply("price", name="{{ 7 * 7 }}{% for x in y %}")
    assert answer.text == "Ten euros, {{ 7 * 7 }}{% for x in y %}."


def test_a_reply_that_cannot_be_filled_in_is_a_persons_affair() -> None:
    with pytest.raises(ResponderRefused, match=r"cannot be filled in .* 'name' is undefined") as no:
        reply("price", name=None)
    assert not no.value.everybody


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ name | default('you') }}", "you"),
        ("{{ target }}", "+4915112345678"),
        ("{{ orders }} orders", "3 orders"),
        ("  so  ", "so"),
    ],
)
def test_a_reply_is_filled_in_as_messages_are(template: str, text: str) -> None:
    chosen = way(responder="rules", rules=[{"words": ["hi"], "reply": template}])
    assert ask(chosen, burst("hi", fields={"orders": 3, "name": None})).text == text


def test_a_reply_stays_in_the_sandbox() -> None:
    template = "{{ ''.__class__.__mro__ }}"
    chosen = way(responder="rules", rules=[{"words": ["hi"], "reply": template}])
    with pytest.raises(ResponderRefused, match="cannot be filled in"):
        ask(chosen, burst("hi"))


def test_a_book_is_not_searched_to_its_end() -> None:
    assert reply("x " * 4_000 + "price").text == "Ten euros, Ana."
    assert reply("x " * 40_000 + "price", otherwise="?").text == "?"
