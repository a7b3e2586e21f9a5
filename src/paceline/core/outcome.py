"""What a provider said about one attempt, as a value.

A driver turns every answer, error body and lost connection into an ``Outcome``; nothing else
crosses from a provider into the engine. What follows from an outcome is decided in ``retry.py``
(for the delivery) and ``health.py`` (for the account).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class OutcomeKind(StrEnum):
    """The answers a provider can give, told apart by what must happen next."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"  # permanent: this message will never be accepted
    BOUNCED = "bounced"  # permanent and about the address: it does not exist
    THROTTLED = "throttled"  # too fast: wait, then go slower
    EXHAUSTED = "exhausted"  # the provider's own daily quota: wait for tomorrow
    UNAVAILABLE = "unavailable"  # the provider or its device is away for the moment
    TRANSIENT = "transient"  # nothing was written, or an answer nobody can classify
    UNAUTHORISED = "unauthorised"  # the credentials are refused: suspend the account
    BANNED = "banned"  # the provider has restricted the account
    UNKNOWN = "unknown"  # something was written and no answer came back
    WITHDRAWN = "withdrawn"  # ours: the intent was taken back before anything was written


# A definite refusal gives the daily slot back. ``UNKNOWN`` does not: the message may be out there.
REFUSALS = frozenset(OutcomeKind) - {OutcomeKind.ACCEPTED, OutcomeKind.UNKNOWN}

# What the error rate of document D counts. Throttling, outages, bans and refused credentials are
# about the account and have answers of their own; a lost answer says nothing either way.
COUNTS_AS_SENT = frozenset({OutcomeKind.ACCEPTED})
COUNTS_AS_FAILED = frozenset({OutcomeKind.REJECTED, OutcomeKind.BOUNCED, OutcomeKind.TRANSIENT})

# The codes by which a driver says that the provider no longer has a file uploaded earlier. It is
# the handle that was refused and not the message: it can be uploaded again.
HANDLE_GONE = frozenset({"media-expired", "media-unknown"})


class Outcome(NamedTuple):
    """One provider's answer to one attempt at one part."""

    kind: OutcomeKind
    reason: str = ""
    code: str = ""
    provider_id: str | None = None
    retry_after_us: int | None = None

    @property
    def refused(self) -> bool:
        """Whether the provider certainly does not hold this message."""
        return self.kind in REFUSALS

    @property
    def handle_gone(self) -> bool:
        """Whether only the handle of a file was refused, which another upload replaces."""
        return self.kind is OutcomeKind.REJECTED and self.code in HANDLE_GONE

    @property
    def slots(self) -> int:
        """The change to the cap's count that this outcome makes after its intent took one."""
        return -1 if self.refused else 0


def accepted(provider_id: str | None = None) -> Outcome:
    return Outcome(OutcomeKind.ACCEPTED, "", "", provider_id)


def withdrawn(reason: str) -> Outcome:
    return Outcome(OutcomeKind.WITHDRAWN, reason=reason)


def unknown(reason: str) -> Outcome:
    return Outcome(OutcomeKind.UNKNOWN, reason=reason)


def transient(reason: str, code: str = "") -> Outcome:
    return Outcome(OutcomeKind.TRANSIENT, reason=reason, code=code)


def unreachable(reason: str) -> Outcome:
    """Nobody was there to be told of the message: the account's trouble, and not the message's."""
    return Outcome(OutcomeKind.UNAVAILABLE, reason=reason, code="connection")
