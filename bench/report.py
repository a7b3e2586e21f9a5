"""What a benchmark says: rows, ratios and their bars, as a table for people or as JSON.

Nothing is measured here.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table


class BenchError(Exception):
    """Something could not be measured; the message says what, and what would help."""


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was measured; ``more`` holds what is worth knowing beside its rate."""

    name: str
    per_second: float
    more: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of_runs(cls, name: str, rates: Iterable[float], **more: Any) -> Row:
        """The median of several repetitions, with all of them beside it."""
        every = [round(rate, 1) for rate in rates]
        return cls(name, median(every), {"repetitions": every, **more})

    def to_mapping(self) -> dict[str, Any]:
        return {"name": self.name, "per_second": round(float(self.per_second), 1), **self.more}


@dataclass(frozen=True, slots=True)
class Ratio:
    """A comparison, and the bar it has to reach where there is one."""

    name: str
    value: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def met(self) -> bool:
        if self.at_least is not None and self.value < self.at_least:
            return False
        return self.at_most is None or self.value <= self.at_most

    @property
    def bar(self) -> str:
        if self.at_least is not None and self.at_least == self.at_most:
            return f"= {self.at_least:g}"
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return "" if self.at_most is None else f"≤ {self.at_most:g}"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything one run of the harness has found out."""

    title: str
    rows: list[Row]
    ratios: list[Ratio]

    @property
    def missed(self) -> list[Ratio]:
        return [ratio for ratio in self.ratios if not ratio.met]

    def to_json(self) -> str:
        return json.dumps(
            {
                "rows": [row.to_mapping() for row in self.rows],
                "ratios": {ratio.name: round(ratio.value, 4) for ratio in self.ratios},
                "bars": {
                    ratio.name: {"bar": ratio.bar, "met": ratio.met}
                    for ratio in self.ratios
                    if ratio.bar
                },
                "machine": machine(),
            },
            ensure_ascii=False,
        )

    def show(self, console: Console) -> None:
        rows = Table("", "per second", "more", title=self.title)
        rows.columns[1].justify = "right"
        for row in self.rows:
            more = ", ".join(f"{key} {_shown(value)}" for key, value in row.more.items())
            rows.add_row(row.name, f"{row.per_second:,.0f}", more)
        console.print(rows)
        ratios = Table("", "", "bar", "met", title="ratios")
        ratios.columns[1].justify = "right"
        for ratio in self.ratios:
            met = ("yes" if ratio.met else "NO") if ratio.bar else ""
            ratios.add_row(ratio.name, f"{ratio.value:,.3f}", ratio.bar, met)
        console.print(ratios)
        console.print(", ".join(f"{key}: {value}" for key, value in machine().items()))


def machine() -> dict[str, Any]:
    """What the figures were measured on, as far as it changes them."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    if isinstance(value, list):
        return "/".join(_shown(each) for each in value)
    return str(value)
