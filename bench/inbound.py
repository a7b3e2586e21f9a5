"""``inbound``: reports taken in over HTTP, each durable before its answer, beside a bare route.

A service in its own process, many customers, and connections that stay open, each with one report
under way at a time. Besides, what a message and the beginning of a turn take by themselves, in one
process. Repetitions take turns, so that a busy minute of the machine harms none alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

from bench.children import END_WITHIN_S, Child, measure, module
from bench.engine import Say
from bench.places import KINDS, Places
from bench.report import BenchError, Ratio, Report, Row

SHARE_OF_BARE = 0.60
P99_MS = 50
BUFFERING_MS = 5
LOCK_MS = 2
REPORT_WITHIN_S = 600

BARE = "bare route"
Found = dict[str, float]


@dataclass(frozen=True, slots=True)
class InboundOptions:
    """How much is measured; the tests and ``--quick`` ask for less."""

    repetitions: int = 5
    accounts: int = 10
    customers: int = 1_000
    connections: int = 32
    count: int = 20_000
    warm_up: int = 1_000
    alone: int = 300
    """Messages, and turns, that are timed one by one."""
    kinds: tuple[str, ...] = KINDS


QUICK = InboundOptions(repetitions=1, count=4_000, alone=100)


@dataclass(slots=True)
class Measured:
    """One row in the making: how to measure it once, and what has come of it every time."""

    name: str
    once: Callable[[], Found]
    more: Mapping[str, Any]
    found: list[Found] = field(default_factory=list)

    def repeat(self, say: Say) -> None:
        self.found.append(self.once())
        shown = ", ".join(f"{key} {value:,.3g}" for key, value in self.found[-1].items())
        say(f"{self.name}: {shown}")

    def row(self) -> Row:
        """The median of everything."""
        rates = [one["per_second"] for one in self.found]
        medians = {
            key: round(median(one[key] for one in self.found), 3)
            for key in self.found[0]
            if key != "per_second"
        }
        return Row.of_runs(self.name, rates, **medians, **self.more)


def run(places: Places, options: InboundOptions, say: Say) -> Report:
    with ExitStack() as stack:
        if "postgresql" in options.kinds:
            # Started before the first repetition, and there for all of them alike.
            stack.enter_context(places.fresh("postgresql"))
        rows = _measured(places, options, say)
    return Report("reports taken in over HTTP, each durable before its answer", rows, ratios(rows))


def _measured(places: Places, options: InboundOptions, say: Say) -> list[Row]:
    reports = {"reports": options.count, "connections": options.connections}
    every = [Measured(BARE, lambda: _bare(options), reports)]
    for kind in options.kinds:
        every += [
            Measured(f"paceline {kind}", _ours(places, kind, options), reports),
            Measured(f"alone {kind}", _alone(places, kind, options), {}),
        ]
    for repetition in range(1, options.repetitions + 1):
        say(f"repetition {repetition} of {options.repetitions}")
        for one in every:
            one.repeat(say)
    return [one.row() for one in every]


def ratios(rows: list[Row]) -> list[Ratio]:
    """The comparisons that can be made with these rows, and what has a bar by itself."""
    bare = next(row for row in rows if row.name == BARE)
    made = []
    for row in rows:
        if row.name.startswith("paceline"):
            share = row.per_second / bare.per_second
            made.append(Ratio(f"{row.name} / {BARE}", share, at_least=SHARE_OF_BARE))
            made.append(Ratio(f"{row.name} p99 ms", row.more["p99_ms"], at_most=P99_MS))
        elif row.name.startswith("alone"):
            buffering, lock = row.more["buffering_ms"], row.more["lock_ms"]
            made.append(Ratio(f"{row.name} buffering ms", buffering, at_most=BUFFERING_MS))
            made.append(Ratio(f"{row.name} taking the lock ms", lock, at_most=LOCK_MS))
    return made


def _bare(options: InboundOptions) -> Found:
    return _told(module("bare_inbound", talks=True), options)


def _ours(places: Places, kind: str, options: InboundOptions) -> Callable[[], Found]:
    def once() -> Found:
        total = options.warm_up + options.count
        with places.fresh(kind) as url:
            serving = module("serving_inbound", url, options.accounts, total, talks=True)
            return _told(serving, options)

    return once


def _alone(places: Places, kind: str, options: InboundOptions) -> Callable[[], Found]:
    def once() -> Found:
        with places.fresh(kind) as url:
            found = measure(module("turning", url, options.alone), REPORT_WITHIN_S)
        return {"per_second": 1_000 / found["buffering_ms"], **found}

    return once


def _told(serving: Child, options: InboundOptions) -> Found:
    """Report to this server, which ends afterwards."""
    with serving as child:
        heard = child.hear()
        reporting = module(
            "reporting_in",
            heard["port"],
            options.count,
            options.warm_up,
            options.connections,
            options.customers,
            *heard["paths"],
        )
        told = measure(reporting, REPORT_WITHIN_S)
        # Its input ends here, and with it the server.
        used: dict[str, Any] = json.loads(child.output(END_WITHIN_S))
    if len(told["took_ms"]) != options.count:
        raise BenchError(f"{len(told['took_ms'])} of {options.count} reports were answered")
    hundredths = quantiles(told["took_ms"], n=100)
    return {
        "per_second": options.count / told["seconds"],
        "p50_ms": hundredths[49],
        "p99_ms": hundredths[98],
        "cpu_us": used["cpu_s"] * 1_000_000 / (options.count + options.warm_up),
    }
