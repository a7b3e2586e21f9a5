"""What an account has used up, as one small immutable value.

It is restored from the checkpoint and the ledger when a lane starts, advanced by every send and
outcome, and written back in the same transaction as the intent it belongs to. The pacer reads it
and never changes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from paceline.core.calendar import place_of
from paceline.core.durations import Chance
from paceline.core.health import (
    WINDOW_SIZE,
    Window,
    adapted_gap_us,
    throttled_interval_us,
)
from paceline.core.holds import NO_HOLDS, Holds, decoded
from paceline.core.instants import DAY, MILLISECOND, Instant
from paceline.core.model import Ask
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.policy import Policy

RUNS_REMEMBERED = 16
"""Error windows kept per account; the runs that settled longest ago are forgotten first."""

LONGEST_HOLD_US = 30 * DAY
"""No hold is longer, so one that lies further ahead was made by a clock that was wrong."""

COUNTED_AHEAD_US = 10 * MILLISECOND
"""A call counts from a moment ahead of our last look at the clock, which is not wrong for it."""

REASON_LENGTH = 300
"""Some providers answer with a whole web page. The checkpoint is written with every message."""

_quoted = json.JSONEncoder().encode

_NOTHING: Mapping[Any, Any] = MappingProxyType({})
_NO_ATTEMPTS = Window()


class Usage(NamedTuple):
    """The state of every limit of one account.

    A tuple, because a new one is made three times for every message, and nothing immutable is made
    faster.
    """

    tat_at: Instant = 0
    """GCRA's theoretical arrival time: the instant at which the bucket is full again."""
    last_at: Instant | None = None
    """The last paced send; replies do not move it."""
    gap_us: int = 0
    """The spacing to keep after ``last_at``: drawn once, with the send, and stored."""
    batch_position: int = 0
    day_at: Instant = 0
    day: Mapping[str, int] = _NOTHING
    week_at: Instant = 0
    week: Mapping[str, int] = _NOTHING
    day_sends: int = 0
    day_bounces: int = 0
    hold_until_at: Instant = 0
    hold_reason: str = ""
    setbacks: int = 0
    """Throttles and outages in a row: each doubles the wait."""
    throttled_at: Instant | None = None
    """When the slow way back after a throttle begins: where its wait ends."""
    health: Mapping[int, Window] = _NOTHING
    holds: Holds = NO_HOLDS
    """What signals hold back beside the account as a whole."""

    def window_of(self, run_id: int) -> Window:
        return self.health.get(run_id, _NO_ATTEMPTS)

    def used_on(self, day_at: Instant, action: str) -> int:
        """What the day that starts at ``day_at`` has used; a day that is over keeps nothing.

        A clock that was set back over midnight must not open a new allowance, so an earlier day
        is given the later one's count.
        """
        return self.day.get(action, 0) if day_at <= self.day_at else 0

    def used_in_week(self, week_at: Instant, action: str) -> int:
        return self.week.get(action, 0) if week_at <= self.week_at else 0


def gap_to_keep_us(policy: Policy, usage: Usage, ask: Ask) -> int:
    """How far the next paced send stays behind the last one.

    The drawn gap, as far as the policy could have drawn it as it is by now: it may have become
    stricter or laxer since. Errors and throttles each stretch it; they do not multiply.
    """
    drawn_us = max(min(usage.gap_us, policy.longest_gap_us), policy.least_gap_us)
    gap_us = adapted_gap_us(policy, drawn_us, usage.window_of(ask.run_id))
    slow = usage.throttled_at is not None or bool(usage.holds.ramps)
    if not slow or usage.last_at is None:
        return gap_us
    # Reckoned from the last send and not from now, or the gap would shrink while it is waited for.
    slowed_us = _slowed_us(usage, policy, drawn_us, usage.last_at)
    if policy.adaptive is not None:
        slowed_us = policy.adaptive.between.clamp(slowed_us)
    return max(gap_us, slowed_us)


def spend(usage: Usage, policy: Policy, ask: Ask, at: Instant, rng: Chance) -> Usage:
    """Usage after one part of ``ask`` was sent at ``at``; the next gap is drawn here, once."""
    if ask.reply:
        return spend_part(usage, policy, ask, at)
    tat_at, used = _taken(usage, policy, ask, at)
    gap_us, position = policy.draw_gap_us(rng), _next_position(usage, policy)
    return Usage(tat_at, at, gap_us, position, *used[4:])


def spend_part(usage: Usage, policy: Policy, ask: Ask, at: Instant) -> Usage:
    """Usage after a further part of a delivery that has started: a token and a slot, no new gap."""
    tat_at, used = _taken(usage, policy, ask, at)
    return Usage(tat_at, usage.last_at if ask.reply else at, *used[2:])


def _taken(usage: Usage, policy: Policy, ask: Ask, at: Instant) -> tuple[Instant, Usage]:
    """When the bucket is full again after a token, and all else with a slot taken."""
    used = _rolled(usage, policy, at)
    if used.hold_reason and used.hold_until_at <= at:
        used = used._replace(hold_reason="")
    if used.holds is not NO_HOLDS:
        used = used._replace(holds=used.holds.left_at(at))
    if policy.capped:
        action = ask.counted_as
        used = used._replace(day=_plus(used.day, action, 1), week=_plus(used.week, action, 1))
    return max(usage.tat_at, at) + _interval_us(usage, policy, at), used


def started(usage: Usage, at: Instant, policy: Policy, reply: bool) -> Usage:
    """Usage corrected to the instant the provider was really called.

    The intent was committed a little earlier; counting from the call is what keeps two effects
    as far apart as the policy says, however long the commit took.
    """
    tat_at = max(usage.tat_at, at + _interval_us(usage, policy, at))
    return Usage(tat_at, usage.last_at if reply else at, *usage[2:])


def settle(
    usage: Usage,
    ask: Ask,
    outcome: Outcome,
    intent_at: Instant,
    run_id: int,
    *,
    limit: int = WINDOW_SIZE,
) -> Usage:
    """Usage after the provider's answer: a refusal gives its slot back, never its token.

    ``limit`` is how many attempts of the run are remembered (``health.window_size``).
    """
    day, week = usage.day, usage.week
    if outcome.refused:
        if intent_at >= usage.day_at:
            day = _plus(day, ask.counted_as, -1)
        if intent_at >= usage.week_at:
            week = _plus(week, ask.counted_as, -1)
    accepted, today = outcome.kind is OutcomeKind.ACCEPTED, intent_at >= usage.day_at
    bounced = outcome.kind is OutcomeKind.BOUNCED and today
    return Usage(
        *usage[:5],
        day,
        usage.week_at,
        week,
        usage.day_sends + (bounced or (accepted and today)),
        usage.day_bounces + bounced,
        usage.hold_until_at,
        usage.hold_reason,
        0 if accepted else usage.setbacks,
        usage.throttled_at,
        _remembered(usage.health, run_id, usage.window_of(run_id).after(outcome, limit)),
        usage.holds,
    )


def hold(
    usage: Usage,
    until_at: Instant,
    reason: str,
    throttled_at: Instant | None,
    *,
    again: bool = False,
) -> Usage:
    """Usage with the whole account held back, because the provider asked for it or is away.

    ``again`` is for one more answer of the same kind while the hold lasts: no new setback.
    """
    longer = until_at >= usage.hold_until_at
    return usage._replace(
        hold_until_at=until_at if longer else usage.hold_until_at,
        hold_reason=reason[:REASON_LENGTH] if longer else usage.hold_reason,
        setbacks=usage.setbacks + (not again),
        throttled_at=_later(throttled_at, usage.throttled_at),
    )


def _later(one: Instant | None, other: Instant | None) -> Instant | None:
    return max((at for at in (one, other) if at is not None), default=None)


def forget_run(usage: Usage, run_id: int) -> Usage:
    """Usage with a run's error window cleared: a person resumed it and takes responsibility."""
    return usage._replace(health={k: v for k, v in usage.health.items() if k != run_id})


def plausible(usage: Usage, policy: Policy, now: Instant) -> Usage:
    """Usage without what only a wrong clock can have written.

    A clock that ran ahead for a minute leaves instants that lie ahead by as much, and they would
    keep the account waiting until the world has caught up. Where the last send lies in the future,
    everything is moved back by as much: the send counts as made now, and what followed from it
    keeps its distance.
    """
    if usage.last_at is None:
        return _without_future(usage, policy, now)
    ahead_us = usage.last_at - now
    if ahead_us <= COUNTED_AHEAD_US:
        return usage
    return usage._replace(
        tat_at=usage.tat_at - ahead_us,
        last_at=now,
        # A hold may have been made by the right clock: too long is safe, too short is not.
        hold_until_at=min(usage.hold_until_at, now + LONGEST_HOLD_US),
        throttled_at=None if usage.throttled_at is None else min(usage.throttled_at, now),
        holds=usage.holds.not_beyond(now + LONGEST_HOLD_US),
    )


def _without_future(usage: Usage, policy: Policy, now: Instant) -> Usage:
    """The same where no paced send tells how far the clock was ahead: only replies were sent."""
    burst = policy.rate.burst if policy.rate is not None else 0
    furthest_at = now + max(burst * _interval_us(usage, policy, now), DAY)
    return usage._replace(tat_at=now) if usage.tat_at > furthest_at else usage


def moved_with_the_clock(usage: Usage, by_us: int) -> Usage:
    """Usage by a clock that was set meanwhile: what was so long ago still is.

    A hold is only ever moved ahead: it may last until an instant that the provider named, and too
    long is safe.
    """
    return usage._replace(
        tat_at=usage.tat_at + by_us,
        last_at=None if usage.last_at is None else usage.last_at + by_us,
        hold_until_at=usage.hold_until_at + max(0, by_us),
        throttled_at=None if usage.throttled_at is None else usage.throttled_at + by_us,
        holds=usage.holds.moved_ahead(by_us),
    )


def last_send_not_before(usage: Usage, policy: Policy) -> Instant:
    """An instant after which the last send of anything was made, replies included.

    Where only replies were sent there is nothing but the bucket to tell: it is ahead of its last
    token by a whole burst at most. A day is added, for the rate may have been another one.
    """
    if usage.last_at is not None:
        return usage.last_at
    burst = policy.rate.burst if policy.rate is not None else 0
    slowest_us = _interval_us(usage, policy, usage.throttled_at or 0)
    return usage.tat_at - burst * slowest_us - DAY


def encode(usage: Usage) -> dict[str, Any]:
    """The checkpoint as plain JSON values.

    The caps' counts are left out: the ledger is asked for them, and a cap bounds what is asked.
    """
    raw: dict[str, Any] = {
        "tat_at": usage.tat_at,
        "last_at": usage.last_at,
        "gap_us": usage.gap_us,
        "batch_position": usage.batch_position,
        "day_at": usage.day_at,
        "day_sends": usage.day_sends,
        "day_bounces": usage.day_bounces,
        "hold_until_at": usage.hold_until_at,
        "hold_reason": usage.hold_reason,
        "setbacks": usage.setbacks,
        "throttled_at": usage.throttled_at,
        "health": {str(run): [f"{w.bits:x}", w.size] for run, w in usage.health.items()},
    }
    # Nearly always there are none, and checkpoints from before there were any must do.
    return raw if usage.holds is NO_HOLDS else raw | {"holds": usage.holds.encoded()}


def to_json(usage: Usage) -> str:
    """The same as text. Put together by hand, because it is written with every message and the
    encoder takes ten times as long for it."""
    last_at = "null" if usage.last_at is None else usage.last_at
    throttled_at = "null" if usage.throttled_at is None else usage.throttled_at
    reason = _quoted(usage.hold_reason) if usage.hold_reason else '""'
    health = ",".join([f'"{run}":["{w.bits:x}",{w.size}]' for run, w in usage.health.items()])
    holds = "" if usage.holds is NO_HOLDS else f',"holds":{_quoted(usage.holds.encoded())}'
    return (
        f'{{"tat_at":{usage.tat_at},"last_at":{last_at},"gap_us":{usage.gap_us},'
        f'"batch_position":{usage.batch_position},"day_at":{usage.day_at},'
        f'"day_sends":{usage.day_sends},"day_bounces":{usage.day_bounces},'
        f'"hold_until_at":{usage.hold_until_at},"hold_reason":{reason},'
        f'"setbacks":{usage.setbacks},"throttled_at":{throttled_at},"health":{{{health}}}{holds}}}'
    )


def decode(raw: Mapping[str, Any]) -> Usage:
    """Usage from its checkpoint; the caps' counts are then taken from the ledger."""
    written = raw.get("health", {})
    health = {int(run): Window(int(bits, 16), size) for run, (bits, size) in written.items()}
    return Usage(**{**raw, "health": health, "holds": decoded(raw.get("holds", {}))})


def _interval_us(usage: Usage, policy: Policy, at: Instant) -> int:
    """What a token costs at ``at``; nothing where there is no rate."""
    rate = policy.rate
    return 0 if rate is None else _slowed_us(usage, policy, rate.interval_us, at)


def _slowed_us(usage: Usage, policy: Policy, interval_us: int, at: Instant) -> int:
    """An interval as long as the slowest way back makes it."""
    holds = usage.holds
    slowed_us = throttled_interval_us(policy, interval_us, usage.throttled_at, at)
    return slowed_us if holds is NO_HOLDS else max(slowed_us, holds.slowed_us(interval_us, at))


def _rolled(usage: Usage, policy: Policy, at: Instant) -> Usage:
    """Counts start anew when ``at`` lies in a later day or week of the account's zone.

    Never in an earlier one: a clock that was set back would bring back the whole allowance.
    """
    place = place_of(at, policy.day_zone)
    day_at, week_at = place.day_at, place.week_at
    if day_at <= usage.day_at and week_at <= usage.week_at:
        return usage
    fresh_day, fresh_week = day_at > usage.day_at, week_at > usage.week_at
    return usage._replace(
        day_at=day_at if fresh_day else usage.day_at,
        day={} if fresh_day else usage.day,
        day_sends=0 if fresh_day else usage.day_sends,
        day_bounces=0 if fresh_day else usage.day_bounces,
        week_at=week_at if fresh_week else usage.week_at,
        week={} if fresh_week else usage.week,
    )


def _next_position(usage: Usage, policy: Policy) -> int:
    if policy.batch is None:
        return 0
    full = usage.batch_position >= policy.batch.size
    return 1 if full else usage.batch_position + 1


def _plus(counts: Mapping[str, int], action: str, by: int) -> Mapping[str, int]:
    return {**counts, action: max(0, counts.get(action, 0) + by)}


def _remembered(health: Mapping[int, Window], run_id: int, window: Window) -> Mapping[int, Window]:
    if not run_id or (window.size == 0 and run_id not in health):
        return health
    if len(health) == 1 and run_id in health:
        return {run_id: window}
    kept = {run: w for run, w in health.items() if run != run_id}
    while len(kept) >= RUNS_REMEMBERED:
        kept.pop(next(iter(kept)))
    kept[run_id] = window
    return kept
