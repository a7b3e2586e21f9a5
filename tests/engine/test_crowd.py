"""Lanes that were late together step out of each other's way, so that nobody is late any more."""

from __future__ import annotations

import heapq

from paceline.core.instants import MILLISECOND, MINUTE, SECOND, Instant
from paceline.engine.crowd import FARTHEST_US, LATE_US, STEP_US, TOGETHER_US, Crowd, Place
from tests.engine.scenes import called, gaps
from tests.engine.test_slow_commits import SlowRunner
from tests.engine.world import World
from tests.engine.worlds import Worlds

GAP_US = 1_500 * MILLISECOND
EACH_US = 300
"""What a message takes of the machine."""


class Stubborn(Crowd):
    """Nobody ever steps back."""

    def step_back_us(self, due_at: Instant, called_at: Instant) -> int:
        return 0


def mean_lateness_us(crowd: Crowd, lanes: int, rounds: int) -> float:
    """In the last of so many rounds of lanes that began at the same instant, on a machine that
    takes up all who are due, is busy with them together, and lets all of them go at its end."""
    places = [Place(crowd) for _ in range(lanes)]
    due = [(place.stepped_back(0), number) for number, place in enumerate(places)]
    heapq.heapify(due)
    late: list[int] = []
    now, left = 0, lanes * rounds
    while left > 0:
        now = max(now, due[0][0])
        group = []
        while due and due[0][0] <= now:
            group.append(heapq.heappop(due))
        now += EACH_US * len(group)
        for due_at, number in group:
            places[number].called(now)
            late.append(now - due_at)
            heapq.heappush(due, (places[number].stepped_back(now + GAP_US), number))
        left -= len(group)
    return sum(late[-lanes:]) / lanes


def test_a_crowd_dissolves() -> None:
    assert mean_lateness_us(Crowd(), lanes=300, rounds=6) < 2 * MILLISECOND


def test_without_stepping_back_it_never_does() -> None:
    assert mean_lateness_us(Stubborn(), lanes=300, rounds=60) == 300 * EACH_US


def test_who_was_late_alone_stays_where_it_is() -> None:
    crowd = Crowd()
    for at in range(0, 20 * TOGETHER_US, TOGETHER_US):
        assert crowd.step_back_us(at, at + 90 * MILLISECOND) == 0


def test_places_are_given_in_order_to_those_who_are_late_and_bounded() -> None:
    crowd, at = Crowd(), SECOND
    assert crowd.step_back_us(at, at + LATE_US - 1) == 0
    places = [crowd.step_back_us(at, at + LATE_US) for _ in range(1_000)]
    assert places[:3] == [0, STEP_US, 2 * STEP_US]
    assert max(places) == FARTHEST_US
    assert crowd.step_back_us(at, at + LATE_US + TOGETHER_US) == 0, "another crowd"


def test_a_call_that_was_not_made_says_nothing() -> None:
    crowd = Crowd()
    place = Place(crowd)
    crowd.step_back_us(0, LATE_US)
    place.stepped_back(0)
    place.called(None)
    place.called(LATE_US)
    assert place.stepped_back(GAP_US) == GAP_US


def test_lanes_of_a_slow_start_keep_their_pace_afterwards(worlds: Worlds) -> None:
    """Commits are slow while they begin, and so all of them are late together at first."""

    names = tuple(f"lane-{number:02}" for number in range(20))

    async def script(world: World) -> None:
        for name in names:
            world.account(name, policy={"rate": "60/min"})
        world.campaign(20 * len(names), on=names)
        process = world.process()
        process.journal._writer = SlowRunner(world, 400 * MILLISECOND)
        await world.until(lambda: len(world.calls()) >= 60, MINUTE)
        process.journal._writer = SlowRunner(world, 0)
        await world.until_finished(within_us=MINUTE)
        await process.stop()
        kept = [gap for name in names for gap in gaps(called(world, name)[-5:])]
        assert len(kept) == 4 * len(names)
        assert SECOND <= min(kept) <= max(kept) <= SECOND + MILLISECOND
        last = sorted(called(world, name)[-1] for name in names)
        assert min(gaps(last)) >= STEP_US // 2, "they are a crowd no more"

    worlds.fresh().play(script)
