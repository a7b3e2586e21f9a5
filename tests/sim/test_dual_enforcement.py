"""Limits are kept when sending, whatever the plan says: a plan is only a wish for when.

And what no longer fits when its time comes has a minute of its own at which it does.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, to_datetime
from paceline.core.limits import Booked
from paceline.core.relocating import Relocation
from paceline.engine import planning, putting_off
from paceline.engine.planning import RunPlan
from paceline.engine.ports import Tx
from paceline.engine.ports.timetable import IN_LINE_WORDS, Later
from paceline.sim.campaign_worlds import office
from paceline.sim.many import _quiet
from paceline.sim.simulation import play
from paceline.sim.worlds import World
from tests.sim.small import CAPPED, CLOSING, SPACED
from tests.sim.twins import only


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with _quiet():
        yield


def _planned(world: World) -> World:
    mailings = tuple(replace(mailing, planned=True) for mailing in world.mailings)
    return replace(world, mailings=mailings, operated=True, calm_us=world.calm_us + HOUR)


@pytest.mark.parametrize("world", [CAPPED, CLOSING, SPACED], ids=["caps", "hours", "spacing"])
def test_a_plan_that_lays_everything_out_at_once_breaks_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_run, told = planning.plan_run, []

    def everything_now(tx: Tx, run_id: int, at: Instant) -> RunPlan:
        plan = plan_run(tx, run_id, at)
        rash = {key: slot._replace(at=at) for key, slot in plan.slots.items()}
        told.append(len({slot.at for slot in plan.slots.values()}))
        return replace(plan, slots=rash)

    monkeypatch.setattr(planning, "plan_run", everything_now)
    for seed in range(2):
        assert play(seed, _planned(world), "heavy").violations == ()
    assert all(instants > 5 for instants in told), "the honest plan had spread them out"


# ---------------------------------------------------------------------- what no longer fits

NEW_YORK = ZoneInfo("America/New_York")


def _small_office(seed: int) -> World:
    """Two desks for a week instead of five for two, and people who write from them by hand."""
    world = office(random.Random(seed), "heavy")
    (letters,) = world.mailings
    desks = world.senders[:2]
    fewer = replace(letters, senders=tuple(desk.name for desk in desks), targets=160)
    return replace(
        world, senders=desks, mailings=(fewer,), lasts_us=7 * DAY, orders_us=HOUR, thorough=False
    )


def _wrong(tx: Tx, account_id: int, moves: Sequence[Later]) -> list[str]:
    """What is wrong with the minutes that were given, by the wall clock and by counting."""
    given = {move.key: move.at for move in moves if not move.why.endswith(IN_LINE_WORDS)}
    local = {key: to_datetime(at).astimezone(NEW_YORK) for key, at in given.items()}
    wrong = [
        f"{at} is out of hours"
        for at in local.values()
        if at.weekday() >= 5 or not 9 <= at.hour < 18
    ]
    runs = [run.id for run in tx.waiting.runs([account_id]) if run.kind == "campaign"]
    fresh = [row for row in tx.waiting.due(runs, account_id, 1_000) if not row.attempts]
    planned = sorted((row.due_at or 0, row.id) for row in fresh if not row.in_line)
    for (sooner_at, sooner), (later_at, later) in pairwise(planned):
        if (sooner in given or later in given) and later_at - sooner_at < 6 * MINUTE - SECOND:
            wrong.append(f"{later} comes {(later_at - sooner_at) / MINUTE:.1f} min after {sooner}")
    days = Counter(to_datetime(at).astimezone(NEW_YORK).date() for at, _ in planned)
    full = {at.date() for at in local.values() if days[at.date()] > 20}
    return wrong + [f"{days[day]} on {day}" for day in sorted(full)]


def _looked_over(patch: pytest.MonkeyPatch) -> tuple[list[str], list[int]]:
    """Everything that is ever wrong, and how many letters were put off each time."""
    write, wrong, times = putting_off._write, list[str](), list[int]()

    def watched(tx: Tx, account_id: int, moves: Sequence[Later]) -> int:
        moved = write(tx, account_id, moves)
        # What was written by hand has no minute, and waits where the gate opens.
        if tx.deliveries.get(moves[0].key).content is None:
            times.append(moved)
            wrong.extend(_wrong(tx, account_id, moves))
        return moved

    patch.setattr(putting_off, "_write", watched)
    return wrong, times


def test_what_a_day_has_no_room_for_has_minutes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    only("sends from")(monkeypatch)
    wrong, times = _looked_over(monkeypatch)
    assert play(1, _small_office(1), "heavy").violations == ()
    assert wrong == []
    assert sum(times) > 10, "there was not enough to be put off"


def test_all_of_them_at_the_opening_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: everybody is given the instant at which the gate opens."""

    def at_once(
        seat: object, booked: object, homeless: Sequence[Booked], *_: object, **__: object
    ) -> Relocation:
        return Relocation({one.key: one.at for one in homeless})

    only("sends from")(monkeypatch)
    wrong, _ = _looked_over(monkeypatch)
    monkeypatch.setattr(putting_off, "rehoused", at_once)
    assert play(1, _small_office(1), "heavy").violations == (), "no limit is broken by it"
    assert any("0.0 min after" in text for text in wrong)
    assert any(" on 2026-" in text for text in wrong), "and tomorrow is full already"
