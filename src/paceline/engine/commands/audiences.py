"""Audiences: people taken in from tables, merged with those who are known, and let go again.

Rows are judged and written a chunk at a time, each chunk in a transaction of its own: what is in
is in, whatever interrupts the rest, and the same table taken in again goes on where it ended,
because nobody is taken in twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from paceline.core.address import ERASED
from paceline.core.errors import InputError
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.engine.audience_columns import PersonRow, Reject
from paceline.engine.people import erasure_key, find_audience, hashed
from paceline.engine.ports import Address, Audience, Contact, Tx

CHUNK = 1_000
"""Rows that are judged and written at a time."""

ERASED_BY = "erase"
"""The source of a suppression that only an erasure has made."""

LONGEST_NAME = 200


@dataclass(slots=True)
class Draft:
    """A person as they will be once the chunk is written."""

    before: Contact
    contact: Contact
    is_new: bool = False
    given: list[Address] = field(default_factory=list)
    hashes: dict[str, str] = field(default_factory=dict)
    """Those of an erased person's addresses that the rows name, each with the address."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Hashes that are the address again, because the person has signed up anew."""

    @property
    def changed(self) -> bool:
        """Whether anything is news of somebody who was known before."""
        return not self.is_new and (self.contact != self.before or bool(self.given))

    def address_of(self, kind: str) -> str | None:
        known = [*self.contact.addresses, *self.given]
        plain = (e.address for e in known if e.kind == kind and not e.address.startswith(ERASED))
        return next(plain, None)

    def erased(self, row: PersonRow) -> dict[str, str]:
        """Those of the row's addresses that are erased, by their hashes."""
        named = {entry.address for entry in row.addresses}
        left = self.hashes.items() - self.renamed.items()
        return {erased: plain for erased, plain in left if plain in named}


@dataclass(frozen=True, slots=True)
class Judged:
    """What a chunk of rows comes to: the people in it, and the rows that were not taken."""

    drafts: list[Draft]
    rejects: list[Reject]
    taken: int = 0
    """How many rows the people are made from."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What was written."""

    new: int = 0
    changed: int = 0
    joined: int = 0
    merged: int = 0
    """Rows of somebody whom an earlier row of the same table has named."""

    def __add__(self, other: Taken) -> Taken:
        return Taken(
            self.new + other.new,
            self.changed + other.changed,
            self.joined + other.joined,
            self.merged + other.merged,
        )


class Named:
    """Whom a table has named so far: a bit for each, so that a long one needs little room."""

    __slots__ = ("_bits",)

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, contact_id: int) -> bool:
        """Whether this is the first time."""
        place, bit = contact_id >> 3, 1 << (contact_id & 7)
        if place >= len(self._bits):
            self._bits.extend(bytes(place + 1 - len(self._bits)))
        first = not self._bits[place] & bit
        self._bits[place] |= bit
        return first


def known_name(name: str) -> str:
    """A name an audience can have."""
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise InputError(f"a name is one line of at most {LONGEST_NAME} characters", key="--name")
    if name.startswith("(") or "/" in name or "\\" in name:
        raise InputError("a name cannot start with a bracket or have a / in it", key="--name")
    return name


def judge(tx: Tx, rows: Sequence[PersonRow], at: Instant, *, again: bool = False) -> Judged:
    """Who the rows speak of: people who are known, new ones, and what cannot be taken.

    Reads only, in a few statements however many rows there are. ``again`` takes back in whoever was
    erased and has signed up anew.
    """
    by_address = _known(tx, rows)
    opted_out = _opted_out(tx, by_address)
    drafts: dict[int, Draft] = {}
    rejects = []
    for row in rows:
        found = {id(draft): draft for a in row.addresses if (draft := by_address.get(a.address))}
        try:
            draft = _one_of(found, row)
            _refuse_another(draft, row)
            if erased := draft.erased(row):
                if opted_out & erased.keys():
                    raise InputError("was erased, and had asked before not to be written to")
                _take_back(draft, row, erased, again=again)
        except InputError as error:
            rejects.append(Reject(row.line, str(error)))
            continue
        _merge(draft, row, at)
        drafts[id(draft)] = draft
        by_address |= {entry.address: draft for entry in row.addresses}
    return Judged(list(drafts.values()), rejects, len(rows) - len(rejects))


def _known(tx: Tx, rows: Sequence[PersonRow]) -> dict[str, Draft]:
    """Everybody the rows could mean, by each of their addresses; the erased by what was asked."""
    asked = list(dict.fromkeys(entry.address for row in rows for entry in row.addresses))
    key = erasure_key(tx)
    plain = {} if key is None else {hashed(key, address): address for address in asked}
    owners = tx.contacts.owners([*asked, *plain])
    people = tx.contacts.several(list(owners.values()))
    drafts = {number: Draft(contact, contact) for number, contact in people.items()}
    by_address = {e.address: d for d in drafts.values() for e in d.contact.addresses}
    for erased in plain.keys() & by_address.keys():
        draft = by_address[erased]
        draft.hashes[erased] = plain[erased]
        by_address[plain[erased]] = draft
    return by_address


def _opted_out(tx: Tx, by_address: dict[str, Draft]) -> set[str]:
    """Hashes of erased people who had asked not to be written to before."""
    hashes = [erased for draft in by_address.values() for erased in draft.hashes]
    if not hashes:
        return set()
    found = tx.suppressions.among(hashes).values()
    return {entry.address for entry in found if entry.source != ERASED_BY}


def _one_of(found: dict[int, Draft], row: PersonRow) -> Draft:
    if len(found) > 1:
        several = " and ".join(entry.address for entry in row.addresses)
        raise InputError(f"{several} belong to different people")
    for draft in found.values():
        return draft
    nobody = Contact(0, ())
    return Draft(nobody, nobody, is_new=True)


def _refuse_another(draft: Draft, row: PersonRow) -> None:
    """A number that two share makes one of neither: both would lose what the other has."""
    for kind, address in row.addresses:
        known = draft.address_of(kind)
        if known is not None and known != address:
            shared = next(e.address for e in row.addresses if e.kind != kind)
            raise InputError(f"{shared} belongs to somebody else, whose {kind} is not {address}")


def _take_back(draft: Draft, row: PersonRow, erased: dict[str, str], *, again: bool) -> None:
    if not again or not (row.opt_in_source or row.opt_in_else):
        raise InputError(
            "was erased",
            hint="If they signed up again, say so with --again and where with --opt-in",
        )
    kept = tuple(e for e in draft.contact.addresses if e.address not in erased)
    back = tuple(e for e in row.addresses if e.address in erased.values())
    draft.contact = replace(draft.contact, addresses=(*kept, *back), erased_at=None)
    draft.renamed |= erased


def _merge(draft: Draft, row: PersonRow, at: Instant) -> None:
    """What the row says is filled in, or written over; what it does not say stays."""
    known = {*draft.contact.addresses, *draft.given}
    draft.given += [entry for entry in row.addresses if entry not in known]
    contact = draft.contact
    fields = {**contact.fields, **row.fields}
    source, opted_in_at = contact.opt_in_source, contact.opt_in_at
    if row.opt_in_source and (row.opt_in_source != source or row.opt_in_at is not None):
        source, opted_in_at = row.opt_in_source, row.opt_in_at or at
    elif row.opt_in_else and not source:
        source, opted_in_at = row.opt_in_else, row.opt_in_at or at
    elif row.opt_in_at is not None:
        opted_in_at = row.opt_in_at
    draft.contact = replace(contact, fields=fields, opt_in_source=source, opt_in_at=opted_in_at)


def write(
    tx: Tx, audience_id: int, judged: Judged, at: Instant, named: Named | None = None
) -> Taken:
    """Write a judged chunk: new people, what is new of known ones, and their membership.

    Whom the same table has ``named`` before is counted once.
    """
    fresh, changed = write_people(tx, judged, at)
    joined = tx.audiences.add(audience_id, [draft.contact.id for draft in judged.drafts])
    if joined or changed:
        tx.audiences.changed(audience_id, at)
    seen = named or Named()
    first = {draft.contact.id for draft in judged.drafts if seen.add(draft.contact.id)}
    counted = sum(draft.contact.id in first for draft in changed)
    return Taken(len(fresh), counted, joined, judged.taken - len(first))


def write_people(tx: Tx, judged: Judged, at: Instant) -> tuple[list[Draft], list[Draft]]:
    """The people of a judged chunk without their membership; the new ones, and the changed."""
    fresh = [draft for draft in judged.drafts if draft.is_new]
    changed = [draft for draft in judged.drafts if draft.changed]
    ids = tx.contacts.add([draft.contact for draft in fresh], at)
    for number, draft in zip(ids, fresh, strict=True):
        draft.contact = replace(draft.contact, id=number)
    _give_back(tx, [draft for draft in changed if draft.renamed])
    tx.contacts.change([draft.contact for draft in changed], at)
    tx.contacts.give(
        [(draft.contact.id, entry) for draft in judged.drafts for entry in draft.given]
    )
    return fresh, changed


def _give_back(tx: Tx, drafts: Iterable[Draft]) -> None:
    """The erased who signed up again have their addresses back, and may be written to."""
    for draft in drafts:
        tx.contacts.rename(draft.renamed)
        for erased in draft.renamed:
            tx.suppressions.remove(erased)


def take_in(
    tx: Tx,
    audience_id: int,
    rows: Sequence[PersonRow],
    at: Instant,
    *,
    again: bool = False,
    named: Named | None = None,
) -> tuple[Taken, list[Reject]]:
    """Judge and write one chunk; nobody else changes people meanwhile."""
    tx.contacts.hold(alone=True)
    judged = judge(tx, rows, at, again=again)
    return write(tx, audience_id, judged, at, named), judged.rejects


def remove(tx: Tx, name: str, at: Instant) -> Audience:
    """Forget who belongs together. The people stay, and so does what they were sent."""
    tx.contacts.hold(alone=True)
    audience = find_audience(tx, name)
    tx.audiences.remove(audience.id)
    text = f"audience {name} removed"
    tx.events.add(EventKind.AUDIENCE_REMOVED, text, at=at, data={"audience": name})
    return audience
