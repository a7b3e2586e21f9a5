"""What a lane reads ahead of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paceline.core.instants import Instant
from paceline.engine.ports import Delivery, Tx


class Page(NamedTuple):
    """What was read ahead of one run."""

    rows: list[Delivery]
    next_due_at: Instant | None
    contacted: Mapping[str, tuple[Instant, ...]]
    read_at: Instant
    paced: bool = False
    """Whether what falls due next is certain to wait for the account's pace, as a reply and a doubt
    do not."""


def contacted(
    tx: Tx, deliveries: Sequence[Delivery], since_at: Instant, now: Instant
) -> dict[str, tuple[Instant, ...]]:
    """When the people these go to were written to since then, by their targets.

    What was sent by a clock that is ahead of ours was sent by now, whatever it says: nobody sends
    ahead of time, and the guard of an intent counts it as well.
    """
    people = {row.target: row.contact_id for row in deliveries if row.contact_id is not None}
    found = tx.deliveries.contacted([row.target for row in deliveries], since_at, people)
    return {
        target: instants if instants[-1] <= now else tuple([min(at, now) for at in instants])
        for target, instants in found.items()
    }
