"""The people of a campaign's own file: whoever stands in one row with several addresses is known by
all of them from then on.

So limits per person count what they get at any of these, and erasing them finds all of it. They
are merged with those who are known as ``audience import`` does it; a row that it would reject makes
one person of nobody, and counts by the address that is written to. Only addresses are taken: what
a campaign says of somebody stays with that campaign. A single address is left alone: made a person,
it could not be joined any more with another one that turns out to be the same person's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from paceline.core.instants import Instant
from paceline.core.model import Target
from paceline.engine.audience_columns import PersonRow
from paceline.engine.commands.audiences import CHUNK, judge, write_people
from paceline.engine.people import recognised
from paceline.engine.ports import Address, Tx


def introduced(tx: Tx, targets: Sequence[Target], at: Instant) -> list[Target]:
    """The targets ``recognised``, after those with several addresses have been made known."""
    rows = _rows(targets)
    if rows:
        tx.contacts.hold(alone=False, adding=True)
    for first in range(0, len(rows), CHUNK):
        write_people(tx, judge(tx, rows[first : first + CHUNK], at), at)
    return recognised(tx, targets)


def imagined(tx: Tx, targets: Sequence[Target], at: Instant) -> dict[str, int]:
    """Whose each address would be that is nobody's yet, if the targets were introduced. Nothing is
    written, so whoever would be new has a number that nobody has: one below zero."""
    owners: dict[str, int] = {}
    rows = _rows(targets)
    for first in range(0, len(rows), CHUNK):
        for draft in judge(tx, rows[first : first + CHUNK], at).drafts:
            given = [entry.address for entry in draft.given]
            before = (owners[address] for address in given if address in owners)
            number = next(before, -1 - len(owners)) if draft.is_new else draft.contact.id
            owners |= dict.fromkeys(given, number)
    return owners


def as_imagined(targets: Sequence[Target], owners: dict[str, int]) -> list[Target]:
    """The targets as the people they would be."""
    return [
        replace(target, contact_id=owners[target.address]) if target.address in owners else target
        for target in targets
    ]


def _rows(targets: Sequence[Target]) -> list[PersonRow]:
    return [
        PersonRow(number, tuple(Address(*one) for one in target.addresses), {}, "", None)
        for number, target in enumerate(targets)
        if len(target.addresses) > 1
    ]
