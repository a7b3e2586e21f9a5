"""The register: who is not to be written to, what came back and what was taken in, as every commit
of a world with mail left it.

Read inside the transaction, just before it ends. It holds no opinion of the engine's, and is
written only where something of it has changed: most commits leave it alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine.clock import LoopClock
from paceline.engine.ports import Alert, Crossing, LaneUnit, Store, Tx
from paceline.engine.ports.audit import MailMoment, Watched
from paceline.engine.ports.inbox import Received
from paceline.sim.loop import OWNER

EVERYTHING = 100_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit that changed something: what was new, and how mailboxes and accounts stood."""

    at: Instant
    """True time."""
    by: object
    """The process that made it; None where a person did."""
    watches: Mapping[int, Watched] = field(default_factory=dict)
    """By account."""
    accounts: Mapping[int, str] = field(default_factory=dict)
    """The state of each."""
    alerts: Mapping[int, Alert] = field(default_factory=dict)
    """All there ever were."""
    suppressed: Mapping[str, str] = field(default_factory=dict)
    """Addresses that were not before, or by something else, and by what they came to be."""
    bounced: tuple[int, ...] = ()
    """Deliveries that were not before."""
    received: tuple[Received, ...] = ()


class Register:
    """The store of a world with mail."""

    def __init__(self, store: Store, clock: LoopClock) -> None:
        self._store = store
        self._clock = clock
        self._moment: MailMoment | None = None
        self._suppressed: dict[str, str] = {}
        self._bounced: set[int] = set()
        self._received = 0
        self._alerts: dict[int, Alert] = {}
        self.entries: list[Entry] = []

    @property
    def prompt(self) -> bool:
        return self._store.prompt

    @contextmanager
    def write(self, *, at_once: bool = False) -> Iterator[Tx]:
        with self._store.write(at_once=at_once) as tx:
            yield tx
            moment = tx.audit.mail()
            entry = None if moment == self._moment else self._read(tx, moment)
        if entry is not None:
            self._keep(moment, entry)

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

    def _read(self, tx: Tx, moment: MailMoment) -> Entry:
        """Nothing is remembered of it yet: what is read here may still be undone."""
        before, alerts = self._moment, self._alerts
        suppressed: dict[str, str] = {}
        bounced: list[int] = []
        received: list[Received] = []
        # Somebody may complain who is not written to any more: then there is an alert.
        if before is None or (moment.suppressed, moment.alerts) != (
            before.suppressed,
            before.alerts,
        ):
            listed = {one[0]: one[2] for one in tx.suppressions.list()}
            suppressed = dict(listed.items() - self._suppressed.items())
        if before is None or moment.bounced != before.bounced:
            page = tx.deliveries.page(state=DeliveryState.BOUNCED, limit=EVERYTHING)
            bounced = [one.id for one in page if one.id not in self._bounced]
        if moment.received > self._received:
            received = tx.inbox.latest(limit=moment.received - self._received)
        if before is None or moment.alerts != before.alerts:
            alerts = {one.id: one for one in tx.alerts.list(with_cleared=True, limit=EVERYTHING)}
        return Entry(
            at=self._clock.now(),
            by=OWNER.get(),
            watches=moment.watches,
            accounts=moment.accounts,
            alerts=alerts,
            suppressed=suppressed,
            bounced=tuple(bounced),
            received=tuple(reversed(received)),
        )

    def _keep(self, moment: MailMoment, entry: Entry) -> None:
        self._moment = moment
        self._suppressed.update(entry.suppressed)
        self._bounced.update(entry.bounced)
        self._received = moment.received
        self._alerts = dict(entry.alerts)
        self.entries.append(entry)


__all__ = ["Entry", "Register"]
