"""The message path: what a lane asks of the store for every message it sends.

What is made anew for every message is a named tuple: nothing immutable is made faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from paceline.core.instants import Instant
from paceline.core.outcome import Outcome
from paceline.core.states import DeliveryState
from paceline.engine.ports.records import Account, Delivery, Lease, LedgerRow, Run


class Sparing(NamedTuple):
    """How often the recipient of an intent may be written to, all that others send included."""

    target: str
    contact_id: int | None
    most: int
    since_at: Instant


class Intent(NamedTuple):
    """The wish to send one part, written before the provider is called.

    ``starts`` tells the first part sent in this attempt, which takes the delivery from ``ready`` to
    ``sending`` under every guard, from a further part of a delivery that is already on its way.
    """

    delivery_id: int
    run_id: int
    part: int
    attempt: int
    action: str
    at: Instant
    policy_id: int
    starts: bool = True
    pooled: bool = False
    """Whether the delivery is nobody's yet: the intent that passes makes it this account's."""
    sparing: Sparing | None = None
    """What the recipient may be spared: who has had enough since then is not written to."""


class Settlement(NamedTuple):
    """What became of one intent: its ledger row, and what the delivery becomes.

    ``state`` is ``SENDING`` while further parts are to come. ``due_at`` must be given exactly for
    ``READY``, and may be given for ``UNKNOWN`` (when to ask the provider again).
    """

    delivery_id: int
    run_id: int
    part: int
    attempt: int
    action: str
    intent_at: Instant
    started_at: Instant | None
    settled_at: Instant
    outcome: Outcome
    policy_id: int
    state: DeliveryState
    due_at: Instant | None = None
    parts_done: int = 0
    retries: int = 0
    reason: str = ""
    latency_us: int | None = None


class LaneUnit(NamedTuple):
    """One lane's unit of work: what it settles, what it intends next, and its usage after both.

    ``usage`` is the encoded checkpoint; it is written only while the lease still holds.
    """

    lease: Lease
    revision: int
    usage: str | None = None
    settlements: tuple[Settlement, ...] = ()
    intent: Intent | None = None


class LaneResult(NamedTuple):
    """Whether the lease held, each settlement changed its delivery, and the intent passed."""

    held: bool
    settled: tuple[bool, ...]
    intended: bool


@dataclass(frozen=True, slots=True)
class Restored:
    """Everything a lane needs to begin, read in one transaction."""

    account: Account
    revision: int
    checkpoint: Mapping[str, Any] | None
    stopped: bool
    runs: tuple[Run, ...]
    """Runs with deliveries of this account that are not settled, in every run state."""
    signals: Mapping[str, Any] | None = None
    """What operators have put over the table of signals."""


Spot = tuple[Instant, int]
"""Where a delivery stands in a queue: when it is due, and its number."""


class Seen(NamedTuple):
    """A delivery that is nobody's yet, as it is passed by."""

    due_at: Instant
    id: int
    known: bool
    """Whether the account that passes has ever written to its target, or may have."""


class Path(Protocol):
    """The hot path. One call for a whole group: hand-tuned per database."""

    def apply(self, units: Sequence[LaneUnit]) -> list[LaneResult]:
        """Settle, then checkpoint, then intend, for all units at once.

        * A settlement always appends its ledger row (once: a repeated one is ignored). Where the
          attempt was written down as ``unknown`` meanwhile, an answer that comes late is appended
          as its ``resolution``, with its slots, unless it has one already. A settlement changes
          the delivery only where its ``attempts`` equals ``attempt`` and its state is ``sending``
          or ``unknown``; it needs no lease, because an outcome is true whoever reports it.
          ``SENDING`` as the new state only moves ``parts_done``. ``sent_at`` is set with ``SENT``.
        * The checkpoint is written where the lane's generation and owner match.
        * An intent passes only if, in the same transaction: the generation and owner match, the
          owner's lease runs beyond ``Tx.now``, the lane's revision matches, nothing is stopped by
          ``Settings.stopped``, the run is ``running``, the target is not suppressed, the message
          it follows, if any, is ``sent`` (it may have bounced since the release), the delivery
          belongs to this account (or, ``pooled``, to nobody: then it is this account's from now
          on), is ``ready`` and has ``attempts = attempt - 1``. With ``starts``
          false instead: generation, owner, lease, not stopped, not suppressed, following a sent
          message or none, and the delivery
          is ``sending`` with ``attempts = attempt`` and ``parts_done = part``.
          It sets ``sending``, ``attempts`` and clears ``due_at``; it appends its ledger row with
          ``slots`` 1.
          One that is ``sparing`` passes only if its recipient, the person at any address, was
          written to fewer times since then, by whomever, intents under way included.
        * Counters follow every change of state.
        No takeover, pause, stop or suppression that has committed may be missed, and none may slip
        in between the guard and the commit.
        """
        ...

    def trust(self, units: Sequence[LaneUnit]) -> list[LaneResult] | None:
        """The same, of units that are as good as sure: their answers are known if all is as the
        lanes believe. Under the same guards; whatever turns out otherwise undoes everything, as a
        ``StoreSurprise``, at the commit at the latest.

        None where the answers cannot be known beforehand, or there is nothing to be gained: then
        nothing was done, and ``apply`` does it.
        """
        ...

    def due(self, account_id: int, run_id: int, until_at: Instant, limit: int) -> list[Delivery]:
        """The next deliveries of one run on one account: a read, not a claim.

        What was attempted before (retries, doubts, messages broken off) comes ahead of what is
        fresh, so that it never waits behind the whole queue; each of the two oldest due first.
        """
        ...

    def next_due(
        self, account_id: int, run_id: int, after_at: Instant = -1
    ) -> tuple[Instant | None, bool]:
        """When the first of these that is due later falls due, and whether it is one that waits for
        the account's pace: neither a reply nor a doubt."""
        ...

    def next_due_at(
        self, account_id: int, run_id: int, after_at: Instant = -1
    ) -> Instant | None: ...

    def pooled(self, run_id: int, until_at: Instant, limit: int) -> list[Delivery]:
        """The next deliveries of a run that are nobody's yet, oldest due first."""
        ...

    def acquainted(
        self, account_id: int, run_id: int, behind: Spot, until_at: Instant, limit: int
    ) -> list[Seen]:
        """The next stretch of a run's deliveries that are nobody's yet, behind a spot, and whom of
        them an account knows."""
        ...

    def one(self, delivery_id: int) -> Delivery: ...

    def next_pooled_at(self, run_id: int, after_at: Instant = -1) -> Instant | None:
        """When the first of them falls due of those that are due after that."""
        ...

    def restore(self, account_id: int) -> Restored | None: ...

    def stranded(self, account_id: int) -> list[tuple[Delivery, LedgerRow | None]]:
        """Deliveries left in ``sending``, each with the latest intent that has no outcome."""
        ...
