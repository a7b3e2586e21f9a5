"""``claims``: what a claim costs with few and with very many waiting rows, on both databases.

A claim is the lane's own read of its next page, through the store's port. Its statements are
listened to rather than repeated here, and then explained by the database itself: PostgreSQL says
how many rows it looked at, SQLite how many steps its machine took.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from bench import scenes
from bench.places import KINDS, Places, settle_down
from bench.report import Ratio, Report, Row
from paceline.core.instants import SECOND
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Account, Store
from paceline.engine.run_queue import PAGE
from paceline.store.base import Context
from paceline.store.tx import Transaction

TIME_RATIO = 1.2

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ClaimsOptions:
    """How many rows wait, and how often they are asked for."""

    sizes: tuple[int, int] = (10_000, 1_000_000)
    accounts: int = 100
    repetitions: int = 5
    rounds: int = 5
    """Claims of every account in one repetition."""
    suppressed: int = 10_000
    """Addresses on the suppression list, which every claim asks about."""
    kinds: tuple[str, ...] = KINDS


QUICK = ClaimsOptions(sizes=(10_000, 100_000), repetitions=1, rounds=2)


@dataclass(slots=True)
class Queue:
    """One database with so many rows waiting in it."""

    name: str
    url: str
    store: Store
    senders: list[Account]
    run_id: int
    medians_us: list[float] = field(default_factory=list)
    examined: int = 0
    plan: list[str] = field(default_factory=list)

    def claim(self, account: Account, clock: SystemClock) -> int:
        """One page for one account; how long that took."""
        began_us = clock.monotonic_us()
        with self.store.read() as tx:
            rows = tx.path.due(account.id, self.run_id, clock.now(), PAGE)
        took_us = clock.monotonic_us() - began_us
        if len(rows) != PAGE or any(row.account_id != account.id for row in rows):
            raise AssertionError(f"{self.name}: {len(rows)} rows for {account.name}, not {PAGE}")
        return took_us


def run(places: Places, options: ClaimsOptions, say: Say) -> Report:
    rows: list[Row] = []
    ratios: list[Ratio] = []
    for kind in options.kinds:
        with ExitStack() as stack:
            queues = []
            for size in options.sizes:
                name = f"claim {kind} {_short(size)}"
                say(f"{name}: loading {size:,} rows")
                queues.append(stack.enter_context(_queue(places, kind, name, size, options)))
            _measure(queues, options, say)
            for queue in queues:
                _explain(queue, kind)
        rows += [_row(queue, kind) for queue in queues]
        ratios += _ratios(kind, options.sizes, queues)
    return Report("claims (one page of the next deliveries)", rows, ratios)


def _measure(queues: list[Queue], options: ClaimsOptions, say: Say) -> None:
    """In turns, claim by claim, so that a busy moment of the machine meets both alike."""
    clock = SystemClock()
    for repetition in range(options.repetitions + 1):
        took_us: list[list[int]] = [[] for _ in queues]
        for _ in range(options.rounds):
            for place in range(options.accounts):
                for queue, took in zip(queues, took_us, strict=True):
                    took.append(queue.claim(queue.senders[place], clock))
        if not repetition:
            continue  # The first only fetches into memory what the others will find there.
        for queue, took in zip(queues, took_us, strict=True):
            queue.medians_us.append(median(took))
            say(f"{queue.name}: {queue.medians_us[-1]:,.0f} µs")


@contextmanager
def _queue(
    places: Places, kind: str, name: str, size: int, options: ClaimsOptions
) -> Iterator[Queue]:
    with places.fresh(kind) as url, scenes.opened(url) as store:
        senders = scenes.add_accounts(store, options.accounts, {})
        scenes.add_suppressions(store, options.suppressed)
        run = scenes.add_waiting(store, senders, size)
        settle_down(url)
        yield Queue(name, url, store, senders, run.id)


def _row(queue: Queue, kind: str) -> Row:
    unit = "rows_examined" if kind == "postgresql" else "steps"
    more = {unit: queue.examined, "plan": queue.plan}
    rates = [SECOND / took_us for took_us in queue.medians_us]
    return Row.of_runs(queue.name, rates, **more)


def _ratios(kind: str, sizes: tuple[int, int], queues: list[Queue]) -> list[Ratio]:
    few, many = queues
    asked = f"{kind} {_short(sizes[1])} / {_short(sizes[0])}"
    times = median(many.medians_us) / median(few.medians_us)
    examined = many.examined / few.examined
    return [
        Ratio(f"time {asked}", times, at_most=TIME_RATIO),
        Ratio(f"examined {asked}", examined, at_least=1, at_most=1),
    ]


# ---------------------------------------------------------------------- what the database says


class _Listener(Context):
    """A transaction's context whose cursors tell what they were asked to execute."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, SystemClock().now)
        self.heard: list[tuple[str, Any]] = []

    def cursor(self) -> Any:
        return _HeardCursor(super().cursor(), self.heard)


class _HeardCursor:
    def __init__(self, cursor: Any, heard: list[tuple[str, Any]]) -> None:
        self._cursor = cursor
        self._heard = heard

    def execute(self, statement: str, values: Any = ()) -> Any:
        self._heard.append((statement, values))
        return self._cursor.execute(statement, values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


def _explain(queue: Queue, kind: str) -> None:
    """Ask for one page on a connection of our own, and have every statement of it explained."""
    engine = create_engine(queue.url, poolclass=NullPool)
    with engine.connect() as connection:
        listener = _Listener(connection)
        account, now = queue.senders[0], SystemClock().now()
        steps = _counted_steps(connection) if kind == "sqlite" else [0]
        found = Transaction(listener).path.due(account.id, queue.run_id, now, PAGE)
        queue.examined = steps[0]
        if len(found) != PAGE or not listener.heard:
            raise AssertionError(f"{queue.name}: the claim could not be listened to")
        cursor = connection.connection.cursor()
        for statement, values in listener.heard:
            if kind == "sqlite":
                cursor.execute(f"EXPLAIN QUERY PLAN {statement}", values)
                queue.plan += [row[3] for row in cursor.fetchall()]
            else:
                top = _kept_plan(cursor, statement, values)
                queue.plan += [_scan(node) for node in _nodes(top) if "Relation Name" in node]
                queue.examined += sum(map(examined, _nodes(top)))
    engine.dispose()


def _kept_plan(cursor: Any, statement: str, values: Any) -> dict[str, Any]:
    """The plan that a server keeps for a statement that it meets again and again.

    The driver prepares what is repeated, and after a few times PostgreSQL may plan it without
    looking at the values; the plan for the values of one call would be another one.
    """
    numbered = statement
    for number, _ in enumerate(values, start=1):
        numbered = numbered.replace("%s", f"${number}", 1)
    cursor.execute("SET plan_cache_mode = force_generic_plan")
    cursor.execute(f"PREPARE claim AS {numbered}")
    # Whole numbers all of them: accounts, runs, instants and limits.
    given = ", ".join(str(int(value)) for value in values)
    cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE claim ({given})")
    [[plan]] = cursor.fetchall()
    cursor.execute("DEALLOCATE claim")
    top: dict[str, Any] = (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]
    return top


def _counted_steps(connection: Connection) -> list[int]:
    """The virtual machine's instructions from now on, in the one entry of the list."""
    steps = [0]

    def step() -> int:
        steps[0] += 1
        return 0

    driver: Any = connection.connection.driver_connection
    driver.set_progress_handler(step, 1)
    return steps


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", []):
        yield from _nodes(inner)


def examined(node: dict[str, Any]) -> int:
    """The rows that a node took from a table, those it threw away included."""
    if "Relation Name" not in node:
        return 0
    removed = sum(value for key, value in node.items() if key.startswith("Rows Removed by"))
    rows: float = (node["Actual Rows"] + removed) * node["Actual Loops"]
    return round(rows)


def _scan(node: dict[str, Any]) -> str:
    by = f" using {node['Index Name']}" if "Index Name" in node else ""
    return f"{node['Node Type']} on {node['Relation Name']}{by}"


def _short(size: int) -> str:
    if size % 1_000_000 == 0:
        return f"{size // 1_000_000}m"
    return f"{size // 1_000}k" if size % 1_000 == 0 else str(size)
