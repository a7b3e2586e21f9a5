"""``conversations``: very many in one process at once, each answered once, and what each takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.children import measure, module
from bench.engine import Say
from bench.places import KINDS, Places
from bench.report import Ratio, Report, Row

KB_EACH = 32
WITHIN_S = 1_000


@dataclass(frozen=True, slots=True)
class ConversationsOptions:
    """How much is measured; the tests and ``--quick`` ask for less."""

    repetitions: int = 1
    count: int = 10_000
    kinds: tuple[str, ...] = KINDS


QUICK = ConversationsOptions(count=1_000, kinds=("sqlite",))


def run(places: Places, options: ConversationsOptions, say: Say) -> Report:
    rows, ratios = [], []
    for kind in options.kinds:
        every = []
        for _ in range(options.repetitions):
            with places.fresh(kind) as url:
                every.append(measure(module("conversing", url, options.count), WITHIN_S))
            say(f"conversations {kind}: {every[-1]}")
        rows.append(_row(kind, every))
        ratios += _ratios(rows[-1], options.count)
    return Report("conversations in flight at once, in one process", rows, ratios)


def _row(kind: str, every: list[dict[str, Any]]) -> Row:
    """The worst of everything but the rate: each of it is a promise."""
    rates = [one["count"] / one["seconds"] for one in every]
    more = {
        key: max(one[key] for one in every) for key in ("kb_each", "cpu_ms", "begun_s", "twice")
    }
    least = {key: min(one[key] for one in every) for key in ("in_flight", "answered_once")}
    return Row.of_runs(f"conversations {kind}", rates, **more, **least)


def _ratios(row: Row, count: int) -> list[Ratio]:
    return [
        Ratio(f"{row.name} in flight", row.more["in_flight"], at_least=count, at_most=count),
        Ratio(f"{row.name} answered once", row.more["answered_once"], count, count),
        Ratio(f"{row.name} kB for each", row.more["kb_each"], at_most=KB_EACH),
    ]
