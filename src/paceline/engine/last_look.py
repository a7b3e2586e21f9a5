"""The last look before a call: what may have ended since the pacer was asked.

Pure. Between the verdict and the call lies a commit, which may have taken long. What is forbidden
by now is withdrawn before anything is written; deciding what may go is the pacer's affair.
"""

from __future__ import annotations

from paceline.core.calendar import day_start_of
from paceline.core.instants import Instant
from paceline.core.model import Ask
from paceline.core.policy import Policy
from paceline.engine.settling import Flight


def forbidden(flight: Flight, policy: Policy, now: Instant) -> str | None:
    """Why the part must not go out any more; None if it may."""
    ask = flight.ask
    if policy.capped and day_start_of(now, policy.day_zone) > flight.intent_at:
        return "a new day began, and the slot was yesterday's"
    if flight.part != flight.delivery.parts_done:
        return None
    if ask.expires_at is not None and now >= ask.expires_at:
        return "expired"
    return None if ask.reply else _shut(ask, policy, now)


def _shut(ask: Ask, policy: Policy, now: Instant) -> str | None:
    """Which hours have ended."""
    hours = policy.hours
    if hours is not None and not hours.is_open(now):
        return "business hours ended"
    if ask.closes_at is not None and now >= ask.closes_at:
        return "delivery window closed"
    if ask.window is not None and not ask.window.is_open(now):
        return "send window ended"
    if ask.recipient_hours is not None and not ask.recipient_hours.is_open(now):
        return "the recipient's hours ended"
    return None
