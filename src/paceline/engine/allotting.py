"""Who sends to whom, when a reminder goes out from several accounts or to groups.

An account can only write to a group that it is a member of. Which ones those are is known from when
its groups were last synced; of an account that never was, nothing is known, and it is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from paceline.core.address import guess_kind
from paceline.core.model import Target
from paceline.core.states import AccountState
from paceline.engine.people import Unreachable
from paceline.engine.ports import Account, Tx

NO_MEMBER = "no account of it is a member of this group"
NOT_A_MEMBER = "{account} is not a member of this group"
STANDING_STILL = (AccountState.SUSPENDED, AccountState.PAUSED)
"""Accounts that go on only when somebody lets them, which may be after the window has closed."""
ADMINS_ONLY = "only admins may write to this group"


@dataclass(slots=True)
class Allotment:
    """Every target is in exactly one of the two."""

    owners: list[tuple[Target, int]] = field(default_factory=list)
    """In the order of the targets, each with the account that sends to it."""
    unreachable: dict[str, list[Target]] = field(default_factory=dict)
    """By the reason."""

    def unreached(self) -> list[Unreachable]:
        """The same one by one, as people are told of them."""
        return [
            Unreachable(target.contact_id, target.address, why)
            for why, some in self.unreachable.items()
            for target in some
        ]


def allot(tx: Tx, accounts: Sequence[Account], targets: Sequence[Target]) -> Allotment:
    """Give every target to an account that can write to it, as evenly as that allows; and to one
    that stands still only where no other can."""
    groups = [target.address for target in targets if guess_kind(target.address) == "group"]
    numbers = [account.id for account in accounts]
    known = tx.groups.synced_at(numbers) if groups else {}
    members = tx.groups.members(sorted(known), groups) if known else {}
    found = Allotment()
    going = {account.id for account in accounts if account.state not in STANDING_STILL}
    able = []
    for target in targets:
        is_group = guess_kind(target.address) == "group"
        can = _able(numbers, known, members.get(target.address, {})) if is_group else numbers
        able.append([number for number in can if number in going] or can)
    for target, can, owner in zip(targets, able, dealt(able), strict=True):
        if can:
            found.owners.append((target, owner))
        else:
            why = _why_not(accounts, members.get(target.address, {}))
            found.unreachable.setdefault(why, []).append(target)
    return found


def dealt(able: Sequence[Sequence[int]]) -> list[int]:
    """An owner for each, of those who are able; 0 where nobody is.

    Whoever can go to the fewest is dealt first, and each goes to the one with the least so far, the
    first of several, so that the same are dealt the same way. That alone can leave somebody with
    two more than another who could take one of them over, so it is evened out in the end.
    """
    load = dict.fromkeys((number for some in able for number in some), 0)
    owners = [0] * len(able)
    for place in sorted(range(len(able)), key=lambda place: len(able[place])):
        if able[place]:
            owners[place] = _least(able[place], load)
            load[owners[place]] += 1
    uneven = True
    while uneven:  # it ends: with every move the squares of the loads add up to less
        uneven = False
        for place, some in enumerate(able):
            other = _least(some, load) if len(some) > 1 else owners[place]
            if some and load[owners[place]] - load[other] > 1:
                load[owners[place]] -= 1
                load[other] += 1
                owners[place], uneven = other, True
    return owners


def _least(some: Sequence[int], load: Mapping[int, int]) -> int:
    return min(some, key=lambda number: load[number])


def _able(
    numbers: Sequence[int], known: Mapping[int, int], members: Mapping[int, bool]
) -> list[int]:
    return [number for number in numbers if number not in known or members.get(number, False)]


def _why_not(accounts: Sequence[Account], members: Mapping[int, bool]) -> str:
    if members:
        return ADMINS_ONLY
    if len(accounts) == 1:
        return NOT_A_MEMBER.format(account=accounts[0].name)
    return NO_MEMBER
