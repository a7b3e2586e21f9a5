"""What judges ask: reads that recount what is claimed, or look at the tables in one moment."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from paceline.core.instants import Instant
from paceline.core.opting_out import OptOut
from paceline.engine.ports.records import CallFacts

LedgerKey = tuple[int, int, int, str]
"""Delivery, part, attempt, and what kind of row it is."""


class Moment(NamedTuple):
    """What stands in the tables at one moment, for whoever compares it with another."""

    ledger: list[LedgerKey]
    accounts: dict[int, tuple[str, int, bool]]
    """By number: its state, its lane's generation, and whether it was removed."""
    runs: dict[int, str]
    """The state of each."""
    checkpoints: dict[int, str]
    """Of every account that has one, as it is stored."""


class Watched(NamedTuple):
    """A mailbox as whoever reads it has left it."""

    cursor: str
    generation: int
    held: bool
    """Whether somebody reads it."""
    problem: str


class MailMoment(NamedTuple):
    """How far what comes back has been taken in, for whoever compares it with another moment."""

    suppressed: int
    """How many addresses are."""
    bounced: int
    """How many deliveries are."""
    received: int
    """How many messages came in."""
    alerts: tuple[int, int, int]
    """How many there are, how often they were raised, and how many of them are over."""
    watches: dict[int, Watched]
    """By account."""
    accounts: dict[int, str]
    """The state of each."""


class ActiveTurn(NamedTuple):
    """A turn that is in the making or on its way."""

    id: int
    conversation_id: int
    state: str
    owner: str
    generation: int
    lease_until_at: Instant | None
    started_at: Instant
    delivery_id: int | None


class TalkMoment(NamedTuple):
    """How conversations stand, for whoever compares it with another moment."""

    received: int
    """How many messages came in."""
    active: tuple[ActiveTurn, ...]
    modes: dict[int, str]
    """By conversation: who answers."""
    alerts: tuple[str, ...]
    """The keys of those that are open, of conversations that need a person."""
    now: Instant
    """The database's time; all else may be the same."""
    held: tuple[str, ...] = ()
    """Ways in which nobody is answered."""


class IntentNote(NamedTuple):
    """An intent, and what stood in the tables when it was written."""

    at: Instant
    """True time."""
    delivery_id: int
    part: int
    attempt: int
    account_id: int
    suppressed: bool
    """Whether its target was."""
    account: str
    """The state of the account, or ``removed``."""
    run: str
    """The state of the run."""
    stopped: str | None
    """Why everything was, if it was."""


class TakingNote(NamedTuple):
    """A lane that was taken while it had another owner."""

    at: Instant
    """True time."""
    account_id: int
    generation: int
    silent_us: int
    """How long nothing had been heard of that owner, by the database's clock."""


class Audit(Protocol):
    """Reads for ``verify`` that recount what the counters claim."""

    def recount(self) -> list[str]:
        """Every difference between counters, run totals and the deliveries themselves, in words."""
        ...

    def accepted_twice(self) -> list[tuple[int, int, int]]:
        """Delivery, part and how often it was accepted, where that is more than once.

        Outcomes and resolutions count alike; a doubt that was resolved as accepted is once.
        """
        ...

    def suppressed_after(self) -> list[tuple[int, Instant, Instant]]:
        """Deliveries whose intent came after their target's suppression, with both instants."""
        ...

    def uncounted(self) -> list[tuple[int, int]]:
        """Delivery and part, where a part was accepted and its delivery does not know."""
        ...

    def misplaced(self) -> list[str]:
        """Deliveries in an impossible shape: due without waiting, sending without an intent, …"""
        ...

    def unbidden(self, words: OptOut) -> list[str]:
        """Follow-ups that nobody has asked for, somebody else, or not in time; and answers that
        came in time and have none, by whoever has not used one of the ``words`` for STOP."""
        ...

    def out_of_turn(self) -> list[str]:
        """What is impossible about conversations, their turns and what is said in them, in words:
        two active turns, a message in none or another's, an answer of two turns, …"""
        ...

    def at_call(self, delivery_id: int, part: int) -> CallFacts | None:
        """What is stored about a delivery while its provider is being called; None: nothing."""
        ...

    def moment(self) -> Moment:
        """All there is, just now; for simulated worlds, which are small."""
        ...

    def talks(self) -> TalkMoment:
        """The same for conversations."""
        ...

    def mail(self) -> MailMoment:
        """The same for what comes back: a few numbers, because it is asked for at every commit."""
        ...
