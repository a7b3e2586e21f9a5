"""Never unbidden, the other way round: whoever answered in time has their follow-up.

Told only where there is no other way to read the tables: what was written clearly after a message
was sent, clearly within its time, by somebody who wanted to hear more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, and_, bindparam, case, exists, or_, select

from paceline.core.durations import parse_duration
from paceline.core.instants import SECOND, Instant
from paceline.core.opting_out import OptOut
from paceline.core.states import CampaignState, DeliveryState
from paceline.store.schema import campaigns, conversations, deliveries, inbound, runs, turns

CLOCKS_US = 15 * SECOND
"""By how much the clocks of processes may differ that wrote two instants."""
UNANSWERED_BY = "nobody"
"""Who has the turns of what is left unanswered because they said STOP."""


class _Answer(NamedTuple):
    """A message of somebody, and a message of a campaign that they were sent from there."""

    received_id: int
    written_at: Instant
    text: str
    subject: str
    delivery_id: int
    sent_at: Instant
    step: int
    position: int


def faults(connection: Connection, words: OptOut) -> list[str]:
    """Everything that is wrong, in words."""
    found = []
    for campaign_id, settings in connection.execute(_of_campaigns()):
        kept = json.loads(settings).get("follow_up") or {}
        if kept.get("on") == "reply":
            within_us = parse_duration(kept["within"])
            found += list(_lost(connection, campaign_id, within_us, words))
    return found


def _lost(connection: Connection, campaign_id: int, within_us: int, words: OptOut) -> Iterator[str]:
    rows = connection.execute(_of_answers(), {"campaign": campaign_id})
    latest: dict[tuple[int, int], _Answer] = {}
    for row in rows:
        one = _Answer(*row)
        # What counts is the last step that they had got when they wrote.
        before = latest.get((one.received_id, one.position))
        if before is None or (one.step, one.delivery_id) > (before.step, before.delivery_id):
            latest[one.received_id, one.position] = one
    told: set[int] = set()
    for one in latest.values():
        in_time = one.written_at <= one.sent_at + within_us - CLOCKS_US
        wanted = words.wish_in_letter(one.text, one.subject) != "stop"
        if in_time and wanted and one.position not in told:
            told.add(one.position)
            yield (
                f"delivery {one.delivery_id} was answered in time by message {one.received_id}, "
                "and nothing follows it"
            )


@cache
def _of_campaigns() -> Select[Any]:
    return (
        select(campaigns.c.id, campaigns.c.settings)
        .where(
            campaigns.c.kind == "campaign",
            campaigns.c.state != CampaignState.CANCELLED.value,
            exists().where(runs.c.campaign_id == campaigns.c.id, runs.c.follow_ups),
        )
        .order_by(campaigns.c.id)
    )


@cache
def _of_answers() -> Select[Any]:
    """What people wrote after they were sent something of a campaign from whose place nothing was
    ever bidden."""
    number: Any = bindparam("campaign")
    bidden, other = deliveries.alias("bidden"), deliveries.alias("other")
    theirs, others = runs.alias("theirs"), runs.alias("others")
    # Nobody has written anything that was yet to come, whatever their clock says.
    early = inbound.c.at < inbound.c.received_at
    written_at = case((early, inbound.c.at), else_=inbound.c.received_at)
    followed = exists().where(
        bidden.c.run_id == theirs.c.id,
        theirs.c.campaign_id == number,
        theirs.c.follow_ups,
        bidden.c.position == deliveries.c.position,
    )
    about_another = exists().where(
        other.c.id == inbound.c.delivery_id,
        others.c.id == other.c.run_id,
        or_(others.c.campaign_id.is_(None), others.c.campaign_id != number),
    )
    called_off = exists().where(turns.c.id == inbound.c.turn_id, turns.c.owner == UNANSWERED_BY)
    return (
        select(
            inbound.c.id,
            written_at,
            inbound.c.text,
            inbound.c.subject,
            deliveries.c.id,
            deliveries.c.sent_at,
            deliveries.c.step,
            deliveries.c.position,
        )
        .join_from(deliveries, runs, runs.c.id == deliveries.c.run_id)
        .join(
            conversations,
            and_(
                conversations.c.account_id == deliveries.c.account_id,
                conversations.c.chat == deliveries.c.target,
            ),
        )
        .join(inbound, inbound.c.conversation_id == conversations.c.id)
        .where(
            runs.c.campaign_id == number,
            ~runs.c.follow_ups,
            deliveries.c.state == DeliveryState.SENT.value,
            ~inbound.c.from_us,
            ~inbound.c.automatic,
            inbound.c.at > deliveries.c.sent_at + CLOCKS_US,
            inbound.c.received_at > deliveries.c.sent_at + CLOCKS_US,
            ~followed,
            ~about_another,
            ~called_off,
        )
        .order_by(inbound.c.id, deliveries.c.id)
    )
