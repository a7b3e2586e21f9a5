"""Never out of turn, by the tables: one active turn at a time, held by whoever has its lease, and
not in the way of a person who has taken the conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from paceline.core.instants import SECOND
from paceline.engine.conversations import PERSON
from paceline.engine.ports.audit import ActiveTurn
from paceline.sim.checks.evidence import Evidence, Violation
from paceline.sim.minutes import Minute

OUT_OF_TURN = "never out of turn"
UNTOLD = "never untold"

LEASE_US = 15 * SECOND
"""As the documentation has it."""


def out_of_turn(evidence: Evidence) -> Iterator[Violation]:
    if evidence.talks is None:
        return
    minutes = evidence.talks.minutes
    renewed: dict[int, Minute] = {}
    for before, minute in pairwise(minutes):
        yield from _two_at_once(minute)
        known = {turn.id: turn for turn in before.active}
        for turn in minute.active:
            yield from _in_the_way(minute, known.get(turn.id), turn)
            if known.get(turn.id) != turn:
                if turn.id in known and turn.id in renewed:
                    yield from _snatched(renewed[turn.id], minute, known[turn.id], turn)
                renewed[turn.id] = minute
    for answer in evidence.talks.by_hand:
        before = minutes[answer.minute - 1]
        for turn in before.active:
            if turn.conversation_id == answer.conversation_id:
                text = f"delivery {answer.delivery_id} was written by hand, while turn {turn.id} is"
                yield Violation(
                    OUT_OF_TURN, f"{text} {turn.state}", answer.at, (str(answer.delivery_id),)
                )


def _two_at_once(minute: Minute) -> Iterator[Violation]:
    for conversation, count in Counter(turn.conversation_id for turn in minute.active).items():
        if count > 1:
            text = f"conversation {conversation} has {count} active turns"
            yield Violation(OUT_OF_TURN, text, minute.at)


def _snatched(
    renewed: Minute, minute: Minute, before: ActiveTurn, turn: ActiveTurn
) -> Iterator[Violation]:
    """A turn changes hands only when nothing was heard of its owner for as long as a lease lasts,
    by the database's clock, however long he has had it."""
    if before.generation == turn.generation:
        return
    silent_us = minute.database_at - renewed.database_at
    if silent_us < LEASE_US:
        text = f"turn {turn.id} was taken from {before.owner}, heard of {silent_us} us ago"
        yield Violation(OUT_OF_TURN, text, minute.at, (f"turn-{turn.id}", before.owner))


def _in_the_way(minute: Minute, before: ActiveTurn | None, turn: ActiveTurn) -> Iterator[Violation]:
    """No machine answers where a person does, or nobody."""
    answered = turn.delivery_id is not None and (before is None or before.delivery_id is None)
    mode = minute.modes[turn.conversation_id]
    if answered and turn.owner != PERSON and mode != "auto":
        text = f"turn {turn.id} is answered by {turn.owner}, and its conversation is {mode}"
        yield Violation(OUT_OF_TURN, text, minute.at, (str(turn.delivery_id), turn.owner))


def untold(evidence: Evidence) -> Iterator[Violation]:
    """A conversation that a machine leaves to a person comes with an alert, in the same commit; and
    when somebody has seen to it, that is over."""
    if evidence.talks is None:
        return
    for before, minute in pairwise(evidence.talks.minutes):
        for conversation, mode in minute.modes.items():
            was = before.modes.get(conversation, "auto")
            called_for = f"conversation.person:{conversation}" in minute.alerts
            if minute.by_engine and was == "auto" and mode == "human" and not called_for:
                text = f"conversation {conversation} needs a person, and nobody is told"
                yield Violation(UNTOLD, text, minute.at)
            if was != "auto" and mode == "auto" and called_for:
                text = f"conversation {conversation} is handed back, and is told to need a person"
                yield Violation(UNTOLD, text, minute.at)


__all__ = ["out_of_turn", "untold"]
