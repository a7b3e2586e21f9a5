"""What a worker tells whoever started it, and what it is told: values, and how they are written.

Each is one line of JSON. A worker speaks from its event loop, so silence means that the loop does
not turn; only that it stands still is told by another thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from paceline.core.instants import Instant


class Joined(NamedTuple):
    """It is a member of the fleet, and can take lanes."""

    process_id: int


class Beat(NamedTuple):
    """It lives."""

    process_id: int | None
    """Its number in the fleet; None while it is no member."""
    memory: int
    """What it takes, in bytes."""
    lanes: int
    counted: Mapping[str, Any]
    """What was counted since the last one, as ``Tally.take`` tells it."""


class LaneCrash(NamedTuple):
    """One of its lanes has crashed, and it has seen to it itself."""

    account_id: int
    at: Instant
    run_id: int | None


class Standstill(NamedTuple):
    """Its loop does not turn, and it is this account's lane that keeps it from it, if any."""

    account: str | None
    excused: bool = False
    """Whether it waits for what no account is to blame for: the database, or the log's reader."""
    where: str = ""
    """The call that does not return, with its line."""


class Away(NamedTuple):
    """It cannot reach the database, and ends."""

    reason: str


class Assignment(NamedTuple):
    """Lanes it is to look after, besides those it has, and what is known of their crashes."""

    account_ids: tuple[int, ...]
    crashes: tuple[LaneCrash, ...] = ()


Report = Joined | Beat | LaneCrash | Standstill | Away

_KINDS: Mapping[str, type[Any]] = {
    kind.__name__: kind for kind in (Joined, Beat, LaneCrash, Standstill, Away)
}


def write_report(report: Report) -> bytes:
    return _line([type(report).__name__, *report])


def read_report(line: bytes) -> Report:
    """``ValueError`` if it is none."""
    name, *values = _list(line)
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None or len(values) != len(kind._fields):
        raise ValueError(f"no report: {line[:80]!r}")
    report: Report = kind(*values)
    return report


def write_assignment(assignment: Assignment) -> bytes:
    return _line([list(assignment.account_ids), [list(crash) for crash in assignment.crashes]])


def read_assignment(line: bytes) -> Assignment:
    account_ids, crashes = _list(line)
    return Assignment(tuple(account_ids), tuple(LaneCrash(*crash) for crash in crashes))


def _line(values: list[Any]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode() + b"\n"


def _list(line: bytes) -> list[Any]:
    values = json.loads(line)
    if not isinstance(values, list) or not values:
        raise ValueError(f"no report: {line[:80]!r}")
    return values
