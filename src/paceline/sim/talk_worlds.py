"""The world of conversations: people who write in bursts, whatever is being done about it; hooks
that tell of it twice, late and out of order; and whoever answers, slowly, not at all, or too late.
And one in which what they answer is a campaign, which follows up on it.

The others, and what a world is, are in ``worlds.py``.
"""

from __future__ import annotations

import random
from dataclasses import replace

from paceline.core.instants import HOUR, MILLISECOND, MINUTE, SECOND
from paceline.core.model import Content, FollowUp, Part
from paceline.core.turns import Patience
from paceline.sim.campaign_worlds import DAYTIMES
from paceline.sim.mailing import Mailing
from paceline.sim.talk import FOLLOW_UP, OPENING, Mind, Talk
from paceline.sim.weather import CLIMATES, MOODS, Climate, Faults
from paceline.sim.worlds import Sender, World

MINDS = {
    Mind.PROMPT: 66,
    Mind.SLOW: 12,
    Mind.FAILS: 8,
    Mind.BUSY: 4,
    Mind.REFUSES: 2,
    Mind.SHUT: 1,
    Mind.SILENT: 5,
    Mind.BREAKS: 2,
}
SOON, LATER, MUCH_LATER = (MILLISECOND, 400 * MILLISECOND), (SECOND, 12 * SECOND), (0, 2 * MINUTE)
"""How long a provider takes to tell what somebody wrote; others may be told before."""


def _climate(faults: Faults) -> Climate | None:
    """Clocks are set more often than in worlds that last for days, and less far: to wait out hours
    in which nobody is answered would show nothing more."""
    if faults == "none":
        return None
    return replace(
        CLIMATES[faults],
        step_every_us=(4 if faults == "heavy" else 20) * MINUTE,
        farthest_step_us=12 * MINUTE,
        operator_every_us=(20 if faults == "heavy" else 60) * SECOND,
        deploy_every_us=(4 if faults == "heavy" else 30) * MINUTE,
        restart_us=30 * SECOND,
        stubborn_us=2 * MINUTE,
    )


def _patience(rng: random.Random) -> Patience:
    quiet_us = rng.choice((2, 4, 8)) * SECOND
    longest_us = rng.choice((quiet_us, 20 * SECOND, 65 * SECOND))
    return Patience(quiet_us, longest_us, rng.choice(("wait", "wait", "redo")))


def talks(rng: random.Random, faults: Faults) -> World:
    """A few minutes in which the same few people write all the time."""
    mood = {**MOODS[faults], "bounce_rate": 0}
    senders = tuple(
        Sender(
            f"line-{number}",
            {
                "rate": rng.choice(("20/min", "40/min", "60/min burst 3")),
                "timeout": "10s",
                "retry": rng.choice(("3s doubling", "20s,1m,2m")),
                "concurrency": rng.choice((1, 1, 3)),
            },
            settings={
                "seed": rng.randrange(1_000_000),
                "latency": "50ms..2s",
                "retry_after": "20s",
                "timeout_latency": "20s",
                **mood,
                "finds": rng.random() < 0.7,
            },
        )
        for number in range(rng.choice((1, 2, 2)))
    )
    names = tuple(sender.name for sender in senders)
    mailing = Mailing(
        "news",
        names,
        rng.randint(3, 4),
        audience="person",
        launched_after_us=rng.randint(0, MINUTE),
    )
    talk = Talk(
        seed=rng.randrange(1_000_000),
        people=tuple(mailing.address(number) for number in range(mailing.targets)),
        patience={name: _patience(rng) for name in names},
        minds=MINDS if faults != "none" else {Mind.PROMPT: 1},
        stops=rng.choice((0.0, 0.04, 0.12)),
        hooks=(SOON, SOON, SOON, LATER, MUCH_LATER) if faults != "none" else (SOON,),
        twice=0.3,
        strange=0.1,
        rough=frozenset(name for name in names if rng.random() < 0.3),
    )
    return World(
        "talks",
        rng.choice(DAYTIMES),
        lasts_us=rng.randint(2, 4) * MINUTE,
        calm_us=HOUR,
        senders=senders,
        mailings=(mailing,),
        processes=rng.choice((2, 2, 3)),
        fleet=rng.random() < 0.5,
        poll_us=4 * SECOND,
        park_after_us=20 * SECOND,
        talk=talk,
        climate=_climate(faults),
        rests=True,
    )


def answered(mailing: Mailing, within_us: int) -> Mailing:
    """A campaign that follows up on what people answer to it."""
    follow_up = FollowUp(
        Content((Part("text", f"{FOLLOW_UP} {{{{ target }}}}"),)), "reply", within_us
    )
    opening = (Part("text", f"{OPENING} {{{{ target }}}}"),)
    return replace(mailing, parts=opening, follow_up=follow_up)


def replies(rng: random.Random, faults: Faults) -> World:
    """The same with a campaign to more people, who write less: some answer it in time, some too
    late, some had written before, and from some there comes nothing but STOP or a machine's note.

    Nobody sets a clock: by a clock that was set back nobody can tell what came in time.
    """
    world = talks(rng, faults)
    assert world.talk is not None
    within_us = rng.choice((10, 20, 40)) * SECOND
    (news,) = world.mailings
    mailing = replace(answered(news, within_us), targets=rng.randint(5, 8))
    talk = replace(
        world.talk,
        people=tuple(mailing.address(number) for number in range(mailing.targets)),
        minds={Mind.SILENT: 4, Mind.PROMPT: 1},
        rest_us=(10 * SECOND, 150 * SECOND),
        most=2,
        stops=rng.choice((0.0, 0.05)),
        reacts=0.4,
        curt=0.2,
        within_us=within_us,
        after_us=MINUTE,
    )
    climate = world.climate and replace(world.climate, step_every_us=0)
    return replace(world, name="replies", mailings=(mailing,), talk=talk, climate=climate)
