"""Broken twins of reminders: firings, windows, turns, members, uploads, bans, and what is told.

The others, and what a twin is, are in ``twins.py``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import update

from paceline.core import gates, zones
from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, Instant, parse_instant
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
)
from paceline.engine.commands import reassigning
from paceline.engine.ports import Delivery, Reminder, Run
from paceline.providers.sandbox.provider import group_id
from paceline.sim import stage
from paceline.sim.reminding import Reminding, Routine
from paceline.sim.weather import MOODS, Faults
from paceline.sim.worlds import Sender, World
from paceline.store import pools
from paceline.store.campaigns import Runs
from paceline.store.media import MediaShelf
from paceline.store.reminders import Reminders
from paceline.store.schema import deliveries
from tests.sim.twins import Twin, _lanes_seem, only

# ---------------------------------------------------------------------- small worlds

BERLIN = "Europe/Berlin"
AUTUMN = parse_instant("2026-10-25T00:50", BERLIN)
SPRING = parse_instant("2026-03-29T01:20", BERLIN)
HELLO = {"text": "good morning"}
PLAN = {"media": "plan.png", "caption": "today's plan"}


def _to(*numbers: int) -> tuple[str, ...]:
    return tuple(group_id(number) for number in range(*numbers))


def _reminding(name: str, targets: tuple[str, ...], **raw: Any) -> Reminding:
    usual = {
        "name": name,
        "accounts": ["phone-0"],
        "cron": "*/30 * * * *",
        "zone": BERLIN,
        "window": "0-24",
        "parts": [HELLO],
        "at_close": "skip",
        "priority": 0,
    }
    return Reminding({**usual, **raw}, targets)


def _night(
    *made: Reminding,
    start_at: Instant = AUTUMN,
    lasts_us: int = 70 * MINUTE,
    mood: Faults = "none",
    senders: tuple[Mapping[str, Any], ...] = ({},),
    policy: Mapping[str, Any] | None = None,
    drafts: tuple[Mapping[str, Any], ...] = (),
    dark: tuple[tuple[int, int], ...] = (),
    behind_us: int = 0,
    operated: bool = False,
) -> World:
    accounts = tuple(
        Sender(
            f"phone-{number}",
            {"rate": "60/min", "timeout": "10s", **(policy or {})},
            settings={"latency": "10ms..800ms", "groups": "1..40", **MOODS[mood], **settings},
        )
        for number, settings in enumerate(senders)
    )
    return World(
        "small",
        start_at,
        lasts_us=lasts_us,
        calm_us=2 * DAY,
        senders=accounts,
        mailings=(),
        processes=2,
        poll_us=MINUTE,
        operated=operated,
        routine=Routine(
            made,
            drafts=drafts,
            synced=frozenset(sender.name for sender in accounts),
            dark=dark,
            behind_us=behind_us,
        ),
    )


DOUBLED = _night(_reminding("standup", _to(1, 6)), lasts_us=2 * HOUR + 30 * MINUTE)
"""The clocks go back from three to two."""
SKIPPED = _night(
    _reminding("standup", _to(1, 6), cron="30 2 * * *"), start_at=SPRING, lasts_us=HOUR
)
SHORT = _night(
    _reminding("standup", _to(1, 41), cron="0 1-2 * * *", window="0-2"),
    mood="heavy",
    lasts_us=90 * MINUTE,
)
"""Its window closes when it has hardly begun."""
IN_TURN = _night(
    _reminding("standup", _to(1, 21), cron="0 1 * * *"),
    _reminding("backup", _to(21, 41), cron="0 1 * * *"),
    lasts_us=20 * MINUTE,
)
MORNING = _night(
    _reminding("standup", _to(1, 16), cron="0 1 * * *", window="2-5"),
    _reminding("backup", _to(21, 36), cron="9 1 * * *", window="2-5", priority=1),
    lasts_us=75 * MINUTE,
)
"""Both wait for their windows to open, and the second one goes first."""
MEMBERS = _night(
    _reminding("standup", _to(1, 21), cron="0 1 * * *", accounts=["phone-0", "phone-1"]),
    senders=({"groups": "1..12"}, {"groups": "8..18"}),
    lasts_us=20 * MINUTE,
)
PICTURES = _night(
    _reminding("standup", _to(1, 8), cron="*/20 * * * *", parts=[PLAN]), lasts_us=80 * MINUTE
)
"""Between two firings its lane is parked."""
DARK = _night(
    _reminding("standup", _to(1, 4), cron="*/10 * * * *", window="1-2"),
    lasts_us=100 * MINUTE,
    dark=((12 * MINUTE, 35 * MINUTE), (10 * MINUTE, 15 * MINUTE)),
)
"""Nobody is there for a while, twice, and the second time until after the window."""
CHANGED = _night(
    _reminding("standup", _to(1, 4), cron="*/10 * * * *"),
    lasts_us=100 * MINUTE,
    drafts=({"cron": "5-59/10 * * * *"}, {"cron": "*/10 * * * *"}),
    dark=((5 * MINUTE, 80 * MINUTE),),
    operated=True,
)
BEHIND = _night(
    _reminding("standup", _to(1, 3), cron="*/5 * * * *"),
    lasts_us=HOUR,
    behind_us=8 * MINUTE,
    operated=True,
)
"""By the clock of those who give orders, what has just fired is yet to come."""
BANNED = _night(
    _reminding(
        "standup",
        _to(1, 21),
        accounts=["phone-0", "phone-1"],
        cron="0 * * * *",
        parts=[HELLO, HELLO, HELLO],
    ),
    senders=({}, {"ban_after": 16}),
    policy={"concurrency": 3},
    lasts_us=80 * MINUTE,
    operated=True,
)
THROWN_OUT = _night(
    _reminding("standup", _to(1, 11), cron="0 1 * * *"),
    senders=({"ban_after": 3},),
    policy={"rate": "6/min"},
    lasts_us=15 * MINUTE,
)
DOUBTED = _night(
    _reminding("standup", _to(1, 7), cron="0 1 * * *"),
    senders=({"finds": False, "timeout_at": (3,), "reject_at": (5,)},),
    lasts_us=15 * MINUTE,
)


# ---------------------------------------------------------------------- never misfired


@cache
def _without_its_index() -> bytes:
    """An empty database in which a reminder may have two runs for one time."""
    with TemporaryDirectory(prefix="paceline-sim-") as folder:
        path = Path(folder) / "blank.db"
        path.write_bytes(stage.blank_database())
        connection = sqlite3.connect(path)
        connection.execute("DROP INDEX ix_runs_firing")
        connection.commit()
        connection.close()
        return path.read_bytes()


def whoever_looks_fires(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks whether somebody else has."""
    blank = _without_its_index()
    advance = Reminders.advance

    def anyhow(self: Reminders, seen: Reminder, next_at: Instant | None) -> bool:
        advance(self, seen, next_at)
        return True

    patch.setattr("paceline.sim.simulation.blank_database", lambda: blank)
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

    def as_campaigns_do(queue: agenda.RunQueue) -> tuple[bool, int, Instant, int, int]:
        kind, priority, closes_at, _, served = rank(queue)
        return kind, priority, closes_at, 0, served

    patch.setattr(agenda, "_rank", as_campaigns_do)


def firings_are_given_minutes(patch: pytest.MonkeyPatch) -> None:
    """Those that wait for their windows are laid out as campaigns are."""

    def rank_of(run: Run) -> Rank:
        return run.kind != "direct", -run.priority, run.closes_at or agenda.FAR

    patch.setattr(putting_off, "has_minutes", lambda run: run.kind != "direct")
    patch.setattr(putting_off, "rank_of", rank_of)


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
    Twin(whoever_comes_late_fires_all_the_same, FIRED, DARK, 2),
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
        3,
        first=3,
        provokes=only("disables", "enables"),
    ),
    Twin(the_end_of_the_window_is_ignored, HOURS, SHORT, 2),
    Twin(a_window_is_read_by_another_clock, HOURS, SHORT, 2),
    Twin(runs_of_equal_rank_share, TURN, IN_TURN, 1),
    Twin(firings_are_given_minutes, TURN, MORNING, 1),
    Twin(whoever_is_asked_is_a_member, ASTRAY, MEMBERS, 1),
    Twin(what_was_begun_goes_on_from_another, ASTRAY, BANNED, 4, provokes=only("reassigns")),
    Twin(handles_are_kept_in_memory_only, "never wasteful", PICTURES, 2),
    Twin(a_suspended_account_goes_on, "never from the thrown out", THROWN_OUT, 1),
    Twin(what_is_in_doubt_is_told_as_delivered, TOLD, DOUBTED, 1),
    Twin(nobody_hears_of_a_run_that_fell_short, TOLD, DOUBTED, 1),
)
