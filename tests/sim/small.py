"""Small worlds for the broken twins: quick to play, and made for one kind of trouble each."""

from dataclasses import replace
from typing import Any

from paceline.core.hours import Hours
from paceline.core.instants import HOUR, MINUTE, SECOND, parse_instant
from paceline.core.model import Content, Part, Step
from paceline.sim.mailing import Mailing
from paceline.sim.weather import CLIMATES, MOODS, Faults
from paceline.sim.worlds import Sender, World

START = parse_instant("2026-03-02T08:58:00Z")
PARTS = (Part("text", "hello {{ target }}"), Part("text", "and one more thing"))


def quick(
    policy: dict[str, Any],
    *,
    accounts: int = 3,
    targets: int = 40,
    mood: Faults = "heavy",
    provider: dict[str, Any] | None = None,
    **mailing: Any,
) -> World:
    """A few lanes, three processes that quarrel over them, and a few minutes of bad weather."""
    senders = tuple(
        Sender(
            f"lane-{number}",
            policy,
            settings={"latency": "10ms..2s", **MOODS[mood], **(provider or {})},
        )
        for number in range(accounts)
    )
    names = tuple(account.name for account in senders)
    return World(
        "quick",
        START,
        lasts_us=6 * MINUTE,
        calm_us=6 * HOUR,
        senders=senders,
        mailings=(Mailing("word", names, targets, **mailing),),
        processes=3,
        fleet=True,
        poll_us=5 * SECOND,
        operated=False,
    )


SLOW = quick({"rate": "2/min"}, targets=30)
"""A token takes longer than it takes to miss a process: a takeover comes in between."""
RATE = quick({"rate": "20/min", "timeout": "10s"})
PARTED = quick({"rate": "30/min", "timeout": "10s"}, parts=PARTS)
APART = quick(
    {"rate": "60/min", "timeout": "10s", "part_gap": "5s..9s", "concurrency": 3},
    targets=24,
    parts=PARTS,
)
"""Parts that keep a distance which their tokens would not make them keep."""
_OFTEN = quick({"rate": "30/min", "timeout": "10s", "per_recipient": "1/20m"}, targets=12)
OFTEN = replace(
    _OFTEN,
    mailings=tuple(
        replace(mailing, name=name, audience="person", senders=mailing.senders[::order])
        for mailing in _OFTEN.mailings
        for name, order in (("news", 1), ("offer", -1))
    ),
)
"""Two campaigns to the same people, who are written to by several accounts."""
SPACED = quick({"spacing": "20s..2m"}, accounts=4, targets=24, mood="light")
BATCHED = quick({"spacing": "2s", "batch": "4 then 90s"}, accounts=4, targets=60, mood="light")
SOON = replace(quick({"rate": "20/min"}, mood="none"), calm_us=HOUR)
"""Nothing lasts longer than an hour but what is stuck."""
CALM = replace(SOON, lasts_us=2 * MINUTE, calm_us=MINUTE)
BUSY = quick({"rate": "30/min"}, accounts=5, targets=150, mood="none")
THROTTLED = quick({"rate": "30/min"}, provider={"throttle_every": 5, "retry_after": "90s"})
PICTURES = quick({"rate": "30/min"}, parts=(Part("media", "look", media="picture.png"),))
TAKEN_OVER = replace(
    quick(
        {"rate": "30/min"},
        parts=(Part("media", "look", media="picture.png"),),
        provider={
            "upload_latency": "100ms..1s",
            "upload_failure_rate": 0.6,
            "handle_expires": "60s",
        },
    ),
    climate=replace(CLIMATES["heavy"], slow=1 / 3, slowest_us=20 * SECOND),
)
"""Files that go up again and again, and a store so slow that lanes are lost while it is asked."""
CAPPED = replace(
    quick({"daily": {"message": 6}, "rate": "20/min"}, targets=30, mood="none"),
    calm_us=2 * HOUR,
    start_at=parse_instant("2026-03-02T23:50:00Z"),
)
"""What today has no room for goes a few minutes later, after midnight."""
EVERY_OTHER_MINUTE = "Mon-Sun 08:00-08:59 09:00-09:01 09:02-09:03 09:04-09:05 09:06-18:00 UTC"
CLOSING = quick({"rate": "30/min", "hours": EVERY_OTHER_MINUTE}, targets=120, mood="none")
WINDOWED = quick(
    {"rate": "30/min"}, targets=120, mood="none", window=Hours.parse(EVERY_OTHER_MINUTE)
)
ORDERED = replace(
    quick({"rate": "12/min"}, accounts=1, targets=60, mood="light"),
    lasts_us=8 * MINUTE,
    operated=True,
)

SOON_AGAIN = (Step(3 * MINUTE, Content(PARTS)),)
FOLLOWED = quick({"rate": "20/min", "timeout": "10s"}, targets=20, steps=SOON_AGAIN)
DOUBTED = quick(
    {"rate": "20/min", "timeout": "10s", "bounce_pause": "50%"},
    targets=30,
    provider={"reject_rate": 0.2, "timeout_rate": 0.1, "lost_rate": 0.1},
    steps=SOON_AGAIN,
)
RETOLD = replace(DOUBTED, operated=True, thorough=True)
SHARED = quick(
    {"rate": "20/min", "timeout": "10s"},
    targets=40,
    mood="light",
    assignment="pooled",
    steps=SOON_AGAIN,
)
LEFT = replace(SHARED, operated=True, drastic=True)
FAILING = replace(
    quick(
        {
            "spacing": "3s",
            "adaptive": {"above": "5%", "slow_by": 2, "between": "2s..10s"},
            "breaker": {"above": "20%"},
            "bounce_pause": "100%",
        },
        accounts=2,
        targets=80,
        mood="none",
        provider={"reject_at": tuple(range(15, 60, 2))},
    ),
    careful=True,
)
"""Every other message is refused for a while."""
BOUNCING = replace(
    quick(
        {"rate": "20/min"},
        accounts=2,
        targets=70,
        mood="none",
        provider={"bounce_at": (5, 12, 21, 24, 27, 30)},
    ),
    careful=True,
)
RALLYING = replace(
    quick(
        {"rate": "20/min"},
        accounts=2,
        targets=70,
        mood="none",
        provider={"bounce_at": (2, 5, 9, 14)},
    ),
    careful=True,
)
"""Too many come back among the first, and none of the others."""
REPEATED = replace(
    quick({"rate": "30/min", "timeout": "10s"}, accounts=2, mood="light"),
    operated=True,
    thorough=True,
)
"""Operators who say things twice."""
REFUSED = replace(
    quick(
        {"rate": "30/min", "timeout": "10s"},
        accounts=2,
        provider={"reject_rate": 0.2, "timeout_rate": 0.15, "finds": False},
    ),
    operated=True,
    thorough=True,
)
PLANNED = replace(
    CAPPED,
    mailings=tuple(replace(mailing, planned=True) for mailing in CAPPED.mailings),
    operated=True,
    calm_us=26 * HOUR,
)
"""As many as a day has room for are laid out on it, and then somebody sends one more; where they
send a few, what no longer fits goes on the third day."""
RUSHING = replace(
    quick(
        {"timeout": "5s"},
        targets=200,
        provider={"latency": "2ms..40ms", "throttle_every": 9, "retry_after": "20s"},
    ),
    prompt=True,
)
"""No pace to keep, and drivers that can begin at once: lanes look ahead."""
