"""The bell: fires reminders when their time has come, from one process of the fleet.

Every process looks, whenever it looks for lanes anyway, so looking costs no visit of its own.
Whoever moves a reminder on to its next time has fired it, so two that look at once do no harm.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import structlog

from paceline.core.errors import SchemaMismatch, StoreError
from paceline.core.instants import Instant
from paceline.engine.firing import ring
from paceline.engine.ports import Journal, Providers, Reminder, Run, Tx

AT_ONCE = 20
"""Reminders fired in one look; whatever else is due has its turn in the next."""

log = structlog.get_logger("paceline.reminders")


class Rings(NamedTuple):
    due: list[Reminder]
    next_at: Instant | None
    """When the next one fires, which may lie behind us where many are due."""


class Bell:
    def __init__(self, journal: Journal, providers: Providers) -> None:
        self._journal = journal
        self._providers = providers

    def look(self, tx: Tx) -> Rings:
        """What is due, and when to look again."""
        next_at = tx.reminders.next_at()
        if next_at is None or next_at > tx.now:
            return Rings([], next_at)
        return Rings(tx.reminders.due(tx.now, AT_ONCE), next_at)

    def _fire(self, reminder: Reminder, tx: Tx) -> Run | None:
        return ring(tx, reminder, self._providers, tx.now)

    async def ring(self, due: list[Reminder]) -> int:
        """Fire them, one transaction each: one that fails keeps no other waiting. How many were
        fired, for whose sake lanes are due now."""
        fired = 0
        for reminder in due:
            try:
                run = await self._journal.write(partial(self._fire, reminder), alone=True)
            except SchemaMismatch:
                raise
            except StoreError as error:
                log.warning("not fired yet", reminder=reminder.name, error=str(error))
                continue
            except Exception:
                # A defect of ours. It is tried again at the next look; the others go on.
                log.exception("reminder could not be fired", reminder=reminder.name)
                continue
            if run is not None:
                told = {"run": run.id, "state": str(run.state), "deliveries": run.total}
                log.info("reminder fired", reminder=reminder.name, **told)
                fired += 1
        return fired
