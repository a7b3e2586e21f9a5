"""Many seeds, spread over the cores of this machine; what they come to together.

A seed is a world of its own, so the order in which they are played changes nothing: the report is
the same on one core and on twenty.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import Any, TypeVar

import structlog

from paceline.interpreter import tune_interpreter
from paceline.sim.simulation import Verdict, simulate
from paceline.sim.weather import Faults

Part = TypeVar("Part")
Outcome = TypeVar("Outcome")

WAITING_PER_WORKER = 2
"""Seeds handed out in advance: enough that nobody is idle, few enough to stop at once."""


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
    return spread(partial(simulate, world=world, faults=faults), seeds, workers)


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
    with _fixed_hashes(), _pool(workers) as pool:
        left = iter(parts)
        running: set[Future[Outcome]] = set()
        while True:
            room = workers * WAITING_PER_WORKER - len(running)
            for part in islice(left, room):
                running.add(pool.submit(play, part))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_begin
    )
    try:
        yield pool
    except BaseException:
        # Whoever breaks off does not want to wait for a seed that may take minutes.
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(getattr(pool, "_processes", None) or {}):
            os.kill(process, signal.SIGTERM)
        raise
    pool.shutdown()


def _begin() -> None:
    """In a worker: an interrupt is the parent's affair, and nobody reads a log."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tune_interpreter()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        cache_logger_on_first_use=True,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    before = structlog.get_config()
    _configuration = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(wrapper_class=_configuration)
    try:
        yield
    finally:
        structlog.configure(**before)


@contextmanager
def _fixed_hashes() -> Iterator[None]:
    """Workers hash texts alike. No trace depends on it; should one ever, it still repeats."""
    before = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONHASHSEED"]
        else:
            os.environ["PYTHONHASHSEED"] = before
