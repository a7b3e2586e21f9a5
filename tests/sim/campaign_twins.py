"""Broken twins of what campaigns are made of: steps, pools, plans, breakers, retries and keys.

The others, and what a twin is, are in ``twins.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from sqlalchemy import TextClause, text

from paceline.core import gates
from paceline.core import usage as usages
from paceline.core.instants import DAY, Instant
from paceline.core.states import DeliveryState
from paceline.engine import bouncing, chooser, settling
from paceline.engine.commands import campaigns
from paceline.engine.ports.timetable import Later
from paceline.store import deliveries, path_sqlite, steps, timetable
from tests.sim.small import (
    BOUNCING,
    CAPPED,
    DOUBTED,
    FAILING,
    FOLLOWED,
    LEFT,
    PLANNED,
    RALLYING,
    REFUSED,
    REPEATED,
    RETOLD,
    SHARED,
)
from tests.sim.twins import Twin, only

# ---------------------------------------------------------------------- never ahead of its step


def follow_ups_go_at_once(patch: pytest.MonkeyPatch) -> None:
    """Neither so long after the message before, nor in the minute that was planned for them."""
    _told(
        patch,
        "release",
        ("p.sent_at + :after_us", "p.sent_at + 0 * :after_us"),
        ("deliveries.scheduled_at >", "0 >"),
    )


def _told(patch: pytest.MonkeyPatch, what: str, *changes: tuple[str, str]) -> None:
    """Those who follow are told by another statement."""
    patch.setitem(steps._TOLD, what, _changed(steps._TOLD[what], *changes))


def _changed(
    statements: Mapping[bool, TextClause], *changes: tuple[str, str]
) -> dict[bool, TextClause]:
    changed = {}
    for dialect, statement in statements.items():
        words = str(statement)
        for before, after in changes:
            assert before in words
            words = words.replace(before, after)
        changed[dialect] = text(words)
    return changed


def a_doubt_is_followed_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steps, "_LOCKED", _changed(steps._LOCKED, ("'sent'", "'sent', 'unknown'")))
    _told(
        patch,
        "release",
        ("p.state = 'sent'", "p.state IN ('sent', 'unknown')"),
        ("p.sent_at + :after_us", "coalesce(p.sent_at, :at) + :after_us"),
    )


def a_failure_is_followed_up(patch: pytest.MonkeyPatch) -> None:
    """Released, not called off again, taken by its lane, and let through by the intent."""
    _told(patch, "skip", ("'failed', ", ""))
    patch.setattr(chooser, "SENT_OR_NONE", (*chooser.SENT_OR_NONE, "failed"))
    guarded = path_sqlite._BEFORE_INTENDING
    assert "p.state = 'sent' OR" in guarded
    let_through = guarded.replace("p.state = 'sent' OR", "p.state IN ('sent', 'failed') OR")
    patch.setattr(path_sqlite, "_BEFORE_INTENDING", let_through)
    _told(
        patch,
        "release",
        ("p.state = 'sent'", "p.state IN ('sent', 'failed')"),
        ("p.sent_at + :after_us", "coalesce(p.sent_at, :at) + :after_us"),
    )


def whoever_is_free_follows_up(patch: pytest.MonkeyPatch) -> None:
    _told(
        patch,
        "release",
        ("account_id = p.account_id", "account_id = NULL"),
        ("RETURNING deliveries.account_id", "RETURNING NULL"),
    )


def a_retried_message_has_no_sequel(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steps.Steps, "revive", lambda *_: 0)


# ---------------------------------------------------------------------- never by two


def a_pooled_message_is_booked_on_another(patch: pytest.MonkeyPatch) -> None:
    take = path_sqlite._TAKE

    class Confused:
        def run(self, cursor: Any, taken: list[tuple[int, int]]) -> int:
            return take.run(cursor, [(key, owner % 3 + 1) for key, owner in taken])

    patch.setattr(path_sqlite, "_TAKE", Confused())


# ---------------------------------------------------------------------- never careless


def the_breaker_never_trips(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settling, "breaker_trips", lambda *_: False)


def bounces_pause_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bouncing, "bounces_too_many", lambda *_: False)


def bounces_are_looked_at_only_when_another_comes_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settling, "enough_to_judge", lambda *_: False)


def errors_slow_nobody_down(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(usages, "adapted_gap_us", lambda policy, gap_us, _: gap_us)


# ---------------------------------------------------------------------- never twice, never lost


def _retried(patch: pytest.MonkeyPatch, state: DeliveryState) -> None:
    """A retry that takes along what is in another state."""
    retry_failed = deliveries.Deliveries.retry_failed

    def eager(self: deliveries.Deliveries, run_id: int, at: Instant, expires: int | None) -> int:
        moved = retry_failed(self, run_id, at, expires)
        again = {**deliveries._changes(DeliveryState.READY, at, at, "again"), "parts_done": 0}
        return moved + self._move_rows(run_id, state, again, None)

    patch.setattr(deliveries.Deliveries, "retry_failed", eager)


def what_was_sent_is_retried(patch: pytest.MonkeyPatch) -> None:
    _retried(patch, DeliveryState.SENT)


def what_is_in_doubt_is_retried(patch: pytest.MonkeyPatch) -> None:
    _retried(patch, DeliveryState.UNKNOWN)


def nobody_looks_a_key_up(patch: pytest.MonkeyPatch) -> None:
    def once(*wish: Any) -> tuple[int, bool]:
        make: Callable[[], int] = wish[-1]
        return make(), True

    patch.setattr(campaigns, "once", once)


# ---------------------------------------------------------------------- never over, never stuck


def a_plan_is_trusted(patch: pytest.MonkeyPatch) -> None:
    """Its slots keep the caps, so nobody asks again when they come."""
    patch.setattr(gates.DailyGate, "earliest", lambda _, at, *rest: at)


def what_is_put_off_never_comes_back(patch: pytest.MonkeyPatch) -> None:
    put_off = timetable.Timetable.put_off

    def for_ever(self: timetable.Timetable, account: int, moves: list[Later]) -> int:
        return put_off(self, account, [one._replace(at=one.at + 3_650 * DAY) for one in moves])

    patch.setattr(timetable.Timetable, "put_off", for_ever)


def the_removed_are_left_their_follow_ups(patch: pytest.MonkeyPatch) -> None:
    _told(patch, "call off", ("a.removed_at IS NOT NULL", "false"))


STEP = "never ahead of its step"
CARE = "never careless"

CAMPAIGN_TWINS = (
    Twin(follow_ups_go_at_once, STEP, FOLLOWED, 1),
    Twin(a_doubt_is_followed_up, STEP, DOUBTED, 4, first=1),
    Twin(a_failure_is_followed_up, STEP, DOUBTED, 2),
    Twin(whoever_is_free_follows_up, STEP, SHARED, 2),
    Twin(a_retried_message_has_no_sequel, STEP, RETOLD, 4, provokes=only("retries")),
    Twin(a_pooled_message_is_booked_on_another, "never by two", SHARED, 1),
    Twin(the_breaker_never_trips, CARE, FAILING, 2),
    Twin(errors_slow_nobody_down, CARE, FAILING, 1),
    Twin(bounces_pause_nobody, CARE, BOUNCING, 2),
    Twin(bounces_are_looked_at_only_when_another_comes_back, CARE, RALLYING, 2),
    Twin(what_was_sent_is_retried, "never twice", REFUSED, 2, provokes=only("retries")),
    Twin(what_is_in_doubt_is_retried, "never twice", REFUSED, 6, provokes=only("retries")),
    Twin(nobody_looks_a_key_up, "never lost", REPEATED, 2, provokes=only("wishes")),
    Twin(a_plan_is_trusted, "never over", PLANNED, 2, provokes=only("sends from")),
    Twin(what_is_put_off_never_comes_back, "never stuck", CAPPED, 2),
    Twin(the_removed_are_left_their_follow_ups, "never stuck", LEFT, 3, provokes=only("removes")),
)
