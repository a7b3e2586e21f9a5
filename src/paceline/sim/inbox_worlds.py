"""The world of mail that comes back: houses that greylist, refuse, bounce hours later; people who
answer, complain and unsubscribe; and mailboxes that cannot be read for a while.

The others, and what a world is, are in ``worlds.py``.
"""

from __future__ import annotations

import random
from dataclasses import replace

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Content, Part, Step
from paceline.sim.campaign_worlds import DAYTIMES
from paceline.sim.mailing import Mailing
from paceline.sim.post import Manner, Post, Reaction, Trouble, TroubleKind
from paceline.sim.weather import CLIMATES, MOODS, Call, Climate, Faults
from paceline.sim.worlds import Sender, World

DOMAINS = tuple(f"house-{number}.example" for number in range(7))

MANNERS = {
    Manner.WELL: 50,
    Manner.GREY: 16,
    Manner.GONE: 5,
    Manner.FULL: 8,
    Manner.LOST: 13,
    Manner.STUFFED: 8,
}
REACTIONS = {
    Reaction.NOTHING: 50,
    Reaction.ANSWER: 20,
    Reaction.NOTE: 12,
    Reaction.COMPLAINT: 7,
    Reaction.CLICK: 11,
}
KINDS: tuple[TroubleKind, ...] = ("away", "refused", "silent")

_AGAIN = Content((Part("text", "still there, {{ target }}?"),))
_LAST = Content((Part("text", "one last time, {{ target }}"),))


def _troubles(
    rng: random.Random, names: tuple[str, ...], days: int, open_us: int
) -> dict[str, tuple[Trouble, ...]]:
    """In the hours in which somebody would read."""
    return {
        name: tuple(
            Trouble(
                rng.randint(0, days) * DAY + rng.randint(0, open_us),
                rng.randint(2, 50) * MINUTE,
                rng.choice(KINDS),
            )
            for _ in range(rng.randint(0, 3))
        )
        for name in names
    }


def _mailings(rng: random.Random, names: tuple[str, ...]) -> tuple[Mailing, ...]:
    """Campaigns to partly the same people: what one of them brings back holds for the others."""
    steps = (
        Step(rng.choice((20 * MINUTE, 2 * HOUR, 22 * HOUR)), _AGAIN),
        Step(rng.choice((30 * MINUTE, 20 * HOUR)), _LAST),
    )
    return tuple(
        Mailing(
            name,
            names,
            rng.randint(fewest, fewest + 14),
            action="email",
            audience="person",
            domains=DOMAINS,
            steps=steps[: rng.randint(0, most)],
            assignment=rng.choice(("round_robin", "pooled")),
            launched_after_us=rng.randint(0, latest) * MINUTE,
        )
        for name, fewest, most, latest in (
            ("news", 24, 2, 0),
            ("offer", 16, 1, 90),
            ("digest", 8, 0, 25 * 60),
        )
    )


def _climate(faults: Faults) -> Climate | None:
    """Drivers that hear of no cancellation are the business of other worlds: letters are handed
    over line by line, and whoever hangs up is heard."""
    if faults == "none":
        return None
    calls = tuple(one for one in CLIMATES[faults].calls if one[0] is not Call.STUBBORN)
    return replace(CLIMATES[faults], calls=calls)


def inbox(rng: random.Random, faults: Faults) -> World:
    """A few days in offices that are dark at night, when most of the mail comes back."""
    trouble = {} if faults == "none" else {"timeout_rate": 0.05, "lost_rate": 0.03}
    senders = tuple(
        Sender(
            f"mail-{number}",
            {
                "spacing": rng.choice(("20s..2m", "1m..3m")),
                "timeout": "20s",
                "bounce_pause": rng.choice(("5%", "15%", "60%")),
                "daily": {"email": rng.choice((21, 30, 200))},
            },
            settings={
                "seed": rng.randrange(1_000_000),
                "latency": "50ms..3s",
                **MOODS[faults],
                **trouble,
                # As a mail server, which cannot be asked, or as Gmail, which knows what it has.
                "finds": rng.random() < 0.4,
                "proves_absence": False,
            },
        )
        for number in range(rng.choice((2, 2, 3)))
    )
    names = tuple(sender.name for sender in senders)
    open_us = rng.randint(4, 6) * HOUR // 2
    days = rng.randint(1, 2)
    post = Post(
        seed=rng.randrange(1_000_000),
        manners=MANNERS,
        reactions=REACTIONS,
        throttled=0.0 if faults == "none" else 0.02,
        forged=rng.randint(2, 6),
        troubles={} if faults == "none" else _troubles(rng, names, days, open_us),
        open_us=open_us,
    )
    return World(
        "inbox",
        rng.choice(DAYTIMES),
        lasts_us=days * DAY + open_us,
        calm_us=12 * DAY,
        senders=senders,
        mailings=_mailings(rng, names),
        processes=rng.choice((2, 2, 3)),
        fleet=rng.random() < 0.5,
        poll_us=5 * MINUTE,
        park_after_us=20 * SECOND,
        orders_us=HOUR,
        thorough=rng.random() < 0.5,
        post=post,
        climate=_climate(faults),
        rests=True,
    )
