"""What a responder is told of a conversation: as much of it as the budget allows. Pure.

What people say is only ever told as their own words, beside the prompt and never in it: a text that
gives orders must not become one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from paceline.core import enclosures
from paceline.engine.ports.answering import Burst, Said

PER_MESSAGE = 4
"""Tokens that a message takes besides its text."""


class Told(NamedTuple):
    """One message as a model is told it."""

    role: Literal["user", "assistant"]
    text: str


def in_words(said: Said) -> str:
    """A message as a text: what of it cannot be read is named, with its caption."""
    return enclosures.in_words(said.kind, said.text, said.files)


def all_in_words(burst: Burst) -> str:
    """Everything that is to be answered, a line or more for each message."""
    return "\n".join(in_words(one) for one in burst.said)


def reckoned(text: str) -> int:
    """How many tokens a text takes at most, as a rule: three letters each, and of other scripts two
    bytes. Every model counts in its own way; this one is reckoned high for all of them."""
    plain = len(text.encode("ascii", "ignore"))
    foreign = len(text.encode("utf-8", "replace")) - plain
    return -(-plain // 3) - (-foreign // 2)


def conversation(burst: Burst, prompt: str, *, history: int, budget: int) -> list[Told]:
    """What came before, as far back as the budget reaches, and all that is to be answered.

    Messages of one side that follow each other are told as one: some models take no others.
    """
    asked = all_in_words(burst)
    left = budget - reckoned(prompt) - reckoned(asked) - 2 * PER_MESSAGE
    kept: list[Told] = []
    for said in reversed(burst.before[max(0, len(burst.before) - history) :]):
        text = in_words(said)
        left -= reckoned(text) + PER_MESSAGE
        if left < 0:
            break
        kept.append(Told("user" if said.by == "them" else "assistant", text))
    told: list[Told] = []
    for one in [*reversed(kept), Told("user", asked)]:
        if told and told[-1].role == one.role:
            told[-1] = Told(one.role, f"{told[-1].text}\n{one.text}")
        else:
            told.append(one)
    return told
