"""Broken twins whose intents are written unguarded: the gates still ask before a message is chosen,
and what is ordered between that and the commit is not looked at any more.

In both ways in which SQLite is asked: all at once (``path_sqlite_sure``), and one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import ANY

import pytest

from paceline.core.instants import SECOND
from paceline.sim.weather import CLIMATES
from paceline.store import path, path_sqlite, path_sqlite_sure, rows
from paceline.store.bulk import Bulk
from tests.sim.small import ORDERED
from tests.sim.twins import Break, Twin, only


def _asked_of_all(patch: pytest.MonkeyPatch, *conditions: str) -> None:
    """Conditions on the units of a group that are taken for fulfilled."""
    texts = [path_sqlite_sure._RIGHT, path_sqlite_sure._ONE_RIGHT]
    for condition in conditions:
        assert all(re.search(condition, text) for text in texts), condition
        texts = [re.sub(condition, "true", text) for text in texts]
    patch.setattr(
        path_sqlite_sure, "_UNITS", Bulk(texts[0], len(path_sqlite_sure._NAMES), texts[1])
    )


def _gate_of_all(patch: pytest.MonkeyPatch, condition: str) -> None:
    """The same for what holds for all of them."""
    assert condition in path_sqlite_sure._GATE
    gate = path_sqlite_sure._GATE.replace(condition, "true")
    patch.setattr(
        path_sqlite_sure, "_gate", lambda runs: gate.replace("{runs}", ", ".join("?" * runs))
    )


def _asked_of_each(
    patch: pytest.MonkeyPatch,
    lane: Callable[[Any], Any] = lambda row: row,
    gate: Callable[[path.Gate], path.Gate] = lambda gate: gate,
) -> None:
    judge = path._judge

    def credulous(units: Any, lanes: Any, found: path.Gate | None) -> Any:
        seen = {account_id: lane(row) for account_id, row in lanes.items()}
        return judge(units, seen, None if found is None else gate(found))

    patch.setattr(path, "_judge", credulous)


class _Everything(frozenset[int]):
    def __contains__(self, _: object) -> bool:
        return True


_REVISION = r"l\.revision = (w\.revision|\?4)"
"""Every order moves it, so that it guards an intent as well."""


def all_at_once_nobody_asks_for_suppression(patch: pytest.MonkeyPatch) -> None:
    _asked_of_all(patch, re.escape(f"NOT {rows.is_suppressed(postgresql=False)}"))


def one_by_one_nobody_asks_for_suppression(patch: pytest.MonkeyPatch) -> None:
    guarded, guard = path_sqlite._BEFORE_INTENDING, rows.suppressed_by(postgresql=False)
    assert guard in guarded
    patch.setattr(path_sqlite, "_BEFORE_INTENDING", guarded.replace(guard, "false"))


def all_at_once_nobody_asks_whether_an_account_is_paused(patch: pytest.MonkeyPatch) -> None:
    _asked_of_all(patch, _REVISION, r"a\.state NOT IN \([^)]*\)")


def one_by_one_nobody_asks_whether_an_account_is_paused(patch: pytest.MonkeyPatch) -> None:
    _asked_of_each(patch, lane=lambda row: (*row[:3], ANY, row[4], True))


def all_at_once_nobody_asks_whether_a_campaign_is_paused(patch: pytest.MonkeyPatch) -> None:
    _asked_of_all(patch, _REVISION)
    _gate_of_all(patch, "state = 'running'")


def one_by_one_nobody_asks_whether_a_campaign_is_paused(patch: pytest.MonkeyPatch) -> None:
    _asked_of_each(
        patch,
        lane=lambda row: (*row[:3], ANY, *row[4:]),
        gate=lambda gate: gate._replace(running=_Everything()),
    )


def all_at_once_nobody_asks_for_a_stop(patch: pytest.MonkeyPatch) -> None:
    _asked_of_all(patch, _REVISION)
    _gate_of_all(patch, f"c.value IN ({path_sqlite_sure._GOES_ON})")


def one_by_one_nobody_asks_for_a_stop(patch: pytest.MonkeyPatch) -> None:
    _asked_of_each(
        patch,
        lane=lambda row: (*row[:3], ANY, *row[4:]),
        gate=lambda gate: gate._replace(stopped=False),
    )


def _often(*orders: str) -> Break:
    """Operators who give no other orders, and these all the time."""
    insistent = only(*orders)

    def provoke(patch: pytest.MonkeyPatch) -> None:
        insistent(patch)
        often = replace(CLIMATES["heavy"], operator_every_us=15 * SECOND)
        patch.setitem(CLIMATES, "heavy", often)

    return provoke


_THEY_SUPPRESS = _often("suppresses")
_THEY_PAUSE_ACCOUNTS = _often("pauses lane", "resumes lane")
_THEY_PAUSE_CAMPAIGNS = _often("pauses word", "resumes word")
_THEY_STOP = _often("stops", "lets go on")
SUPPRESSED, ORDERS = "never to the suppressed", "never against orders"
FEW = replace(ORDERED, mailings=tuple(replace(one, targets=30) for one in ORDERED.mailings))
"""Whom they suppress is likely to be among the next."""

GUARD_TWINS = (
    Twin(all_at_once_nobody_asks_for_suppression, SUPPRESSED, FEW, 4, provokes=_THEY_SUPPRESS),
    Twin(one_by_one_nobody_asks_for_suppression, SUPPRESSED, FEW, 4, provokes=_THEY_SUPPRESS),
    Twin(
        all_at_once_nobody_asks_whether_an_account_is_paused,
        ORDERS,
        ORDERED,
        4,
        provokes=_THEY_PAUSE_ACCOUNTS,
    ),
    Twin(
        one_by_one_nobody_asks_whether_an_account_is_paused,
        ORDERS,
        ORDERED,
        4,
        provokes=_THEY_PAUSE_ACCOUNTS,
    ),
    Twin(
        all_at_once_nobody_asks_whether_a_campaign_is_paused,
        ORDERS,
        ORDERED,
        4,
        provokes=_THEY_PAUSE_CAMPAIGNS,
    ),
    Twin(
        one_by_one_nobody_asks_whether_a_campaign_is_paused,
        ORDERS,
        ORDERED,
        4,
        provokes=_THEY_PAUSE_CAMPAIGNS,
    ),
    Twin(all_at_once_nobody_asks_for_a_stop, ORDERS, ORDERED, 4, provokes=_THEY_STOP),
    Twin(one_by_one_nobody_asks_for_a_stop, ORDERS, ORDERED, 4, provokes=_THEY_STOP),
)
