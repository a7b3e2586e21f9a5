"""Outgoing webhooks: let one go on, at once, or from another event on."""

from __future__ import annotations

from paceline.core.errors import InputError, NotFoundError
from paceline.core.instants import Instant
from paceline.core.nearest import did_you_mean
from paceline.engine import alerts
from paceline.engine.ports import Hook, Tx


def resume(tx: Tx, name: str, at: Instant, *, from_event: int | None = None) -> Hook:
    """Try at once what waits, even if it was disabled; whoever is at it begins again.

    ``from_event`` is the first event that it is to be sent, once more if need be.
    """
    last = tx.events.latest(limit=1)
    newest = last[0].id if last else 0
    if from_event is not None and not 1 <= from_event <= newest + 1:
        raise InputError(f"there are events from 1 to {newest}", key="--from")
    hook = tx.hooks.resume(name, None if from_event is None else from_event - 1)
    if hook is None:
        known = [entry.name for entry in tx.hooks.list()]
        raise NotFoundError(
            f"no webhook named '{name}' was ever sent anything{did_you_mean(name, known)}",
            hint="One is known once a service has been started with it: paceline up",
        )
    alerts.webhook_works(tx, name, at)
    return hook
