"""Events, as they are kept; outgoing webhooks, how far each has come, and who speaks HTTP to them.

Not to be taken for ``webhooks.py``: that is what providers report to us.
"""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from paceline.core.events import EventKind
from paceline.core.instants import SECOND, Instant
from paceline.engine.ports.records import Event

POST_WITHIN_US = 10 * SECOND
"""How long one try to bring a webhook something may take."""


class Progress(NamedTuple):
    """How far a running run has come, and what was last told of it."""

    run_id: int
    name: str
    kind: str
    delivered: int
    done: int
    total: int
    told_done: int
    """What was told last; 0 if nothing was."""
    told_at: Instant
    """When that was; if nothing was told, when the run started."""


class Events(Protocol):
    def add(
        self,
        kind: EventKind,
        text: str,
        *,
        at: Instant,
        data: Mapping[str, Any] | None = None,
        account_id: int | None = None,
        run_id: int | None = None,
        delivery_id: int | None = None,
    ) -> None:
        """A kind that is not on the list of events, or ``data`` that is not what the list says,
        is a ``ValueError``."""
        ...

    def latest(
        self,
        *,
        account_id: int | None = None,
        run_id: int | None = None,
        kinds: Sequence[str] = (),
        limit: int = 20,
    ) -> list_of[Event]:
        """The newest first; of these kinds, or of all."""
        ...

    def after(self, event_id: int, limit: int, settled: int = 0) -> list_of[Event]:
        """The oldest first. It ends before the first number that somebody may have been given and
        not committed yet, unless that is not above ``settled``: whoever goes by these numbers
        misses nothing."""
        ...

    def settled(self) -> int:
        """The number up to which nothing is to come any more, seen from the next transaction on;
        0 where somebody is writing one right now."""
        ...

    def told_at(self, *, but: Collection[int] = ()) -> list_of[tuple[int, Instant]]:
        """When every running run ``but`` for some was told of last, or began."""
        ...

    def progress(self, run_ids: Collection[int]) -> list_of[Progress]:
        """Of those of these runs that are running."""
        ...

    def progress_of(self, run_id: int) -> list_of[Progress]:
        """Of one, which nobody else may tell of until this commits. One that somebody else holds
        is left out."""
        ...


@dataclass(frozen=True, slots=True)
class Hook:
    """How far an outgoing webhook has come."""

    name: str
    cursor: int
    """The last event it has dealt with."""
    generation: int
    lease_until_at: Instant | None
    """Until when whoever brings it events may do so, by the database's clock."""
    failures: int
    """Tries in a row that went wrong."""
    failing_since_at: Instant | None
    next_try_at: Instant | None
    problem: str
    delivered: int
    delivered_at: Instant | None
    skipped: int
    disabled_at: Instant | None
    created_at: Instant


class Hooks(Protocol):
    """Outgoing webhooks by their names. Times are the database's."""

    def open(self, name: str) -> None:
        """Make it known; one that is new begins after the latest event there is."""
        ...

    def list(self) -> list_of[Hook]: ...

    def get(self, name: str) -> Hook | None: ...

    def waiting(self, name: str, kinds: Sequence[str]) -> int:
        """How many events of these kinds it has not dealt with."""
        ...

    def is_due(self, name: str) -> bool:
        """Whether there is something to bring it now, and nobody does."""
        ...

    def take(self, name: str, lease_us: int) -> Hook | None:
        """Take it upon us to bring it events; None where another was faster, or none is due."""
        ...

    def change(self, held: Hook, **changes: Any) -> Hook | None:
        """Write down what became of it, as long as it is ours; None if it is not any more."""
        ...

    def resume(self, name: str, cursor: int | None) -> Hook | None:
        """Try again at once, from another event on if that is said; whoever is at it is sent away.
        None where there is no such webhook."""
        ...


class Posted(NamedTuple):
    """What became of one try. Nothing in it is a secret."""

    status: int | None
    """None where no answer came."""
    problem: str = ""
    wait_us: int | None = None
    """How long the other side asks us to wait."""

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class Postman(Protocol):
    """Brings one webhook what it is to be told."""

    async def post(self, headers: Mapping[str, str], body: bytes) -> Posted:
        """Never raises, never takes longer than ``POST_WITHIN_US``, follows nobody elsewhere."""
        ...

    async def close(self) -> None: ...
