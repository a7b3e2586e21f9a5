"""Transactions, the store that opens them, and the journal that groups them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol, TypeVar

from paceline.core.instants import Instant
from paceline.engine.ports.alerts import Alerts
from paceline.engine.ports.audit import Audit
from paceline.engine.ports.bids import Bids
from paceline.engine.ports.campaigns import Campaigns, Runs
from paceline.engine.ports.conversations import Conversations, Turns
from paceline.engine.ports.events import Events, Hooks
from paceline.engine.ports.held_ways import HeldWays
from paceline.engine.ports.history import History
from paceline.engine.ports.inbox import Inbox, Watches
from paceline.engine.ports.keys import Keys
from paceline.engine.ports.listening import Listening
from paceline.engine.ports.muting import Muting
from paceline.engine.ports.path import LaneResult, LaneUnit, Path
from paceline.engine.ports.people import Audiences, Contacts, Suppressions
from paceline.engine.ports.pools import Pools
from paceline.engine.ports.questions import Questions
from paceline.engine.ports.receipts import Receipts
from paceline.engine.ports.reminders import Groups, Reminders
from paceline.engine.ports.steps import Steps
from paceline.engine.ports.subjects import (
    Accounts,
    Deliveries,
    Lanes,
    Ledger,
    MediaShelf,
    Policies,
    Processes,
    Settings,
)
from paceline.engine.ports.timetable import Timetable
from paceline.engine.ports.waiting import Waiting

T = TypeVar("T")
One = TypeVar("One")


class Tx(Protocol):
    """One transaction over everything that is stored."""

    @property
    def now(self) -> Instant:
        """The database's clock."""
        ...

    def hurry(self) -> None:
        """Wait for other writers' rows a moment only, and then raise ``RowBusy``."""
        ...

    @property
    def path(self) -> Path: ...
    @property
    def accounts(self) -> Accounts: ...
    @property
    def policies(self) -> Policies: ...
    @property
    def campaigns(self) -> Campaigns: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def pools(self) -> Pools: ...
    @property
    def timetable(self) -> Timetable: ...
    @property
    def steps(self) -> Steps: ...
    @property
    def bids(self) -> Bids: ...
    @property
    def reminders(self) -> Reminders: ...
    @property
    def groups(self) -> Groups: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def receipts(self) -> Receipts: ...
    @property
    def lanes(self) -> Lanes: ...
    @property
    def processes(self) -> Processes: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def media(self) -> MediaShelf: ...
    @property
    def contacts(self) -> Contacts: ...
    @property
    def audiences(self) -> Audiences: ...
    @property
    def suppressions(self) -> Suppressions: ...
    @property
    def history(self) -> History: ...
    @property
    def waiting(self) -> Waiting: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def conversations(self) -> Conversations: ...

    @property
    def turns(self) -> Turns: ...

    @property
    def muting(self) -> Muting: ...

    @property
    def held_ways(self) -> HeldWays: ...

    @property
    def questions(self) -> Questions: ...

    @property
    def listening(self) -> Listening: ...

    @property
    def inbox(self) -> Inbox: ...
    @property
    def watches(self) -> Watches: ...
    @property
    def events(self) -> Events: ...
    @property
    def hooks(self) -> Hooks: ...
    @property
    def alerts(self) -> Alerts: ...
    @property
    def audit(self) -> Audit: ...


class Crossing(Protocol):
    """A transaction on its way to a server, which is waited for in the loop."""

    def fileno(self) -> int:
        """What can be read whenever there is a step to take."""
        ...

    @property
    def foretold(self) -> list[LaneResult]:
        """What its units are answered if it is committed."""
        ...

    def step(self) -> bool:
        """Send and take in what there is; whether it is committed by now."""
        ...

    def end(self) -> None:
        """Nobody watches it any more; what is still under way is broken off."""
        ...


class Store(Protocol):
    """A database that has been opened and found to have the right schema."""

    @property
    def prompt(self) -> bool:
        """Whether the statements of a transaction wait for nobody: only its beginning does, for
        another writer, and its commit, for the disk."""
        ...

    def write(self, *, at_once: bool = False) -> AbstractContextManager[Tx]:
        """A write transaction: committed at the end of the block, rolled back by an exception.

        With ``at_once``, one that would have to wait for another writer is a ``StoreError``. It is
        for work that changes few rows: what it may have to undo is kept in memory.
        """
        ...

    def set_off(self, units: Sequence[LaneUnit]) -> Crossing | None:
        """A write transaction of nothing but these units, taken on trust (``Path.trust``), that is
        on its way by itself. None where that cannot be, or not without waiting; whatever it raises,
        nothing was sent."""
        ...

    def read(self) -> AbstractContextManager[Tx]:
        """A consistent read."""
        ...

    def analyse(self) -> None:
        """Refresh the planner's statistics after a bulk insert."""
        ...

    def wipe(self) -> bool:
        """Let go of what was overwritten, where the database keeps a copy for a while; False if
        somebody was in the way."""
        ...

    def close(self) -> None: ...


Work = Callable[[Tx], T]
Together = Callable[[Tx, Sequence[One]], Sequence[T]]
"""Work that is done for many at once, with an answer for each of them, in their order."""
Holds = Literal["lanes", "conversations", "turns"]
"""What work holds, in the order in which everybody holds it: whoever holds conversations may hold
turns afterwards, and none who holds turns waits for a conversation."""


class Journal(Protocol):
    """The one way into the store for everything that runs in the event loop."""

    def write(
        self,
        work: Work[T],
        *,
        alone: bool = False,
        first: bool = False,
        talk: int | None = None,
    ) -> Awaitable[T]:
        """Run ``work`` in a group with others; the answer comes when the group is durable.

        Work that needs the fence goes ``alone``: in a group it would come after writes of others,
        and nobody may wait for the fence while holding what its holder waits for. What goes
        ``first`` overtakes whatever waits: only the renewal of a lease is worth that. Work that
        holds one conversation says which ``talk`` that is; what holds several goes alone. So all
        conversations are held in one order, whoever comes with whom.
        """
        ...

    def write_together(
        self, work: Together[One, T], one: One, *, holds: Holds = "lanes"
    ) -> Awaitable[T]:
        """The same, but ``work`` runs once for all of a group who ask for it: for what costs hardly
        more for many than for one. Where it fails, everybody's is tried alone. Of what a group
        asks for, that which ``holds`` turns comes after that which holds conversations."""
        ...

    async def read(self, work: Work[T]) -> T: ...

    def submit(
        self, unit: LaneUnit, *, hurried: bool = False, begins: Callable[[], None] | None = None
    ) -> Awaitable[LaneResult]:
        """A lane's unit, merged with those of other lanes into one statement per kind. Whoever has
        no pace to keep is ``hurried``, and not kept waiting for the company of others. ``begins``
        is called when it has its turn: nothing else of the process is committed from then on until
        it is."""
        ...

    def submit_and(self, unit: LaneUnit, goes_on: Callable[[Tx, LaneResult], T]) -> Awaitable[T]:
        """A lane's unit, and what follows from it in the same transaction: something that holds
        nothing but its lane, its account and its process."""
        ...
