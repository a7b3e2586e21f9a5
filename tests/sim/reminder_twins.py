"""Broken twins of reminders: firings, windows, turns, members, uploads, bans, and what is told.

The others, and what a twin is, are in ``twins.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from sqlalchemy import update

from paceline.core import gates, zones
from paceline.core.hours import Hours
from paceline.core.instants import DAY, MINUTE, Instant
from paceline.core.schedule import Rule
from paceline.core.slots import Rank
from paceline.core.states import DeliveryState
from paceline.engine import (
    agenda,
    allotting,
    firing,
    putting_off,
    reminder_spec,
    runs,
    summaries,
    turns,
)
from paceline.engine.commands import reassigning
from paceline.engine.ports import Delivery, Reminder, Run
from paceline.store import pools
from paceline.store.campaigns import Runs
from paceline.store.media import MediaShelf
from paceline.store.reminders import Reminders
from paceline.store.schema import deliveries
from paceline.store.sqlite_in_memory import InMemoryStore
from tests.sim.reminder_nights import (
    BANNED,
    BEHIND,
    BERLIN,
    CHANGED,
    CLOSING,
    CUT_SHORT,
    DARK,
    DOUBLED,
    DOUBTED,
    IN_TURN,
    MEMBERS,
    MORNING,
    OVERTAKEN,
    PICTURES,
    SHORT,
    SKIPPED,
    THROWN_OUT,
)
from tests.sim.twins import Twin, _lanes_seem, only

# ---------------------------------------------------------------------- never misfired


def whoever_looks_fires(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks whether somebody else has, and the tables do not either: a reminder may have two
    runs for one time."""
    advance, prepare = Reminders.advance, InMemoryStore.__init__

    def without_its_index(self: InMemoryStore, clock: Callable[[], Instant]) -> None:
        prepare(self, clock)
        self._driver.execute("DROP INDEX ix_runs_firing")

    def anyhow(self: Reminders, seen: Reminder, next_at: Instant | None) -> bool:
        advance(self, seen, next_at)
        return True

    patch.setattr(InMemoryStore, "__init__", without_its_index)
    patch.setattr(Reminders, "advance", anyhow)
    patch.setattr(Runs, "last_fired_for", lambda *_: 0)


def _by_minutes(patch: pytest.MonkeyPatch, *, twice: bool) -> None:
    """Every minute is looked at on the wall, as if clocks never changed."""

    def firings(self: Rule, after: Instant) -> Iterator[Instant]:
        minute, hour = (self.cron or "").split()[:2]
        at = after // MINUTE * MINUTE
        for _ in range(3 * DAY // MINUTE):
            at += MINUTE
            here = zones.wall_at(at, self.zone)
            on = here.minute % 30 == 0 if "/" in minute else here.minute == int(minute)
            if on and hour in ("*", str(here.hour)) and (twice or not here.fold):
                yield at

    patch.setattr(Rule, "firings", firings)


def an_hour_that_comes_twice_fires_twice(patch: pytest.MonkeyPatch) -> None:
    _by_minutes(patch, twice=True)


def an_hour_that_is_skipped_fires_a_day_later(patch: pytest.MonkeyPatch) -> None:
    _by_minutes(patch, twice=False)


def what_is_missed_is_missed_in_silence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(firing, "_miss", lambda *_, **__: None)


def whoever_comes_late_fires_all_the_same(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(firing, "_why_missed", lambda *_: "")


def a_window_that_closed_meanwhile_is_no_excuse(patch: pytest.MonkeyPatch) -> None:
    """Whoever is two minutes late fires, and nothing is sent."""
    patch.setattr(firing, "_closed_since", lambda *_: False)


def what_is_due_is_forgotten_with_an_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(firing, "forgo", lambda *_: None)


def a_slow_clock_brings_a_firing_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Runs, "last_fired_for", lambda *_: 0)


def the_last_target_is_left_out(patch: pytest.MonkeyPatch) -> None:
    whom = firing.whom

    def most(*about: Any) -> Any:
        targets, unreachable = whom(*about)
        return targets[:-1], unreachable

    patch.setattr(firing, "whom", most)


# ---------------------------------------------------------------------- never out of hours


def a_window_is_read_by_another_clock(patch: pytest.MonkeyPatch) -> None:
    window_of = reminder_spec.window_of
    patch.setattr(reminder_spec, "window_of", lambda raw, _: window_of(raw, "UTC"))


def the_end_of_the_window_is_ignored(patch: pytest.MonkeyPatch) -> None:
    window = Hours.parse(f"Mon-Sun 00:00-24:00 {BERLIN}")
    patch.setattr(reminder_spec, "window_of", lambda *_: window)


# ---------------------------------------------------------------------- never ahead of its turn


def runs_of_equal_rank_share(patch: pytest.MonkeyPatch) -> None:
    rank = agenda._rank

    def as_campaigns_do(queue: agenda.RunQueue, now: Instant) -> tuple[Rank, int]:
        (kind, priority, _, closes_at, _), served = rank(queue, now)
        return (kind, priority, False, closes_at, 0), served

    patch.setattr(agenda, "_rank", as_campaigns_do)


def whoever_closes_first_goes_first(patch: pytest.MonkeyPatch) -> None:
    """Even before one that has begun."""
    rank = agenda._rank

    def by_closing(queue: agenda.RunQueue, now: Instant) -> tuple[Rank, int]:
        (kind, priority, _, closes_at, turn), served = rank(queue, now)
        return (kind, priority, False, closes_at, turn), served

    patch.setattr(agenda, "_rank", by_closing)


def firings_are_given_minutes(patch: pytest.MonkeyPatch) -> None:
    """Those that wait for their windows are laid out as campaigns are."""

    def rank_of(run: Run, _: Instant) -> Rank:
        return run.kind != "direct", -run.priority, False, run.closes_at or turns.FAR, 0

    patch.setattr(putting_off, "has_minutes", lambda run: run.kind != "direct")
    patch.setattr(putting_off, "planned_rank", rank_of)


# ---------------------------------------------------------------------- never astray, wasteful


def whoever_is_asked_is_a_member(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(allotting, "_able", lambda numbers, *_: list(numbers))


def what_was_begun_goes_on_from_another(patch: pytest.MonkeyPatch) -> None:
    """As if nobody had seen the first part."""
    waiting, hand_over = reassigning._waiting, pools.Pools.hand_over

    def forgetful(*about: Any) -> list[Delivery]:
        return [row._replace(parts_done=0) for row in waiting(*about)]

    def all_of_it(self: pools.Pools, account: int, run: int, owners: Mapping[int, int]) -> Any:
        begun = update(deliveries).where(deliveries.c.id.in_(list(owners)))
        self._connection.execute(begun.values(parts_done=0))
        return hand_over(self, account, run, owners)

    patch.setattr(reassigning, "_waiting", forgetful)
    patch.setattr(pools.Pools, "hand_over", all_of_it)


def handles_are_kept_in_memory_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MediaShelf, "uploaded", lambda *_: None)


# ---------------------------------------------------------------------- never from the thrown out


def a_suspended_account_goes_on(patch: pytest.MonkeyPatch) -> None:
    _lanes_seem(patch, lambda row: (*row[:5], True))
    patch.setattr(gates.StatusGate, "earliest", lambda _, at, *rest: at)


# ---------------------------------------------------------------------- never misreported


def what_is_in_doubt_is_told_as_delivered(patch: pytest.MonkeyPatch) -> None:
    summary = summaries.summary

    def hopeful(tx: Any, run: Any, counts: Mapping[DeliveryState, int]) -> str:
        sent = counts[DeliveryState.SENT] + counts[DeliveryState.UNKNOWN]
        return summary(tx, run, {**counts, DeliveryState.SENT: sent, DeliveryState.UNKNOWN: 0})

    patch.setattr(runs, "summary", hopeful)


def nobody_hears_of_a_run_that_fell_short(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(runs, "fell_short", lambda *_: None)


def whoever_stood_still_is_at_capacity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(summaries, "_stood_still", lambda *_: {})


FIRED = "never misfired"
HOURS = "never out of hours"
TURN = "never ahead of its turn"
ASTRAY = "never astray"
TOLD = "never misreported"

REMINDER_TWINS = (
    Twin(whoever_looks_fires, FIRED, DOUBLED, 4),
    Twin(an_hour_that_comes_twice_fires_twice, FIRED, DOUBLED, 1),
    Twin(an_hour_that_is_skipped_fires_a_day_later, FIRED, SKIPPED, 1),
    Twin(the_last_target_is_left_out, FIRED, SKIPPED, 1),
    Twin(what_is_missed_is_missed_in_silence, FIRED, DARK, 1),
    Twin(whoever_comes_late_fires_all_the_same, FIRED, DARK, 6, first=1),
    Twin(a_window_that_closed_meanwhile_is_no_excuse, FIRED, CLOSING, 6, first=1),
    Twin(
        what_is_due_is_forgotten_with_an_order,
        FIRED,
        CHANGED,
        2,
        provokes=only("edits", "disables", "enables"),
    ),
    Twin(
        a_slow_clock_brings_a_firing_back,
        FIRED,
        BEHIND,
        6,
        first=10,
        provokes=only("disables", "enables"),
    ),
    Twin(the_end_of_the_window_is_ignored, HOURS, SHORT, 2),
    Twin(a_window_is_read_by_another_clock, HOURS, SHORT, 2),
    Twin(runs_of_equal_rank_share, TURN, IN_TURN, 4),
    Twin(whoever_closes_first_goes_first, TURN, OVERTAKEN, 6, first=1),
    Twin(firings_are_given_minutes, TURN, MORNING, 4),
    Twin(whoever_is_asked_is_a_member, ASTRAY, MEMBERS, 1),
    Twin(what_was_begun_goes_on_from_another, ASTRAY, BANNED, 4, provokes=only("reassigns")),
    Twin(handles_are_kept_in_memory_only, "never wasteful", PICTURES, 2),
    Twin(a_suspended_account_goes_on, "never from the thrown out", THROWN_OUT, 1),
    Twin(what_is_in_doubt_is_told_as_delivered, TOLD, DOUBTED, 1),
    Twin(nobody_hears_of_a_run_that_fell_short, TOLD, DOUBTED, 1),
    Twin(whoever_stood_still_is_at_capacity, TOLD, CUT_SHORT, 2, first=1),
)
