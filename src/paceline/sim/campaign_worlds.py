"""Worlds of whole campaigns: planned over weeks, shared in pools, followed up, broken off, and
carried through one crash after the other.

The others, and what a world is, are in ``worlds.py``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from paceline.core.model import Content, Part, Step
from paceline.sim.mailing import ZONES, Mailing
from paceline.sim.weather import MOODS, STORM, Faults
from paceline.sim.worlds import STARTS, Sender, World

OFFICE_STARTS = tuple(
    parse_instant(text)
    for text in (
        "2026-03-02T13:30:00Z",  # New York loses an hour on the Sunday between the two weeks
        "2026-10-26T12:30:00Z",  # and gains one here
    )
)
DAYTIMES = tuple(parse_instant(text) for text in ("2026-03-02T08:58:00Z", "2026-07-31T18:00:00Z"))
"""Far enough from midnight everywhere in UTC: what a day's bounces are is beyond doubt."""

_AGAIN = Content((Part("text", "still there, {{ target }}?"),))
_TWICE = Content((Part("text", "one last time, {{ target }}"), Part("text", "goodbye")))


def _luck(rng: random.Random) -> dict[str, Any]:
    """A provider's own chance, another one in every world."""
    return {"seed": rng.randrange(1_000_000)}


def office(rng: random.Random, faults: Faults) -> World:
    """Document B's: letters dealt out to five accounts, twenty a day each in office hours, for two
    weeks with a change of the clocks in between, and laid out beforehand."""
    senders = tuple(
        Sender(
            f"desk-{number}",
            {"timeout": "20s"},
            preset="cold-email",
            settings={**_luck(rng), "latency": "50ms..2s", **MOODS[faults]},
        )
        for number in range(5)
    )
    names = tuple(sender.name for sender in senders)
    letters = Mailing("letters", names, rng.randint(600, 750), action="email", planned=True)
    return World(
        "office",
        rng.choice(OFFICE_STARTS),
        lasts_us=14 * DAY,
        calm_us=30 * DAY,
        senders=senders,
        mailings=(letters,),
        processes=rng.choice((1, 1, 2)),
        fleet=rng.random() < 0.5,
        poll_us=5 * MINUTE,
        park_after_us=10 * SECOND,
        orders_us=5 * HOUR,
        thorough=True,
        rests=True,
    )


def _pooled_policies(rng: random.Random) -> tuple[Mapping[str, Any], ...]:
    zone = rng.choice(ZONES)
    return (
        {"rate": rng.choice(("6/min", "20/min", "40/min burst 2"))},
        {"spacing": rng.choice(("20s..90s", "1m..3m"))},
        {"daily": {"message": rng.randint(16, 30)}, "rate": "20/min", "zone": zone},
        {"hours": f"Mon-Sun 08:00-12:00 13:00-22:30 {zone}", "rate": "12/min"},
        {"rate": "30/min", "concurrency": 3},
    )


def pool(rng: random.Random, faults: Faults) -> World:
    """A few accounts that share everything, each as it can; some of them are taken away."""
    senders = tuple(
        Sender(
            f"hand-{number}",
            {"timeout": "15s", **rng.choice(_pooled_policies(rng))},
            settings={**_luck(rng), "latency": "50ms..3s", **MOODS[faults]},
        )
        for number in range(rng.randint(2, 4))
    )
    names = tuple(sender.name for sender in senders)
    follow_ups = (
        Step(rng.randint(2, 30) * MINUTE, _AGAIN),
        Step(rng.randint(1, 5) * MINUTE, _TWICE),
    )
    mailings = (
        Mailing(
            "shared",
            names,
            rng.randint(15, 30),
            assignment="pooled",
            steps=follow_ups[: rng.randint(0, 2)],
            planned=rng.random() < 0.3,
        ),
        Mailing(
            "other",
            names[: rng.randint(1, len(names))],
            rng.randint(5, 15),
            assignment=rng.choice(("pooled", "round_robin")),
            launched_after_us=rng.randint(0, 3) * MINUTE,
        ),
    )
    return World(
        "pool",
        rng.choice(STARTS),
        lasts_us=rng.randint(5, 25) * MINUTE,
        calm_us=40 * DAY,
        senders=senders,
        mailings=mailings,
        processes=rng.randint(1, 3),
        fleet=rng.random() < 0.5,
        poll_us=40 * SECOND,
        drastic=rng.random() < 0.5,
        thorough=True,
        rests=True,
    )


def sequel(rng: random.Random, faults: Faults) -> World:
    """Messages that follow others, where many a first one is refused, comes back or is in doubt."""
    trouble: dict[str, Any] = (
        {}
        if faults == "none"
        else {"reject_rate": 0.08, "bounce_rate": 0.02, "timeout_rate": 0.06, "lost_rate": 0.05}
    )
    senders = tuple(
        Sender(
            f"pen-{number}",
            {
                "rate": rng.choice(("12/min", "20/min", "30/min burst 2")),
                "timeout": "10s",
                "bounce_pause": "50%",
            },
            settings={
                **_luck(rng),
                "latency": "10ms..3s",
                **MOODS[faults],
                **trouble,
                "finds": rng.random() < 0.7,
            },
        )
        for number in range(rng.randint(1, 3))
    )
    names = tuple(sender.name for sender in senders)
    steps = tuple(
        Step(wait_us, rng.choice((_AGAIN, _TWICE)))
        for wait_us in rng.sample((2 * MINUTE, 5 * MINUTE, 20 * MINUTE, HOUR, 3 * HOUR), k=3)
    )
    return World(
        "sequel",
        rng.choice(STARTS),
        lasts_us=rng.choice((12 * MINUTE, 40 * MINUTE, 4 * HOUR)),
        calm_us=5 * DAY,
        senders=senders,
        mailings=(Mailing("story", names, rng.randint(8, 20), steps=steps[: rng.randint(1, 3)]),),
        processes=rng.randint(1, 3),
        fleet=rng.random() < 0.5,
        poll_us=20 * SECOND,
        drastic=rng.random() < 0.3,
        thorough=True,
        rests=True,
    )


def _bursts(rng: random.Random, of: str) -> dict[str, tuple[int, ...]]:
    """Sends that are sure to fail, many in a row, more than once."""
    numbers: list[int] = []
    first = rng.randint(8, 25)
    for _ in range(rng.randint(1, 3)):
        numbers += range(first, first + rng.randint(6, 14))
        first += rng.randint(20, 45)
    return {f"{of}_at": tuple(numbers)}


def breaker(rng: random.Random, faults: Faults) -> World:
    """Providers that refuse one message after the other for a while: slower, and then no further,
    until somebody has looked at it."""
    senders = tuple(
        Sender(
            f"fuse-{number}",
            {
                "spacing": rng.choice(("2s..4s", "3s")),
                "batch": "25 then 15s",
                "adaptive": {"above": "5%", "slow_by": 1.5, "between": "2s..10s"},
                "breaker": rng.choice(({"above": "20%"}, {"above": "20%", "window": 40})),
                "bounce_pause": "5%",
                "retry": rng.choice(("3s doubling", "1m,5m,15m")),
                "timeout": "10s",
            },
            settings={
                **_luck(rng),
                "latency": "50ms..800ms",
                **MOODS[faults],
                **_bursts(rng, rng.choice(("reject", "transient", "bounce"))),
            },
        )
        for number in range(rng.randint(1, 3))
    )
    names = tuple(sender.name for sender in senders)
    mailings = (
        Mailing(
            "fragile", names, rng.randint(50, 90), assignment=rng.choice(("round_robin", "pooled"))
        ),
        Mailing("sturdy", names, rng.randint(10, 25), launched_after_us=MINUTE),
    )
    return World(
        "breaker",
        rng.choice(DAYTIMES),
        lasts_us=rng.randint(6, 14) * MINUTE,
        calm_us=3 * DAY,
        senders=senders,
        mailings=mailings,
        processes=rng.randint(1, 3),
        fleet=rng.random() < 0.5,
        poll_us=10 * SECOND,
        thorough=True,
        careful=True,
    )


def storm(rng: random.Random, faults: Faults) -> World:
    """Hardly has a process begun when it dies, and so does the next: a few messages of several
    parts and steps come through all the same, each once."""
    senders = tuple(
        Sender(
            f"raft-{number}",
            {
                "rate": rng.choice(("20/min", "40/min burst 3")),
                "concurrency": rng.choice((1, 3)),
                "timeout": "10s",
            },
            settings={**_luck(rng), "latency": "10ms..2s", **MOODS[faults]},
        )
        for number in range(rng.randint(1, 3))
    )
    names = tuple(sender.name for sender in senders)
    parts = (Part("text", "hello {{ target }}"), Part("text", "and one more thing"))
    message = Mailing(
        "flare",
        names,
        rng.randint(12, 30),
        parts=parts[: rng.randint(1, 2)],
        assignment=rng.choice(("round_robin", "pooled")),
        steps=(Step(MINUTE, _TWICE),) if rng.random() < 0.5 else (),
    )
    return World(
        "storm",
        rng.choice(STARTS),
        lasts_us=rng.randint(2, 5) * MINUTE,
        calm_us=3 * DAY,
        senders=senders,
        mailings=(message,),
        processes=rng.randint(2, 4),
        fleet=rng.random() < 0.5,
        poll_us=2 * SECOND,
        thorough=True,
        climate=None if faults == "none" else STORM,
    )
