"""What goes wrong around simulated processes, how often, and by which chance.

Only the drawing of lots is done here. What a crash or a lost answer does is told where it strikes:
``process.py`` for the process and its ports, ``provider`` settings for the far side of the wire.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Literal, get_args

from paceline.core.errors import InputError
from paceline.core.instants import HOUR, MILLISECOND, MINUTE, SECOND

Faults = Literal["none", "light", "heavy"]
FAULTS: tuple[Faults, ...] = get_args(Faults)


def known_faults(text: str) -> Faults:
    """What a person wrote, or a refusal that says what can be written."""
    for known in FAULTS:
        if text == known:
            return known
    raise InputError(f"faults cannot be '{text}'", hint=f"Say one of {', '.join(FAULTS)}")


class Commit(Enum):
    """What becomes of one visit to the store."""

    WELL = auto()
    CRASH_BEFORE = auto()
    CRASH_AFTER = auto()
    REFUSED = auto()  # the connection breaks before anything is stored
    UNHEARD = auto()  # it is stored, and the answer is lost
    AWAY = auto()  # the database goes away for a while
    STANDSTILL = auto()  # the process is paused between the commit and its answer
    BUSY = auto()  # somebody else holds the file for longer than we wait
    CONFLICT = auto()  # somebody else was in the way: all of it is undone
    ROW = auto()  # one row is held by somebody else for long


class Call(Enum):
    """What becomes of one call of the provider, beside what the provider itself decides."""

    WELL = auto()
    CRASH_BEFORE = auto()
    CRASH_DURING = auto()
    CRASH_AFTER = auto()
    CUT = auto()  # the connection breaks while the message is on its way
    STANDSTILL = auto()
    RAISES = auto()  # the driver fails before anything is on its way
    STUBBORN = auto()  # the driver hears of no cancellation, and delivers in its own time


class Ring(Enum):
    """What becomes of one notice to the people of a world."""

    WELL = auto()
    CRASH_BEFORE = auto()
    CRASH_AFTER = auto()
    UNREACHED = auto()
    CUT = auto()  # it rang, and the answer says that it did not


RINGS = (
    (Ring.CRASH_BEFORE, 1 / 6),
    (Ring.CRASH_AFTER, 1 / 6),
    (Ring.UNREACHED, 1 / 8),
    (Ring.CUT, 1 / 8),
)
"""As long as the weather is bad at all: there are few notices, and each is worth a crash."""


class Read(Enum):
    """What becomes of one reading of a mailbox that brings something."""

    WELL = auto()
    CRASH = auto()  # with the mail in hand, and nothing written down
    CUT = auto()
    STANDSTILL = auto()


READS = ((Read.CRASH, 1 / 8), (Read.CUT, 1 / 8), (Read.STANDSTILL, 1 / 12))
"""As for notices: there are few, and each is worth a crash."""


class Ask(Enum):
    """What becomes of a process that asks somebody for an answer."""

    WELL = auto()
    CRASH = auto()  # while it waits
    CRASH_AFTER = auto()  # with the answer in hand, and nothing written down
    STANDSTILL = auto()  # for so long that others may have taken its turn


ASKS = ((Ask.CRASH, 1 / 20), (Ask.CRASH_AFTER, 1 / 20), (Ask.STANDSTILL, 1 / 12))
"""Likewise."""


@dataclass(frozen=True, slots=True)
class Climate:
    """How often, as chances: per visit to the store, per call, per turn of the loop."""

    commits: tuple[tuple[Commit, float], ...] = ()
    calls: tuple[tuple[Call, float], ...] = ()
    opens: float = 0.0
    """Logins that take long, and every other one of them fails in the end."""
    login_us: int = 20 * SECOND
    stubborn_us: int = 6 * MINUTE
    """How long a call that nobody can call off takes at most."""
    turns_per_crash: int = 0
    """How many turns of the loop, on average, until somebody dies between two; 0 for never."""
    slow: float = 0.0
    """Visits to the store that take their time."""
    slowest_us: int = 0
    away_us: int = 0
    standstill_us: int = 0
    step_every_us: int = 0
    """How long, on average, between two settings of the clock; 0 for never. In a world that is too
    short for a few of them all about them is less, in proportion."""
    farthest_step_us: int = 0
    wrong_us: int = HOUR
    """How long a clock stays wrong at most."""
    operator_every_us: int = 0
    deploy_every_us: int = 0
    """How long, on average, until all processes are stopped in good order; 0 for never."""
    restart_us: int = MINUTE
    """How long a crashed process stays away at most."""

    def clock_steps(self, lasts_us: int, rng: random.Random) -> tuple[int, int, int]:
        """How often clocks are set in a world, how far back, and for how long, at most.

        In every other short world as seldom as in any, which is hardly ever: where clocks went
        wrong nobody outside can tell much of what is to the second, and judges let it pass.
        """
        steps = (self.step_every_us, self.farthest_step_us, self.wrong_us)
        long_us = STEPS * self.step_every_us
        if lasts_us >= long_us or rng.random() < 0.5:
            return steps
        every_us, farthest_us, wrong_us = (us * lasts_us // long_us for us in steps)
        return every_us, farthest_us, wrong_us


STEPS = 3
"""A world in which clocks are not set so many times on average is too short for what is far."""

CLIMATES: dict[Faults, Climate] = {
    "none": Climate(),
    "light": Climate(
        commits=(
            (Commit.CRASH_BEFORE, 1 / 4_000),
            (Commit.CRASH_AFTER, 1 / 4_000),
            (Commit.REFUSED, 1 / 2_000),
            (Commit.UNHEARD, 1 / 2_000),
            (Commit.AWAY, 1 / 8_000),
            (Commit.STANDSTILL, 1 / 8_000),
            (Commit.BUSY, 1 / 4_000),
            (Commit.CONFLICT, 1 / 2_000),
            (Commit.ROW, 1 / 4_000),
        ),
        calls=(
            (Call.CRASH_BEFORE, 1 / 1_000),
            (Call.CRASH_DURING, 1 / 500),
            (Call.CRASH_AFTER, 1 / 1_000),
            (Call.CUT, 1 / 300),
            (Call.STANDSTILL, 1 / 1_000),
            (Call.RAISES, 1 / 1_000),
            (Call.STUBBORN, 1 / 1_000),
        ),
        opens=1 / 50,
        turns_per_crash=45_000,
        slow=1 / 50,
        slowest_us=2 * SECOND,
        away_us=20 * SECOND,
        standstill_us=40 * SECOND,
        step_every_us=12 * HOUR,
        farthest_step_us=10 * MINUTE,
        operator_every_us=2 * HOUR,
        deploy_every_us=24 * HOUR,
    ),
    "heavy": Climate(
        commits=(
            (Commit.CRASH_BEFORE, 1 / 400),
            (Commit.CRASH_AFTER, 1 / 400),
            (Commit.REFUSED, 1 / 250),
            (Commit.UNHEARD, 1 / 250),
            (Commit.AWAY, 1 / 800),
            (Commit.STANDSTILL, 1 / 800),
            (Commit.BUSY, 1 / 400),
            (Commit.CONFLICT, 1 / 200),
            (Commit.ROW, 1 / 400),
        ),
        calls=(
            (Call.CRASH_BEFORE, 1 / 150),
            (Call.CRASH_DURING, 1 / 60),
            (Call.CRASH_AFTER, 1 / 150),
            (Call.CUT, 1 / 60),
            (Call.STANDSTILL, 1 / 100),
            (Call.RAISES, 1 / 200),
            (Call.STUBBORN, 1 / 80),
        ),
        opens=1 / 10,
        turns_per_crash=7_200,
        slow=1 / 10,
        slowest_us=12 * SECOND,
        away_us=40 * SECOND,
        standstill_us=90 * SECOND,
        step_every_us=2 * HOUR,
        farthest_step_us=3 * HOUR,
        operator_every_us=20 * MINUTE,
        deploy_every_us=8 * HOUR,
    ),
}

STORM = replace(
    CLIMATES["heavy"],
    commits=(
        (Commit.CRASH_BEFORE, 1 / 40),
        (Commit.CRASH_AFTER, 1 / 30),
        (Commit.UNHEARD, 1 / 100),
        (Commit.CONFLICT, 1 / 100),
    ),
    calls=(
        (Call.CRASH_BEFORE, 1 / 15),
        (Call.CRASH_DURING, 1 / 8),
        (Call.CRASH_AFTER, 1 / 12),
        (Call.STUBBORN, 1 / 40),
    ),
    turns_per_crash=540,
    restart_us=8 * SECOND,
)
"""Crashes ten times as often as in heavy weather: hardly anything is done in one go."""

MOODS: dict[Faults, dict[str, Any]] = {
    "none": {},
    "light": {
        "transient_rate": 0.02,
        "reject_rate": 0.005,
        "bounce_rate": 0.002,
        "throttle_rate": 0.003,
        "unavailable_rate": 0.005,
        "timeout_rate": 0.004,
        "lost_rate": 0.004,
    },
    "heavy": {
        "transient_rate": 0.06,
        "reject_rate": 0.01,
        "bounce_rate": 0.004,
        "throttle_rate": 0.01,
        "unavailable_rate": 0.01,
        "timeout_rate": 0.03,
        "lost_rate": 0.02,
    },
}
"""The provider's own faults, as settings of a sandbox account."""


class Weather:
    """One world's luck, drawn from its seed. ``clear_up`` ends the bad weather for good."""

    def __init__(self, climate: Climate, rng: random.Random) -> None:
        self.climate = climate
        self._rng = rng
        # Commits are the most frequent thing there is. Sums of floats are not exact.
        self._any_commit = sum(chance for _, chance in climate.commits) + 1e-9

    def clear_up(self) -> None:
        self.climate = CLIMATES["none"]

    @property
    def clear(self) -> bool:
        return self.climate is CLIMATES["none"]

    def commit(self) -> Commit:
        return self._drawn(self.climate.commits, Commit.WELL, self._any_commit)

    def call(self) -> Call:
        return self._drawn(self.climate.calls, Call.WELL)

    def ring(self) -> Ring:
        fate: Ring = self._drawn(() if self.clear else RINGS, Ring.WELL)
        return fate

    def read(self) -> Read:
        fate: Read = self._drawn(() if self.clear else READS, Read.WELL)
        return fate

    def ask(self) -> Ask:
        fate: Ask = self._drawn(() if self.clear else ASKS, Ask.WELL)
        return fate

    def login(self) -> tuple[int, bool]:
        """How long a login takes beside what the provider takes for it, and whether it works."""
        if not self.climate.opens or self._rng.random() >= self.climate.opens:
            return 0, True
        return self.up_to(self.climate.login_us), self._rng.random() < 0.5

    def store_takes_us(self) -> int:
        """How long the store takes; mostly no time at all, so that others get no turn between."""
        climate, draw = self.climate, self._rng.random()
        if draw < climate.slow:
            return self._rng.randint(MILLISECOND, climate.slowest_us)
        return self._rng.randint(1, 5 * MILLISECOND) if draw > 0.75 and not self.clear else 0

    def up_to(self, longest_us: int) -> int:
        return self._rng.randint(1, max(1, longest_us))

    def after(self, mean_us: int) -> int:
        """So long on average. Drawn without a logarithm: its last digit differs by machine."""
        return self._rng.randint(1, 2 * mean_us)

    def choose(self, among: list[Any]) -> Any:
        return self._rng.choice(among)

    def _drawn(self, chances: tuple[tuple[Any, float], ...], well: Any, likely: float = 1.0) -> Any:
        """``likely`` is no less than all chances together."""
        if not chances:
            return well
        draw = self._rng.random()
        if draw > likely:
            return well
        for fate, chance in chances:
            draw -= chance
            if draw < 0:
                return fate
        return well
