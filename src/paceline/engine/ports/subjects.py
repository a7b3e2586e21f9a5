"""What is stored, subject by subject: the statements that are not on the hot path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from paceline.core.instants import Instant
from paceline.core.states import AccountState, DeliveryState
from paceline.engine.ports.records import (
    Account,
    Delivery,
    LaneRow,
    Lease,
    LedgerRow,
    Media,
    NewDelivery,
    ProcessRow,
    Upload,
)


class Accounts(Protocol):
    def add(
        self,
        *,
        name: str,
        provider: str,
        address: str,
        settings: Mapping[str, Any],
        policy_name: str | None,
        overrides: Mapping[str, Any],
        policy_id: int,
        at: Instant,
    ) -> Account:
        """Also creates its lane. A name in use raises ``ConflictError``."""
        ...

    def get(self, account_id: int) -> Account: ...

    def several(self, account_ids: Sequence[int]) -> dict[int, Account]:
        """Those of these that exist, by id."""
        ...

    def find(self, name: str) -> Account | None: ...

    def list(self, *, with_removed: bool = False) -> list[Account]: ...

    def providers(self) -> set[str]:
        """Those that accounts have which are not removed."""
        ...

    def update(self, account_id: int, **changes: Any) -> None:
        """Set address, settings, policy_name, overrides, policy_id, warm_since_at or removed_at."""
        ...

    def move(
        self,
        account_id: int,
        event: str,
        *,
        reason: str = "",
        until_at: Instant | None = None,
    ) -> AccountState | None:
        """Apply an event where the state allows it; the new state, or None."""
        ...


class Policies(Protocol):
    def version(self, name: str | None, body: Mapping[str, Any], at: Instant) -> int:
        """The id of this exact body, stored anew only if it was never seen under this name."""
        ...

    def body(self, policy_id: int) -> Mapping[str, Any]: ...


class Deliveries(Protocol):
    def add(self, rows: Iterable[NewDelivery], at: Instant) -> int:
        """Bulk insert in bounded memory, counters and run totals kept; returns how many."""
        ...

    def add_one(self, row: NewDelivery, at: Instant) -> int:
        """The same for a single delivery; returns its id."""
        ...

    def get(self, delivery_id: int) -> Delivery:
        """``NotFoundError`` if there is none."""
        ...

    def release(
        self, run_id: int, due_at: Instant, at: Instant, expire_after_us: int | None = None
    ) -> int:
        """``planned → ready`` for a run's first step, due at the later of ``due_at`` and the plan.

        With ``expire_after_us`` each expires so long after it falls due.
        """
        ...

    def move(
        self,
        delivery_id: int,
        event: str,
        *,
        at: Instant,
        due_at: Instant | None = None,
        reason: str = "",
        retries: int | None = None,
        parts_done: int | None = None,
        provider_id: str | None = None,
    ) -> DeliveryState | None:
        """Apply an event where the state allows it; the new state, or None.

        What would end unsent though an earlier try may have arrived becomes unknown instead, and is
        held for a person: so it is with a message that was sent again while in doubt.
        """
        ...

    def lose(self, delivery_id: int, at: Instant) -> bool:
        """``failed → unknown`` where an earlier try than the one that failed may have arrived;
        whether it was so."""
        ...

    def move_all(
        self,
        run_id: int,
        event: str,
        *,
        at: Instant,
        reason: str = "",
        account_id: int | None = None,
        pooled: bool = False,
    ) -> int:
        """The same for every delivery of a run (on one account) in a state that allows it.

        With ``pooled`` also those that are nobody's yet. How many came to that state.
        """
        ...

    def drop_planned(self, run_id: int) -> int:
        """Forget the deliveries of a run that was never started; how many there were."""
        ...

    def retry_failed(self, run_id: int, at: Instant, expire_after_us: int | None) -> int:
        """``failed → ready`` for a whole run, due at ``at`` with no retry used up, but for what
        belongs to accounts that were removed or people who have opted out; how many."""
        ...

    def postpone(
        self, delivery_id: int, due_at: Instant | None, reason: str, retries: int | None = None
    ) -> bool:
        """Move the due instant of a waiting (ready or unknown) delivery, and why it waits."""
        ...

    def hold(self, delivery_id: int, account_id: int) -> bool:
        """Keep a delivery as it is until this commits, if it is this account's or nobody's.

        A pooled one that a lane only looked at may be another account's by now.
        """
        ...

    def page(
        self,
        *,
        run_id: int | None = None,
        account_id: int | None = None,
        state: DeliveryState | None = None,
        after_id: int = 0,
        limit: int = 1000,
    ) -> list[Delivery]:
        """Keyset paging by id."""
        ...

    def sent_to(self, account_id: int, target: str, limit: int) -> list[Delivery]:
        """What an account has sent to a target, whatever became of it since; the latest first."""
        ...

    def contacted(
        self,
        targets: Sequence[str],
        since_at: Instant,
        people: Mapping[str, int] | None = None,
    ) -> dict[str, tuple[Instant, ...]]:
        """When each target was sent something since then, by any account, oldest first.

        Of a target whose contact ``people`` names, whatever that person was sent at any address.
        What is on its way, or may have arrived, counts from its last intent.
        """
        ...

    def knows(self, account_id: int, target: str) -> bool:
        """Whether this account has ever sent this target anything, or may have."""
        ...


class Lanes(Protocol):
    def get(self, account_id: int) -> LaneRow: ...

    def due(
        self, process_id: int, limit: int, account_ids: Iterable[int] | None = None
    ) -> list[LaneRow]:
        """Lanes for this process to look at now: due and free, orphaned, or ours and touched.

        With ``account_ids`` only lanes of these.
        """
        ...

    def next_wake_at(self, account_ids: Iterable[int] | None = None) -> Instant | None:
        """The earliest wake of a free lane (of one of these accounts)."""
        ...

    def take(self, account_id: int, process_id: int) -> LaneRow | None:
        """Own the lane (generation + 1, no wake) if it is free or its owner's lease ran out.

        Waits for whoever holds its row.
        """
        ...

    def take_free(self, account_ids: Sequence[int], process_id: int) -> list[LaneRow]:
        """The same for many, by account; a lane whose row somebody holds right now is left out."""
        ...

    def quiet(self, lease: Lease, revision: int) -> bool:
        """Clear the wake of an owned lane that has seen ``revision``."""
        ...

    def park(self, lease: Lease, revision: int, wake_at: Instant | None) -> bool:
        """Give the lane back until ``wake_at``; refused when something has touched it since."""
        ...

    def release(self, lease: Lease, wake_at: Instant | None = None) -> bool:
        """Give the lane back, due at ``wake_at`` or now: the process stops or the lane crashed."""
        ...

    def touch(self, account_id: int, wake_at: Instant) -> None:
        """Something changed for this account: revision + 1, and wake no later than ``wake_at``.

        Nor later than ``Tx.now``: a caller's clock that is ahead must not delay it.
        """
        ...

    def touch_run(self, run_id: int, wake_at: Instant) -> None:
        """The same for every account with unsettled deliveries in the run."""
        ...

    def touch_all(self, wake_at: Instant) -> None: ...

    def hold(self, account_id: int, run_ids: Iterable[int] = ()) -> None:
        """Keep everybody else away from an account's lane and from those that ``touch_run`` touches
        of these runs until this commits. Before any of them is touched: they are held in the order
        in which everybody holds lanes."""
        ...


class Processes(Protocol):
    def join(self, name: str, lease_us: int) -> ProcessRow: ...

    def renew(self, process_id: int, lease_us: int, idle_us: int | None = None) -> Instant | None:
        """The new end of the lease by database time; None if the row is gone.

        A process that owns no lane may be given another length.
        """
        ...

    def leave(self, process_id: int) -> None:
        """Give back every lane and forget the process."""
        ...

    def list(self) -> list[ProcessRow]: ...

    def dead(self, older_than_us: int) -> bool:
        """Whether ``bury`` would find any; asked first, for nearly always there is none."""
        ...

    def bury(self, older_than_us: int) -> int:
        """Forget processes whose lease ran out long ago and that own nothing."""
        ...


class Ledger(Protocol):
    def counts(self, account_id: int, since_at: Instant) -> dict[str, int]:
        """Slots used per action type by intents made since then."""
        ...

    def accepted(self, account_id: int, since_at: Instant) -> int:
        """How many parts sent since then are with the provider for sure."""
        ...

    def outcomes(self, account_id: int, since_at: Instant) -> dict[str, int]:
        """What tries made since then came to, as it was said at once."""
        ...

    def last_sent_at(self, account_id: int) -> Instant | None:
        """When the provider was called for the last part that it has for sure."""
        ...

    def bounces(self, account_id: int, since_at: Instant) -> tuple[int, int]:
        """Messages that bounced since then: as they were sent, and after they were accepted."""
        ...

    def append(self, row: LedgerRow) -> bool:
        """For outcomes settled outside a lane; a row that exists already is left alone."""
        ...

    def last_calls(
        self, account_id: int, since_at: Instant
    ) -> tuple[Instant | None, Instant | None]:
        """When the account's provider was last called under an intent made since then: for anything
        at all, and for anything but a reply. An intent whose call nobody saw counts as one."""
        ...

    def of_delivery(self, delivery_id: int) -> list[LedgerRow]: ...

    def walk(self, account_id: int, since_at: Instant = 0) -> Iterator[LedgerRow]:
        """The account's ledger in the order of ``intent_at``, streamed."""
        ...


class MediaShelf(Protocol):
    def put(self, name: str, mime: str, content: bytes, at: Instant) -> Media: ...

    def get(self, media_id: str) -> Media | None: ...

    def read(self, media_id: str) -> bytes: ...

    def upload_of(self, account_id: int, media_id: str) -> Upload | None: ...

    def uploaded(self, upload: Upload) -> None: ...

    def forget_upload(self, account_id: int, media_id: str, handle: str) -> None:
        """The provider no longer has it; where another handle is kept, or none, nothing changes."""
        ...

    def uploads(self, account_id: int | None = None) -> list[Upload]: ...


class Settings(Protocol):
    def get(self, key: str) -> Any: ...

    def put(self, key: str, value: Any) -> None: ...

    def stopped(self) -> str | None:
        """Why everything is stopped, or None."""
        ...

    def stop(self, reason: str) -> None: ...

    def go_on(self) -> None: ...

    def fence(self) -> None:
        """Wait until every intent under way has committed, and hold new ones until this commits.

        Called first by every command that must be in force before the next message.
        """
        ...
