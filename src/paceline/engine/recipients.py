"""The people a plan writes to: when they were written to lately, by which names others know them,
and to which accounts they are strangers.

Asked of the store in bulk, and only where some account minds. What they are sent, and when, is not
worked out here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paceline.core.instants import Instant
from paceline.core.slots import Seat
from paceline.engine.ports import Tx

People = Mapping[str, int | None]
"""By address, whose it is; None where nobody is known to have it. Numbers below zero are people who
are not stored yet (``commands/introducing.py``), with all of their addresses."""


def minds(seats: Iterable[Seat]) -> bool:
    """Whether any of these cares how often a person is written to."""
    return any(seat.policy.per_recipient is not None for seat in seats)


class Recipients:
    """What lanes will find out about the people of a plan, one by one, found out at once."""

    def __init__(self, tx: Tx, seats: Iterable[Seat], now: Instant, people: People) -> None:
        """``seats`` are the accounts of the plan, by which it is told what matters."""
        seats = list(seats)
        self.contacted: Mapping[str, tuple[Instant, ...]] = {}
        """By address, when its person was sent something lately."""
        self._minds = minds(seats)
        self._owners: Mapping[str, int] = {}
        if self._minds:
            self._look_back(tx, seats, now, people)
        # Who is a stranger is asked for only while an account may write to none.
        self._known = {
            seat.account_id: tx.waiting.known(seat.account_id, list(people))
            for seat in seats
            if seat.usage.holds.newcomers_until_at > now
        }
        self._same: dict[tuple[int, ...], tuple[int, ...]] = {}

    def _look_back(self, tx: Tx, seats: list[Seat], now: Instant, people: People) -> None:
        frequencies = [seat.policy.per_recipient for seat in seats]
        longest_us = max(often.per_us for often in frequencies if often is not None)
        whose = {address: owner for address, owner in people.items() if owner is not None}
        stored = {address: owner for address, owner in whose.items() if owner >= 0}
        self.contacted = tx.deliveries.contacted(list(people), now - longest_us, stored)
        if len(whose) < len(people):
            self._owners = tx.contacts.owners([one for one in people if one not in whose])
        if len(stored) < len(whose):
            self._tell_of_strangers(whose)

    def _tell_of_strangers(self, whose: Mapping[str, int]) -> None:
        """What was sent to one address of somebody who is not stored yet was sent to the person."""
        strangers: dict[int, list[str]] = {}
        for address, owner in whose.items():
            if owner < 0:
                strangers.setdefault(owner, []).append(address)
        contacted = dict(self.contacted)
        for addresses in strangers.values():
            instants = [at for address in addresses for at in contacted.get(address, ())]
            if instants:
                contacted |= dict.fromkeys(addresses, tuple(sorted(instants)))
        self.contacted = contacted
        theirs = {address: owner for owner, some in strangers.items() for address in some}
        self._owners = {**self._owners, **theirs}

    def names(self, address: str, contact_id: int | None) -> tuple[str, tuple[str, ...]]:
        """The name under which a delivery looks for what its person was sent, and those under which
        others look for this one.

        A person is the same at every address. A delivery for nobody in particular is for whoever
        has its address by now.
        """
        owner = self._owners.get(address) if contact_id is None else contact_id
        if owner is None:
            return address, ()
        return _person(owner), (address,) if self._minds else ()

    def new_to(self, address: str, account_ids: Sequence[int]) -> tuple[int, ...]:
        """Those of the accounts that may write to nobody new, and never wrote to this one."""
        if not self._known:
            return ()
        found = tuple(
            number
            for number in account_ids
            if number in self._known and address not in self._known[number]
        )
        return self._same.setdefault(found, found)


def _person(contact_id: int) -> str:
    return f"#{contact_id}"
