"""Holds that bind only some of an account's messages, and the slow way back after a hold.

Part of an account's usage: written with its checkpoint, and nothing at all while no signal is in
force. The hold of a whole account is ``Usage.hold_until_at``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from paceline.core.instants import Instant
from paceline.core.tables import Throttle

RUNS_HELD = 16
"""Holds of campaigns kept per account; the ones that end first are forgotten first."""

_NONE: Mapping[int, tuple[Instant, str]] = MappingProxyType({})


class Holds(NamedTuple):
    """Who waits besides the account as a whole, until when, and why."""

    newcomers_until_at: Instant = 0
    """Until when nobody is written to who never was before."""
    newcomers_reason: str = ""
    runs: Mapping[int, tuple[Instant, str]] = _NONE
    """Campaigns that wait, by run: until when, and why."""
    ramp_at: Instant = 0
    """When the slow way back begins: at the end of the hold it follows."""
    ramp: Throttle | None = None

    def newcomers(self, until_at: Instant, reason: str) -> Holds:
        """These, with people held back who were never written to; the longer hold stands."""
        if until_at < self.newcomers_until_at:
            return self
        return self._replace(newcomers_until_at=until_at, newcomers_reason=reason)

    def run(self, run_id: int, until_at: Instant, reason: str) -> Holds:
        """These, with one campaign held back; the longer hold stands."""
        if until_at < self.run_until_at(run_id):
            return self
        runs = {**self.runs, run_id: (until_at, reason)}
        kept = sorted(runs.items(), key=lambda entry: entry[1])[-RUNS_HELD:]
        return self._replace(runs=dict(kept))

    def run_until_at(self, run_id: int) -> Instant:
        return self.runs[run_id][0] if run_id in self.runs else 0

    def ramping(self, from_at: Instant, ramp: Throttle) -> Holds:
        """These, with a slow way back; where there are two, the one that takes longer stands."""
        if self.ramp is not None and self._ramp_ends_at > from_at + ramp.recover_us:
            return self
        return self._replace(ramp_at=from_at, ramp=ramp)

    @property
    def _ramp_ends_at(self) -> Instant:
        return self.ramp_at + self.ramp.recover_us if self.ramp is not None else 0

    def left_at(self, at: Instant) -> Holds:
        """What of these is still in force; ``NO_HOLDS`` itself when nothing is."""
        runs = {run: held for run, held in self.runs.items() if held[0] > at}
        waiting = self.newcomers_until_at > at
        ramping = self._ramp_ends_at > at
        if not (runs or waiting or ramping):
            return NO_HOLDS
        return Holds(
            self.newcomers_until_at if waiting else 0,
            self.newcomers_reason if waiting else "",
            runs,
            self.ramp_at if ramping else 0,
            self.ramp if ramping else None,
        )

    def not_beyond(self, latest_at: Instant) -> Holds:
        """These, without what only a wrong clock can have written."""
        if self is NO_HOLDS:
            return self
        return self._replace(
            newcomers_until_at=min(self.newcomers_until_at, latest_at),
            runs={run: (min(at, latest_at), why) for run, (at, why) in self.runs.items()},
            ramp_at=min(self.ramp_at, latest_at),
        )

    def moved_ahead(self, by_us: int) -> Holds:
        """By a clock that was set meanwhile. Only ever ahead: too long is safe."""
        ahead_us = max(0, by_us)
        if self is NO_HOLDS or not ahead_us:
            return self
        return self._replace(
            newcomers_until_at=self.newcomers_until_at and self.newcomers_until_at + ahead_us,
            runs={run: (at + ahead_us, why) for run, (at, why) in self.runs.items()},
            ramp_at=self.ramp_at and self.ramp_at + ahead_us,
        )

    def encoded(self) -> dict[str, Any]:
        """As plain JSON values, without what is not there."""
        raw: dict[str, Any] = {}
        if self.newcomers_until_at:
            raw["newcomers"] = [self.newcomers_until_at, self.newcomers_reason]
        if self.runs:
            raw["runs"] = {str(run): [at, why] for run, (at, why) in self.runs.items()}
        if self.ramp is not None:
            raw["ramp"] = [self.ramp_at, self.ramp.to_mapping()]
        return raw


NO_HOLDS = Holds()


def decoded(raw: Mapping[str, Any]) -> Holds:
    """Holds from a checkpoint; one that was written before there were any has none."""
    if not raw:
        return NO_HOLDS
    newcomers_until_at, newcomers_reason = raw.get("newcomers", (0, ""))
    ramp_at, ramp = raw.get("ramp", (0, None))
    return Holds(
        newcomers_until_at,
        newcomers_reason,
        {int(run): (at, why) for run, (at, why) in raw.get("runs", {}).items()},
        ramp_at,
        None if ramp is None else Throttle.from_mapping(ramp),
    )
