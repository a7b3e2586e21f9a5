"""What every subject stands on: one transaction's connection, its clock, and a few small tools.

No table is named here but the lanes and the counters, which every change of a delivery needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, Table

from paceline.core.errors import StoreError
from paceline.core.instants import Instant
from paceline.core.keepable import keepable
from paceline.core.states import DeliveryState
from paceline.store.bulk import Bulk
from paceline.store.lazily import Lazily

if TYPE_CHECKING:  # SQLite needs nothing of PostgreSQL's driver
    from paceline.store.asked import Values
    from paceline.store.wire import Wire

T = TypeVar("T")
Cursor = Any
"""A cursor of either driver. Its rows are plain tuples."""

MAX_TEXT = 2_000
"""Longest reason that is kept: providers answer with whole web pages at times."""

Tally = dict[tuple[int, int, str], int]
"""Changes to the counters: by account, run and state."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_dump = json.JSONEncoder(separators=(",", ":")).encode
_dump_sorted = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode
_CONTROL_ESCAPES = (r"\n", r"\r", r"\t", r"\u", r"\b", r"\f")
_NULL = ["null"]
_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")

PG_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
"""PostgreSQL's time at this very moment, as an expression."""


def insisting(condition: str) -> str:
    """A SELECT for PostgreSQL that is an error unless the condition is true: a division by zero,
    and only where something is insisted upon is anything divided."""
    return f"SELECT 1 / (({condition}) IS TRUE)::int"


# A moment, for locks that only change hands; on SQLite whoever writes has the file to itself.
_PG_HURRY = "SET LOCAL lock_timeout = '50ms'; SET LOCAL statement_timeout = '2s'"
_SET = [f"set_config('enable_{way}', 'off', true)" for way in ("seqscan", "hashjoin", "mergejoin")]
_KEPT = "set_config('plan_cache_mode', 'force_generic_plan', true)"
BY_KEY = f"concat({', '.join([*_SET, _KEPT])})"
"""What tells PostgreSQL's planner that a transaction looks up every row by a key, for statements
that have something else to ask as well. By a key there is one way to look anything up: to plan it
anew for every few values would take longer than the looking."""
_PG_HOLD = """
SELECT 1 FROM lanes WHERE account_id = ANY (%s::bigint[])
ORDER BY account_id FOR NO KEY UPDATE
"""
_PG_OPEN = """
INSERT INTO counters (account_id, run_id, state, n)
SELECT *, 0 FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) ON CONFLICT DO NOTHING
"""
_SQLITE_OPEN = """
INSERT INTO counters (account_id, run_id, state, n) VALUES (?, ?, ?, 0) ON CONFLICT DO NOTHING
"""
PG_COUNT = """
UPDATE counters c SET n = c.n + w.n
FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::bigint[])
    AS w (account_id, run_id, state, n)
WHERE c.account_id = w.account_id AND c.run_id = w.run_id AND c.state = w.state
"""
_SQLITE_COUNT = Bulk(
    """
UPDATE counters AS c SET n = c.n + w.column4 FROM (VALUES {values}) AS w
WHERE c.account_id = w.column1 AND c.run_id = w.column2 AND c.state = w.column3
""",
    4,
    "UPDATE counters SET n = n + ?4 WHERE account_id = ?1 AND run_id = ?2 AND state = ?3",
)


class Context:
    """One transaction: its connection, its kind of database and its clock."""

    def __init__(
        self,
        connection: Connection,
        clock: Callable[[], Instant] | None,
        wire: Wire | None = None,
    ) -> None:
        self._connection = connection
        self.postgresql = connection.dialect.name == "postgresql"
        self._clock = clock
        self._wire = wire
        self._held: set[int] = set()

    @property
    def connection(self) -> Connection:
        if self._wire is None:
            return self._connection
        self._wire.settle()
        return self._wire.sql

    @Lazily
    def now(self) -> Instant:
        """The database's time: read when first asked for, the same for the whole transaction."""
        return self.read_clock()

    def read_clock(self) -> Instant:
        """The database's time at this very moment."""
        if self._clock is not None:
            return self._clock()
        now: int = self.ask(f"SELECT {PG_NOW}").fetchone()[0]
        return now

    def ask(self, statement: str, values: Values = ()) -> Cursor:
        """Run one of the statements that are run all the time: a server keeps them prepared."""
        if self._wire is not None:
            return self._wire.ask(statement, values)
        cursor = self.cursor()
        cursor.execute(statement, values)
        return cursor

    def tell(self, statement: str, values: Values) -> None:
        """The same on a server, for a statement of which nobody needs to know more than that it was
        not refused: it goes with what is asked next, or with the commit."""
        assert self._wire is not None, "only a server is told anything"
        self._wire.tell(statement, values)

    @Lazily
    def _driver(self) -> Any:
        return self._connection.connection.driver_connection

    def cursor(self) -> Cursor:
        """A cursor of the driver itself, inside this transaction."""
        # Without a wire it is always the same connection, and the way to it is long.
        driver = self._driver if self._wire is None else self.connection.connection
        return driver.cursor()

    def send(self) -> None:
        """Let a server begin with what was asked so far in a block that is ``pipelined``."""
        if self._wire is not None:
            self._wire.send()

    def pipelined(self) -> AbstractContextManager[Any]:
        """Statements in this block are sent together, and waited for when the answer to one of
        them is fetched, or at its end."""
        return nullcontext() if self._wire is None else self._wire.together()

    def insert(self, table: Table) -> Any:
        return insert_into(table, on_postgresql=self.postgresql)

    def unhurried(self) -> None:
        """Let this transaction's statements take their time: they go over many rows."""
        if self.postgresql:
            self.ask("SET LOCAL statement_timeout = 0")

    def by_key(self) -> None:
        """Tell the planner that this transaction looks up every row by a key. By statistics of an
        hour ago, or of an empty table, all are best found by reading the whole of it; and so a plan
        that was made then would find them for as long as it is kept."""
        if self.postgresql:
            self.ask(f"SELECT concat({', '.join(_SET)})")

    def hurry(self) -> None:
        """Let this transaction wait for nobody: who is in its way has been waited for already."""
        if self.postgresql:
            self.cursor().execute(_PG_HURRY)

    def hold_lanes(self, account_ids: Iterable[int]) -> None:
        """Keep everybody else away from what belongs to these accounts until this commits.

        Whoever changes a delivery or a counter holds the lane of its account first, lanes in one
        order for everybody, so that no two can deadlock. On SQLite a writer is alone.
        """
        if not self.postgresql:
            return
        wanted = set(account_ids) - self._held
        if wanted:
            self.ask(_PG_HOLD, (array(sorted(wanted)),))
            self._held |= wanted

    def note_held(self, account_id: int) -> None:
        """A lane's row was changed, and so is held."""
        self._held.add(account_id)

    def open_counters(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Make sure that an account has every counter of a run, so that counting is an UPDATE."""
        rows = [(*pair, state.value) for pair in sorted(pairs) for state in DeliveryState]
        if not rows:
            return
        if self.postgresql:
            self.ask(_PG_OPEN, columns(rows))
        else:
            self.cursor().executemany(_SQLITE_OPEN, rows)

    def add_counts(self, tally: Tally) -> None:
        """Add to the counters, whose accounts' lanes the caller holds."""
        rows = [(*key, change) for key, change in tally.items() if change]
        if not rows:
            return
        if self.postgresql:
            counted = self.ask(PG_COUNT, columns(rows)).rowcount
        else:
            counted = _SQLITE_COUNT.run(self.cursor(), rows)
        if counted != len(rows):
            raise StoreError(f"{len(rows) - counted} counters of {len(rows)} are missing")


class Subject:
    """A group of statements about one noun, in one transaction."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def _connection(self) -> Connection:
        return self._context.connection


def insert_into(table: Table, *, on_postgresql: bool) -> Any:
    """An INSERT that knows ON CONFLICT, which both databases spell alike."""
    if on_postgresql:
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


def tally_move(
    tally: Tally, account_id: int, run_id: int, before: str, after: str, count: int = 1
) -> None:
    """Note that deliveries went from one state to another."""
    if before != after:
        left, entered = (account_id, run_id, before), (account_id, run_id, after)
        tally[left] = tally.get(left, 0) - count
        tally[entered] = tally.get(entered, 0) + count


def columns(rows: list[tuple[Any, ...]]) -> list[str]:
    """Rows turned into one array per column, which is how PostgreSQL takes many at once."""
    return [array(column) for column in zip(*rows, strict=True)]


def array(values: Sequence[int | str | None]) -> str:
    """An array as PostgreSQL reads it.

    The driver's own way is a Python function per element, which alone would halve what a process
    can send. Numbers are written as Python writes a list of them; of other columns most say the
    same in every row; texts are put in quotes all at once; and for anything else JSON quotes the
    same as an array does, but for control characters: PostgreSQL takes what follows a backslash as
    it stands.
    """
    if not values:
        return "{}"
    if isinstance(values[0], int):
        inner = str([*values])[1:-1]
        if "N" not in inner and "'" not in inner:  # neither a None nor a text among them
            return f"{{{inner}}}"
    elif isinstance(values[0], str) and (quoted := _quoted(values)) is not None:
        return f'{{"{quoted}"}}'
    elif values[0] is None and values.count(None) == len(values):
        return f"{{{','.join(_NULL * len(values))}}}"
    if len(set(values)) == 1:
        inner = ",".join([_encode(values[0])] * len(values))
    else:
        inner = _encode(values)[1:-1]
    if "\\" in inner and any(escape in inner for escape in _CONTROL_ESCAPES):
        inner = _ESCAPE.sub(_plain, inner)
    return f"{{{inner}}}"


def _quoted(values: Sequence[Any]) -> str | None:
    """Texts as they stand between the outermost quotes; None where not all of them are texts.

    They are told apart by a character that PostgreSQL cannot store. Where one of them has it all
    the same, the long way shall find that out.
    """
    try:
        joined = "\0".join(values)
    except TypeError:
        return None
    if joined.count("\0") != len(values) - 1:
        return None
    if "\\" in joined:
        joined = joined.replace("\\", "\\\\")
    if '"' in joined:
        joined = joined.replace('"', '\\"')
    return joined.replace("\0", '","')


def _plain(escape: re.Match[str]) -> str:
    """The escaped character itself, unless an array escapes it in the same way."""
    text = escape.group()
    character: str = json.loads(f'"{text}"')
    return text if character in '"\\' else character


def chunks(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """The same values in lists of at most ``size``; no more than one list is held at a time."""
    iterator = iter(values)
    while chunk := list(islice(iterator, size)):
        yield chunk


def storable(text: str, longest: int = MAX_TEXT) -> str:
    """Text from outside, made fit for a column. A provider's answer must never make it impossible
    to write down that there was an answer."""
    return keepable(text[:longest]) if text else text


def dump(value: Any) -> str:
    """A structured value as it is stored: compact, in its own order."""
    return _dump(value)


def dump_sorted(value: Mapping[str, Any]) -> str:
    """The same for every mapping that is equal, whatever order it was written in."""
    return _dump_sorted(value)
