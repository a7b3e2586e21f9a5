"""People who look after conversations: they take one, answer by hand, hand it back, or let nobody
answer any more, there or everywhere; and in the end they hand back what they have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from paceline.core.errors import InputError
from paceline.core.instants import Instant
from paceline.engine import conversations, muting
from paceline.engine.ports import Tx
from paceline.engine.ports.conversations import Conversation
from paceline.sim.minutes import Minutes
from paceline.sim.talk import ByHand

if TYPE_CHECKING:
    from paceline.sim.operators import Operators

MOST = 1_000
EVERYWHERE = 0.25
"""How many of those who are muted, or answered again, are so wherever they write."""


def orders(people: Operators) -> list[tuple[str, Callable[[], None]]]:
    """What can be ordered, by what it is called."""
    return [
        ("takes a conversation", lambda: _take(people)),
        ("takes another conversation", lambda: _take(people)),
        ("mutes somebody", lambda: _mute(people)),
        ("unmutes somebody", lambda: _unmute(people)),
        ("answers by hand", lambda: _reply(people)),
        ("answers by hand once more", lambda: _reply(people)),
        ("takes and answers", lambda: _take_and_reply(people)),
        ("hands back", lambda: _hand_back(people)),
        ("hands another back", lambda: _hand_back(people)),
        ("hands everything back", lambda: hand_everything_back(people)),
    ]


def put_right(people: Operators) -> None:
    """What a person has is handed back, and half of those that nobody was to answer."""
    if people.world.talk is not None:
        hand_everything_back(people)


def hand_everything_back(people: Operators) -> None:
    for one in _all(people):
        if one.mode == "human" or (one.mode == "muted" and one.id % 2):
            _give_back(people, one.id)


def _take(people: Operators) -> None:
    number = _one(people, "auto").id
    people.say(lambda tx, now: conversations.take(tx, number, now))


def _mute(people: Operators) -> None:
    number = _one(people, "auto", "human").id
    everywhere = people.rng.random() < EVERYWHERE
    order = muting.mute_everywhere if everywhere else muting.mute
    people.say(lambda tx, now: order(tx, number, now))


def _unmute(people: Operators) -> None:
    number = _one(people, "muted").id
    everywhere = people.rng.random() < EVERYWHERE
    order = muting.unmute_everywhere if everywhere else muting.unmute
    people.say(lambda tx, now: order(tx, number, now))


def _hand_back(people: Operators) -> None:
    _give_back(people, _one(people, "human", "human", "muted").id)


def _give_back(people: Operators, number: int) -> None:
    people.say(lambda tx, now: conversations.hand_back(tx, number, now))


def _reply(people: Operators) -> None:
    _answer(people, _one(people, "human", "auto", "muted").id)


def _take_and_reply(people: Operators) -> None:
    number = _one(people, "auto").id
    people.say(lambda tx, now: conversations.take(tx, number, now))
    _answer(people, number)


def _answer(people: Operators, number: int) -> None:
    made: list[int] = []
    text = f"by hand, for the {len(people.by_hand) + 1}. time"

    def answer(tx: Tx, now: Instant) -> None:
        made.append(conversations.reply(tx, number, text, people.house.providers, now))

    store = people.store
    assert isinstance(store, Minutes)
    minute = len(store.entries)
    at = people.say(answer)
    people.by_hand.append(ByHand(at, number, made[-1], minute))


def _one(people: Operators, *modes: str) -> Conversation:
    """One of those that are in one of these hands."""
    mode = people.rng.choice(modes)
    found = [one for one in _all(people) if one.mode == mode]
    if not found:
        raise InputError(f"nobody is {mode}")
    return people.rng.choice(found)


def _all(people: Operators) -> list[Conversation]:
    with people.store.read() as tx:
        return sorted(tx.conversations.list(limit=MOST))


__all__ = ["hand_everything_back", "orders", "put_right"]
