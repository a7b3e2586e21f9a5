"""The peers on PostgreSQL: Procrastinate with a lock per key, and pgbench's commit per message.

Each is tried in a few ways first, and its best is what we are compared with.
"""

from __future__ import annotations

import re
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg
from sqlalchemy import make_url

from bench.children import Child, measure, module
from bench.places import Places, find_pgbench, plain_url, settle_down
from bench.report import BenchError

DEFER_WITHIN_S = 120
WORK_WITHIN_S = 300
MESSAGES = 100_000

# A message's writes, in the one commit that a queue with a commit per message cannot do without.
# Ours commits twice, intent and outcome, and writes a second ledger row and the counters.
_SCHEMA = """
CREATE TABLE messages (id bigint PRIMARY KEY, account_id bigint NOT NULL, state text NOT NULL,
    attempts int NOT NULL, target text NOT NULL, moved_at bigint NOT NULL)
    WITH (fillfactor = 50);
CREATE TABLE record (id bigserial PRIMARY KEY, message_id bigint NOT NULL,
    account_id bigint NOT NULL, kind text NOT NULL, at bigint NOT NULL, provider_id text);
INSERT INTO messages SELECT n, n % {accounts}, 'ready', 0, 'target-' || n, 0
    FROM generate_series(1, {messages}) n;
"""
_SCRIPT = r"""
\set id random(1, {messages})
\set account :id % {accounts}
BEGIN;
UPDATE messages SET state = 'sent', attempts = attempts + 1, moved_at = 1 WHERE id = :id;
INSERT INTO record (message_id, account_id, kind, at, provider_id)
    VALUES (:id, :account, 'outcome', 1, 'sandbox-0123456789abcdef0123');
COMMIT;
"""
_TPS = re.compile(r"tps = ([0-9.]+) \(without initial connection time\)")


@dataclass(frozen=True, slots=True)
class Way:
    """How Procrastinate is run: so many worker processes, each with so much at once."""

    workers: int
    concurrency: int

    def __str__(self) -> str:
        return f"{self.workers}×{self.concurrency}"


WAYS = (Way(1, 20), Way(1, 200), Way(2, 20), Way(4, 20), Way(4, 50))
CLIENTS = (8, 16, 32, 64)


def procrastinate_rate(
    places: Places, python: Path, way: Way, *, count: int, accounts: int
) -> float:
    """Messages per second from a standing queue, with one lock per account."""
    with places.fresh("postgresql") as url:
        address = plain_url(url)
        peer = "peer_procrastinate"
        deferring = ("defer", "--count", count, "--locks", accounts)
        measure(module(peer, address, *deferring, python=python), DEFER_WITHIN_S)
        settle_down(url)
        with ExitStack() as stack:
            arguments = (address, "work", "--concurrency", way.concurrency)
            workers = [
                stack.enter_context(module(peer, *arguments, python=python))
                for _ in range(way.workers)
            ]
            for worker in workers:
                worker.output(WORK_WITHIN_S)
        with psycopg.connect(address) as connection:
            # By its own record, which is also what several workers have in common.
            row = connection.execute(_SUCCEEDED).fetchone()
        assert row is not None
        done, seconds = row
    if done != count:
        raise BenchError(f"Procrastinate finished {done} of {count}")
    return float(count / float(seconds))


_SUCCEEDED = """
SELECT count(*) FILTER (WHERE type = 'succeeded'),
    extract(epoch FROM max(at) FILTER (WHERE type = 'succeeded')
        - min(at) FILTER (WHERE type = 'started'))
FROM procrastinate_events
"""


class Pgbench:
    """One table of messages on which pgbench commits, message by message."""

    def __init__(self, url: str, accounts: int, stack: ExitStack) -> None:
        self._program = find_pgbench()
        self._url = make_url(url)
        words = {"accounts": accounts, "messages": MESSAGES}
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self._script = folder / "message.sql"
        self._script.write_text(_SCRIPT.format(**words))
        with psycopg.connect(plain_url(url), autocommit=True) as connection:
            connection.execute(_SCHEMA.format(**words).encode())
        settle_down(url)

    def rate(self, clients: int, seconds: int) -> float:
        """Messages, each with its own commit, per second."""
        url = self._url
        program = [
            str(self._program),
            *("--no-vacuum", "--protocol", "prepared", "--file", str(self._script)),
            *("--client", str(clients), "--jobs", "2", "--time", str(seconds)),
            *("--host", url.host or "", "--port", str(url.port), "--username", url.username or ""),
            url.database or "",
        ]
        with Child(program, environ={"PGPASSWORD": str(url.password or "")}) as running:
            printed = running.output(seconds + 60)
        found = _TPS.search(printed)
        if found is None:
            raise BenchError(f"pgbench said nothing about its rate:\n{printed}")
        return float(found[1])
