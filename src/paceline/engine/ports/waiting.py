"""What a plan reads: everything that waits on some accounts, in bulk and in few columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from paceline.core.instants import Instant
from paceline.engine.ports.records import Run


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
    due_at: Instant | None
    expires_at: Instant | None
    recipient_hours: str | None
    parts_done: int
    attempts: int
    suppressed: bool
    put_off: bool = False
    """Whether a gate has put it off: it stands in line, and is planned for no minute."""


class Waiting(Protocol):
    """Reads only. However many deliveries there are, the statements are few."""

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

    def deliveries(self, run_ids: Iterable[int]) -> Iterator[WaitingRow]:
        """What waits in these runs (planned or ready), run by run, in order of their numbers."""
        ...

    def suppressed(self, addresses: Sequence[str]) -> set[str]:
        """Which of these must not be contacted."""
        ...
