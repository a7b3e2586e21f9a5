"""The world of signals: providers that ask for time in every way the table of signals knows, and
operators who change the table in the middle of it.

The others, and what a world is, are in ``worlds.py``.
"""

from __future__ import annotations

import random
from typing import Any

from paceline.core.instants import DAY, MINUTE, SECOND
from paceline.core.model import Content, Part, Step
from paceline.sim.mailing import ZONES, Mailing
from paceline.sim.weather import MOODS, Faults
from paceline.sim.worlds import STARTS, Sender, World

SAID = ("throttled", "unavailable", "transient", "rejected", "bounced")
"""What the sandbox can be made to answer, and what a signal may be about."""

_AGAIN = Content((Part("text", "still there, {{ target }}?"),))


def draw_signal(rng: random.Random) -> str:
    said = rng.choice(SAID)
    return rng.choice((f"sandbox {said}", f"* {said}", f"sandbox {said} message", f"* code:{said}"))


def draw_rule(rng: random.Random) -> dict[str, Any]:
    """Who waits, for how long, and how the pace comes back."""
    scope = rng.choice(("account", "campaign", "new contacts"))
    lasts = ["20s", "45s", "90s", "3m", "6m", "15s doubling", "none"]
    if scope != "new contacts":
        lasts += ["until resumed"]
    ramp = rng.choice(
        (
            "none",
            "none",
            "policy",
            {"slow_by": rng.choice((2, 3, 5)), "recover": rng.choice(("2m", "8m", "30m"))},
            {"to": rng.choice(("4/min", "8/min")), "recover": rng.choice(("3m", "10m"))},
        )
    )
    return {"scope": scope, "for": rng.choice(lasts), "ramp": ramp}


def _saying(rng: random.Random) -> dict[str, Any]:
    """What is said that may be a signal: now and then, and sometimes many times in a row."""
    said: dict[str, list[int]] = {}
    number = rng.randint(2, 6)
    while number < 120:
        times = rng.choice((1, 1, 1, 2, 4, 7))
        fate = rng.choice(("throttle", "throttle", "unavailable", "transient", "reject", "bounce"))
        said.setdefault(f"{fate}_at", []).extend(range(number, number + times))
        number += times + rng.randint(2, 14)
    return {name: tuple(numbers) for name, numbers in said.items()}


_CHARACTERS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"ban_after": 9, "ban_for": "3m"},
    {"quota_per_minute": 8},
)


def signals(rng: random.Random, faults: Faults) -> World:
    """Two campaigns to partly the same people: whoever has been written to is no stranger when
    nobody new may be written to."""
    senders = tuple(
        Sender(
            f"ear-{number}",
            {
                **rng.choice(({"rate": "20/min"}, {"rate": "30/min"}, {"spacing": "2s..6s"})),
                "concurrency": rng.choice((1, 1, 3)),
                "timeout": "10s",
                "retry": rng.choice(("3s doubling", "30s,1m,2m")),
                "breaker": rng.choice(({"above": "40%", "samples": 6}, {"above": "60%"})),
                "bounce_pause": "20%",
                "throttle": {"slow_by": 2, "recover": "4m"},
                "zone": rng.choice(ZONES),
            },
            settings={
                "seed": rng.randrange(1_000_000),
                "latency": "20ms..2s",
                "retry_after": rng.choice(("none", "none", "40s")),
                **MOODS[faults],
                **_saying(rng),
                **rng.choice(_CHARACTERS),
            },
        )
        for number in range(rng.randint(2, 3))
    )
    names = tuple(sender.name for sender in senders)
    mailings = (
        Mailing(
            "news",
            names,
            rng.randint(10, 20),
            audience="person",
            steps=(Step(rng.randint(1, 4) * MINUTE, _AGAIN),) if rng.random() < 0.6 else (),
        ),
        Mailing(
            "offer",
            names,
            rng.randint(20, 35),
            audience="person",
            launched_after_us=rng.randint(1, 3) * MINUTE,
            assignment=rng.choice(("round_robin", "round_robin", "pooled")),
        ),
    )
    return World(
        "signals",
        rng.choice(STARTS),
        lasts_us=rng.randint(8, 16) * MINUTE,
        calm_us=DAY,
        senders=senders,
        mailings=mailings,
        processes=rng.randint(1, 3),
        fleet=rng.random() < 0.5,
        poll_us=10 * SECOND,
        drastic=rng.random() < 0.4,
        signals={draw_signal(rng): draw_rule(rng) for _ in range(rng.randint(2, 6))},
    )
