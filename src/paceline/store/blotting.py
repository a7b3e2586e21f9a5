"""Taking a person out of what is stored: their own rows, and texts that speak of them in passing.

What is theirs alone is emptied: the rows stay, because limits are counted from them. A text about
something else (why an account is paused, what an operator was told) keeps its words, without the
address. Which column is which is a list here; a test compares it with all columns there are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Table, bindparam, case, delete, func, or_, select, update

from paceline.core.address import ERASED
from paceline.core.discretion import without
from paceline.engine.ports.people import BECAUSE_ERASED
from paceline.store.base import Context, chunks, dump
from paceline.store.schema import (
    accounts,
    alerts,
    campaigns,
    conversations,
    deliveries,
    early_receipts,
    events,
    held_ways,
    idempotency_keys,
    inbound,
    ledger,
    reminder_targets,
    runs,
    settings,
    turns,
    usage,
    watches,
    webhooks,
)

BLOTTED = 500
"""Deliveries that are changed by one statement."""

GONE = "(erased)"

MENTIONS: tuple[tuple[Table, str], ...] = (
    (accounts, "state_reason"),
    (alerts, "reasons"),
    (alerts, "text"),
    (campaigns, "reason"),
    (conversations, "before_mute"),
    (conversations, "reason"),
    (events, "data"),
    (events, "text"),
    (held_ways, "reason"),
    (inbound, "subject"),
    (inbound, "text"),
    (runs, "reason"),
    (runs, "summary"),
    (settings, "value"),
    (turns, "reason"),
    (usage, "checkpoint"),
    (watches, "problem"),
    (webhooks, "problem"),
)
"""Texts that speak of other things, and may mention an address: people write some of them."""

LEAST_TELLING = 6
"""A shorter address is not looked for in such texts: it would be found in words, too."""


def blot_out(
    context: Context, delivery_ids: Sequence[int], contact_id: int, renamed: Mapping[str, str]
) -> None:
    context.unhurried()
    for some in chunks(delivery_ids, BLOTTED):
        _their_receipts(context, some)
        _their_deliveries(context, some, contact_id, renamed)
        _their_ledger(context, some)
        _their_keys(context, some)
    # Nobody is to be reminded under a name that reaches nobody: each firing would fall short of it.
    theirs = reminder_targets.c.target.in_(sorted(renamed))
    context.connection.execute(delete(reminder_targets).where(theirs))
    telling = {before: after for before, after in renamed.items() if len(before) >= LEAST_TELLING}
    if telling:
        _mentions(context, list(telling))
        _keys_that_mention(context, telling)
        _receipts_that_mention(context, list(telling))


def _their_deliveries(
    context: Context, delivery_ids: list[int], contact_id: int, renamed: Mapping[str, str]
) -> None:
    columns = (deliveries.c.id, deliveries.c.target, deliveries.c.content, deliveries.c.reason)
    statement = select(*columns).where(deliveries.c.id.in_(delivery_ids))
    values = [
        {
            "number": number,
            "target": renamed.get(target, target),
            "fields": "{}",
            "content": None if content is None else dump(_said_nothing(json.loads(content))),
            "reason": reason if reason.startswith(BECAUSE_ERASED) else reason and GONE,
            "contact_id": contact_id,
            # A provider's name of a message leads to whoever has got it.
            "provider_id": None,
        }
        for number, target, content, reason in context.connection.execute(statement)
    ]
    context.connection.execute(
        update(deliveries).where(deliveries.c.id == bindparam("number")), values
    )


def _their_receipts(context: Context, delivery_ids: list[int]) -> None:
    """What was told of their messages too early, and was not acted upon yet."""
    named = select(deliveries.c.provider_id).where(
        deliveries.c.id.in_(delivery_ids), deliveries.c.provider_id.is_not(None)
    )
    theirs = delete(early_receipts).where(early_receipts.c.provider_id.in_(named))
    context.connection.execute(theirs)


def _receipts_that_mention(context: Context, addresses: Sequence[str]) -> None:
    """Some providers call a message by the number it went to. Few are kept, and not for long."""
    names = context.connection.execute(select(early_receipts.c.provider_id)).scalars().all()
    traces = [address.lower().removeprefix("+") for address in addresses]
    found = [name for name in names if any(trace in name.lower() for trace in traces)]
    this = delete(early_receipts).where(early_receipts.c.provider_id.in_(found))
    context.connection.execute(this)


def _said_nothing(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many parts as there were."""
    return [{"kind": "text", "text": GONE} for _ in content]


def _their_ledger(context: Context, delivery_ids: list[int]) -> None:
    said = case((ledger.c.reason == "", ""), else_=GONE)
    statement = update(ledger).where(ledger.c.delivery_id.in_(delivery_ids))
    context.connection.execute(statement.values(reason=said, provider_id=None))


def _their_keys(context: Context, delivery_ids: list[int]) -> None:
    """Under which messages to them were asked for. Whoever asks again is given a new one, which
    is skipped."""
    keys = idempotency_keys
    statement = select(keys.c.key, keys.c.subject_id).where(
        keys.c.kind == "message", keys.c.subject_id.in_(delivery_ids)
    )
    found = context.connection.execute(statement).all()
    if found:
        context.connection.execute(
            update(keys).where(keys.c.key == bindparam("before")).values(key=bindparam("after")),
            [{"before": key, "after": f"{ERASED}message-{number}"} for key, number in found],
        )
        # It is a digest of what was said and to whom, and whoever knows the one can try the other.
        theirs = (keys.c.kind == "message", keys.c.subject_id.in_(delivery_ids))
        context.connection.execute(update(keys).where(*theirs).values(digest=""))


def _mentions(context: Context, addresses: Sequence[str]) -> None:
    spelled = [*addresses, *(dump(address)[1:-1] for address in addresses)]
    for table, name in MENTIONS:
        for key, text in _mentioning(context, table, name, spelled):
            left = without(text, spelled, (), GONE)
            if left == text:
                continue
            if table is usage:
                context.hold_lanes([key])
            (column,) = table.primary_key.columns
            statement = update(table).where(column == key)
            context.connection.execute(statement.values({name: left}))


def _keys_that_mention(context: Context, renamed: Mapping[str, str]) -> None:
    """Somebody called a campaign's key after them. It stays a key that nobody else has."""
    keys = idempotency_keys
    for key, _ in _mentioning(context, keys, "key", list(renamed)):
        left = key
        for before, after in renamed.items():
            left = without(left, [before], (), after)
        if left != key:
            context.connection.execute(update(keys).where(keys.c.key == key).values(key=left))


def _mentioning(
    context: Context, table: Table, name: str, addresses: Sequence[str]
) -> Iterator[tuple[Any, str]]:
    """Rows in which one of these may be found: a number, which is written in groups, by its end."""
    told = func.lower(table.c[name])
    looked_for = sorted({a.lower()[-4 if a[1:].isdecimal() else 0 :] for a in addresses})
    (column,) = table.primary_key.columns
    statement = select(column, table.c[name]).where(
        or_(*(told.contains(words, autoescape=True) for words in looked_for))
    )
    yield from context.connection.execute(statement).all()
