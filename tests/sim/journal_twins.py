"""Broken twins of the journal: the real one with one thing taken away, and what that must break."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paceline.engine import committing, journal
from tests.sim.small import CALM
from tests.sim.twins import Twin


def _bad_units_come_along(patch: pytest.MonkeyPatch) -> None:
    """In every group there is one more unit, and it fails."""
    next_group = journal.GroupJournal._next_group

    def no_good(_: Any) -> None:
        raise ValueError("a bad unit")

    def crowded(self: journal.GroupJournal) -> list[committing.Entry]:
        group = next_group(self)
        if any(entry.unit is not None for entry in group):
            nobodys: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            nobodys.add_done_callback(lambda done: done.cancelled() or done.exception())
            group.append(committing.Entry(nobodys, work=no_good))
        return group

    patch.setattr(journal.GroupJournal, "_next_group", crowded)


def a_failed_group_takes_its_neighbours_along(patch: pytest.MonkeyPatch) -> None:
    """Who is to blame is found out by rehearsing, and nobody plays the piece afterwards."""

    class Rehearsed(Exception):
        pass

    def alone(self: committing.Commit, entry: committing.Entry) -> Any:
        answer: Any = None
        try:
            with self._store.write() as tx:
                (answer,) = committing.apply(tx, [entry])
                raise Rehearsed
        except Rehearsed:
            return answer
        except Exception as error:
            return error

    def answers(self: committing.Commit, group: list[committing.Entry]) -> list[Any]:
        try:
            return self._attempt(group)
        except Exception:
            return [alone(self, entry) for entry in group]

    patch.setattr(committing.Commit, "answers", answers)


JOURNAL_TWINS = (
    Twin(
        a_failed_group_takes_its_neighbours_along,
        "never unrecorded",
        CALM,
        1,
        faults="none",
        provokes=_bad_units_come_along,
    ),
)
