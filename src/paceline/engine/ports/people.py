"""Who is written to, as the engine and the store speak of it: contacts and audiences."""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from paceline.core.instants import Instant

BECAUSE_ERASED = "contact was erased"
"""Why what was planned for somebody is cancelled; it says nothing of them."""


class Address(NamedTuple):
    """Where a person is reached, in its one spelling (``core/address.py``)."""

    kind: str
    address: str


@dataclass(frozen=True, slots=True)
class Contact:
    """A person: where they are reached, what templates may say of them, and who let us write."""

    id: int
    addresses: tuple[Address, ...]
    fields: Mapping[str, str] = field(default_factory=dict)
    opt_in_source: str = ""
    opt_in_at: Instant | None = None
    created_at: Instant = 0
    changed_at: Instant = 0
    erased_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Audience:
    """People gathered under a name. ``revision`` grows with every change to who they are."""

    id: int
    name: str
    revision: int
    members: int
    created_at: Instant
    changed_at: Instant


class Member(NamedTuple):
    position: int
    contact: Contact


class Suppression(NamedTuple):
    """An address that must not be contacted: why, who said so, and since when."""

    address: str
    reason: str
    source: str
    at: Instant


def outweighs(source: str, known: str) -> bool:
    """Whether what one source says of an address counts for more than what is known by another.
    What somebody has asked for they can take back, so anything else does; and of a complaint mail
    houses keep count, whatever was known before."""
    return _weight(source) > _weight(known)


def _weight(source: str) -> int:
    return {"opt-out": 0, "unsubscribe": 0, "complaint": 2}.get(source, 1)


class Contacts(Protocol):
    def hold(self, *, alone: bool, adding: bool = False) -> None:
        """Keep people as they are until this transaction ends; first in it, before any write.

        ``alone`` for whoever changes or erases people, else for whoever creates deliveries to them:
        so nobody is written to by a campaign that did not know yet that they were erased. Those who
        are ``adding`` the people they write to come one after the other, and hold up nobody else.
        """
        ...

    def get(self, contact_id: int) -> Contact: ...

    def find(self, address: str) -> Contact | None: ...

    def several(self, contact_ids: Sequence[int]) -> dict[int, Contact]:
        """Those of these that exist, by id."""
        ...

    def owners(self, addresses: Sequence[str]) -> dict[str, int]:
        """Whose each address is, as far as it is anybody's."""
        ...

    def add(self, rows: Sequence[Contact], at: Instant) -> list[int]:
        """New people in bulk, without their addresses; their ids, in the same order."""
        ...

    def change(self, rows: Sequence[Contact], at: Instant) -> None:
        """Fields, opt-in and whether they are erased, in bulk, as these say."""
        ...

    def give(self, rows: Sequence[tuple[int, Address]]) -> None:
        """Addresses that are nobody's yet, in bulk, each with the person whose it is from now."""
        ...

    def rename(self, renamed: Mapping[str, str]) -> None:
        """Other spellings for addresses: a hash for an erased person's, or the address again."""
        ...

    def traces(self, contact_id: int, addresses: Sequence[str]) -> list[int]:
        """Every delivery to this person or one of these addresses; looks through all there are."""
        ...

    def blot_out(
        self, delivery_ids: Sequence[int], contact_id: int, renamed: Mapping[str, str]
    ) -> None:
        """Take what names the person out of everything that is stored: their deliveries with the
        ledger and the keys of these, reminders, and texts in which they are mentioned.

        A reason that begins with ``BECAUSE_ERASED`` stays."""
        ...


class Audiences(Protocol):
    def find(self, name: str) -> Audience | None: ...

    def open(self, name: str, at: Instant) -> Audience:
        """The audience of that name, made now if there is none."""
        ...

    def list(self) -> list[Audience]: ...

    def add(self, audience_id: int, contact_ids: Sequence[int]) -> int:
        """Put people into it, behind those who are there; how many were not."""
        ...

    def changed(self, audience_id: int, at: Instant) -> None:
        """Raise its revision."""
        ...

    def leave(self, contact_id: int, at: Instant) -> int:
        """Take a person out of every audience; out of how many."""
        ...

    def of_contact(self, contact_id: int) -> list_of[str]: ...

    def members(self, audience_id: int) -> Iterator[Member]:
        """In their order, a page at a time."""
        ...

    def remove(self, audience_id: int) -> None:
        """The audience and nothing else: its people stay."""
        ...


class Suppressions(Protocol):
    def add(self, address: str, reason: str, source: str, at: Instant) -> bool:
        """Whether it is new. The first instant stays, and so do reason and source, unless these
        outweigh them."""
        ...

    def add_many(self, rows: Sequence[Suppression]) -> int:
        """The same in bulk; how many are new."""
        ...

    def let_pass(self, address: str, delivery_id: int) -> None:
        """Let this one delivery be sent to an address that is suppressed, and no other."""
        ...

    def confirmation_of(self, address: str) -> int | None:
        """The delivery that its suppression lets pass; None where it lets none pass."""
        ...

    def remove(self, address: str) -> bool: ...

    def has(self, address: str) -> bool: ...

    def covers(self, address: str) -> bool:
        """Whether it must not be written to, for its own sake or for its domain's."""
        ...

    def find(self, address: str) -> Suppression | None: ...

    def among(self, addresses: Sequence[str]) -> dict[str, Suppression]:
        """Those of these that must not be contacted."""
        ...

    def count(self) -> int: ...

    def list(self) -> list[tuple[str, str, str, Instant]]: ...

    def walk(self) -> Iterator[Suppression]:
        """All of them in the order of their addresses, a page at a time."""
        ...
