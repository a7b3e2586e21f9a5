"""What the simulator has found in the engine: each with the seed that found it.

A seed leads to the same place only as long as nothing changes on the way there, so each has a test
of its own in ``tests/engine`` or ``tests/store`` as well. The seeds are as good as any others, and
are those that are played of worlds which take long.
"""

from dataclasses import replace

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.sim.many import _quiet
from paceline.sim.simulation import Verdict, play, simulate
from paceline.sim.weather import CLIMATES, Call, Climate, Faults
from tests.sim.small import OFTEN, quick

FOUND: list[tuple[str, Faults, int, str]] = [
    (
        "takeover",
        "heavy",
        29,
        "a lease that ran out and was renewed before the lane looked",
    ),
    ("caps", "heavy", 5011, "a second daily allowance where a midnight came twice"),
    ("moods", "heavy", 14, "a loss told late, which made a doubt nobody's"),
    ("moods", "heavy", 13, "a late answer that made a delivery of a removed account ready"),
    ("takeover", "heavy", 10, "a loss that took back a part accepted in the meantime"),
    ("awake", "heavy", 8, "a clock set back and put right again, which made a gap short"),
    ("post", "heavy", 0, "absence taken for proof while the call of a former owner lived"),
    ("sequel", "heavy", 0, "a retried message whose follow-up stayed skipped"),
    ("storm", "heavy", 412, "a call counted ahead, taken for a wrong clock at every look"),
    ("reminders", "heavy", 19, "firings that waited for their window and lost their turns"),
    ("reminders", "heavy", 20, "the end of a window told by a clock that came later"),
    ("inbox", "heavy", 6, "a bounce that came before its letter was settled, and was forgotten"),
    ("inbox", "heavy", 8, "bounces that paused nobody because the day's cap was reached"),
    ("signals", "heavy", 147, "an alert told by a clock that was behind, and told again"),
    ("any", "heavy", 21010, "a clock put right again while a lane was reading anew: a short gap"),
    ("any", "heavy", 21000, "a removed account's doubt that was to be sent again, cancelled"),
    ("any", "heavy", 40121, "a lane given up as lost that was still its process's: run by nobody"),
    ("any", "heavy", 60040, "an account that was given a burst on the way back: not too fast"),
    ("rush", "heavy", 7, "a deadline that rang for ever, a hair before its time"),
    ("any", "heavy", 50038, "a throttle that was one message's own, held against its account"),
    (
        "any",
        "heavy",
        50141,
        "a STOP told late, and then an older START: out as far as anybody knows",
    ),
    ("any", "heavy", 70097, "a file uploaded by a former owner whose lease was good again"),
]


def played(world: str, faults: Faults, seed: int) -> Verdict:
    with _quiet():
        return simulate(seed, world=world, faults=faults)


def _seldom(climate: Climate, *_: object) -> tuple[int, int, int]:
    return climate.step_every_us, climate.farthest_step_us, climate.wrong_us


@pytest.mark.parametrize(("world", "faults", "seed", "what"), FOUND)
def test_what_was_found_stays_mended(
    world: str, faults: Faults, seed: int, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they were found: when clocks were hardly ever set in worlds of minutes."""
    monkeypatch.setattr(Climate, "clock_steps", _seldom)
    assert played(world, faults, seed).violations == (), what


def test_what_a_slow_clock_finds_is_not_taken_for_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message in doubt was found by a process whose clock was minutes behind, and its recipient
    was written to again by as many minutes too soon."""
    slow = replace(CLIMATES["heavy"], slow=1 / 4, slowest_us=6 * SECOND)
    monkeypatch.setitem(CLIMATES, "heavy", slow)
    with _quiet():
        assert play(5, OFTEN, "heavy").violations == ()


def test_a_doubt_whose_call_may_live_is_not_waited_for_again_by_every_lane() -> None:
    """Found by the world of letters, whose lanes are parked sooner than such a call is given up: it
    was put off by two minutes for ever, and no person heard of it."""
    climate = replace(
        CLIMATES["none"],
        calls=((Call.STUBBORN, 1 / 2), (Call.CRASH_BEFORE, 1 / 5)),
        stubborn_us=10 * MINUTE,
        restart_us=30 * SECOND,
    )
    policy, provider = {"spacing": "60s", "timeout": "10s"}, {"lost_rate": 0.6}
    world = replace(
        quick(policy, accounts=1, targets=12, mood="none", provider=provider),
        climate=climate,
        park_after_us=20 * SECOND,
        processes=2,
        lasts_us=20 * MINUTE,
        calm_us=12 * HOUR,
    )
    with _quiet():
        assert play(0, world, "heavy").violations == ()
