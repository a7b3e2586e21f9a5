"""What an answerer does about ways that are held: it asks nobody, tries them now and then, and goes
on. That they are held is in the database; what is remembered here is what the last look has found.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

import structlog

from paceline.core.instants import SECOND, Instant
from paceline.engine import held_ways
from paceline.engine.conversations import Holder
from paceline.engine.ports import Clock, Journal, Tx
from paceline.engine.ports.held_ways import HeldWay
from paceline.engine.questions import Question
from paceline.engine.talk_tally import TalkTally

TOGETHER = 50
"""Conversations that are handed to people at a time."""
OVERDUE_EVERY_US = 10 * SECOND
"""How often those are looked for who have waited for too long: thousands may wait."""

log = structlog.get_logger("paceline.conversation")


class Holding:
    """The ways of one process. All that changes them is written alone: a group of units would hold
    conversations after ways, and others the other way round."""

    def __init__(self, journal: Journal, clock: Clock, tally: TalkTally) -> None:
        self._journal = journal
        self._clock = clock
        self._tally = tally
        self._held: frozenset[str] = frozenset()
        self._overdue_us = -OVERDUE_EVERY_US

    def keeps(self, question: Question) -> bool:
        """Whether it is not to be asked now."""
        return not question.tries and held_ways.way_of(question.account) in self._held

    async def look(
        self, held: Sequence[HeldWay], ways: Collection[str], by: Holder, room: int
    ) -> list[Question]:
        """Hand those to people who have waited for too long; what is to be asked now, so that it is
        seen whether it is answered."""
        self._held = frozenset(one.way for one in held)
        if not held:
            return []
        now = self._clock.now()
        known = [one for one in held if one.way in ways and held_ways.may_be_tried(one, now)]
        looked_us = self._clock.monotonic_us()
        most = TOGETHER if looked_us - self._overdue_us >= OVERDUE_EVERY_US else 0
        self._overdue_us = looked_us if most else self._overdue_us
        if not (known or most):
            return []
        look = partial(_look, held=known, most=most, now=now)
        waiting, overdue = await self._journal.read(look)
        for number, way in overdue:
            work = partial(held_ways.give_up, held=way, conversation_id=number, by=by, at=now)
            if await self._journal.write(work, talk=number):
                self._tally.answered(way.way, "handed")
                log.warning("handed to a person", conversation=number, reason=way.reason)
        questions = []
        for way, number in waiting[: max(room, 0)]:
            work_ = partial(held_ways.try_with, held=way, conversation_id=number, by=by, at=now)
            question = await self._journal.write(work_, alone=True)
            if question is not None:
                self._tally.acquired += 1
                log.info("acquired", conversation=number, turn=question.turn.id, tries=way.way)
                questions.append(question)
        return questions

    async def hold_back(self, question: Question, reason: str) -> None:
        way, now = held_ways.way_of(question.account), self._clock.now()
        self._held |= {way}
        work = partial(held_ways.hold_back, question=question, reason=reason, at=now)
        if await self._journal.write(work, alone=True):
            self._tally.answered(way, "held")
            log.warning("held", way=way, turn=question.turn.id, reason=reason)

    async def let_wait(self, question: Question) -> None:
        work = partial(held_ways.let_wait, question=question, at=self._clock.now())
        if await self._journal.write(work, talk=question.turn.conversation_id):
            self._tally.answered(held_ways.way_of(question.account), "held")

    async def works(self, question: Question) -> None:
        """Whoever is behind this way answers, or at least not nobody."""
        tried = question.tries
        if tried is None:
            return
        work = partial(held_ways.works, tried=tried, at=self._clock.now())
        if await self._journal.write(work, alone=True):
            self._held -= {tried.way}
            log.info("goes on", way=tried.way)


def _look(
    tx: Tx, held: Sequence[HeldWay], most: int, now: Instant
) -> tuple[list[tuple[HeldWay, int]], list[tuple[int, HeldWay]]]:
    """Which ways are tried with which conversation; and who has waited for too long."""
    overdue = tx.held_ways.overdue(now - held_ways.LONGEST_US, most) if most else []
    late = {number for number, _ in overdue}
    oldest = [(one, tx.held_ways.longest_due(one.way, now)) for one in held]
    return [(one, number) for one, number in oldest if number and number not in late], overdue
