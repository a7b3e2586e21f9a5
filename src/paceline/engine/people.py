"""People as campaigns need them: recognised by their addresses, and turned into targets.

Somebody who was erased is known by a keyed hash of each address only. Whoever creates deliveries
has their targets ``recognised`` first: one that was erased is replaced by its hash, which is
suppressed, so the delivery is created, counted, and never sent.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NamedTuple

from paceline.core.address import ERASED, canonical
from paceline.core.errors import NotFoundError
from paceline.core.model import Target
from paceline.core.nearest import did_you_mean
from paceline.engine.commands.accounts import find as find_account
from paceline.engine.ports import Audience, Contact, Providers, Tx
from paceline.engine.routes import Route, route_of

ERASURE_KEY = "erasure_key"
"""The setting that holds the secret of the hashes: made once, with the first erasure."""

CHUNK = 2_000

_ZONE = "zone"
"""The one field that even an erased target keeps, because its hours are worked out from it."""


class Unreachable(NamedTuple):
    """Somebody of an audience to whom a campaign cannot write, and why not."""

    contact_id: int | None
    """None for whoever is in a file only."""
    who: str
    why: str


@dataclass(frozen=True, slots=True)
class Reached:
    """An audience as it was read: whom a campaign can write to, and whom it cannot."""

    audience: Audience
    targets: list[Target]
    unreachable: list[Unreachable]

    def settings(self) -> dict[str, Any]:
        """What a campaign keeps of its audience."""
        return {"audience": self.audience.name, "audience_revision": self.audience.revision}


def find_audience(tx: Tx, name: str) -> Audience:
    found = tx.audiences.find(name)
    if found is None:
        names = [known.name for known in tx.audiences.list()]
        raise NotFoundError(
            f"no audience named '{name}'{did_you_mean(name, names)}",
            hint="paceline audience list shows those there are",
        )
    return found


def targets_of(tx: Tx, name: str, way: Route) -> Reached:
    """The members of an audience as targets of an action, in their order."""
    audience = find_audience(tx, name)
    targets: list[Target] = []
    unreachable: list[Unreachable] = []
    for _, contact in tx.audiences.members(audience.id):
        address = way.pick({entry.kind: entry.address for entry in contact.addresses})
        if address is None:
            unreachable.append(Unreachable(contact.id, _who(contact), way.missing()))
        else:
            targets.append(Target(address, fields_of(contact), contact.id))
    return Reached(audience, targets, unreachable)


def reached_by(
    tx: Tx, name: str, action: str, accounts: Sequence[str], providers: Providers
) -> Reached:
    """The same for a campaign on these accounts."""
    senders = [find_account(tx, account) for account in accounts]
    return targets_of(tx, name, route_of(senders, action, providers))


def revision_now(tx: Tx, settings: Mapping[str, Any]) -> int | None:
    """The revision that a campaign's audience has by now; None if it has none, or it is gone.

    A campaign was created from ``settings["audience_revision"]``; where this differs, people have
    come or gone or changed since, and the draft does not know of them.
    """
    name = settings.get("audience")
    found = tx.audiences.find(name) if isinstance(name, str) else None
    return None if found is None else found.revision


def fields_of(contact: Contact) -> dict[str, str]:
    """What a template may say: the person's own columns, and where they are reached."""
    reached = {address.kind: address.address for address in contact.addresses}
    return reached | dict(contact.fields)


def _who(contact: Contact) -> str:
    """Somebody as an operator knows them: by name, else by any address."""
    name = contact.fields.get("name") or " ".join(
        contact.fields[key] for key in ("first_name", "last_name") if contact.fields.get(key)
    )
    known = [address.address for address in contact.addresses]
    return name or (known[0] if known else f"contact {contact.id}")


# ---------------------------------------------------------------------- recognising


def recognised(tx: Tx, targets: Sequence[Target]) -> list[Target]:
    """The targets in their one spelling, each once, with the people they are.

    First in a transaction that creates deliveries, before anything is written: until it ends nobody
    can be erased, so what is found here is still true when the deliveries are there to be seen.
    """
    tx.contacts.hold(alone=False)
    key = erasure_key(tx)
    merged: dict[str, Target] = {}
    for first in range(0, len(targets), CHUNK):
        for target in recognise(tx, targets[first : first + CHUNK], key):
            merged.setdefault(target.address, target)
    return list(merged.values())


def recognise(tx: Tx, targets: Sequence[Target], key: bytes | None) -> list[Target]:
    """The same for a few thousand, one for one.

    Whoever is said to have an address of somebody who was erased is that person, at whichever
    address they were to be written to.
    """
    spelled = [_spelled(target) for target in targets]
    hashes: dict[str, str] = {}
    if key is not None:
        others = (address for target in targets for _, address in target.addresses)
        hashes = {address: hashed(key, address) for address in (*spelled, *others)}
    owners = tx.contacts.owners([*spelled, *hashes.values()])
    found = []
    for target, address in zip(targets, spelled, strict=True):
        theirs = (address, *(other for _, other in target.addresses)) if hashes else ()
        erased = next((hashes[one] for one in theirs if hashes[one] in owners), None)
        if erased is not None:
            zone = {_ZONE: target.fields[_ZONE]} if _ZONE in target.fields else {}
            found.append(Target(erased, zone, owners[erased]))
        else:
            known = owners.get(address, target.contact_id)
            found.append(replace(target, address=address, contact_id=known))
    return found


def _spelled(target: Target) -> str:
    """A number takes its time to be understood, so what is said to be one is not asked again."""
    if ("phone", target.address) in target.addresses:
        return target.address
    return canonical(target.address)


# ---------------------------------------------------------------------- hashes of the erased


def erasure_key(tx: Tx) -> bytes | None:
    """The secret of the hashes; None as long as nobody was ever erased."""
    stored = tx.settings.get(ERASURE_KEY)
    return None if stored is None else bytes.fromhex(stored)


def ensure_erasure_key(tx: Tx) -> bytes:
    """The same, made now if need be, by whoever holds all people alone."""
    key = erasure_key(tx)
    if key is None:
        key = secrets.token_bytes(32)
        tx.settings.put(ERASURE_KEY, key.hex())
    return key


def hashed(key: bytes, address: str) -> str:
    """What stands for an address of somebody who was erased.

    Keyed, because addresses can be guessed: without the secret nobody can try them out.
    """
    return ERASED + hmac.digest(key, address.encode("utf-8", "surrogatepass"), sha256).hex()[:40]


def known_as(tx: Tx, address: str) -> str:
    """How an address is stored: as it is spelled, or as its hash if its owner was erased."""
    spelled = canonical(address)
    key = erasure_key(tx)
    if key is None:
        return spelled
    erased = hashed(key, spelled)
    return erased if tx.contacts.find(erased) is not None else spelled
