"""What Unipile says about an account as a whole, and what that means for sending from it.

The same words come when the account is asked for and, unasked, as an ``AccountStatus`` message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from paceline.core.instants import MINUTE

Verdict = Literal["fine", "away", "stopped"]
"""It can send; it will again by itself; somebody has to do something first."""

COOL_DOWN_US = 15 * MINUTE
"""How long an account rests that Unipile has trouble with, unless it is heard of earlier."""

_WORST_LAST: tuple[Verdict, ...] = ("fine", "away", "stopped")


@dataclass(frozen=True, slots=True)
class StatusRow:
    verdict: Verdict
    means: str


STATUSES: Mapping[str, StatusRow] = {
    "OK": StatusRow("fine", "all is well"),
    "CREATION_SUCCESS": StatusRow("fine", "it was connected"),
    "RECONNECTED": StatusRow("fine", "it was connected again"),
    "SYNC_SUCCESS": StatusRow("fine", "its messages were fetched"),
    "CONNECTING": StatusRow("away", "it is being connected"),
    "ERROR": StatusRow("away", "Unipile met an error with it"),
    "STOPPED": StatusRow("away", "Unipile has stopped fetching its messages"),
    "CREDENTIALS": StatusRow(
        "stopped", "it has to be connected again, its credentials are refused"
    ),
    "PERMISSIONS": StatusRow("stopped", "it has to be connected again, permissions are missing"),
    "DELETED": StatusRow("stopped", "it was deleted at Unipile"),
}


@dataclass(frozen=True, slots=True)
class Standing:
    """What follows from a status: the account machine's event, if any, and for how long."""

    verdict: Verdict
    reason: str = ""
    account_event: Literal["suspend", "cool_down"] | None = None
    cool_down_us: int | None = None


FINE = Standing("fine")


def standing_of(status: object) -> Standing:
    """What one status means. A word nobody knows stops nothing: the next send will tell."""
    row = STATUSES.get(status.strip().upper()) if isinstance(status, str) else None
    if row is None or row.verdict == "fine":
        return FINE
    reason = f"Unipile reports {str(status).strip().upper()}: {row.means}"
    if row.verdict == "away":
        return Standing("away", reason, "cool_down", COOL_DOWN_US)
    return Standing("stopped", reason, "suspend")


def standing_of_account(said: Mapping[str, Any]) -> Standing:
    """The worst that the account's sources say, from the answer of ``GET /accounts/{id}``."""
    sources = said.get("sources")
    entries: Iterable[Any] = sources if isinstance(sources, list) else ()
    told = [standing_of(entry.get("status")) for entry in entries if isinstance(entry, dict)]
    return max(told, key=lambda standing: _WORST_LAST.index(standing.verdict), default=FINE)
