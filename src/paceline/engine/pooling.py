"""Pooled deliveries: which of those that are nobody's a lane may try to take.

The database decides who has one, in the intent. Lanes of one process only avoid running after the
same one: each says which it is about to take, and the others look further. What is said here is
forgotten after a moment, and nothing depends on it. An account that cannot go on gives back what it
has not begun.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from paceline.core.instants import SECOND, Instant
from paceline.core.states import AccountState
from paceline.engine.ports import Account, Delivery, Seen, Tx

Taken = TypeVar("Taken", Delivery, Seen)

SAID_FOR_US = 5 * SECOND
"""How long a lane's word counts: longer than it takes to write an intent."""

LOOK_AGAIN_US = SECOND
"""When to look again where all that was seen is about to be taken by others."""


OUT_OF_SERVICE = (AccountState.PAUSED, AccountState.SUSPENDED)
"""Such an account takes nothing."""


class Claims:
    """What the lanes of this process are about to take."""

    def __init__(self) -> None:
        self._said: dict[int, tuple[int, Instant]] = {}
        self._looks: dict[int, Instant] = {}

    def pick(self, rows: Iterable[Taken], account_id: int, now: Instant) -> Taken | None:
        """The first of these that no other lane of this process is after."""
        self._said = {
            key: said for key, said in self._said.items() if now < said[1] <= now + SAID_FOR_US
        }
        for row in rows:
            if self._said.get(row.id, (account_id, 0))[0] == account_id:
                self._said[row.id] = (account_id, now + SAID_FOR_US)
                return row
        return None

    def looks_over(self, run_id: int, now: Instant) -> bool:
        """Say that a lane is about to look whether anybody can go on with a run; False if another
        one is at it. When hours end they all want to know at once."""
        if now < self._looks.get(run_id, 0) <= now + SAID_FOR_US:
            return False
        self._looks[run_id] = now + SAID_FOR_US
        return True

    def has_looked(self, run_id: int) -> None:
        self._looks.pop(run_id, None)

    def __len__(self) -> int:
        return len(self._said)


def hold_to_stop(tx: Tx, account_id: int, *run_ids: int) -> None:
    """Hold an account's lane, together with those of its pools and of runs that may be paused.

    First in a transaction that may stop the account, which then goes alone: before any lane is
    touched, and before the account is changed. Whoever had its lane by then could wait for somebody
    of a pool who waits for it; and whoever had changed the account, for who stops the same one.
    Lanes are held in one order by everybody, but for a group of the journal, which goes on to
    others' with what is reported: so several are held behind the fence, which lets groups finish.
    """
    pools = tx.pools.of_account(account_id)
    if pools:
        tx.settings.fence()
    tx.lanes.hold(account_id, [*pools, *run_ids])


def give_back(tx: Tx, account_id: int, now: Instant) -> None:
    """An account that cannot go on leaves what it has not begun to the others of its pools. All of
    their lanes are held (``hold_to_stop``)."""
    pools = tx.pools.of_account(account_id)
    for run_id in pools:
        tx.lanes.touch_run(run_id, now)
    if pools:
        tx.pools.give_back(account_id)


def bring_forward(tx: Tx, account: Account, now: Instant) -> None:
    """An account that can go on, or may: what its pools have put off may have room there now. Its
    lane puts off again what has none."""
    if account.removed_at is None and account.state not in OUT_OF_SERVICE:
        tx.timetable.recall_pooled(account.id, now)


def left_alone(tx: Tx, account: Account) -> list[int]:
    """Pooled runs that nobody but this account could go on with."""
    alone = []
    for run_id in tx.pools.of_account(account.id):
        members = tx.accounts.several(tx.pools.members(run_id)).values()
        if not any(m.removed_at is None and m.id != account.id for m in members):
            alone.append(run_id)
    return alone
