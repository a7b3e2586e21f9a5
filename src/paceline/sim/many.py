"""Many seeds, spread over the cores of this machine; what they come to together.

A seed is a world of its own, so the order in which they are played changes nothing: the report is
the same on one core and on twenty.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

import structlog

from paceline.sim.checks.defects import broke_off
from paceline.sim.crew import crew
from paceline.sim.simulation import Verdict, simulate
from paceline.sim.trace import Trace
from paceline.sim.weather import Faults

Part = TypeVar("Part")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class Report:
    """What many seeds came to, in the order of their numbers."""

    verdicts: tuple[Verdict, ...]

    @property
    def broken(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.violations]

    def to_mapping(self) -> dict[str, Any]:
        verdicts = self.verdicts
        return {
            "seeds": len(verdicts),
            "events": sum(verdict.events for verdict in verdicts),
            "crashes": sum(verdict.crashes for verdict in verdicts),
            "account_days": round(sum(verdict.account_days for verdict in verdicts), 3),
            "violations": [
                {"seed": verdict.seed, "invariant": broken.invariant, "detail": broken.detail}
                for verdict in verdicts
                for broken in verdict.violations
            ],
            "trace": self.trace(),
        }

    def trace(self) -> str:
        """One digest over all traces."""
        hashed = sha256()
        for verdict in self.verdicts:
            hashed.update(f"{verdict.seed} {verdict.digest}\n".encode())
        return hashed.hexdigest()


def simulate_many(
    seeds: range, *, world: str, faults: Faults, workers: int | None = None
) -> Iterator[Verdict]:
    """The verdicts as they come in, in no particular order."""
    return spread(partial(judged, world=world, faults=faults), seeds, workers)


def judged(seed: int, *, world: str, faults: Faults) -> Verdict:
    """What a seed came to, whatever gets out of it: that is a defect of its own, and the other
    seeds are none the worse for it."""
    followed: list[Trace] = []
    try:
        return simulate(seed, world=world, faults=faults, follow=followed.append)
    except (Exception, asyncio.CancelledError) as error:
        trace = followed[0] if followed else Trace(lambda: 0)
        return Verdict(
            seed=seed,
            world=world,
            events=len(trace),
            crashes=trace.count("crashes"),
            account_days=0.0,
            digest=trace.digest(),
            violations=(broke_off(error, trace.last_at),),
            excerpts=(tuple(trace.around(trace.last_at)),),
        )


def spread(
    play: Callable[[Part], Outcome], parts: Sequence[Part], workers: int | None = None
) -> Iterator[Outcome]:
    """What each part comes to, as it comes in; on as many cores as there are, unless told."""
    workers = min(workers or os.cpu_count() or 1, len(parts))
    if workers <= 1:
        with _quiet():
            for part in parts:
                yield play(part)
        return
    with crew(play, workers) as hands:
        yield from hands.play(parts)


@contextmanager
def _quiet() -> Iterator[None]:
    before = structlog.get_config()
    _configuration = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(wrapper_class=_configuration)
    try:
        yield
    finally:
        structlog.configure(**before)
