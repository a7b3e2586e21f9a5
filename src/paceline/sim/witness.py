"""The witness: sees every call that reaches the wire, and looks at the tables in that moment.

It holds no opinion of the engine's: what it writes down is who called, when it truly was, what the
caller's clock said, and what the database knew about the delivery just then. What is right and
what is wrong with it is for the checkers (``checks``) to say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from paceline.core.errors import StoreUnavailable
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.clock import LoopClock
from paceline.engine.ports import CallFacts, LedgerRow, Media, Message, Store, Tx, Upload
from paceline.sim.defects import in_words
from paceline.sim.trace import Trace

if TYPE_CHECKING:
    from paceline.sim.process import Process


@dataclass(frozen=True, slots=True)
class Seen:
    """One call of a provider."""

    at: Instant
    """True time."""
    clock_at: Instant
    """What the caller's own clock said."""
    process: str
    account: str
    key: str
    target: str
    delivery_id: int
    part: int
    facts: CallFacts | None
    gap_us: int
    """The gap to keep after this call, as the database has it."""
    beside: int = 0
    """How many other calls its caller was waiting for on that account."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer that asks for time, as it reached the process that had called."""

    at: Instant
    clock_at: Instant
    process: str
    account: str
    key: str
    generation: int | None
    """Under which the call was made."""
    retry_after_us: int
    alone: bool = False
    """Whether it asks for time for this one message only, and not for the account."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """One upload of a file, and what the tables knew of an earlier one in that moment."""

    at: Instant
    clock_at: Instant
    process: str
    account: str
    media_id: str
    known: Upload | None
    """As of the look whose answer led to it: while that was under way more may have been stored."""
    owner: str | None
    """Who had the account's lane just then."""


@dataclass(frozen=True, slots=True)
class Defect:
    """A lane that crashed, and of what."""

    at: Instant
    process: str
    account: str
    error: str


@dataclass(frozen=True, slots=True)
class Look:
    """What the ledger held at a call that it had not held at the call before."""

    at: Instant
    rows: tuple[LedgerRow, ...]
    generations: Mapping[int, int] = field(default_factory=dict)
    """Of every account's lane, just then."""


Shelf = Mapping[tuple[int, str], Upload]
"""What is written down of files that were uploaded, by account and file."""

_TOLD: ContextVar[tuple[Instant, Shelf]] = ContextVar("told", default=(0, {}))
"""When the task at hand was answered what it had asked the store last, and what the store held when
it looked."""


class Witness:
    """Everything that was seen in one world."""

    def __init__(
        self, clock: LoopClock, store: Store, trace: Trace, *, careful: bool = False
    ) -> None:
        self._clock = clock
        self._store = store
        self._trace = trace
        self._away_until_at: Instant = 0
        self.calls: list[Seen] = []
        self.heard: list[Heard] = []
        self.loaded: list[Loaded] = []
        self.looks: list[Look] = []
        self.defects: list[Defect] = []
        self._careful = careful
        self._read: set[tuple[int, int, int, str]] = set()
        self.crashes = 0
        self.suppressed_at: dict[str, Instant] = {}
        """When an address was suppressed by an operator: the instant of the commit."""

    def see_call(self, process: Process, account: str, message: Message, beside: int) -> None:
        delivery_id, part = (int(number) for number in message.key.rsplit("-", 2)[1:])
        with self._store.read() as tx:
            facts = tx.audit.at_call(delivery_id, part)
            if self._careful:
                self._look_into_the_ledger(tx)
        gap_us = 0
        if facts is not None and facts.checkpoint is not None:
            gap_us = json.loads(facts.checkpoint).get("gap_us", 0)
        self._trace.note(process.name, "calls", f"delivery {delivery_id} part {part} on {account}")
        self.calls.append(
            Seen(
                at=self._clock.now(),
                clock_at=process.now(),
                process=process.name,
                account=account,
                key=message.key,
                target=message.target,
                delivery_id=delivery_id,
                part=part,
                facts=facts,
                gap_us=gap_us,
                beside=beside,
            )
        )

    def _look_into_the_ledger(self, tx: Tx) -> None:
        """The ledger has no order of its own in which it was written; this gives it one."""
        new, generations = [], {}
        for account in tx.accounts.list(with_removed=True):
            generations[account.id] = tx.lanes.get(account.id).generation
            for row in tx.ledger.walk(account.id):
                key = (row.delivery_id, row.part, row.attempt, row.kind)
                if key not in self._read:
                    self._read.add(key)
                    new.append(row)
        new.sort(key=lambda row: (row.at, row.delivery_id, row.part, row.attempt, row.kind))
        self.looks.append(Look(self._clock.now(), tuple(new), generations))

    def see_answer(
        self, process: Process, account: str, message: Message, outcome: Outcome
    ) -> None:
        """What a process was told to wait for; the last call of that key was its own."""
        if outcome.retry_after_us is None or not process.alive:
            return
        call = next(call for call in reversed(self.calls) if call.key == message.key)
        self._trace.note(process.name, "is told", f"to wait {outcome.retry_after_us} us")
        self.heard.append(
            Heard(
                at=self._clock.now(),
                clock_at=process.now(),
                process=process.name,
                account=account,
                key=message.key,
                generation=None if call.facts is None else call.facts.generation,
                retry_after_us=outcome.retry_after_us,
                alone=outcome.kind is OutcomeKind.TRANSIENT,
            )
        )

    def see_defect(self, process: Process, account: str, error: BaseException | None) -> None:
        """A lane has crashed. What befalls one whose process is dead befalls nobody."""
        if process.alive:
            told = in_words(error) if isinstance(error, Exception) else "it was stuck"
            self.defects.append(Defect(self._clock.now(), process.name, account, told))

    def shelf(self) -> Shelf:
        """For whoever looks into the store, to be told when the answer is there. Before anybody has
        uploaded anything there is nothing to know."""
        if not self.loaded:
            return {}
        with self._store.read() as tx:
            return {(one.account_id, one.media_id): one for one in tx.media.uploads()}

    def tell(self, shelf: Shelf) -> None:
        _TOLD.set((self._clock.now(), shelf))

    def see_upload(self, process: Process, account: str, media: Media) -> None:
        told_at, told = _TOLD.get()
        with self._store.read() as tx:
            row = tx.accounts.find(account)
            owner_id = None if row is None else tx.lanes.get(row.id).owner
            owners = {one.id: one.name for one in tx.processes.list()}
        # Whoever was told just now can know no better; whoever was told before should have asked.
        shelf = told if told_at == self._clock.now() else self.shelf()
        self._trace.note(process.name, "uploads", f"{media.name} on {account}")
        self.loaded.append(
            Loaded(
                at=self._clock.now(),
                clock_at=process.now(),
                process=process.name,
                account=account,
                media_id=media.id,
                known=None if row is None else shelf.get((row.id, media.id)),
                owner=None if owner_id is None else owners.get(owner_id),
            )
        )

    # ------------------------------------------------------------------ the database's absences

    def send_away(self, us: int) -> None:
        """The database cannot be reached for a while, by anybody."""
        self._trace.note("database", "store", f"goes away for {us} us")
        self._away_until_at = self._clock.now() + us

    def refuse_if_away(self) -> None:
        if self._clock.now() < self._away_until_at:
            raise StoreUnavailable("the database cannot be reached")
