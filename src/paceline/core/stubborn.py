"""Throttles that are about one recipient, and not about the account.

"Not now" is what a server says to an account that is too fast, and also what some say for ever of
one recipient. The words are the same, so it goes by what others meet. A message that was throttled
twice steps aside, so that somebody else is tried first when the hold is over. If a few others get
through in a row, and the message is throttled again, it is the message's own trouble: it climbs the
ladder and fails as after any soft refusal, and holds nobody back. If others are throttled as well,
it is the account's trouble, and nobody climbs. Where nobody else is there to be tried, nothing can
be told apart; but nothing is tried for ever either.
"""

from __future__ import annotations

from paceline.core.holds import Holds
from paceline.core.instants import HOUR, MINUTE, Instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.retry import Consequence
from paceline.core.signals import Scope

ALONE_AFTER = 3
"""The first throttle of a message that may be its own. The one before was met right behind a hold,
where anybody else would have been served."""
OTHERS = 3
"""So many have to get through in a row: an account that is far too fast gets one through after a
hold, and is throttled with the next."""
BY_ITSELF = 6
"""The first throttle after which a message climbs while no other one is throttled: half a day after
the first, and a quarter at least where the provider asks for less time."""
AT_LAST = 20
"""The first throttle after which a message climbs whatever others meet: after four days, when mail
servers give up as well (RFC 5321, 4.5.4.1)."""
LONGEST_ASIDE_US = 6 * HOUR
LONGEST_POWER = 8
FOURFOLD = 4
"""How many times a hold a message steps aside for: as many others may be tried meanwhile, of which
some may be as stubborn. So many times as long each time, or they would keep meeting."""


def read_alone(outcome: Outcome, holds: Holds, delivery_id: int) -> Outcome:
    """The answer as it is to be understood, by what is known of the message and of others."""
    if outcome.kind is not OutcomeKind.THROTTLED:
        return outcome
    nth = holds.times_throttled(delivery_id) + 1
    alone = holds.passed >= OTHERS and nth >= ALONE_AFTER
    enough = BY_ITSELF if len(holds.throttled) <= 1 else AT_LAST
    if not (alone or nth >= enough):
        return outcome
    why = "others get through" if alone else f"throttled {nth} times"
    reason = f"{outcome.reason or outcome.kind} ({why})"
    return outcome._replace(kind=OutcomeKind.TRANSIENT, reason=reason)


def stepping_aside(result: Consequence, outcome: Outcome, times: int, now: Instant) -> Consequence:
    """The consequence for a message that was throttled ``times`` before: the more often, the longer
    it leaves the first try behind a hold to others."""
    until_at = result.hold_until_at
    throttled = outcome.kind is OutcomeKind.THROTTLED and result.scope is Scope.ACCOUNT
    if not throttled or not times or until_at is None or result.due_at is None:
        return result
    aside_us = max(until_at - now, MINUTE) * FOURFOLD ** min(times, LONGEST_POWER)
    return result._replace(due_at=result.due_at + min(aside_us, LONGEST_ASIDE_US))


def noted(
    holds: Holds, delivery_id: int, answer: Outcome, result: Consequence, now: Instant
) -> Holds:
    """The holds after an answer: how often the message was throttled, as long as it waits, and how
    many others got through."""
    over = result.event != "retry"
    if answer.kind is OutcomeKind.THROTTLED and not over:
        return holds.throttle(delivery_id, now, alone=result.climbs)
    if over and delivery_id in holds.throttled:
        holds = holds.let_go(delivery_id)
    if answer.kind is OutcomeKind.ACCEPTED and holds.throttled:
        return holds._replace(passed=holds.passed + 1)
    return holds
