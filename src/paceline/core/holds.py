"""Holds that bind only some of an account's messages, and the slow way back after a hold.

Part of an account's usage: written with its checkpoint, and nothing at all while no signal is in
force. The hold of a whole account is ``Usage.hold_until_at``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from paceline.core.health import slowed_interval_us
from paceline.core.instants import WEEK, Instant
from paceline.core.tables import Throttle

RUNS_HELD = 16
"""Holds of campaigns kept per account; the ones that end first are forgotten first."""

RAMPS_KEPT = 8
"""Slow ways back kept per account, likewise; a table of signals hardly has as many."""

THROTTLED_KEPT = 32
"""Messages kept per account that were throttled and wait; those of longest ago are forgotten."""

FORGOTTEN_US = WEEK
"""A message that was not throttled for so long is as any other; and a provider that has singled
nobody out for so long means the account when it says "not now"."""

_NONE: Mapping[int, tuple[Instant, str]] = MappingProxyType({})
_NOBODY: Mapping[int, tuple[int, Instant]] = MappingProxyType({})


class Holds(NamedTuple):
    """Who waits besides the account as a whole, until when, and why."""

    newcomers_until_at: Instant = 0
    """Until when nobody is written to who never was before."""
    newcomers_reason: str = ""
    runs: Mapping[int, tuple[Instant, str]] = _NONE
    """Campaigns that wait, by run: until when, and why."""
    ramps: tuple[tuple[Instant, Throttle], ...] = ()
    """Slow ways back, each from the end of the hold it follows."""
    throttled: Mapping[int, tuple[int, Instant]] = _NOBODY
    """How often messages that wait were throttled, by delivery, and when last (``stubborn.py``)."""
    passed: int = 0
    """How many messages got through since one of them held others back; counted while any waits."""
    passed_at: Instant = 0
    """When enough of them had got through in a row to show something, the last time."""
    single_at: Instant = 0
    """When a throttle was last shown to be about one recipient alone."""

    def throttle(self, delivery_id: int, at: Instant, *, alone: bool = False) -> Holds:
        """These, with a message throttled once more; ``alone`` if that says nothing of others. Then
        it stays what has been shown of it before."""
        at = self.throttled_at(delivery_id) or at if alone else at
        counts = {**self.throttled, delivery_id: (self.times_throttled(delivery_id) + 1, at)}
        kept = sorted(counts.items(), key=lambda entry: entry[1][1])[-THROTTLED_KEPT:]
        return self._replace(throttled=dict(kept), passed=self.passed if alone else 0)

    def times_throttled(self, delivery_id: int) -> int:
        return self.throttled[delivery_id][0] if delivery_id in self.throttled else 0

    def throttled_at(self, delivery_id: int) -> Instant:
        return self.throttled[delivery_id][1] if delivery_id in self.throttled else 0

    def let_go(self, delivery_id: int) -> Holds:
        """These, without a message that waits no longer."""
        kept = {one: times for one, times in self.throttled.items() if one != delivery_id}
        return self._replace(throttled=kept)

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
        """These, with one more slow way back: a mild one that lasts does not end a steep one."""
        begun = max([from_at, *(at for at, known in self.ramps if known == ramp)])
        others = [(at, known) for at, known in self.ramps if known != ramp]
        kept = sorted([*others, (begun, ramp)], key=_ends_at)[-RAMPS_KEPT:]
        return self._replace(ramps=tuple(kept))

    def slowed_us(self, interval_us: int, at: Instant) -> int:
        """An interval as long as the slowest of the ways back makes it."""
        slowed = [
            slowed_interval_us(ramp, interval_us, from_at, at) for from_at, ramp in self.ramps
        ]
        return max(slowed, default=interval_us)

    def left_at(self, at: Instant) -> Holds:
        """What of these is still in force; ``NO_HOLDS`` itself when nothing is."""
        runs = {run: held for run, held in self.runs.items() if held[0] > at}
        waiting = self.newcomers_until_at > at
        ramps = tuple([entry for entry in self.ramps if _ends_at(entry) > at])
        since_at = at - FORGOTTEN_US
        throttled = {one: times for one, times in self.throttled.items() if times[1] > since_at}
        single = self.single_at > since_at
        if not (runs or waiting or ramps or throttled or single):
            return NO_HOLDS
        return Holds(
            self.newcomers_until_at if waiting else 0,
            self.newcomers_reason if waiting else "",
            runs,
            ramps,
            throttled,
            self.passed if throttled or single else 0,
            self.passed_at if throttled else 0,
            self.single_at if single else 0,
        )

    def not_beyond(self, latest_at: Instant) -> Holds:
        """These, without what only a wrong clock can have written."""
        if self is NO_HOLDS:
            return self
        return self._replace(
            newcomers_until_at=min(self.newcomers_until_at, latest_at),
            runs={run: (min(at, latest_at), why) for run, (at, why) in self.runs.items()},
            ramps=tuple((min(at, latest_at), ramp) for at, ramp in self.ramps),
            passed_at=min(self.passed_at, latest_at),
            single_at=min(self.single_at, latest_at),
        )

    def moved_ahead(self, by_us: int) -> Holds:
        """By a clock that was set meanwhile. Only ever ahead: too long is safe."""
        ahead_us = max(0, by_us)
        if self is NO_HOLDS or not ahead_us:
            return self
        return self._replace(
            newcomers_until_at=self.newcomers_until_at and self.newcomers_until_at + ahead_us,
            runs={run: (at + ahead_us, why) for run, (at, why) in self.runs.items()},
            ramps=tuple((at + ahead_us, ramp) for at, ramp in self.ramps),
        )

    def encoded(self) -> dict[str, Any]:
        """As plain JSON values, without what is not there."""
        raw: dict[str, Any] = {}
        if self.newcomers_until_at:
            raw["newcomers"] = [self.newcomers_until_at, self.newcomers_reason]
        if self.runs:
            raw["runs"] = {str(run): [at, why] for run, (at, why) in self.runs.items()}
        if self.ramps:
            raw["ramps"] = [[at, ramp.to_mapping()] for at, ramp in self.ramps]
        if self.throttled:
            raw["throttled"] = {str(one): list(times) for one, times in self.throttled.items()}
        if self.passed:
            raw["passed"] = self.passed
        if self.passed_at:
            raw["passed_at"] = self.passed_at
        if self.single_at:
            raw["single_at"] = self.single_at
        return raw


NO_HOLDS = Holds()


def decoded(raw: Mapping[str, Any]) -> Holds:
    """Holds from a checkpoint; one that was written before there were any has none."""
    if not raw:
        return NO_HOLDS
    newcomers_until_at, newcomers_reason = raw.get("newcomers", (0, ""))
    return Holds(
        newcomers_until_at,
        newcomers_reason,
        {int(run): (at, why) for run, (at, why) in raw.get("runs", {}).items()},
        tuple((at, Throttle.from_mapping(ramp)) for at, ramp in raw.get("ramps", ())),
        {int(one): (count, at) for one, (count, at) in raw.get("throttled", {}).items()},
        raw.get("passed", 0),
        raw.get("passed_at", 0),
        raw.get("single_at", 0),
    )


def _ends_at(entry: tuple[Instant, Throttle]) -> Instant:
    from_at, ramp = entry
    return from_at + ramp.recover_us
