"""The world of reminders: a few accounts with groups in common, reminders that fire again and again
on a night in which the clocks change, and everything that can come between.

The others, and what a world is, are in ``worlds.py``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, parse_instant
from paceline.core.zones import wall_at
from paceline.providers.sandbox.provider import group_id
from paceline.sim.mailing import Mailing
from paceline.sim.reminding import Reminding, Routine
from paceline.sim.weather import CLIMATES, MOODS, Climate, Faults
from paceline.sim.worlds import Sender, World

NIGHTS: tuple[tuple[str, Instant], ...] = tuple(
    (zone, parse_instant(text, zone))
    for zone, text in (
        ("Europe/Berlin", "2026-03-29T00:50"),  # from two to three
        ("Europe/Berlin", "2026-10-25T00:50"),  # from three back to two
        ("America/New_York", "2026-03-08T00:50"),
        ("America/New_York", "2026-11-01T00:20"),  # from two back to one
        ("Australia/Lord_Howe", "2026-10-04T00:50"),  # half an hour
        ("Australia/Lord_Howe", "2026-04-05T00:50"),
        ("Asia/Beirut", "2026-03-28T22:50"),  # there is no midnight
        ("Asia/Kuala_Lumpur", "2026-03-02T01:20"),  # and nothing happens at all
    )
)
"""Where it is night, and when a world begins there."""

WINDOWS = ("0-24", "0-6", "1-3", "2-4", "1:30-2:30", "0:45-4:15", "2:30-5")
LATER = "6-18"
"""Reminders of the night wait for it until the morning, which takes long to play."""

TIMES = ("01:30", "02:00", "02:30", "02:59", "03:00", "04:10")

TARGETS = range(1, 61)
"""The numbers of all groups there are."""

_HELLO = {"text": "good morning, {{ target }}"}
_PLAN = {"media": "plan.png", "caption": "today's plan"}
_MENU = {"media": "menu.pdf"}
CONTENTS: tuple[tuple[Mapping[str, Any], ...], ...] = (
    (_HELLO,),
    (_HELLO,),
    (_PLAN,),
    (_HELLO, _PLAN),
    (_PLAN, _HELLO, _MENU),
)

_CHARACTERS: tuple[Mapping[str, Any], ...] = (
    {},
    {},
    {"quota_per_minute": 25},
    {"throttle_every": 17, "retry_after": "40s"},
    {"ban_after": 30, "ban_for": "6m"},
    {"finds": False},
)
_FATES: tuple[Mapping[str, Any], ...] = ({"ban_after": 25}, {"unauthorised_after": 40})
"""What ends an account for good."""


def _cron(rng: random.Random) -> str:
    """Around the hours that are skipped or come twice."""
    minute = rng.randrange(0, 60, 5)
    return rng.choice(
        (
            f"{minute} * * * *",
            f"{minute} 1-4 * * *",
            "*/30 1-3 * * *",
            "10,40 * * * *",
            f"{minute} 2 * * *",
            f"{minute} 1,2,3 * * SUN,SAT,MON",
            "0 0-5 * * *",
            "30 1,2,4 * * *",
        )
    )


def _when(rng: random.Random, zone: str, start_at: Instant) -> Mapping[str, Any]:
    if rng.random() < 0.8:
        return {"cron": _cron(rng)}
    day = wall_at(start_at + 2 * HOUR, zone)
    return {"at": f"{day:%Y-%m-%d} {rng.choice(TIMES)}"}


def _groups(rng: random.Random, count: int) -> tuple[str, ...]:
    return tuple(group_id(number) for number in sorted(rng.sample(TARGETS, k=count)))


def _reminding(
    rng: random.Random, name: str, names: tuple[str, ...], zone: str, start_at: Instant
) -> Reminding:
    whose = rng.sample(names, k=rng.choice((1, 1, min(2, len(names)), len(names))))
    when = _when(rng, zone, start_at)
    # What fires every half hour goes to fewer, so that no world takes much longer than another.
    often = "cron" in when and not str(when["cron"]).split()[1].isdecimal()
    raw: dict[str, Any] = {
        "name": name,
        "accounts": whose,
        **when,
        "zone": zone if rng.random() < 0.8 or "at" in when else "UTC",
        "window": rng.choice(WINDOWS) if rng.random() < 0.95 else LATER,
        "parts": list(rng.choice(CONTENTS)),
        "at_close": rng.choice(("skip", "skip", "skip", "skip", "resume")),
        "priority": rng.choice((0, 0, 0, 1)),
    }
    if raw["at_close"] == "skip" and rng.random() < 0.2:
        raw["before_open"] = "send"
    count = rng.randint(5, 18) if often else rng.randint(5, 60)
    if rng.random() < 0.15:
        return Reminding(raw, tuple(f"{name}-friend-{number:02}" for number in range(count)))
    return Reminding(raw, _groups(rng, count))


def _drafts(rng: random.Random, zone: str) -> tuple[Mapping[str, Any], ...]:
    return (
        {"window": rng.choice(WINDOWS)},
        {"window": "0-24"},
        {"cron": _cron(rng)},
        {"cron": _cron(rng)},
        {"zone": rng.choice((zone, "UTC", "Asia/Kolkata"))},
        {"parts": list(rng.choice(CONTENTS)), "targets": _groups(rng, rng.randint(5, 12))},
    )


def _senders(rng: random.Random, faults: Faults) -> tuple[Sender, ...]:
    senders = []
    for number in range(rng.randint(1, 4)):
        first = rng.choice((1, 1, 11, 26))
        character = rng.choice(_CHARACTERS)
        if faults != "none" and number and rng.random() < 0.4:
            character = rng.choice(_FATES)
        settings = {
            "seed": rng.randrange(1_000_000),
            "latency": "50ms..1500ms",
            "groups": f"{first}..{rng.randint(45, 60)}",
            "read_only_groups": rng.choice(("none", "none", f"{first + 5}..{first + 7}")),
            "upload_failure_rate": 0.1 if faults != "none" and rng.random() < 0.4 else 0,
            "handle_expires": rng.choice(("none", "none", "25m")),
            **MOODS[faults],
            **character,
        }
        policy = {
            "rate": rng.choice(("40/min", "40/min", "60/min burst 2", "90/min")),
            "concurrency": rng.choice((1, 3, 3)),
            "timeout": "15s",
            "bounce_pause": "30%",
            "breaker": {"above": "60%"},
        }
        preset = rng.choice(("whatsapp-established", "whatsapp-new"))
        senders.append(Sender(f"phone-{number}", policy, preset=preset, settings=settings))
    return tuple(senders)


def _busy(faults: Faults) -> Climate | None:
    """As it was asked for, but people have more to say."""
    if faults == "none":
        return None
    return replace(CLIMATES[faults], operator_every_us=8 * MINUTE)


def reminders(rng: random.Random, faults: Faults) -> World:
    """A few hours of the night. Runs on one account take turns, accounts are thrown out, nobody is
    there for an hour, and people edit, fire, pause and reassign meanwhile."""
    zone, start_at = rng.choice(NIGHTS)
    senders = _senders(rng, faults)
    names = tuple(sender.name for sender in senders)
    made = tuple(
        _reminding(rng, name, names, zone, start_at)
        for name in ("standup", "backup", "market", "chess")[: rng.randint(1, 4)]
    )
    lasts_us = rng.randint(150, 260) * MINUTE
    dark_us = rng.choice((0, 0, 3 * MINUTE, 25 * MINUTE, 70 * MINUTE))
    return World(
        "reminders",
        start_at,
        lasts_us=lasts_us,
        calm_us=4 * DAY,
        senders=senders,
        mailings=(Mailing("news", names[:1], rng.randint(3, 9)),) if rng.random() < 0.3 else (),
        processes=rng.randint(1, 3),
        fleet=rng.random() < 0.5,
        poll_us=rng.choice((30 * SECOND, MINUTE, 3 * MINUTE)),
        climate=_busy(faults),
        routine=Routine(
            made,
            drafts=_drafts(rng, zone),
            synced=frozenset(name for name in names if rng.random() < 0.8),
            dark=((rng.randint(30, 75) * MINUTE, dark_us),) if dark_us else (),
            behind_us=rng.choice((0, 0, 0, 20 * SECOND, 8 * MINUTE)),
        ),
    )
