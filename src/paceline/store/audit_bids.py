"""Never unbidden, read from the tables: every follow-up has what it follows, and who bade it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, and_, select

from paceline.core.address import ERASED, canonical, guess_kind
from paceline.core.durations import parse_duration
from paceline.core.instants import SECOND
from paceline.core.opting_out import OptOut
from paceline.store import audit_lost_bids
from paceline.store.schema import campaigns, deliveries, inbound, runs

SHOWN = 1_000
CLOCKS_US = 15 * SECOND
"""By how much the clocks of processes may differ that wrote two instants."""


def faults(connection: Connection, words: OptOut) -> list[str]:
    """Everything that is wrong, in words."""
    return [
        *_strangers(connection),
        *_unasked(connection),
        *_by_others(connection),
        *_too_late(connection),
        *audit_lost_bids.faults(connection, words),
    ][:SHOWN]


def _strangers(connection: Connection) -> list[str]:
    found = connection.execute(_of_strangers()).scalars()
    return [f"follow-up {number} follows nothing of its account's and person's" for number in found]


# Each is put together once, which takes longer than looking where nothing is wrong.
@cache
def _of_strangers() -> Select[Any]:
    before = deliveries.alias("before")
    ours = and_(
        before.c.id == deliveries.c.after_id,
        before.c.account_id == deliveries.c.account_id,
        before.c.target == deliveries.c.target,
        before.c.position == deliveries.c.position,
    )
    return (
        select(deliveries.c.id)
        .outerjoin(before, ours)
        .where(deliveries.c.bidden, before.c.id.is_(None))
        .order_by(deliveries.c.id)
        .limit(SHOWN)
    )


def _unasked(connection: Connection) -> list[str]:
    found = connection.execute(_of_unasked()).scalars()
    return [f"follow-up {number} answers nobody who has written" for number in found]


@cache
def _of_unasked() -> Select[Any]:
    theirs = and_(
        inbound.c.id == deliveries.c.bidden_by,
        inbound.c.account_id == deliveries.c.account_id,
        ~inbound.c.from_us,
        ~inbound.c.automatic,
    )
    return (
        select(deliveries.c.id)
        .outerjoin(inbound, theirs)
        .where(deliveries.c.bidden, deliveries.c.reply, inbound.c.id.is_(None))
        .order_by(deliveries.c.id)
        .limit(SHOWN)
    )


def _by_others(connection: Connection) -> list[str]:
    """Bidden by whoever is written to, as far as that can be told from what is kept: people on
    LinkedIn have more names than stand in their message."""
    found = []
    for number, target, chat, sender, answered in connection.execute(_of_bidders()):
        told = guess_kind(target) in ("email", "phone") and not target.startswith(ERASED)
        names = {canonical(name) for name in (chat, sender) if name}
        comparable = any(guess_kind(name) in ("email", "phone") for name in names)
        if told and comparable and target not in {*names, chat, sender, answered}:
            found.append(f"follow-up {number} was bidden by somebody else than its recipient")
    return found


@cache
def _of_bidders() -> Select[Any]:
    answered = deliveries.alias("answered")
    ours = and_(
        answered.c.id == inbound.c.delivery_id, answered.c.account_id == inbound.c.account_id
    )
    return (
        select(
            deliveries.c.id,
            deliveries.c.target,
            inbound.c.chat,
            inbound.c.sender,
            answered.c.target,
        )
        .join_from(deliveries, inbound, inbound.c.id == deliveries.c.bidden_by)
        .outerjoin(answered, ours)
        .where(deliveries.c.bidden)
        .order_by(deliveries.c.id)
    )


@cache
def _of_answered() -> Select[Any]:
    before = deliveries.alias("before")
    return (
        select(
            deliveries.c.id,
            inbound.c.at,
            inbound.c.received_at,
            before.c.sent_at,
            campaigns.c.settings,
        )
        .join_from(deliveries, inbound, inbound.c.id == deliveries.c.bidden_by)
        .join(before, before.c.id == deliveries.c.after_id)
        .join(runs, runs.c.id == deliveries.c.run_id)
        .join(campaigns, campaigns.c.id == runs.c.campaign_id)
        .where(deliveries.c.bidden, before.c.sent_at.is_not(None))
        .order_by(deliveries.c.id)
    )


def _too_late(connection: Connection) -> list[str]:
    found = []
    for number, written_at, received_at, sent_at, settings in connection.execute(_of_answered()):
        follow_up = json.loads(settings).get("follow_up")
        within_us = parse_duration(follow_up["within"]) if follow_up else 0
        # Nobody has written anything that was yet to come, whatever their clock says.
        if min(written_at, received_at) > sent_at + within_us + CLOCKS_US:
            found.append(f"follow-up {number} answers somebody whose time was over")
    return found
