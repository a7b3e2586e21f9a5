"""The world of accounts without a pace, whose next intent is written while a call is out.

The others, and what a world is, are in ``worlds.py``.
"""

from __future__ import annotations

import random

from paceline.core.instants import DAY, MINUTE, SECOND
from paceline.sim.mailing import Mailing
from paceline.sim.weather import MOODS, Faults
from paceline.sim.worlds import PARTS, STARTS, Sender, World


def rush(rng: random.Random, faults: Faults) -> World:
    """Letters as fast as servers take them, mostly in moments, so that lanes look ahead. Some keep
    a daily cap, some slow down when asked to, and some messages have a second part."""
    senders = tuple(
        Sender(
            f"quick-{number}",
            rng.choice(
                (
                    {},
                    {"daily": {"message": rng.randint(20, 60)}},
                    {"throttle": {"recover": "20s"}, "bounce_pause": "10%"},
                )
            )
            | {"timeout": "5s"},
            settings={
                **MOODS[faults],
                "latency": rng.choice(("2ms..20ms", "5ms..90ms", "1ms..600ms")),
            },
        )
        for number in range(rng.randint(1, 3))
    )
    names = tuple(sender.name for sender in senders)
    mailings = tuple(
        Mailing(
            f"rush-{number}",
            names,
            rng.randint(20, 80),
            parts=PARTS[: rng.choice((1, 1, 1, 2))],
            launched_after_us=rng.randint(0, 90) * SECOND,
            priority=rng.randint(0, 1),
        )
        for number in range(rng.randint(2, 4))
    )
    return World(
        "rush",
        rng.choice(STARTS),
        lasts_us=3 * MINUTE,
        calm_us=40 * DAY,
        senders=senders,
        mailings=mailings,
        processes=rng.randint(1, 3),
        fleet=rng.random() < 0.5,
        orders_us=rng.choice((0, 5 * SECOND)),
        drastic=rng.random() < 0.3,
        thorough=rng.random() < 0.5,
        prompt=True,
        rests=True,
    )
