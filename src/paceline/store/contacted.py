"""When people were written to: by an address, or by whoever has it, on any channel.

A person is the same at every address. So whatever was sent to one of somebody's addresses counts,
by any account, in any campaign, and whatever was sent to the person under an address that is
theirs no more. A delivery that was created for nobody in particular is for whoever has its address
by now; only an address that is nobody's counts alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select, text

from paceline.core.instants import Instant
from paceline.store.base import Context, chunks
from paceline.store.schema import IN_FLIGHT, addresses, deliveries, ledger

LOOKUP = 500
"""Addresses asked about in one statement."""

Instants = dict[str, tuple[Instant, ...]]


def contacted(
    context: Context, targets: Sequence[str], since_at: Instant, people: Mapping[str, int]
) -> Instants:
    """By target, when its person was sent something since then; ``people`` says who that is, as far
    as it is known already."""
    found: Instants = {}
    for some in chunks(dict.fromkeys(targets), LOOKUP):
        whose = {target: people[target] for target in some if target in people}
        whose |= owners(context, [target for target in some if target not in whose])
        found |= _contacted(context, some, since_at, whose)
    return found


def owners(context: Context, targets: list[str]) -> dict[str, int]:
    """Whose each address is by now, as far as it is anybody's."""
    if not targets:
        return {}
    columns = (addresses.c.address, addresses.c.contact_id)
    found = context.connection.execute(select(*columns).where(addresses.c.address.in_(targets)))
    return {row.address: row.contact_id for row in found}


def _contacted(
    context: Context, targets: list[str], since_at: Instant, whose: Mapping[str, int]
) -> Instants:
    askers: defaultdict[str, set[str]] = defaultdict(set)
    persons: defaultdict[int, set[str]] = defaultdict(set)
    for target in targets:
        askers[target].add(target)
        if target in whose:
            persons[whose[target]].add(target)
    execute = context.connection.execute
    for contact_id, address in execute(_reached(persons)) if persons else ():
        askers[address] |= persons[contact_id]
    found: defaultdict[str, dict[int, Instant]] = defaultdict(dict)
    for statement in _sent(list(askers), list(persons), since_at):
        for number, target, contact_id, at in execute(statement):
            for asker in askers.get(target, set()) | persons.get(contact_id, set()):
                found[asker][number] = at
    return {target: tuple(sorted(instants.values())) for target, instants in found.items()}


def _reached(persons: Mapping[int, set[str]]) -> Select[Any]:
    return select(addresses.c.contact_id, addresses.c.address).where(
        addresses.c.contact_id.in_(list(persons))
    )


def _sent(targets: list[str], persons: list[int], since_at: Instant) -> list[Select[Any]]:
    to_them = deliveries.c.target.in_(targets)
    statements = [_arrived(to_them, since_at), _in_flight(to_them, since_at)]
    if persons:
        of_them = deliveries.c.contact_id.in_(persons)
        statements += [_arrived(of_them, since_at), _in_flight(of_them, since_at)]
    return statements


def _arrived(chosen: ColumnElement[bool], since_at: Instant) -> Select[Any]:
    columns = (deliveries.c.id, deliveries.c.target, deliveries.c.contact_id, deliveries.c.sent_at)
    return select(*columns).where(chosen, deliveries.c.sent_at >= since_at)


def _in_flight(chosen: ColumnElement[bool], since_at: Instant) -> Select[Any]:
    """Deliveries on their way, or of which nobody knows whether they were; and since when."""
    intent_at = func.max(ledger.c.intent_at)
    key = (deliveries.c.id, deliveries.c.target, deliveries.c.contact_id)
    return (
        select(*key, intent_at)
        .join(ledger, ledger.c.delivery_id == deliveries.c.id)
        .where(chosen, text(IN_FLIGHT), ledger.c.kind == "intent")
        .group_by(*key)
        .having(intent_at >= since_at)
    )
