"""The overseer: looks every so often how conversations stand, and tells operators what is amiss.

A turn that is held for long, and messages of which more than half come while their conversation is
being answered: answers take longer than people pause, so more processes may be needed, or a faster
responder. Every process looks at the same tables, so it does not matter which one tells, and an
alert ends by itself once that is over.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import NamedTuple

import structlog

from paceline.core.instants import MINUTE, SECOND, Instant, local_text
from paceline.core.states import TurnState
from paceline.engine import alerts
from paceline.engine.looking import Looker
from paceline.engine.ports import Clock, Journal, Tx
from paceline.engine.ports.conversations import Met, Turn, Waiting
from paceline.engine.talk_tally import TalkTally

LOOK_EVERY_US = 15 * SECOND
HELD_US = 5 * MINUTE
"""For longer no conversation should be held."""
MET_WITHIN_US = 10 * MINUTE
LATEST = 500
"""Messages that are looked at: the latest of those that came within that time."""
ENOUGH = 20
"""Of fewer nobody can say what share of them is much."""

log = structlog.get_logger("paceline.conversation")


class Stand(NamedTuple):
    """What one look has found."""

    active: list[Turn]
    waiting: list[Waiting]
    met: Met
    told: frozenset[str]
    """Kinds of alerts that are open."""


class Overseer(Looker):
    """Runs beside the answerer."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        tally: TalkTally,
        *,
        look_every_us: int = LOOK_EVERY_US,
    ) -> None:
        super().__init__(clock, look_every_us, log, "held conversations")
        self._journal = journal
        self._tally = tally

    async def look(self) -> None:
        now = self._clock.now()
        stand = await self._journal.read(partial(_read, since_at=now - MET_WITHIN_US))
        self._count(stand, now)
        held = [turn for turn in stand.active if now - turn.started_at > HELD_US]
        if bool(held) != (alerts.HELD_TURNS in stand.told):
            await self._journal.write(
                partial(alerts.held_long, text=_held_text(held, now), now=now)
                if held
                else partial(alerts.none_held, now=now)
            )
        busy = stand.met.heard >= ENOUGH and stand.met.meeting * 2 > stand.met.heard
        if busy != (alerts.BUSY_TURNS in stand.told):
            await self._journal.write(
                partial(alerts.answers_lag, text=_busy_text(stand.met), now=now)
                if busy
                else partial(alerts.answers_keep_up, now=now)
            )

    def _count(self, stand: Stand, now: Instant) -> None:
        states = Counter(turn.state.value for turn in stand.active)
        self._tally.stands(
            {
                state.value: states[state.value]
                for state in (TurnState.THINKING, TurnState.REPLYING)
            },
            {one.mode: one.how_many for one in stand.waiting},
            {one.mode: max(now - one.oldest_at, 0) / SECOND for one in stand.waiting},
        )


def _read(tx: Tx, since_at: Instant) -> Stand:
    told = frozenset(kind.kind for kind in tx.alerts.kinds())
    met = tx.turns.met(since_at, LATEST)
    return Stand(tx.turns.active(), tx.conversations.waiting(), met, told)


def _held_text(held: list[Turn], now: Instant) -> str:
    if not held:
        return ""
    first = min(held, key=lambda turn: turn.started_at)
    since = local_text(first.started_at, "UTC")
    does = "is being answered" if first.state is TurnState.THINKING else "has an answer on its way"
    more = f" (and {len(held) - 1} more)" if len(held) > 1 else ""
    return (
        f"conversation {first.conversation_id} {does} since {since} by {first.owner}{more}: "
        "whoever answers may be stuck; see: paceline locks"
    )


def _busy_text(met: Met) -> str:
    return (
        f"{met.meeting} of the last {met.heard} messages came while their conversation was being "
        "answered: more processes may be needed, or whoever answers is slow"
    )
