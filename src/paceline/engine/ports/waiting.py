"""What a plan reads: everything that waits on some accounts, in bulk and in few columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from paceline.core.instants import Instant
from paceline.engine.ports.records import Delivery, Run


class WaitingRow(NamedTuple):
    """A delivery that has not been sent, as far as a plan cares."""

    id: int
    run_id: int
    account_id: int | None
    """None while a pooled delivery is nobody's yet."""
    after_id: int | None
    """The one before it, where it is a later step."""
    step: int
    position: int
    target: str
    contact_id: int | None
    parts: int | None
    """How many parts its own content has; None where the campaign's counts."""
    action: str
    reply: bool
    planned: bool
    """Whether it waits to be released, and not only for its time."""
    scheduled_at: Instant
    """Of a later step that waits to be released, the minute that it was given by a plan."""
    due_at: Instant | None
    expires_at: Instant | None
    recipient_hours: str | None
    parts_done: int
    attempts: int
    suppressed: bool
    in_line: bool = False
    """Whether a gate has put it off and there was no slot for it: it is planned for no minute."""
    before_sent_at: Instant | None = None
    """When the one before it was sent, where it is a later step."""


class Far(NamedTuple):
    """What of a run waits on an account, or in its pool, beyond an instant."""

    run_id: int
    account_id: int | None
    number: int
    first_at: Instant
    last_at: Instant


class Waiting(Protocol):
    """Reads only. However many deliveries there are, the statements are few."""

    def of_target(self, target: str) -> list[Delivery]:
        """Everything that waits to be sent to somebody. Looks through all that waits: for what
        happens seldom."""
        ...

    def runs(self, account_ids: Iterable[int]) -> list[Run]:
        """The running runs that have something waiting on any of these accounts, or in a pool
        that one of them takes from."""
        ...

    def pools(self, run_ids: Iterable[int]) -> Mapping[int, tuple[int, ...]]:
        """The accounts in service that share a run's deliveries, for those that are pooled."""
        ...

    def accounts(self, run_ids: Iterable[int]) -> list[int]:
        """The accounts on which something of these runs waits, or that may take from them."""
        ...

    def deliveries(
        self, run_ids: Iterable[int], until_at: Instant | None = None
    ) -> Iterator[WaitingRow]:
        """What waits in these runs (planned or ready), run by run, in order of their numbers.

        With ``until_at`` only what is due by then, and what follows that.
        """
        ...

    def nth_due_at(self, run_ids: Iterable[int], number: int) -> Instant | None:
        """When the one falls due that has so many before it, over all of these runs; None where
        no more than that wait in them."""
        ...

    def beyond(self, run_ids: Iterable[int], until_at: Instant) -> list[Far]:
        """What of these runs is due later than that, by run and account."""
        ...

    def due_between(self, lot: Far, after_at: Instant, until_at: Instant) -> int:
        """How many of a run on an account, or in its pool, are due after the one instant, and not
        after the other."""
        ...

    def due(self, run_ids: Iterable[int], account_id: int | None, limit: int) -> list[WaitingRow]:
        """What of these runs is ready on this account, or is nobody's, and has its instant: run by
        run, in the order in which it falls due; no more than ``limit``."""
        ...

    def following(self, run_id: int, account_id: int) -> list[WaitingRow]:
        """What of this run is to go from this account and waits for another one to be sent, in
        order of their numbers."""
        ...

    def suppressed(self, addresses: Sequence[str]) -> set[str]:
        """Which of these must not be contacted."""
        ...

    def known(self, account_id: int, addresses: Sequence[str]) -> set[str]:
        """To which of these the account has ever sent anything, or may have; one at a time it is
        ``Deliveries.knows``."""
        ...

    def places(self) -> set[tuple[int, int | None]]:
        """Where anything waits in a running run: run and account, None for what is nobody's yet."""
        ...

    def to_people(
        self, run_ids: Iterable[int], addresses: Iterable[str], contact_ids: Iterable[int]
    ) -> Iterator[WaitingRow]:
        """What waits in these runs for these people, whichever of their addresses it goes to: each
        once, in order of their numbers."""
        ...
