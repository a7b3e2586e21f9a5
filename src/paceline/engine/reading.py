"""Stored deliveries read as what the pacer is asked: the rows of a plan, one by one.

What most of a run ask for is one and the same value, which is what makes laying them out quick.
"""

from __future__ import annotations

from collections.abc import Container

from paceline.core.durations import parse_duration
from paceline.core.instants import Instant
from paceline.core.model import Ask, Content
from paceline.core.plan import Want
from paceline.engine.ports import Run, Tx, WaitingRow
from paceline.engine.recipients import Recipients
from paceline.engine.turns import parsed_hours


class Distances:
    """How far the steps of campaigns are apart, each campaign read once."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._known: dict[int, list[int]] = {}

    def before(self, step: int, run: Run) -> int:
        """How long after the one before it a later step goes."""
        known = self._known.get(run.id)
        if known is None:
            written = self._tx.campaigns.get(run.campaign_id).settings.get("steps", [])
            known = self._known[run.id] = [parse_duration(text) for text in written]
        return known[step - 2]


class Reading:
    """Rows of one plan on their way to being laid out."""

    def __init__(
        self,
        tx: Tx,
        now: Instant,
        recipients: Recipients,
        read: Container[int],
        *,
        by_turns: bool = False,
    ) -> None:
        """``read`` are the numbers of the plan's rows. Where it is about to give them their minutes
        their steps go ``by_turns``, and else by the minutes that they have."""
        self._tx = tx
        self._now = now
        self._recipients = recipients
        self._read = read
        self._by_turns = by_turns
        self._asks: dict[tuple[object, ...], Ask] = {}
        self._parts: dict[tuple[int, int], int] = {}
        self._distances = Distances(tx)

    def want(
        self,
        row: WaitingRow,
        run: Run,
        accounts: tuple[int, ...],
        not_before_at: Instant,
        expires_at: Instant | None,
    ) -> Want:
        after_us = 0
        if row.planned and row.step > 1:
            after_us = self._distances.before(row.step, run)
            if row.after_id not in self._read:
                # The one before was sent, and nobody has released this one yet; or is on its way.
                sent_at = self._now if row.before_sent_at is None else row.before_sent_at
                not_before_at = max(not_before_at, sent_at + after_us)
        recipients = self._recipients
        person, also = recipients.names(row.target, row.contact_id)
        # Whoever has seen the beginning knows the sender.
        met = row.reply or row.parts_done
        return Want(
            row.id,
            self._ask(row, run, not_before_at, expires_at),
            person,
            row.attempts > 0,
            row.after_id if row.planned else None,
            after_us,
            also,
            () if met else recipients.new_to(row.target, accounts),
            row.step - 1 if self._by_turns else 0,
        )

    def _ask(
        self, row: WaitingRow, run: Run, not_before_at: Instant, expires_at: Instant | None
    ) -> Ask:
        instants = self._recipients.contacted.get(row.target, ())
        asked = (row.step, row.parts, row.parts_done, row.action, row.reply, row.suppressed)
        key = (run.id, not_before_at, expires_at, asked, row.recipient_hours, instants)
        ask = self._asks.get(key)
        if ask is None:
            hours = row.recipient_hours
            ask = self._asks[key] = Ask(
                action=row.action,
                parts=self._parts_of(row, run) - row.parts_done,
                run_id=run.id,
                reply=row.reply,
                not_before_at=not_before_at,
                expires_at=expires_at,
                suppressed=row.suppressed,
                window=parsed_hours(run.window) if run.window else None,
                opens_at=run.opens_at,
                closes_at=run.closes_at,
                recipient_hours=parsed_hours(hours) if hours else None,
                contacted=instants,
            )
        return ask

    def _parts_of(self, row: WaitingRow, run: Run) -> int:
        if row.parts is not None:
            return row.parts
        parts = self._parts.get((run.id, row.step))
        if parts is None:
            parts = len(Content.from_list(run.content, row.step).parts)
            self._parts[run.id, row.step] = parts
        return parts
