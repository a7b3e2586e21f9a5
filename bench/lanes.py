"""``lanes``: what very many paced lanes cost in one process, and how well they keep their pace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench import scenes
from bench.children import measure, module
from bench.lanes_served import BEGIN_WITHIN_S, FIRST, IDLE, PACED, first_lanes
from bench.places import Places
from bench.report import Ratio, Report, Row
from paceline.core.grammar import Rate
from paceline.core.instants import HOUR, SECOND
from paceline.engine.clock import SystemClock

RATE = "40/min"
CPU_OF_1000 = 0.5
KB_PER_IDLE_LANE = 20.0
ENOUGH = 1_000
"""Of fewer, what the process grows by in steps tells more than the lanes do."""
ACHIEVED = 0.99
SERVE_WITHIN_S = 1_200

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LanesOptions:
    """How many, for how long; the tests and ``--quick`` ask for less."""

    lanes: tuple[int, ...] = (1_000, 10_000)
    repetitions: int = 5
    """Windows in a row, looked at one by one: a minute altogether."""
    rate: str = RATE
    warm_up_s: float = 10
    window_s: float = 12
    kind: str = "sqlite"


QUICK = LanesOptions(lanes=(100, 1_000), repetitions=1, warm_up_s=3, window_s=15)


def run(places: Places, options: LanesOptions, say: Say) -> Report:
    rows = []
    for lanes in options.lanes:
        say(f"{lanes} lanes at {options.rate}: {_seconds(options):g} s, and some to begin")
        rows.append(_row(lanes, watch_once(places, lanes, options)))
        say(str(rows[-1].to_mapping()))
    return Report(f"lanes paced at {options.rate}", rows, ratios(rows))


def watch_once(places: Places, lanes: int, options: LanesOptions) -> dict[str, Any]:
    rate = Rate.parse(options.rate)
    # Those that begin long before the last one does must not run dry.
    lasts_us = round((_seconds(options) + BEGIN_WITHIN_S) * SECOND)
    each = rate.burst + -(-rate.count * lasts_us // rate.per_us)
    with places.fresh(options.kind) as url:
        with scenes.opened(url) as store:
            senders = scenes.add_accounts(store, lanes, {"rate": options.rate})
            far_at = SystemClock().now() + 12 * HOUR
            first = first_lanes(lanes)
            scenes.add_campaign(store, senders[:first], first, name=FIRST, start_at=far_at)
            rest = senders[first:]
            scenes.add_campaign(store, rest, len(rest), name=IDLE, start_at=far_at)
            scenes.add_waiting(store, senders, lanes * each, name=PACED)
        warm_up = ("--warm-up", options.warm_up_s)
        windows = ("--window", options.window_s, "--windows", options.repetitions)
        found = measure(
            module("lanes_served", url, lanes, options.rate, *warm_up, *windows), SERVE_WITHIN_S
        )
    return found


def _seconds(options: LanesOptions) -> float:
    return options.warm_up_s + options.window_s * options.repetitions


def _row(lanes: int, found: dict[str, Any]) -> Row:
    more = {name: median(found[name]) for name in ("cpu_share", "achieved_share")}
    once = ("kb_per_idle_lane", "idle_mb", "sending_mb", "sending", "withdrawn")
    more |= {name: found[name] for name in once}
    # Over the whole time, the warm-up included: one that is over is one too many.
    more["overshoot"] = found["overshoot"]
    more = {name: round(value, 4) for name, value in more.items()}
    more["asked"] = lanes
    return Row.of_runs(f"lanes {lanes}", found["per_second"], **more)


def ratios(rows: list[Row]) -> list[Ratio]:
    made = []
    for row in rows:
        cpu_bar = CPU_OF_1000 if row.name == "lanes 1000" else None
        # By how many there were to be: where fewer were sending, something is wrong.
        kb_bar = KB_PER_IDLE_LANE if row.more["asked"] >= ENOUGH else None
        idle_kb = row.more["kb_per_idle_lane"]
        made += [
            Ratio(f"{row.name} cpu / one core", row.more["cpu_share"], at_most=cpu_bar),
            Ratio(f"{row.name} kB per idle lane", idle_kb, at_most=kb_bar),
            Ratio(f"{row.name} sent / allowed", row.more["achieved_share"], at_least=ACHIEVED),
            Ratio(f"{row.name} overshoot", row.more["overshoot"], at_most=0),
        ]
    return made
