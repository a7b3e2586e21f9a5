"""What a model is told of a conversation, and how much of it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.engine.ports.answering import Burst, Said
from paceline.providers.responders.replies import LONGEST_REPLY, fit
from paceline.providers.responders.window import (
    PER_MESSAGE,
    Told,
    all_in_words,
    conversation,
    in_words,
    reckoned,
)

PROMPT = "You answer for a shop, and promise nothing that it would not keep."


def of(*texts: str, before: tuple[Said, ...] = ()) -> Burst:
    return Burst("key", "shop", "ana", tuple(Said("them", text, 0) for text in texts), before)


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        ("text", " hello ", "hello"),
        ("text", "", "[message without text]"),
        ("interactive", "Yes", "Yes"),
        ("whatever they call it", "", "[message without text]"),
        ("image", "", "[image]"),
        ("IMAGE", "my boots", "[image] my boots"),
        ("audio", "", "[voice message]"),
        ("voice", "", "[voice message]"),
        ("document", "invoice", "[document] invoice"),
        ("location", "", "[location]"),
    ],
)
def test_what_cannot_be_read_is_named(kind: str, text: str, told: str) -> None:
    assert in_words(Said("them", text, 0, kind)) == told


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("é", 1), ("价格", 3), ("👍", 2), ("aé", 2)],
)
def test_tokens_are_reckoned_rather_high(text: str, tokens: int) -> None:
    assert reckoned(text) == tokens


def test_the_oldest_is_left_out_first() -> None:
    before = tuple(Said("us" if n % 2 else "them", f"message {n}!", 0) for n in range(6))
    each = reckoned("message 0!") + PER_MESSAGE
    enough = reckoned(PROMPT) + PER_MESSAGE + reckoned("and now?") + PER_MESSAGE
    for fits in range(7):
        told = conversation(
            of("and now?", before=before), PROMPT, history=20, budget=enough + fits * each
        )
        assert told[-1] == Told("user", "and now?")
        assert [one.text for one in told[:-1]] == [f"message {n}!" for n in range(6 - fits, 6)]


def test_what_does_not_fit_is_not_skipped_for_something_older() -> None:
    before = (Said("us", "short", 0), Said("them", "long " * 200, 0), Said("us", "fresh", 0))
    told = conversation(of("now?", before=before), PROMPT, history=20, budget=150)
    assert [one.text for one in told] == ["fresh", "now?"]


@pytest.mark.parametrize(
    ("history", "kept"), [(0, []), (1, ["b"]), (2, ["a", "b"]), (9, ["a", "b"])]
)
def test_no_more_messages_than_were_asked_for(history: int, kept: list[str]) -> None:
    before = (Said("them", "a", 0), Said("us", "b", 0))
    told = conversation(of("c", before=before), PROMPT, history=history, budget=1_000)
    assert [one.text for one in told] == [*kept, "c"]


def test_what_is_to_be_answered_is_told_whole_whatever_the_budget() -> None:
    before = (Said("us", "hello", 0),)
    asked = of("x" * 5_000, "y" * 5_000, before=before)
    told = conversation(asked, PROMPT, history=20, budget=100)
    assert told == [Told("user", f"{'x' * 5_000}\n{'y' * 5_000}")]


SAID = st.builds(
    Said, st.sampled_from(["them", "us"]), st.text(max_size=40), st.just(0), st.sampled_from(
        ["text", "image", "audio", "other"]
    )
)  # fmt: skip


@given(
    st.lists(SAID, max_size=12), st.lists(SAID, min_size=1, max_size=4), st.integers(0, 15),
    st.integers(100, 400),
)  # fmt: skip
def test_it_takes_turns_ends_with_the_question_and_keeps_to_the_budget(
    before: list[Said], said: list[Said], history: int, budget: int
) -> None:
    asked = Burst("key", "shop", "ana", tuple(said), tuple(before))
    told = conversation(asked, PROMPT, history=history, budget=budget)
    assert told[-1].role == "user"
    assert told[-1].text.endswith(all_in_words(asked))
    assert all(one.role != other.role for one, other in pairwise(told))
    spent = sum(reckoned(one.text) + PER_MESSAGE for one in told)
    least = reckoned(all_in_words(asked)) + PER_MESSAGE
    assert spent == least or spent + reckoned(PROMPT) + PER_MESSAGE <= budget
    lines = "\n".join(one.text for one in told)
    assert lines in "\n".join([*(in_words(one) for one in before), all_in_words(asked)])


@given(st.text(max_size=50), st.integers(1, 300), st.booleans())
def test_whatever_is_said_is_bounded_and_has_nothing_unseen_in_it(
    piece: str, times: int, broken_off: bool
) -> None:
    text = fit(piece * times, broken_off=broken_off)
    assert len(text) <= LONGEST_REPLY
    assert text == text.strip()
    assert not [letter for letter in text if letter != "\n" and letter < " " and letter != "\t"]
