"""What waits, as bookings: the form in which limits are held against it, and slots found beside it.

Who is given which slot is worked out in ``core/limits.py`` and ``core/relocating.py``.
"""

from __future__ import annotations

from paceline.core.instants import SECOND, Instant
from paceline.core.limits import Booked
from paceline.core.model import Ask
from paceline.core.slots import Want
from paceline.engine.ports import Run

SLACK_US = 2 * SECOND
"""A timetable leaves what would move by a second where it is, so gaps are as exact as that."""


def has_minutes(run: Run) -> bool:
    """Whether its deliveries are planned. What was sent by hand and what answers somebody is not,
    and firings take turns: with minutes of their own they would lose them."""
    return run.kind == "campaign"


def booked(want: Want, now: Instant, *, by_hand: bool) -> Booked | None:
    """A delivery in the place that it takes on its account; None where it takes none."""
    due_at = want.ask.not_before_at
    at = max(due_at, now)
    if is_void(want.ask, at):
        return None
    if want.follows is not None:
        return None  # A later step has no minute until the one before it was sent.
    rigid = want.begun or by_hand
    return Booked(want.key, at, want.ask, not rigid, rigid or due_at <= now)


def is_void(ask: Ask, at: Instant) -> bool:
    """Whether it will only be skipped then, and so takes nobody's place."""
    return ask.suppressed or (ask.expires_at is not None and ask.expires_at <= at)
