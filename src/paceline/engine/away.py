"""Accounts that cannot be opened because their provider cannot be reached.

Nothing is wrong with any message, so none is tried: the lane is given back for a while and tries
again, for as long as it takes. Operators are told when it has been so a few times in a row. How
often is remembered per service: whoever takes over begins to count anew, and tells it a little
later. Why the last time failed is written down, for whoever asks why nothing goes out.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from paceline.core.instants import Instant
from paceline.core.usage import REASON_LENGTH
from paceline.engine import alerts
from paceline.engine.crashes import AWAY_PAUSE_US
from paceline.engine.fleet import clock_text, held_up, is_served
from paceline.engine.memory import Snapshot
from paceline.engine.ports import Account, Lease, Tx
from paceline.engine.settling import SETBACKS_TOLD


class AwayBook:
    """How often in a row each account could not be opened."""

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()

    def note(self, account_id: int) -> int:
        self._times[account_id] += 1
        return self._times[account_id]

    def opened(self, account_id: int) -> None:
        self._times.pop(account_id, None)


def give_back_away(
    tx: Tx, lease: Lease, account: Account, times: int, reason: str, now: Instant
) -> None:
    """Let go of the lane for a while, and tell people of it where it goes on."""
    if tx.lanes.release(lease, tx.now + AWAY_PAUSE_US):
        note = {"generation": lease.generation, "at": now, "reason": reason[:REASON_LENGTH]}
        tx.settings.put(_key(account.id), note)
    # Last: who raises the same alert must not have to wait for us while we wait for them.
    if times >= SETBACKS_TOLD and tx.accounts.get(account.id).removed_at is None:
        alerts.away_again(tx, account, times, reason, now)


class Away(NamedTuple):
    """Why an account that should send could not be opened when it was last tried."""

    reason: str
    at: Instant
    again_at: Instant | None
    """When it is tried again; None while it is."""

    def told(self, name: str, zone: str) -> str:
        again = "being tried again now"
        if self.again_at is not None:
            again = f"tried again at {clock_text(self.again_at, zone)}"
        at = clock_text(self.at, zone)
        return f"{name} could not be opened at {at}: {self.reason}; it is {again}"


def away_of(tx: Tx, snapshot: Snapshot) -> Away | None:
    """Why its account cannot be opened, as long as that is the last thing known of it.

    Nobody has to take the note back when the account is opened: who opens it has taken the lane,
    and calls its provider next.
    """
    lane = snapshot.row
    note: Any = tx.settings.get(_key(lane.account_id))
    if note is None:
        return None
    takes = lane.generation - note["generation"]
    if takes == 0:
        return Away(note["reason"], note["at"], lane.wake_at)
    # Calls whose outcome is written down are in the checkpoint, and the others in the ledger.
    called_at = max(snapshot.last_calls[0] or 0, snapshot.usage().last_at or 0)
    if takes > 1 or called_at >= note["at"] or not is_served(tx, lane):
        return None
    return Away(note["reason"], note["at"], None)


def unserved(tx: Tx, snapshot: Snapshot, unopened: Away | None) -> list[str]:
    """Why nobody sends from an account although it may be its time."""
    zone = snapshot.policy.day_zone
    held = held_up(tx, snapshot.row, zone)
    found = [unopened.told(snapshot.restored.account.name, zone)] if unopened is not None else []
    return [*found, held] if held else found


def _key(account_id: int) -> str:
    return f"away:{account_id}"
