"""The worlds by their names, and how one is drawn."""

from __future__ import annotations

import random
from collections.abc import Callable

from paceline.core.errors import InputError
from paceline.core.nearest import did_you_mean
from paceline.sim import (
    campaign_worlds,
    inbox_worlds,
    reminder_worlds,
    rush_worlds,
    signal_worlds,
    talk_worlds,
    worlds,
)
from paceline.sim.weather import Faults
from paceline.sim.worlds import World

WORLDS: dict[str, Callable[[random.Random, Faults], World]] = {
    "mail": worlds.mail,
    "post": worlds.post,
    "awake": worlds.awake,
    "groups": worlds.groups,
    "campaign": worlds.campaign,
    "caps": worlds.caps,
    "takeover": worlds.takeover,
    "gallery": worlds.gallery,
    "moods": worlds.moods,
    "people": worlds.people,
    "office": campaign_worlds.office,
    "pool": campaign_worlds.pool,
    "sequel": campaign_worlds.sequel,
    "breaker": campaign_worlds.breaker,
    "storm": campaign_worlds.storm,
    "signals": signal_worlds.signals,
    "reminders": reminder_worlds.reminders,
    "inbox": inbox_worlds.inbox,
    "talks": talk_worlds.talks,
    "replies": talk_worlds.replies,
    "rush": rush_worlds.rush,
}
ANY = "any"
"""Instead of a name: each seed chooses one of the quick worlds."""
QUICK = tuple(name for name in WORLDS if name not in ("mail", "office"))


def known_world(name: str) -> None:
    """Refuse a name that no world has."""
    known = (*WORLDS, ANY)
    if name not in known:
        raise InputError(
            f"there is no world '{name}'{did_you_mean(name, known)}",
            hint=f"Known worlds: {', '.join(known)}",
        )


def draw_world(name: str, rng: random.Random, faults: Faults) -> World:
    known_world(name)
    return WORLDS[rng.choice(QUICK) if name == ANY else name](rng, faults)
