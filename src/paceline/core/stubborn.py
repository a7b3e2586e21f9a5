"""Throttles that are about one recipient, and not about the account.

"Not now" is what a server says to an account that is too fast, and also what some say for ever of
one recipient. The words are the same, so it goes by what others meet. A message that was throttled
twice steps aside, so that somebody else is tried first when the hold is over. If a few others get
through in a row, and the message is throttled again, it is the message's own trouble: it climbs the
ladder and fails as after any soft refusal, and holds nobody back. If others are throttled as well,
it is the account's trouble, and nobody climbs. Where nobody else is there to be tried, nothing can
be told apart; but nothing is tried for ever either.

Those whom a server will not have often stand side by side: a company, a domain. Whoever is tried
behind a hold is therefore looked for elsewhere in the line, or each of them would hold back all the
others before one of those is tried.
"""

from __future__ import annotations

from paceline.core.holds import FORGOTTEN_US, Holds
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
GOLDEN = 0.618_033_988_75
"""Steps of this share of a circle never come near a place where they were before."""


def read_alone(outcome: Outcome, holds: Holds, delivery_id: int, now: Instant) -> Outcome:
    """The answer as it is to be understood, by what is known of the message and of others."""
    if outcome.kind is not OutcomeKind.THROTTLED:
        return outcome
    nth = holds.times_throttled(delivery_id) + 1
    alone = _shown_alone(holds, delivery_id) or _taken_for_alone(outcome, holds, now)
    enough = BY_ITSELF if len(holds.throttled) <= 1 or _singled_out(holds, now) else AT_LAST
    if not (alone or nth >= enough):
        return outcome
    why = "others get through" if alone else f"throttled {nth} times"
    reason = f"{outcome.reason or outcome.kind} ({why})"
    return outcome._replace(kind=OutcomeKind.TRANSIENT, reason=reason)


def _singled_out(holds: Holds, now: Instant) -> bool:
    """Whether the provider has lately said so of single people."""
    return holds.single_at > now - FORGOTTEN_US


def _shown_alone(holds: Holds, delivery_id: int) -> bool:
    """Whether others have got through since it was throttled right behind a hold."""
    if holds.times_throttled(delivery_id) + 1 < ALONE_AFTER:
        return False
    return holds.passed >= OTHERS or holds.passed_at > holds.throttled_at(delivery_id)


def _taken_for_alone(outcome: Outcome, holds: Holds, now: Instant) -> bool:
    """Whether it need not be shown again: this provider says so of single people, and has just let
    others through. The next one that is told the same holds the account back, so that a throttle
    which is the account's costs it one call more, and no more than that."""
    return _singled_out(holds, now) and holds.passed >= OTHERS and outcome.retry_after_us is None


def elsewhere(holds: Holds) -> int:
    """How often the line was left, as long as it does not go well: 0 where whoever is next may
    be."""
    if not holds.throttled or holds.passed >= OTHERS:
        return 0
    return sum(times > 1 for times, _ in holds.throttled.values())


def place_in_line(nth: int, length: int) -> int:
    """Where in a line of so many to go on for the ``nth`` time: each time far from all places
    before, so that no stretch of it is left out for long."""
    return int(nth * GOLDEN % 1 * length)


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
    if answer.kind is OutcomeKind.THROTTLED:
        if _shown_alone(holds, delivery_id):
            holds = holds._replace(single_at=now)
        elif result.climbs and holds.single_at:
            # Taken for its own without proof: the next one need not be.
            holds = holds._replace(passed=0)
        if not over:
            return holds.throttle(delivery_id, now, alone=result.climbs)
    if over and delivery_id in holds.throttled:
        holds = holds.let_go(delivery_id)
    counts = holds.passed < OTHERS and (holds.throttled or holds.single_at)
    if answer.kind is OutcomeKind.ACCEPTED and counts:
        passed = holds.passed + 1
        return holds._replace(passed=passed, passed_at=now if passed == OTHERS else holds.passed_at)
    return holds
