"""The minutes: how conversations stood, and what had come in, as every commit left it.

Read inside the transaction, just before it ends. They hold no opinion of the engine's, and are
written only where something of it has changed: most commits leave it alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from paceline.core.instants import Instant
from paceline.core.turns import Patience
from paceline.engine.clock import LoopClock
from paceline.engine.ports import Crossing, LaneUnit, Store, Tx
from paceline.engine.ports.audit import ActiveTurn, TalkMoment
from paceline.engine.ports.conversations import Conversation, Turn
from paceline.engine.ports.inbox import Received
from paceline.sim.loop import OWNER
from paceline.sim.talk import Asked, ByHand, Reached, Talk, Telling, Wrote


@dataclass(frozen=True, slots=True)
class Minute:
    """One commit that changed something, and how everything stood after it."""

    at: Instant
    """True time."""
    database_at: Instant
    by_engine: bool
    """Made by a process, not by an operator."""
    active: tuple[ActiveTurn, ...]
    modes: Mapping[int, str]
    """By conversation: who answers."""
    alerts: frozenset[str]
    """Those that are open, of conversations that need a person."""
    received: tuple[str, ...] = ()
    """What was new, as its provider calls it."""
    held: bool = False
    """Whether nobody is answered, because whoever was set up to answer will not."""


@dataclass(frozen=True, slots=True)
class Proceedings:
    """All there is to judge conversations by, after the end."""

    talk: Talk
    wrote: Sequence[Wrote]
    """What people really wrote; their numbers are their places."""
    tellings: Sequence[Telling]
    asked: Sequence[Asked]
    reached: Sequence[Reached]
    by_hand: Sequence[ByHand]
    minutes: Sequence[Minute]
    kept: Sequence[Received]
    """The tables in the end: what came in, conversations, turns."""
    conversations: Sequence[Conversation]
    turns: Sequence[Turn]
    resent: frozenset[int] = frozenset()
    """Deliveries in doubt that a person had sent again."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """What anybody ever tried to send, by its key."""

    def patience_of(self, account: str) -> Patience:
        return self.talk.patience[account]


class Minutes:
    """The store of a world in which people are conversed with."""

    def __init__(self, store: Store, clock: LoopClock) -> None:
        self._store = store
        self._clock = clock
        self._moment: TalkMoment | None = None
        self._received = 0
        self.entries: list[Minute] = []

    @property
    def prompt(self) -> bool:
        return self._store.prompt

    @contextmanager
    def write(self, *, at_once: bool = False) -> Iterator[Tx]:
        with self._store.write(at_once=at_once) as tx:
            yield tx
            moment = tx.audit.talks()
            same = self._moment is not None and moment._replace(now=0) == self._moment
            minute = None if same else self._minute(tx, moment)
        if minute is not None:
            self._moment, self._received = moment._replace(now=0), moment.received
            self.entries.append(minute)

    def set_off(self, units: Sequence[LaneUnit]) -> Crossing | None:
        return self._store.set_off(units)

    def read(self) -> AbstractContextManager[Tx]:
        return self._store.read()

    def analyse(self) -> None:
        self._store.analyse()

    def wipe(self) -> bool:
        return self._store.wipe()

    def close(self) -> None:
        self._store.close()

    def _minute(self, tx: Tx, moment: TalkMoment) -> Minute:
        """Nothing is remembered of it yet: what is read here may still be undone."""
        new: list[Received] = []
        if moment.received > self._received:
            new = tx.inbox.latest(limit=moment.received - self._received)
        return Minute(
            at=self._clock.now(),
            database_at=moment.now,
            by_engine=OWNER.get() is not None,
            active=moment.active,
            modes=moment.modes,
            alerts=frozenset(moment.alerts),
            received=tuple(one.provider_id for one in reversed(new)),
            held=bool(moment.held),
        )


__all__ = ["Minute", "Minutes", "Proceedings"]
