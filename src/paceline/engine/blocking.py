"""What becomes of an account whose driver blocks the whole process, written from another thread.

Its lane is not ours any more by then, or will not be for long: no lease is renewed meanwhile.
Whoever takes it next would be blocked as well, so the account is kept from that at once, and taken
out of service if it goes on.
"""

from __future__ import annotations

from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.states import AccountState
from paceline.engine import crashes, events
from paceline.engine.ports import Lease, NewAlert, Tx

MEMORY = "process.memory"
BLOCKED = "process.blocked"

HOLD_US = 5 * MINUTE

_NOT_OURS = 0
"""No process has this number, and so nothing is given back in its name."""


def hold(tx: Tx, name: str, now: Instant) -> bool:
    """Let nobody take up the account for a while; False if it was out of service already."""
    tx.settings.fence()
    account = tx.accounts.find(name)
    if account is None:
        return False
    tx.lanes.hold(account.id)
    reason, until_at = "its driver blocks the whole process", now + HOLD_US
    if tx.accounts.move(account.id, "cool_down", reason=reason, until_at=until_at) is None:
        return False
    state = AccountState.COOLING_DOWN
    events.account_is(tx, account, state, now, reason=reason, until_at=until_at)
    # Whoever runs its lane now, or wants to, looks again before the next message.
    tx.lanes.touch(account.id, now)
    return True


def suspend(tx: Tx, name: str, blocked_us: int, now: Instant) -> None:
    """Take the account out of service until a person has looked."""
    account = tx.accounts.find(name)
    if account is not None:
        reason = f"its driver blocked the whole process for {blocked_us // SECOND} s"
        lease = Lease(account.id, _NOT_OURS, tx.lanes.get(account.id).generation)
        crashes.suspend(tx, lease, account, reason, now)


def too_much_memory(tx: Tx, process: str, taken: str, limit: str, now: Instant) -> None:
    """A process that runs many lanes took more than it may. Whose fault it was nobody can say."""
    text = (
        f"process {process} took {taken} of memory, more than {limit}, and was ended to be started "
        'anew; with isolation = "process" it would be known which account takes it'
    )
    tx.alerts.put(NewAlert(f"{MEMORY}:{process}", MEMORY, text), now)


def stood_still(tx: Tx, process: str, what: str, now: Instant) -> None:
    """A process, or a worker of one, was ended because nothing moved in it, and it was no account's
    lane that kept it from moving. What did is for whoever looks after the machine."""
    tx.alerts.put(NewAlert(f"{BLOCKED}:{process}", BLOCKED, what), now)
