"""``engine``: deliveries per second through the whole durable path, beside peers and a bare loop.

Repetitions of all of them take turns, so that a busy minute of the machine harms none alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bench import peers, scenes
from bench.children import measure, module
from bench.places import KINDS, Places, settle_down
from bench.report import BenchError, Ratio, Report, Row

FEWEST, MOST = 5_000, 100_000
"""Bounds of what is sent in one repetition."""
TRIAL = 4_000
LASTS_S = 5
"""About how long one repetition should take."""
SEND_WITHIN_S = 600

TIMES_PROCRASTINATE = 10.0
SHARE_OF_BARE = 0.40

ORDER = (
    "paceline sqlite",
    "paceline postgresql",
    "procrastinate lock",
    "pgbench",
    "bare sqlite",
    "bare postgresql",
)

Say = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How much is measured; the tests and ``--quick`` ask for less."""

    repetitions: int = 5
    accounts: int = 200
    count: int | None = None
    """Deliveries in a repetition; None finds out what takes about five seconds."""
    peer_python: Path | None = None
    """The interpreter of the peers' environment; None leaves the peers out."""
    peer_count: int = 4_000
    pgbench_s: int = 5
    ways: tuple[peers.Way, ...] = peers.WAYS
    clients: tuple[int, ...] = peers.CLIENTS
    kinds: tuple[str, ...] = KINDS


QUICK = EngineOptions(
    repetitions=1,
    count=4_000,
    peer_count=500,
    pgbench_s=2,
    ways=(peers.Way(1, 20), peers.Way(4, 20)),
    clients=(16, 64),
)


@dataclass(slots=True)
class Contest:
    """One row in the making: how to measure it once, and what has come of it."""

    name: str
    once: Callable[[], float]
    more: dict[str, Any]
    rates: list[float] = field(default_factory=list)

    def repeat(self, say: Say) -> None:
        self.rates.append(self.once())
        say(f"{self.name}: {self.rates[-1]:,.0f}/s")

    def row(self) -> Row:
        return Row.of_runs(self.name, self.rates, **self.more)


def run(places: Places, options: EngineOptions, say: Say) -> Report:
    with ExitStack() as stack:
        contests = []
        for kind in options.kinds:
            contests += _ours(places, kind, options, say)
        if options.peer_python is not None:
            contests += _peers(places, options.peer_python, options, say, stack)
        for repetition in range(1, options.repetitions + 1):
            say(f"repetition {repetition} of {options.repetitions}")
            for contest in contests:
                contest.repeat(say)
    rows = [contest.row() for contest in contests]
    rows.sort(key=lambda row: ORDER.index(row.name))
    return Report("deliveries through the whole durable path", rows, ratios(rows))


def ratios(rows: list[Row]) -> list[Ratio]:
    """The comparisons that can be made with these rows, with the bars of some."""
    rate = {row.name: row.per_second for row in rows}
    bars = {
        ("paceline postgresql", "procrastinate lock"): TIMES_PROCRASTINATE,
        ("paceline sqlite", "bare sqlite"): SHARE_OF_BARE,
        ("paceline postgresql", "bare postgresql"): SHARE_OF_BARE,
        ("paceline postgresql", "pgbench"): None,
        ("paceline sqlite", "paceline postgresql"): None,
    }
    return [
        Ratio(f"{ours} / {other}", rate[ours] / rate[other], at_least=bar)
        for (ours, other), bar in bars.items()
        if ours in rate and other in rate
    ]


def serve_once(
    places: Places, kind: str, *, accounts: int, count: int, profile: bool = False
) -> dict[str, Any]:
    """One campaign from its launch to its end in a process of its own: what that process found."""
    with places.fresh(kind) as url:
        _load(url, accounts, count)
        arguments = (url, count, *(["--profile"] if profile else []))
        return measure(module("serving", *arguments), SEND_WITHIN_S)


def bare_once(
    places: Places, kind: str, *, accounts: int, count: int, group: int
) -> dict[str, Any]:
    with places.fresh(kind) as url:
        _load(url, accounts, count)
        return measure(module("bare", url, count, group), SEND_WITHIN_S)


def _load(url: str, accounts: int, count: int) -> None:
    with scenes.opened(url) as store:
        scenes.launched_campaign(store, scenes.add_accounts(store, accounts, {}), count)
    settle_down(url)


def _ours(places: Places, kind: str, options: EngineOptions, say: Say) -> list[Contest]:
    accounts = options.accounts
    count = options.count
    if count is None:
        say(f"paceline {kind}: trying how fast it is")
        count = _count(serve_once(places, kind, accounts=accounts, count=TRIAL), accounts)
    ours: dict[str, Any] = {"deliveries": count}
    bare: dict[str, Any] = {"deliveries": count}

    def serve() -> float:
        found = serve_once(places, kind, accounts=accounts, count=count)
        ours["group"] = max(1, round(count / found["groups"]))
        ours["cpu_us"] = cpu_per_delivery(found)
        return float(count / found["seconds"])

    def loop() -> float:
        # It comes after the engine in every repetition, and takes groups as large as those were.
        bare["group"] = ours["group"]
        found = bare_once(places, kind, accounts=accounts, count=count, group=bare["group"])
        return float(count / found["seconds"])

    return [Contest(f"paceline {kind}", serve, ours), Contest(f"bare {kind}", loop, bare)]


def cpu_per_delivery(found: dict[str, Any]) -> dict[str, int]:
    """Microseconds of processor time that each kind of thread used for one delivery."""
    spent: dict[str, float] = {}
    for thread, cpu_s in found["cpu_s"].items():
        role = next((r for r in ("loop", "writer", "reader") if r in thread), "other")
        role = "other" if "uvloop" in thread else role
        spent[role] = spent.get(role, 0) + cpu_s
    return {role: round(cpu_s * 1_000_000 / found["count"]) for role, cpu_s in spent.items()}


def _count(trial: dict[str, Any], accounts: int) -> int:
    """What takes about as long as a repetition should, the same for every account."""
    wanted: float = trial["count"] / trial["seconds"] * LASTS_S
    return round(min(max(wanted, FEWEST), MOST) / accounts) * accounts


def _peers(
    places: Places, python: Path, options: EngineOptions, say: Say, stack: ExitStack
) -> list[Contest]:
    if not python.exists():
        raise BenchError(
            f"the peers are not installed ({python} does not exist); scripts/bench installs them"
        )
    accounts = options.accounts

    def procrastinate(way: peers.Way) -> float:
        count = options.peer_count
        return peers.procrastinate_rate(places, python, way, count=count, accounts=accounts)

    way = _best("procrastinate lock", options.ways, procrastinate, say)
    url = stack.enter_context(places.fresh("postgresql"))
    pgbench = peers.Pgbench(url, accounts, stack)

    def commits(clients: int) -> float:
        return pgbench.rate(clients, options.pgbench_s)

    clients = _best("pgbench", options.clients, commits, say)
    return [
        Contest(
            "procrastinate lock",
            lambda: procrastinate(way),
            {"messages": options.peer_count, "workers×concurrency": str(way)},
        ),
        Contest("pgbench", lambda: commits(clients), {"clients": clients}),
    ]


def _best(name: str, ways: tuple[T, ...], rate: Callable[[T], float], say: Say) -> T:
    """The way in which a peer is at its fastest here."""
    rates = {}
    for way in ways:
        rates[way] = rate(way)
        say(f"{name}, trying {way}: {rates[way]:,.0f}/s")
    return max(ways, key=lambda way: rates[way])
