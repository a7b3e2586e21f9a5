"""Usage and what the ledger has counted: taken over from there, or left as it was before."""

from __future__ import annotations

from collections.abc import Mapping

from paceline.core.health import BOUNCE_SAMPLES
from paceline.core.instants import Instant
from paceline.core.usage import Usage


def recounted(
    usage: Usage,
    *,
    day_at: Instant,
    day: Mapping[str, int],
    week_at: Instant,
    week: Mapping[str, int],
    accepted: int = 0,
) -> Usage:
    """Usage with the ledger's counts, which are the truth; ``accepted`` only where it was asked.

    The one that makes the day's letters enough to judge them by is never among those: nobody would
    notice it, and the next one makes them enough as well.
    """
    same_day = day_at == usage.day_at
    known = min(accepted + usage.day_bounces, BOUNCE_SAMPLES - 1)
    return usage._replace(
        day_at=day_at,
        day=day,
        week_at=week_at,
        week=week,
        day_sends=max(usage.day_sends, known) if same_day else 0,
        day_bounces=usage.day_bounces if same_day else 0,
    )


def uncounted(after: Usage, before: Usage) -> Usage:
    """``after`` with the counts of ``before``: an attempt that never had an intent took no slot."""
    return Usage(*after[:4], *before[4:10], *after[10:])  # type: ignore[arg-type]
