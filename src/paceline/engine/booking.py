"""What waits, as bookings: the form in which limits are held against it, and slots found beside it.

Who is given which slot is worked out in ``core/limits.py`` and ``core/relocating.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

from paceline.core.instants import SECOND, Instant
from paceline.core.limits import Booked
from paceline.core.model import Ask
from paceline.core.slots import Queue, Want
from paceline.engine.ground import Ground
from paceline.engine.ports import Run

SLACK_US = 2 * SECOND
"""A timetable leaves what would move by a second where it is, so gaps are as exact as that."""


def has_minutes(run: Run) -> bool:
    """Whether its deliveries are planned. What was sent by hand and what answers somebody is not,
    and firings take turns: with minutes of their own they would lose them."""
    return run.kind == "campaign"


def all_booked(ground: Ground) -> Iterator[tuple[Queue, Booked]]:
    """Everything that takes a place on some account, what is to follow included, with its queue."""
    following: list[tuple[Queue, Want]] = []
    goes: dict[int, Instant] = {}
    void: set[int] = set()
    for queue in ground.queues:
        by_hand = not has_minutes(ground.runs[queue.run_id])
        for want in queue.wants:
            if want.follows is not None:
                following.append((queue, want))
                continue
            one = booked(want, ground.now, by_hand=by_hand)
            if one is None:
                void.add(want.key)
                continue
            goes[want.key] = one.at
            # What stands in line behind a gate is planned for no minute.
            if want.key not in ground.in_line:
                yield queue, one
    yield from _followers(ground, following, goes, void)


def _followers(
    ground: Ground,
    following: list[tuple[Queue, Want]],
    goes: dict[int, Instant],
    void: set[int],
) -> Iterator[tuple[Queue, Booked]]:
    """What is to follow, in the minutes that were planned for it. ``goes`` is when the others go,
    and ``void`` are those that never will."""
    depths: dict[int, int] = {}
    # By number: whoever is followed was there before.
    for queue, want in sorted(following, key=lambda one: one[1].key):
        key, before, now = want.key, want.follows, ground.now
        if before in void or not has_minutes(ground.runs[queue.run_id]):
            void.add(key)
            continue
        assert before is not None
        planned_at, after = want.ask.not_before_at, goes.get(before)
        at = planned_at if after is None else max(planned_at, after + want.after_us)
        at = max(at, now)
        if is_void(want.ask, at):
            void.add(key)
            continue
        goes[key], depths[key] = at, depths.get(before, 0) + 1
        # Where the one before goes too late for it, it has no minute any more, but takes its place
        # in the day in which it can go.
        late = at > planned_at + SLACK_US
        follows = before if after is not None else None
        yield queue, Booked(key, at, want.ask, True, late, follows, want.after_us, depths[key])


def booked(want: Want, now: Instant, *, by_hand: bool) -> Booked | None:
    """A delivery that is released, in the place that it takes on its account; None where it takes
    none."""
    due_at = want.ask.not_before_at
    at = max(due_at, now)
    if is_void(want.ask, at):
        return None
    rigid = want.begun or by_hand
    return Booked(want.key, at, want.ask, not rigid, rigid or due_at <= now)


def is_void(ask: Ask, at: Instant) -> bool:
    """Whether it will only be skipped then, and so takes nobody's place."""
    return ask.suppressed or (ask.expires_at is not None and ask.expires_at <= at)
