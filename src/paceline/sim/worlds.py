"""The worlds: who sends what to whom, under which limits, from how many processes.

Each is drawn from a seed, so every seed plays another one of its kind. Nothing happens here; a
world is only described, and ``simulation.py`` plays it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, parse_instant
from paceline.core.model import Part, Standing
from paceline.sim.mailing import ZONES, Mailing
from paceline.sim.post import Post
from paceline.sim.reminding import Routine
from paceline.sim.talk import Talk
from paceline.sim.weather import MOODS, Climate, Faults


@dataclass(frozen=True, slots=True)
class Sender:
    """An account of the sandbox."""

    name: str
    policy: Mapping[str, Any]
    preset: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    standing: Standing | None = None
    """What it is in, where it is not new."""


@dataclass(frozen=True, slots=True)
class World:
    name: str
    start_at: Instant
    lasts_us: int
    """How long the bad weather lasts; afterwards everything must come to its end."""
    calm_us: int
    """How long that may take."""
    senders: tuple[Sender, ...]
    mailings: tuple[Mailing, ...]
    processes: int = 2
    fleet: bool = False
    """Every process on a machine of its own, and the database with a clock of its own."""
    poll_us: int = SECOND
    park_after_us: int = 2 * MINUTE
    operated: bool = True
    """Whether operators pause, resume, stop, suppress and change limits meanwhile."""
    orders_us: int = 0
    """How long, on average, between two orders, where that is longer than the climate has it."""
    drastic: bool = False
    """Whether they cancel campaigns and remove accounts as well."""
    thorough: bool = False
    """Whether they also retry what failed, lay out anew, and ask for the same thing twice."""
    tended: bool = True
    """Whether people put right in the end what only they can."""
    careful: bool = False
    """Whether the ledger is read along with every call, to judge what follows from failures."""
    signals: Mapping[str, Mapping[str, Any]] | None = None
    """What operators have put into the table of signals beforehand. Where they have, even nothing,
    the tables are read with every commit, and people put right only what they were told of."""
    routine: Routine | None = None
    """Its reminders, where it has any; then, too, the tables are read with every commit."""
    post: Post | None = None
    """What becomes of letters, where they are letters; then the watchers of mailboxes run as well,
    and what they take in is read with every commit."""
    talk: Talk | None = None
    """Who writes and who answers, where people are conversed with; then what answers runs as well,
    and how conversations stand is read with every commit."""
    climate: Climate | None = None
    """A climate of its own, where it is worse than the weather that was asked for."""
    prompt: bool = False
    """Whether its provider's drivers can begin a call without being waited for."""
    rests: bool = False
    """Whether nobody runs while nothing is due for long, at night and at weekends: to play those
    takes most of the time of a campaign of weeks, and nothing happens in them."""


STARTS = tuple(
    parse_instant(text)
    for text in (
        "2026-03-02T08:58:00Z",
        "2026-03-08T05:30:00Z",  # America/New_York loses an hour
        "2026-03-28T23:30:00Z",  # Europe/Paris loses one a little later
        "2026-07-31T21:00:00Z",
        "2026-10-25T00:15:00Z",  # Europe/Paris gains an hour
        "2026-11-01T04:30:00Z",  # America/New_York gains one
        "2026-12-31T23:55:00Z",
    )
)

TEXT = Part("text", "hello {{ target }}")
PARTS = (TEXT, Part("text", "and one more thing"), Part("text", "goodbye"))


def mail(rng: random.Random, faults: Faults, accounts: int = 300, days: int = 1) -> World:
    """Cold e-mail: twenty a day in office hours, minutes apart; lanes are parked most of the time.
    Operators are away: this is the world for long runs, and keeps its processes busy day and night.
    """
    start_at = rng.choice(STARTS)
    senders = tuple(
        Sender(
            f"mail-{number}",
            {"hours": f"Mon-Sun 09:00-18:00 {rng.choice(ZONES)}", "timeout": "20s"},
            preset="cold-email",
            settings={"latency": "50ms..2s", **MOODS[faults]},
        )
        for number in range(accounts)
    )
    names = tuple(sender.name for sender in senders)
    mailing = Mailing("letters", names, accounts * 20 * days, action="email")
    return World(
        "mail",
        start_at,
        lasts_us=days * DAY,
        calm_us=(days + 8) * DAY,
        senders=senders,
        mailings=(mailing,),
        poll_us=30 * SECOND,
        operated=False,
    )


def post(rng: random.Random, faults: Faults) -> World:
    """The same, small enough to be played among others."""
    return mail(rng, faults, accounts=8, days=2)


def awake(rng: random.Random, faults: Faults) -> World:
    """The same with lanes that are kept in memory from one letter to the next, whatever becomes of
    the clock meanwhile."""
    return replace(post(rng, faults), name="awake", park_after_us=HOUR)


def groups(rng: random.Random, faults: Faults) -> World:
    """Reminders to groups: three at a time, several parts each, in a window that closes."""
    start_at = rng.choice(STARTS)
    zone = rng.choice(ZONES)
    senders = tuple(
        Sender(
            f"number-{number}",
            {"rate": rng.choice(("40/min", "20/min", "60/min burst 3"))},
            preset="whatsapp-established",
            settings={"latency": "100ms..1s", **MOODS[faults]},
        )
        for number in range(rng.randint(1, 3))
    )
    names = tuple(sender.name for sender in senders)
    window = Hours.parse(rng.choice(("Mon-Sun 00:00-24:00", "Mon-Sun 06:00-22:00")) + f" {zone}")
    reminder = Mailing(
        "reminder",
        names,
        rng.randint(20, 50),
        parts=PARTS[: rng.randint(1, 3)],
        window=window,
        at_close=rng.choice(("skip", "resume")),
    )
    return World(
        "groups",
        start_at,
        lasts_us=rng.randint(2, 8) * MINUTE,
        calm_us=3 * DAY,
        senders=senders,
        mailings=(reminder,),
        processes=rng.randint(1, 3),
        fleet=rng.random() < 0.5,
        rests=True,
    )


def campaign(rng: random.Random, faults: Faults) -> World:
    """A campaign at a steady pace: batches, a delay that adapts, a breaker."""
    senders = tuple(
        Sender(
            f"line-{number}",
            {
                "spacing": rng.choice(("3s", "2s..5s", "3s..9s")),
                "batch": rng.choice(("10 then 20s", "7 then 45s", "75 then 30s")),
                "breaker": {"above": "60%"},
            },
            preset="campaign-whatsapp",
            settings={"latency": "50ms..800ms", **MOODS[faults]},
        )
        for number in range(rng.randint(1, 3))
    )
    names = tuple(sender.name for sender in senders)
    mailings = (
        Mailing("spring", names, rng.randint(15, 40)),
        Mailing("summer", names, rng.randint(5, 20), priority=1, launched_after_us=MINUTE),
    )
    return World(
        "campaign",
        rng.choice(STARTS),
        lasts_us=rng.randint(3, 10) * MINUTE,
        calm_us=2 * DAY,
        senders=senders,
        mailings=mailings,
        processes=rng.randint(1, 3),
        fleet=rng.random() < 0.5,
    )


def caps(rng: random.Random, faults: Faults) -> World:
    """Small allowances: caps by day and week, lunch breaks, midnights."""
    zone = rng.choice(ZONES)
    menu: tuple[Mapping[str, Any], ...] = (
        {"daily": {"message": rng.randint(3, 12)}, "rate": "30/min", "zone": zone},
        {"daily": {"message": 6}, "weekly": {"message": 20}, "spacing": "1m..4m", "zone": zone},
        {"hours": f"Mon-Sun 08:00-11:30 12:30-18:15 {zone}", "spacing": "2m..9m"},
        {"hours": f"Mon-Fri 09:00-17:00, Sun 10:00-12:00 {zone}", "daily": {"message": 8}},
    )
    senders = tuple(
        Sender(f"box-{number}", rng.choice(menu), settings={"latency": "1s", **MOODS[faults]})
        for number in range(rng.randint(2, 4))
    )
    names = tuple(sender.name for sender in senders)
    return World(
        "caps",
        rng.choice(STARTS),
        lasts_us=rng.randint(18, 40) * HOUR,
        calm_us=60 * DAY,
        senders=senders,
        mailings=(Mailing("offers", names, rng.randint(20, 60)),),
        processes=rng.randint(1, 2),
        fleet=rng.random() < 0.5,
        poll_us=30 * SECOND,
        rests=True,
    )


def takeover(rng: random.Random, faults: Faults) -> World:
    """Three processes quarrel over a few slow lanes that never rest."""
    senders = tuple(
        Sender(
            f"lane-{number}",
            {"rate": rng.choice(("12/min", "20/min", "30/min burst 2")), "timeout": "10s"},
            settings={"latency": "10ms..4s", **MOODS[faults]},
        )
        for number in range(rng.randint(1, 4))
    )
    names = tuple(sender.name for sender in senders)
    return World(
        "takeover",
        rng.choice(STARTS),
        lasts_us=rng.randint(4, 12) * MINUTE,
        calm_us=2 * DAY,
        senders=senders,
        mailings=(Mailing("word", names, rng.randint(30, 70), parts=PARTS[: rng.randint(1, 2)]),),
        processes=3,
        fleet=rng.random() < 0.7,
    )


def gallery(rng: random.Random, faults: Faults) -> World:
    """Captioned pictures: uploaded once, sent often, and gone from the provider after a while."""
    caption = Part("media", "look, {{ target }}", media="picture.png")
    expires = rng.choice(("none", "90s", "4m", "20m"))
    senders = tuple(
        Sender(
            f"number-{number}",
            {"rate": rng.choice(("40/min", "20/min burst 2")), "timeout": "15s"},
            preset="whatsapp-established",
            settings={
                "latency": "100ms..1s",
                "handle_expires": expires,
                "upload_latency": rng.choice(("100ms..400ms", "2s..20s")),
                "upload_failure_rate": 0 if faults == "none" else 0.2,
                **MOODS[faults],
            },
        )
        for number in range(rng.randint(1, 3))
    )
    names = tuple(sender.name for sender in senders)
    parts = rng.choice(((caption,), (TEXT, caption), (caption, TEXT)))
    return World(
        "gallery",
        rng.choice(STARTS),
        lasts_us=rng.randint(3, 8) * MINUTE,
        calm_us=2 * DAY,
        senders=senders,
        mailings=(Mailing("pictures", names, rng.randint(20, 40), parts=parts),),
        processes=rng.randint(1, 3),
        fleet=rng.random() < 0.5,
        rests=True,
    )


_CHARACTERS: tuple[Mapping[str, Any], ...] = (
    {"finds": False},
    {"find_lag": "5m"},
    {"proves_absence": False},
    {"deduplicates": True},
    {"throttle_every": 9, "retry_after": "90s"},
    {"throttle_every": 7, "retry_after": "none"},
    {"quota_per_minute": 6},
    {"quota_per_day": 15},
    {"ban_after": 8, "ban_for": "5m"},
    {"ban_after": 12, "ban_for": "30m", "finds": False},
    {"timeout_latency": "3m"},
)
"""Providers as they are: some cannot be asked, some lag behind, some lose patience."""


def moods(rng: random.Random, faults: Faults) -> World:
    """Every account at a provider of another character, and some owners who would rather send
    twice than not at all."""
    senders = tuple(
        Sender(
            f"lane-{number}",
            {
                "rate": rng.choice(("20/min", "30/min burst 2", "12/min")),
                "timeout": rng.choice(("10s", "30s")),
                "concurrency": rng.choice((1, 1, 3)),
                "on_unknown": rng.choice(("hold", "hold", "resend")),
                "retry": rng.choice(("1m,5m,15m", "3s doubling")),
            },
            settings={"latency": "10ms..4s", **MOODS[faults], **rng.choice(_CHARACTERS)},
        )
        for number in range(rng.randint(2, 4))
    )
    names = tuple(sender.name for sender in senders)
    return World(
        "moods",
        rng.choice(STARTS),
        lasts_us=rng.randint(4, 10) * MINUTE,
        calm_us=4 * DAY,
        senders=senders,
        mailings=(Mailing("word", names, rng.randint(30, 60), parts=PARTS[: rng.randint(1, 2)]),),
        processes=rng.randint(2, 3),
        fleet=rng.random() < 0.5,
        poll_us=5 * SECOND,
        drastic=rng.random() < 0.5,
        rests=True,
    )


def people(rng: random.Random, faults: Faults) -> World:
    """Two campaigns to the same people: who have hours of their own, lose interest, and are not
    written to too often; from accounts that are still young."""
    senders = tuple(
        Sender(
            f"young-{number}",
            {
                "rate": "30/min",
                "per_recipient": rng.choice(("1/20m", "2/hour", "1/day")),
                "warmup": rng.choice(("6 +50%/day to 40", "15 +20%/day to 30")),
                "zone": rng.choice(ZONES),
            },
            settings={"latency": "50ms..2s", **MOODS[faults]},
        )
        for number in range(rng.randint(1, 2))
    )
    names = tuple(sender.name for sender in senders)
    hours = rng.choice((None, "Mon-Sun 07:00-20:00", "Mon-Sat 09:00-12:00 13:00-21:00"))
    expire_after_us = rng.choice((None, 2 * HOUR, 2 * DAY))
    mailings = tuple(
        Mailing(
            name,
            names,
            rng.randint(10, 24),
            audience="person",
            recipient_hours=hours,
            expire_after_us=expire_after_us,
            launched_after_us=rng.randint(0, 10) * MINUTE,
        )
        for name in ("news", "offer")
    )
    return World(
        "people",
        rng.choice(STARTS),
        lasts_us=rng.randint(1, 4) * HOUR,
        calm_us=40 * DAY,
        senders=senders,
        mailings=mailings,
        processes=rng.randint(1, 2),
        fleet=rng.random() < 0.5,
        poll_us=MINUTE,
        drastic=rng.random() < 0.5,
        rests=True,
    )
