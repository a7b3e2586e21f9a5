"""The chronicle: what stood in the tables after every commit, whoever made it.

Only worlds that are judged by the order of commits have one. It is read inside the transaction,
just before it ends, so that nothing can come between what is read and what is committed. It holds
no opinion of the engine's; what follows from a page is for the checkers to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from paceline.core.instants import Instant
from paceline.engine.clock import LoopClock
from paceline.engine.ports import Alert, Crossing, LaneUnit, LedgerRow, Store, Tx
from paceline.engine.ports.audit import LedgerKey, Moment
from paceline.sim.loop import OWNER


@dataclass(frozen=True, slots=True)
class Page:
    """One commit: what was new in the ledger, and how everything stood afterwards."""

    at: Instant
    """True time."""
    by_engine: bool
    """Made by a process, not by an operator."""
    calls: int
    """How many calls of providers had been made by then."""
    rows: tuple[LedgerRow, ...]
    accounts: Mapping[int, tuple[str, int, bool]]
    """By number: its state, its lane's generation, and whether it was removed."""
    runs: Mapping[int, str]
    alerts: Mapping[int, Alert]
    """All there ever were, by number."""
    held: Mapping[int, tuple[Instant, Instant]] = field(default_factory=dict)
    """By account, until when it is held back, and until when those are whom it does not know."""


class Chronicle:
    """The store of a world, which writes down what every commit has changed."""

    def __init__(self, store: Store, clock: LoopClock) -> None:
        self._store = store
        self._clock = clock
        self._known: set[LedgerKey] = set()
        self.pages: list[Page] = []
        self.calls: Sized = ()
        """Those that the witness has seen; set when there is one."""

    @property
    def prompt(self) -> bool:
        return self._store.prompt

    @contextmanager
    def write(self, *, at_once: bool = False) -> Iterator[Tx]:
        with self._store.write(at_once=at_once) as tx:
            yield tx
            moment = tx.audit.moment()
            new = sorted(set(moment.ledger) - self._known)
            page = self._page(moment, _rows(tx, new), tx.alerts.list(with_cleared=True))
        self._known.update(new)
        self.pages.append(page)

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

    def _page(self, moment: Moment, rows: list[LedgerRow], alerts: Sequence[Alert]) -> Page:
        return Page(
            at=self._clock.now(),
            by_engine=OWNER.get() is not None,
            calls=len(self.calls),
            rows=tuple(rows),
            accounts=moment.accounts,
            runs=moment.runs,
            alerts={alert.id: alert for alert in alerts},
            held={account: _held(text) for account, text in moment.checkpoints.items()},
        )


def _held(checkpoint: str) -> tuple[Instant, Instant]:
    raw = json.loads(checkpoint)
    return raw["hold_until_at"], raw.get("holds", {}).get("newcomers", (0,))[0]


def _rows(tx: Tx, keys: Sequence[LedgerKey]) -> list[LedgerRow]:
    wanted = set(keys)
    return [
        row
        for delivery_id in sorted({key[0] for key in keys})
        for row in tx.ledger.of_delivery(delivery_id)
        if (row.delivery_id, row.part, row.attempt, row.kind) in wanted
    ]
