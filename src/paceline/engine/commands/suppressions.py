"""Suppressions: who must not be written to, whoever the sender and whatever the campaign.

In force before the next message: the fence comes first, and the guard of every intent asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from paceline.core.address import (
    ERASED,
    canonical,
    is_domain,
    is_hidden,
    known_kind,
    normalise,
    normalise_domain,
    one_line,
    understood,
)
from paceline.core.errors import ConflictError, InputError
from paceline.core.instants import Instant
from paceline.core.model import Target
from paceline.engine.people import erasure_key, known_as, recognise
from paceline.engine.ports import Suppression, Tx

BY_HAND = "operator"
IMPORTED = "import"


class Unwanted(NamedTuple):
    """An address as somebody's list has it, already in its one spelling."""

    address: str
    reason: str


def spelled(text: str, kind: str | None = None, region: str | None = None) -> str:
    """An address as it is stored.

    A domain, ``@example.com``, stands for everybody in it, and for nobody in those below it.
    It has to be one of its kind, whether that is said or follows from its looks: to note down what
    nobody can be reached at would let somebody believe that they are not written to any more.
    """
    if kind in (None, "email") and is_domain(text):
        return normalise_domain(text)
    if kind is None:
        found, address = understood(text, region)
        if found == "other" and not (is_hidden(address) or address.startswith(ERASED)):
            raise InputError(f"'{address}' is no address: neither an e-mail address nor a number")
    else:
        found, address = known_kind(kind), normalise(kind, text, region)
    name, _, domain = address.rpartition("@")
    if found == "email" and "*" in name:
        raise InputError(
            f"'{address}' is nobody's address: a * stands for nothing",
            hint=f"Write @{domain}, which stands for everybody there",
        )
    return address


def kind_to_say(address: str) -> str:
    """What has to be said of an address that is stored, so that it is taken in again as it is;
    empty where its looks say it."""
    try:
        return "" if spelled(address) == address else "other"
    except InputError:
        return "other"


def spelled_as_it_is(text: str, kind: str | None = None) -> str:
    """The same for looking it up: what is there already may be no address by any rule of ours."""
    if kind in (None, "email") and is_domain(text):
        return normalise_domain(text)
    return canonical(one_line(text)) if kind is None else normalise(kind, text)


def add(tx: Tx, address: str, reason: str, at: Instant) -> bool:
    """Never write to this address again; whether that is news."""
    tx.contacts.hold(alone=False)
    tx.settings.fence()
    return tx.suppressions.add(known_as(tx, address), reason, BY_HAND, at)


def remove(tx: Tx, address: str) -> bool:
    """Let it be written to again; whether it was not. What was skipped stays skipped."""
    tx.contacts.hold(alone=False)
    stored = known_as(tx, address)
    if stored.startswith(ERASED):
        raise ConflictError(
            "whoever has this address was erased",
            hint="If they signed up again, import them with --again",
        )
    return tx.suppressions.remove(stored)


def take_in(tx: Tx, rows: Sequence[Unwanted], at: Instant) -> int:
    """Many at once, in a few statements; how many are new."""
    tx.contacts.hold(alone=False)
    tx.settings.fence()
    people = recognise(tx, [Target(row.address) for row in rows], erasure_key(tx))
    return tx.suppressions.add_many(
        [
            # Since now, whenever they asked: before, we did not know.
            Suppression(person.address, row.reason, IMPORTED, at)
            for person, row in zip(people, rows, strict=True)
        ]
    )
