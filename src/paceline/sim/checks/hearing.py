"""What was said in a world, put in order for the checkers of conversations: when each message stood
in the tables first, which replies reached whom, and when somebody did not want to be written to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from paceline.core.instants import SECOND, Instant
from paceline.core.opting_out import Wish
from paceline.engine.ports.conversations import Conversation, Turn
from paceline.engine.ports.inbox import Received
from paceline.sim.checks.evidence import Evidence
from paceline.sim.minutes import Proceedings
from paceline.sim.talk import Wrote

Chat = tuple[str, str]
"""An account, and who writes to it."""
ROUGH_US = SECOND
"""As exactly as every provider tells time."""


class Came(NamedTuple):
    """When a message stood in the tables first."""

    order: int
    """Among all of them, by the commit and by the place in it."""
    minute: int
    at: Instant


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that has reached somebody."""

    at: Instant
    chat: Chat
    delivery_id: int
    turn: Turn | None
    by_hand: bool
    numbers: tuple[int, ...]
    """What it answers: as it says itself, or by hand what its turn took."""


class Hearing:
    """One world's conversations."""

    def __init__(self, evidence: Evidence, talks: Proceedings) -> None:
        self.evidence = evidence
        self.talks = talks
        self.by_name = {one.name: one for one in talks.wrote}
        self.turns = {turn.id: turn for turn in talks.turns}
        self.conversations: dict[Chat, Conversation] = {
            (evidence.accounts[one.account_id], one.chat): one for one in talks.conversations
        }

    @cached_property
    def came(self) -> dict[int, Came]:
        """By the number of the message."""
        found: dict[int, Came] = {}
        for index, minute in enumerate(self.talks.minutes):
            for name in minute.received:
                if name in self.by_name:
                    found.setdefault(self.by_name[name].number, Came(len(found), index, minute.at))
        return found

    @cached_property
    def told_at(self) -> dict[int, Instant]:
        """When each was told first: patience is counted from there, however long it took to write
        it down."""
        found: dict[int, Instant] = {}
        for telling in self.talks.tellings:
            for number in telling.numbers:
                found.setdefault(number, telling.at)
        return found

    @cached_property
    def kept(self) -> dict[int, list[Received]]:
        """The rows of each message."""
        rows: dict[int, list[Received]] = defaultdict(list)
        for row in self.talks.kept:
            if row.provider_id in self.by_name:
                rows[self.by_name[row.provider_id].number].append(row)
        return rows

    @cached_property
    def taken(self) -> dict[int, list[int]]:
        """The messages of each turn, in the end."""
        found: dict[int, list[int]] = defaultdict(list)
        for number, rows in self.kept.items():
            for row in rows:
                if row.turn_id is not None:
                    found[row.turn_id].append(number)
        return found

    def turn_of(self, number: int) -> Turn | None:
        """The one that a message ended up in."""
        for row in self.kept.get(number, ()):
            if row.turn_id is not None:
                return self.turns.get(row.turn_id)
        return None

    @property
    def answerable(self) -> Iterator[Wrote]:
        """What people wrote to an account alone."""
        return (one for one in self.talks.wrote if not one.strange)

    # ------------------------------------------------------------------ replies

    @cached_property
    def replies(self) -> list[Reply]:
        """All that reached somebody, in that order."""
        by_delivery = {
            turn.delivery_id: turn for turn in self.talks.turns if turn.delivery_id is not None
        }
        by_hand = {one.delivery_id for one in self.talks.by_hand}
        found = []
        for one in self.talks.reached:
            turn = by_delivery.get(one.delivery_id)
            if turn is None and one.key is None and one.delivery_id not in by_hand:
                continue  # of a campaign
            hand = one.delivery_id in by_hand
            took = self.taken.get(turn.id, []) if turn is not None else []
            numbers = tuple(took) if hand else one.numbers
            chat = (one.account, one.chat)
            found.append(Reply(one.at, chat, one.delivery_id, turn, hand, numbers))
        return sorted(found, key=lambda reply: reply.at)

    @cached_property
    def ended(self) -> dict[int, Instant]:
        """When each turn was over that was ever seen to be active."""
        found: dict[int, Instant] = {}
        before: set[int] = set()
        for minute in self.talks.minutes:
            active = {turn.id for turn in minute.active}
            for number in before - active:
                found[number] = minute.at
            before = active
        return found

    # ------------------------------------------------------------------ who wants none

    @cached_property
    def wishes(self) -> dict[str, list[tuple[Came, Wrote]]]:
        """By person, in the order in which they were taken in."""
        found: dict[str, list[tuple[Came, Wrote]]] = defaultdict(list)
        for one in self.answerable:
            if one.wish is not None and one.number in self.came:
                found[one.chat].append((self.came[one.number], one))
        return {chat: sorted(wishes) for chat, wishes in found.items()}

    def last_wish(self, chat: str, at: Instant) -> Wish | None:
        """What of all that was taken in by then was written last; None where nothing was, or nobody
        can tell: who tells time in seconds only."""
        known = [one for came, one in self.wishes.get(chat, ()) if came.at <= at]
        if not known:
            return None
        latest_at = max(one.told_at for one in known)
        latest = {one.wish for one in known if abs(one.told_at - latest_at) < ROUGH_US}
        return latest.pop() if len(latest) == 1 else None

    def was_out(self, chat: str, since_at: Instant, until_at: Instant) -> bool:
        """Whether somebody did not want to be written to at any time in between."""
        standing = self._standing.get(chat, [])
        before = [out for at, out in standing if at <= since_at]
        return before[-1:] == [True] or any(
            out for at, out in standing if since_at <= at <= until_at
        )

    @cached_property
    def _standing(self) -> dict[str, list[tuple[Instant, bool]]]:
        """By person, whether they are out after each of their wishes, read in the careful way: STOP
        counts whenever it is heard, and START unless a STOP was written after it, or in the same
        moment as far as anybody can tell."""
        found: dict[str, list[tuple[Instant, bool]]] = {}
        for chat, wishes in self.wishes.items():
            stops: list[Instant] = []
            out, standing = False, list[tuple[Instant, bool]]()
            for came, one in wishes:
                if one.wish == "stop":
                    stops.append(one.told_at)
                    out = True
                elif all(one.told_at - stop_at >= ROUGH_US for stop_at in stops):
                    out = False
                standing.append((came.at, out))
            found[chat] = standing
        return found


__all__ = ["Came", "Chat", "Hearing", "Reply"]
