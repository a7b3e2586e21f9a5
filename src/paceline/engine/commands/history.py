"""What was sent before Paceline came: told to the ledger, so that limits count it from the start.

Such a message has a delivery, sent, in a standing campaign of its own, and the ledger's rows of
one accepted part. It was made under no policy of ours, so none is held against it.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from paceline.core.address import canonical
from paceline.core.errors import InputError
from paceline.core.instants import Instant, parse_instant
from paceline.core.model import REPLY, Target
from paceline.engine.audience_columns import Reject
from paceline.engine.campaign_spec import refuse_steering
from paceline.engine.commands.accounts import find as find_account
from paceline.engine.people import ensure_erasure_key, recognise
from paceline.engine.ports import Account, PastMessage, Providers, Tx
from paceline.engine.runs import standing_run

STANDING = "(imported)"
"""The standing campaign of messages that somebody else has sent."""

COLUMNS = ("at", "account", "action", "target")
"""What a table can say; whatever else it says is not looked at."""

CHUNK = 1_000


class PastRow(NamedTuple):
    """One row of a table, understood as far as it can be without the database."""

    line: int
    at: Instant
    account: str
    action: str
    target: str


@dataclass(slots=True)
class Past:
    """What one table has told so far: messages without a target may well be alike."""

    alike: Counter[tuple[int, str, Instant]] = field(default_factory=Counter)

    def place(self, account_id: int, row: PastRow) -> int:
        """Which of several that are alike in everything; with a target there is only one."""
        if row.target:
            return 0
        key = (account_id, row.action, row.at)
        self.alike[key] += 1
        return self.alike[key]


def past_row(
    line: int, cells: Mapping[str, str], *, account: str, action: str, now: Instant
) -> PastRow:
    """A row of a table; ``account`` and ``action`` stand in where it does not say."""
    said = {name.strip().lower(): cell.strip() for name, cell in cells.items()}
    for column in COLUMNS:
        refuse_steering(said.get(column, ""), column)
    if not said.get("at"):
        raise InputError("has no instant in the column 'at'")
    at = parse_instant(said["at"])
    if not _has_zone(said["at"]):
        raise InputError(
            f"'{said['at']}' has no zone", hint="Write it like 2026-11-15T09:00:00+01:00"
        )
    if at > now:
        raise InputError(f"{said['at']} is in the future")
    name = said.get("account") or account
    if not name:
        raise InputError("names no account", hint="Add --account, or a column 'account'")
    target = canonical(said["target"]) if said.get("target") else ""
    return PastRow(line, at, name, said.get("action") or action, target)


def _has_zone(text: str) -> bool:
    """Whether an instant says which zone it is of: read in two zones it must stay the same."""
    return parse_instant(text, "UTC") == parse_instant(text, "Asia/Tokyo")


def take_in(
    tx: Tx, rows: Sequence[PastRow], past: Past, providers: Providers, at: Instant
) -> tuple[int, list[Reject]]:
    """Write one chunk down; how many were news, and the rows that cannot be."""
    tx.contacts.hold(alone=True)
    key = ensure_erasure_key(tx)
    known: dict[tuple[str, str], Account | InputError] = {}
    people = recognise(tx, [Target(row.target) for row in rows], key)
    messages, rejects = [], []
    for row, person in zip(rows, people, strict=True):
        account = _able(tx, known, row, providers)
        if isinstance(account, InputError):
            rejects.append(Reject(row.line, str(account)))
            continue
        messages.append(
            PastMessage(
                key=_identity(key, account.id, row, past.place(account.id, row)),
                account_id=account.id,
                action=row.action,
                target=person.address,
                at=row.at,
                contact_id=person.contact_id,
            )
        )
    if not messages:
        return 0, rejects
    run = standing_run(tx, STANDING, at)
    policy_id = tx.policies.version(STANDING, {}, at)
    added = tx.history.add(run.id, policy_id, messages, at)
    for account_id in sorted(added):
        tx.lanes.touch(account_id, at)
    return sum(added.values()), rejects


def _able(
    tx: Tx,
    known: dict[tuple[str, str], Account | InputError],
    row: PastRow,
    providers: Providers,
) -> Account | InputError:
    """The account, if there is one and it could have sent that; asked once for all rows alike."""
    key = (row.account, row.action)
    if key not in known:
        try:
            known[key] = _account_for(tx, row, providers)
        except InputError as error:
            known[key] = error
    return known[key]


def _account_for(tx: Tx, row: PastRow, providers: Providers) -> Account:
    account = find_account(tx, row.account)
    able = providers.get(account.provider).capabilities_of(account.settings)
    if row.action not in able.actions and row.action != REPLY:
        can = ", ".join(sorted(able.actions))
        raise InputError(f"{account.name} sends no '{row.action}' (it can: {can})")
    return account


def _identity(key: bytes, account_id: int, row: PastRow, place: int) -> str:
    """The same for the same message however often it is told; keyed, for it has an address in."""
    text = "\x1f".join((str(account_id), row.action, str(row.at), row.target, str(place)))
    return f"history:{hmac.digest(key, text.encode('utf-8', 'surrogatepass'), sha256).hex()[:32]}"
