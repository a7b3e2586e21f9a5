"""The answerer: gives every conversation its turn, many at once, each by one process of the fleet.

It begins the turns that are due, has each answered outside of any transaction, and writes the
answer down where it can only be sent once. A turn is held by a lease that is renewed while its
answer is made; one that was left is gone on with by whoever finds it. Nothing here is kept in
memory that matters: a process that dies has said nothing, or what it said is on its way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import structlog

from paceline.core.errors import ConflictError, InputError, NotFoundError, StoreError
from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.turns import Patience
from paceline.engine import alerts, conversations
from paceline.engine.asking import LEASE_US, Answers, Asking
from paceline.engine.conversations import Holder
from paceline.engine.holding import Holding
from paceline.engine.looking import Looker
from paceline.engine.ports import Clock, Journal, Providers, Tx
from paceline.engine.ports.answering import Answer
from paceline.engine.ports.conversations import Replied, Turn
from paceline.engine.questions import Question
from paceline.engine.talk_tally import TalkTally

LOOK_EVERY_US = SECOND // 2
STALE_US = 10 * MINUTE
"""No lease reaches further than that: one that does was written by a clock that was wrong."""
AT_ONCE = 20
"""Conversations that one process answers at a time."""
UNKNOWN_US = 5 * MINUTE
"""How long conversations wait for a process that knows how to answer them."""
TOGETHER = 50
"""Turns that are begun, or ended, at a time."""
MANY_STALE = 10
REDONE_AT_MOST = 3
"""How often an answer is made anew because more came in: whoever never pauses is answered too."""

log = structlog.get_logger("paceline.conversation")


class Answerer(Looker):
    """Runs beside the lanes, for all conversations that this process answers."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        providers: Providers,
        ways: Mapping[str, Answers],
        *,
        name: str,
        at_once: int = AT_ONCE,
        look_every_us: int = LOOK_EVERY_US,
        tally: TalkTally | None = None,
    ) -> None:
        super().__init__(clock, look_every_us, log, "conversations")
        self._journal = journal
        self._providers = providers
        self._ways = ways
        self._name = name
        self._at_once = at_once
        self._tally = tally or TalkTally()
        self._holding = Holding(journal, clock, self._tally)
        self._asking = Asking(journal, clock, self._holding, self._hand_over)
        self._answering: dict[int, asyncio.Task[None]] = {}
        self._begun_us: int | None = None
        self._found: set[int] = set()
        self._all_found = False

    @property
    def answering(self) -> int:
        return len(self._answering)

    async def look(self) -> None:
        """End what is over, go on with what was left, and begin what is due."""
        await self._end_replied()
        now = self._clock.now()
        room = self._room
        if not room:
            return
        held, stale, due = await self._journal.read(
            lambda tx: (
                tx.held_ways.list(),
                tx.turns.stale(STALE_US, MANY_STALE + 1),
                # Another process may have newer settings, so those whose way is not known here are
                # left to it for a while; then a person is told that nobody knows the way.
                tx.conversations.due(now, room, self._ways.keys(), now - UNKNOWN_US),
            )
        )
        await self._note_stale(stale, now)
        for question in await self._holding.look(held, self._ways.keys(), self._holder, room):
            self._start(question)
        for turn in stale[: self._room]:
            if turn.conversation_id not in self._answering:
                await self._take_over(turn, now)
        await _each([partial(self._begin, one.id, now) for one in due[: self._room]])

    @property
    def _room(self) -> int:
        """How many more may be answered at once."""
        return max(0, self._at_once - len(self._answering))

    async def end(self) -> None:
        """What is being made is given up: another process, or the next one, makes it."""
        tasks = list(self._answering.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for answers in self._ways.values():
            await answers.responder.close()

    async def _end_replied(self) -> None:
        now = self._clock.now()
        replied = await self._journal.read(lambda tx: tx.turns.replied(self._at_once * 5))
        await _each([partial(self._end, one, now) for one in replied])

    async def _end(self, replied: Replied, now: Instant) -> None:
        number = replied.turn.conversation_id
        work = partial(conversations.end, replied=replied, at=now)
        if await self._journal.write(work, talk=number):
            log.info("released", conversation=number, turn=replied.turn.id)

    async def _note_stale(self, stale: list[Turn], now: Instant) -> None:
        """Count what was left by those who were here before, until it is seen what they held to the
        last: whoever begins right after them finds their leases alive."""
        if self._all_found:
            return
        looked_us = self._clock.monotonic_us()
        self._begun_us = looked_us if self._begun_us is None else self._begun_us
        self._found |= {turn.id for turn in stale}
        many = len(self._found) > MANY_STALE
        if many:
            await self._journal.write(partial(alerts.many_left_behind, count=MANY_STALE, now=now))
        self._all_found = many or looked_us - self._begun_us > LEASE_US

    async def _begin(self, conversation_id: int, now: Instant) -> None:
        def work(tx: Tx) -> Question | None:
            return conversations.begin(
                tx, conversation_id, self._name, LEASE_US, now, self._most_history
            )

        question = await self._journal.write(work, talk=conversation_id)
        if question is None:
            self._tally.already_held += 1
            log.info("already held", conversation=conversation_id)
            return
        self._tally.acquired += 1
        log.info("acquired", conversation=conversation_id, turn=question.turn.id)
        self._start(question)

    async def _take_over(self, turn: Turn, now: Instant) -> None:
        question = await self._journal.write(
            lambda tx: conversations.take_over(tx, turn, self._holder, now, STALE_US),
            talk=turn.conversation_id,
        )
        if question is None and not await self._is_over(turn):
            return  # somebody was faster
        self._tally.stale_cleaned += 1
        log.warning(
            "stale cleaned",
            conversation=turn.conversation_id,
            turn=turn.id,
            owner=turn.owner,
        )
        if question is not None:
            self._start(question)
        else:
            log.info("released", conversation=turn.conversation_id, turn=turn.id)

    async def _is_over(self, turn: Turn) -> Turn | None:
        """How it ended, if it was ours to the end."""
        found = await self._journal.read(lambda tx: tx.turns.get(turn.id))
        return found if found.ended_at is not None and found.owner == self._name else None

    @property
    def _most_history(self) -> int:
        return max((way.history for way in self._ways.values()), default=0)

    @property
    def _holder(self) -> Holder:
        return Holder(self._name, LEASE_US, self._most_history)

    def _start(self, question: Question) -> None:
        number = question.turn.conversation_id
        answering = asyncio.create_task(self._see_through(question), name=f"conversation {number}")
        self._answering[number] = answering
        answering.add_done_callback(partial(self._ended, number))

    def _ended(self, number: int, answering: asyncio.Task[None]) -> None:
        """Unless the conversation has its next turn by now."""
        if self._answering.get(number) is answering:
            del self._answering[number]

    # ------------------------------------------------------------------ one turn

    async def _see_through(self, question: Question) -> None:
        turn = question.turn
        try:
            if await self._answer_or_hand_over(question):
                return  # its answer is on its way, and the turn with it; or there was none to make
            over = await self._is_over(turn)
            if over is None:
                log.warning("turn was taken over", turn=turn.id)
            else:
                told = {"conversation": turn.conversation_id, "turn": turn.id}
                log.info("released", **told, reason=over.reason)
        except StoreError as error:
            log.warning("turn is given up", turn=turn.id, error=str(error))
        finally:
            # There may be room for another one.
            self._signal.set()

    async def _answer_or_hand_over(self, question: Question) -> bool:
        """Whether it is answered."""
        try:
            return await self._answer(question)
        except StoreError:
            raise
        except Exception as error:
            # A defect of ours or of a responder. Asking again and again would help nobody.
            log.exception("answering failed", turn=question.turn.id)
            await self._hand_over(question, f"answering failed: {type(error).__name__}")
            return False

    async def _answer(self, question: Question) -> bool:
        name = _way(question)
        way = self._ways.get(name)
        if way is None:
            await self._hand_over(question, f"there is no way to answer called {name!r} here")
            return False
        redone, until_us = 0, self._asking.until_us(way)
        while True:
            made = await self._asking.answer_to(question, way, until_us)
            if made is None:
                return False
            patience = Patience.stored(question.account.answering)
            in_time = redone < REDONE_AT_MOST and self._asking.has_time_for_another(way, until_us)
            if patience.on_newer == "redo" and in_time:
                newer = await self._journal.write(
                    partial(_newer, turn=question.turn, history=way.history),
                    talk=question.turn.conversation_id,
                )
                if newer is not None:
                    question, redone = newer._replace(tries=question.tries), redone + 1
                    continue
            return await self._send(question, made)

    async def _send(self, question: Question, made: Answer) -> bool:
        now = self._clock.now()
        text = made.text.strip()
        try:
            # Whoever holds people first needs a transaction of its own.
            sent = await self._journal.write(
                lambda tx: conversations.answer(
                    tx, question, text, self._providers, now, note=made.note
                ),
                alone=True,
            )
        except (InputError, ConflictError, NotFoundError) as error:
            # What was made cannot be sent from this account: too long, somebody it cannot reach.
            await self._hand_over(question, f"the answer cannot be sent: {error}")
            return False
        if sent:
            first_at = question.burst.said[0].at
            self._tally.answered(_way(question), "answered" if text else "silent", now - first_at)
            log.info("answered", turn=question.turn.id, note=made.note)
            if not text:
                turn = question.turn
                log.info("released", conversation=turn.conversation_id, turn=turn.id)
        else:
            self._tally.answered(_way(question), "called_off")
            log.warning("answer is not sent: the turn is not ours any more", turn=question.turn.id)
        return sent

    async def _hand_over(self, question: Question, reason: str) -> None:
        now = self._clock.now()
        if await self._journal.write(
            lambda tx: conversations.hand_over(tx, question, reason, now),
            talk=question.turn.conversation_id,
        ):
            self._tally.answered(_way(question), "handed")
            log.warning("handed to a person", turn=question.turn.id, reason=reason)


def _way(question: Question) -> str:
    return str(question.account.answering.get("way", ""))


async def _each(works: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """Some of them at a time, so that they share a commit; one that fails keeps none from its end,
    but those that come after it."""
    for start in range(0, len(works), TOGETHER):
        some = [work() for work in works[start : start + TOGETHER]]
        for failed in await asyncio.gather(*some, return_exceptions=True):
            if isinstance(failed, BaseException):
                raise failed


def _newer(tx: Tx, turn: Turn, history: int) -> Question | None:
    return conversations.redo(tx, turn, LEASE_US, history)
