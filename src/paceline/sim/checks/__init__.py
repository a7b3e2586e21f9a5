"""The checkers: one for each promise, each of which can be broken on its own.

They are given what was seen on the wire, the provider's own log and the tables, and nothing the
engine says about itself but that a lane has crashed. Wherever the engine is clever, they count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from paceline.sim.checks import (
    alerts,
    bids,
    care,
    defects,
    fanouts,
    firings,
    limits,
    mailboxes,
    messages,
    order,
    reports,
    returned,
    signals,
    steps,
    talks,
    time,
    turns,
)
from paceline.sim.checks.evidence import Evidence, Violation

Check = Callable[[Evidence], Iterator[Violation]]


def _both(one: Check, other: Check) -> Check:
    """A promise that is looked at from two sides."""

    def check(evidence: Evidence) -> Iterator[Violation]:
        yield from one(evidence)
        yield from other(evidence)

    return check


CHECKS: dict[str, Check] = {
    # First, because it explains others.
    defects.DEFECT: defects.crashed,
    "never twice": messages.twice,
    "never unrecorded": messages.unrecorded,
    "never lost": _both(messages.lost, talks.lost),
    "never over": limits.over,
    "never impatient": limits.impatient,
    "never wasteful": limits.wasteful,
    "never out of hours": _both(time.out_of_hours, fanouts.out_of_window),
    "never too close": order.too_close,
    "never to the suppressed": _both(messages.to_the_suppressed, talks.to_the_unwilling),
    "never by two": order.by_two,
    "never against orders": messages.against_orders,
    "never ahead of its step": _both(steps.ahead, returned.followed_up),
    "never careless": _both(care.careless, mailboxes.careless),
    "never heedless": signals.heedless,
    "never untold": _both(_both(alerts.untold, mailboxes.untold), turns.untold),
    "never misfired": firings.misfired,
    "never ahead of its turn": fanouts.ahead_of_turn,
    "never astray": fanouts.astray,
    "never from the thrown out": fanouts.thrown_out,
    "never misreported": reports.misreported,
    "never unheard": _both(returned.unheard, talks.unheard),
    "never misled": returned.misled,
    "never out of turn": _both(turns.out_of_turn, talks.out_of_turn),
    "never unbidden": bids.unbidden,
    "never stuck": _both(messages.stuck, talks.stuck),
}
"""The promises by name."""


def judge(evidence: Evidence) -> list[Violation]:
    """Everything that was broken, in the order of the promises."""
    return [violation for check in CHECKS.values() for violation in check(evidence)]


__all__ = ["CHECKS", "Evidence", "Violation", "judge"]
