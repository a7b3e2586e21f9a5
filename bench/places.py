"""Where things are measured: fresh databases of both kinds, on a server of our own.

The server is the one the tests use, found and started in the same way, with its durable defaults.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from bench.report import BenchError
from tests import postgres

KINDS = ("sqlite", "postgresql")
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")


class Places:
    """A folder for the files, and a server that is started when first needed."""

    def __init__(self, folder: Path, stack: ExitStack, *, durable: bool) -> None:
        self._folder = folder
        self._durable = durable
        self._stack = stack
        self._server_url: str | None = None

    @property
    def server_url(self) -> str:
        if self._server_url is None:
            try:
                server = postgres.running_server(durable=self._durable)
                self._server_url = self._stack.enter_context(server)
            except postgres.NoPostgres as failure:
                raise BenchError(str(failure).replace("The tests need", "This needs")) from None
            if self._durable:
                _require_durable(self._server_url)
        return self._server_url

    @contextmanager
    def fresh(self, kind: str) -> Iterator[str]:
        """The address of a new, empty database, gone when the block ends."""
        if kind == "postgresql":
            with postgres.fresh_database(self.server_url) as url:
                yield url
            return
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            yield f"sqlite:///{folder / 'paceline.db'}"
        finally:
            shutil.rmtree(folder)


@contextmanager
def places(folder: Path | None = None, *, durable: bool = True) -> Iterator[Places]:
    """Everything in one temporary folder, which vanishes with the server at the end. The tests,
    which measure nothing, do without a server that waits for the disk."""
    with ExitStack() as stack:
        if folder is not None:
            if not folder.is_dir():
                raise BenchError(f"{folder} is not a folder")
            # The server's folder is made by the code of the tests, in the place for such things.
            before, tempfile.tempdir = tempfile.tempdir, str(folder.resolve())
            stack.callback(setattr, tempfile, "tempdir", before)
        made = stack.enter_context(tempfile.TemporaryDirectory(prefix="paceline-bench-"))
        yield Places(Path(made), stack, durable=durable)


def in_memory(folder: Path) -> bool:
    """Whether a folder's file system is none that survives a loss of power, as far as is known."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return False
    best, kind = "", ""
    for line in mounts.read_text().splitlines():
        _, point, found, *_ = line.split()
        inside = folder.resolve().is_relative_to(point)
        if inside and len(point) >= len(best):
            best, kind = point, found
    return kind in MEMORY_FILE_SYSTEMS


def plain_url(url: str) -> str:
    """The same address as PostgreSQL's own programs write it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def settle_down(url: str) -> None:
    """Let a server finish what loading has left it to do, so that no measurement pays for it."""
    if url.startswith("postgresql"):
        with psycopg.connect(plain_url(url), autocommit=True) as connection:
            # Our own tables only: the server's are many, and nobody has filled them.
            for (table,) in connection.execute("SELECT relname FROM pg_stat_user_tables"):
                connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(table)))
            connection.execute("CHECKPOINT")


def find_pgbench() -> Path:
    """The program pgbench, beside the server's own programs or on the path."""
    folders = [*postgres.installed_programs(), *postgres.packaged_programs()]
    candidates = [folder / "pgbench" for folder in folders]
    if found := shutil.which("pgbench"):
        candidates.append(Path(found))
    for candidate in candidates:
        if os.access(candidate, os.X_OK):
            return candidate
    raise BenchError("pgbench was not found; it comes with PostgreSQL (postgresql-contrib)")


def _require_durable(server_url: str) -> None:
    """A server that does not write to disk would make every figure a lie."""
    with psycopg.connect(plain_url(server_url)) as connection:
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            row = connection.execute("SELECT current_setting(%s)", (setting,)).fetchone()
            if row is None or row[0] != "on":
                raise BenchError(f"the PostgreSQL server has {setting} {row and row[0]}, not on")
