"""What an account has sent today and what became of it, as people are shown it."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.core.calendar import day_start_of
from paceline.core.health import BOUNCE_SAMPLES
from paceline.core.instants import Instant
from paceline.core.outcome import COUNTS_AS_FAILED, OutcomeKind
from paceline.core.policy import Policy
from paceline.engine.bouncing import letters_of_the_day
from paceline.engine.ports import Account, Tx

_FAILED = COUNTS_AS_FAILED - {OutcomeKind.BOUNCED}


@dataclass(frozen=True, slots=True)
class Today:
    """An account's day, as its limits count it."""

    sent: int
    """That arrived, or came back; what is in doubt or on its way is not known to be either."""
    bounced: int
    failed: int
    """Tries that were refused, or came to nothing."""
    last_sent_at: Instant | None
    """When the last message was called for that arrived, today or long ago."""

    def told(self, policy: Policy) -> str:
        share = f"{100 * self.bounced / self.sent:.1f} %" if self.sent else ""
        pauses = ""
        if policy.bounce_pause is not None and self.bounced:
            pauses = f"pauses above {policy.bounce_pause}".replace("%", " %")
            pauses += f", from {BOUNCE_SAMPLES} on" if self.sent < BOUNCE_SAMPLES else ""
        beside = ", ".join(part for part in (share, pauses) if part) if self.bounced else ""
        bounced = f"{self.bounced} bounced" + (f" ({beside})" if beside else "")
        return f"{self.sent} sent, {bounced}, {self.failed} failed"


def today_of(tx: Tx, account: Account, policy: Policy, now: Instant) -> Today:
    letters = letters_of_the_day(tx, account, policy, now)
    tries = tx.ledger.outcomes(account.id, day_start_of(now, policy.day_zone))
    failed = sum(count for outcome, count in tries.items() if outcome in _FAILED)
    return Today(letters.sends, letters.bounces, failed, tx.ledger.last_sent_at(account.id))
