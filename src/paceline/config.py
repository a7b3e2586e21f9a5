"""Settings of an installation: ``paceline.toml``, then ``PACELINE_*`` variables, then defaults.

A variable wins over the file, the file over the default. What nobody knows is refused with the
nearest known name, so that a slip of the pen is never silently without effect. What the settings
are used for is decided in ``app.py``.
"""

from __future__ import annotations

import os
import socket
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from paceline.core import readers
from paceline.core.answering import Way, ways_of
from paceline.core.errors import InputError, NotFoundError
from paceline.core.instants import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from paceline.core.nearest import did_you_mean
from paceline.core.opting_out_settings import OptingOut, opting_out_of
from paceline.core.policy import merge
from paceline.core.sizes import MB
from paceline.core.tables import table_of
from paceline.core.webhooks import Webhook, webhooks_of
from paceline.engine.ports.workers import MAX_WORKERS
from paceline.engine.starts import FIRE_CONCURRENCY

FILE = "paceline.toml"
PREFIX = "PACELINE_"
CONFIG_VARIABLE = "PACELINE_CONFIG"
POLICY_VARIABLE = "PACELINE_POLICY"
_NOT_OURS = ("PACELINE_CONFIG", "PACELINE_POLICY", "PACELINE_PYTHON", "PACELINE_KEY")
"""Variables that are no setting: where the file is, policies, what the scripts build with, and the
key to secrets, which belongs in no file of settings."""

DEFAULT_PORT = 8470
AT_ONCE = 20
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("console", "json")
ISOLATIONS = ("shared", "process")
WORKER_MEMORY = 512 * MB
"""What a worker may take unless somebody says otherwise; a quiet one takes about 70 MB."""
_SQLITE = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything an operator can choose, checked. Each field is a key of the file."""

    database: str = "sqlite:///paceline.db"
    """Where everything is kept: a file path, ``sqlite:///path`` or ``postgresql://…``."""
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """Where ``/healthz``, ``/readyz`` and ``/metrics`` are served; 0 picks a free port."""
    base_url: str = ""
    """How the outside reaches this server; empty until somebody says, see ``public_url``."""
    log_level: str = "info"
    log_format: str = ""
    """``console`` or ``json``; empty picks by whether somebody is watching."""
    name: str = ""
    """What this process is called in the fleet; empty is host and process number."""
    poll_us: int = SECOND
    park_after_us: int = 2 * MINUTE
    grace_us: int = 60 * SECOND
    fire_concurrency: int = FIRE_CONCURRENCY
    """How many accounts of a process may begin a reminder's run at once."""
    isolation: str = "shared"
    """Whether all lanes run in this process, or in processes of their own."""
    accounts_per_process: int = 1
    """With processes of their own: how many accounts share one at most."""
    max_workers: int = MAX_WORKERS
    """With processes of their own: how many there may be at once."""
    worker_memory: int | None = None
    """What a process that runs lanes may take before it is replaced, in bytes; 0 is anything, and
    None is nothing said, see ``memory_limit``."""
    key_file: str = ""
    """The key that accounts' secrets are sealed with; empty is a file beside a SQLite database."""
    sandbox_effects: str = ""
    """The sandbox's log of effects; empty puts it beside the database."""
    alerts_urls: tuple[str, ...] = field(default=(), repr=False)
    """Whom alerts are told: addresses as apprise takes them. They hold secrets."""
    alerts_again_us: int = HOUR
    """How long the same alert goes on in silence before it is told again."""
    webhooks: tuple[Webhook, ...] = ()
    """Who is told of events, besides people."""
    answering: Mapping[str, Way] = field(default_factory=dict)
    """The ways to answer people, by their names."""
    answering_at_once: int = AT_ONCE
    """How many conversations this process answers at a time."""
    opt_out: OptingOut = field(default_factory=OptingOut)
    """The words by which people opt out and in, and what they are told then."""
    per_contact: str = ""
    """How often anybody may be written to, by all accounts together; empty is without limit."""
    policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: str = ""
    """The file the settings were read from, as it is named in complaints."""

    @property
    def public_url(self) -> str:
        """The address that links and hooks are built on, without a slash at its end."""
        if self.base_url:
            return self.base_url
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def shown_database(self) -> str:
        """The database as it may be logged: no user, no password, no options."""
        if sqlite_path(self.database) is not None:
            return self.database
        scheme, _, rest = self.database.partition("://")
        return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"

    @property
    def process_name(self) -> str:
        return self.name or f"{socket.gethostname()}-{os.getpid()}"

    @property
    def memory_limit(self) -> int:
        """What a process that runs lanes may take; 0 is without limit. Where all lanes share one,
        nobody can say beforehand how much that should be."""
        if self.worker_memory is not None:
            return self.worker_memory
        return WORKER_MEMORY if self.isolation == "process" else 0

    @property
    def chosen_log_format(self) -> str:
        return self.log_format or ("console" if sys.stderr.isatty() else "json")

    @property
    def effects_path(self) -> Path:
        """One file for all processes of an installation, because it stands for one world."""
        if self.sandbox_effects:
            return Path(self.sandbox_effects)
        path = sqlite_path(self.database)
        if path is None:
            return Path("paceline-sandbox.jsonl")
        return path.with_name(f"{path.stem}-sandbox.jsonl")

    @property
    def key_path(self) -> Path | None:
        """The file with the key to secrets; None for a server that nobody has given one."""
        if self.key_file:
            return Path(self.key_file)
        path = sqlite_path(self.database)
        return None if path is None else path.with_suffix(".key")

    @property
    def whatsapp_folder(self) -> Path:
        """Where the sessions of WhatsApp accounts are kept: beside the database's file."""
        path = sqlite_path(self.database)
        return (Path() if path is None else path.parent) / "whatsapp"


def sqlite_path(database: str) -> Path | None:
    """The file of a SQLite address or a plain path; None for a server."""
    if "://" not in database:
        return Path(database)
    return Path(database.removeprefix(_SQLITE)) if database.startswith(_SQLITE) else None


def load(
    path: str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    database: str | None = None,
) -> Settings:
    """The settings that hold here; ``database`` is what was said on the command line, if it was."""
    variables = os.environ if environ is None else environ
    found = _find(path, variables)
    written = _read_file(found) if found is not None else {}
    policies = _policies(written.pop("policy", {}), where=_shown(found))
    if POLICY_VARIABLE in variables:
        said = _policies(_read_table(variables[POLICY_VARIABLE]), where=POLICY_VARIABLE)
        policies = {
            name: merge(policies.get(name, {}), said.get(name, {})) for name in policies | said
        }
    about_alerts = _alerts(written.pop(ALERTS, {}), where=_shown(found))
    at_once = _at_once(written)
    values = _check(written, where=_shown(found))
    for section in (about_alerts, at_once):
        values |= _check(section, where=_shown(found), name=lambda key: key.replace("_", ".", 1))
    values |= _check(_variables(variables), where=None, name=lambda key: PREFIX + key.upper())
    if database is not None:
        values |= _check({"database": database}, where=None, name=lambda key: f"--{key}")
    return Settings(**values, policies=policies, source=_shown(found) or "")


def override(settings: Settings, **said: object) -> Settings:
    """The same with what was said on the command line; None means that nothing was said."""
    values = {key: value for key, value in said.items() if value is not None}
    kept = {entry.name: getattr(settings, entry.name) for entry in fields(settings)}
    return Settings(
        **{**kept, **_check(values, where=None, name=lambda key: f"--{key.replace('_', '-')}")}
    )


def _find(path: str | Path | None, variables: Mapping[str, str]) -> Path | None:
    named = path or variables.get(CONFIG_VARIABLE)
    if named:
        found = Path(named)
        if not found.is_file():
            raise NotFoundError(f"there is no settings file {str(found)!r}")
        return found
    here = Path(FILE)
    return here if here.is_file() else None


def _shown(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        written = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError("is not a text in UTF-8", where=str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not valid TOML: {error}", where=str(path)) from None
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        raise InputError(reason, where=str(path)) from None
    known = [*(key for key in _READERS if key not in _OF_SECTIONS), "policy", ALERTS]
    for key in written:
        if key not in known:
            raise InputError(f"unknown key {key!r}{did_you_mean(key, known)}", where=str(path))
    return _anchored(written, path.parent)


def _anchored(written: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Paths in a file are meant from where the file is, not from where somebody happens to be."""
    anchored = dict(written)
    database = written.get("database")
    if isinstance(database, str) and (path := sqlite_path(database)) is not None:
        prefix = _SQLITE if database.startswith(_SQLITE) else ""
        anchored["database"] = f"{prefix}{folder / path}" if str(path) != "." else database
    for key in ("sandbox_effects", "key_file"):
        if isinstance(named := written.get(key), str) and named:
            anchored[key] = str(folder / named)
    if isinstance(ways := written.get("answering"), Mapping):
        anchored["answering"] = {name: _with_prompt(way, folder) for name, way in ways.items()}
    return anchored


def _with_prompt(way: object, folder: Path) -> object:
    if isinstance(way, Mapping) and isinstance(named := way.get("prompt_file"), str) and named:
        return {**way, "prompt_file": str(folder / named)}
    return way


def _read_table(text: str) -> dict[str, Any]:
    try:
        return table_of(text)
    except InputError as error:
        raise InputError(
            "is not a table", key=POLICY_VARIABLE, hint='Write { name = { rate = "5/min" } }'
        ) from error


def _policies(written: object, where: str | None) -> dict[str, dict[str, Any]]:
    if not isinstance(written, Mapping):
        raise InputError("must be a table of policies", key="policy", where=where)
    for name, body in written.items():
        if not isinstance(body, Mapping):
            reason = f"must be a table; write it as [policy.{name}] with keys below"
            raise InputError(reason, key=f"policy.{name}", where=where)
    return {name: dict(body) for name, body in written.items()}


def _alerts(written: object, where: str | None) -> dict[str, Any]:
    """The section about alerts, under the names its keys have as variables."""
    if not isinstance(written, Mapping):
        raise InputError("must be a table; write it as [alerts]", key=ALERTS, where=where)
    known = [key.removeprefix(f"{ALERTS}_") for key in _OF_ALERTS]
    for key in written:
        if key not in known:
            reason = f"unknown key {key!r}{did_you_mean(key, known)}"
            raise InputError(reason, key=ALERTS, where=where)
    return {f"{ALERTS}_{key}": value for key, value in written.items()}


def _at_once(written: dict[str, Any]) -> dict[str, Any]:
    """What stands in the section about answering besides the ways, under its name as a variable."""
    ways = written.get(ANSWERING)
    if not isinstance(ways, Mapping) or isinstance(ways.get("at_once", {}), Mapping):
        return {}
    written[ANSWERING] = {name: way for name, way in ways.items() if name != "at_once"}
    return {f"{ANSWERING}_at_once": ways["at_once"]}


def _variables(variables: Mapping[str, str]) -> dict[str, Any]:
    """The settings among the variables, still as texts."""
    known = {PREFIX + key.upper(): key for key in _READERS}
    said: dict[str, Any] = {}
    for variable, text in variables.items():
        if not variable.startswith(PREFIX) or variable.startswith(f"{PREFIX}TEST_"):
            continue
        if variable in known:
            said[known[variable]] = text
        elif variable not in _NOT_OURS:
            meant = did_you_mean(variable, [*known, CONFIG_VARIABLE, POLICY_VARIABLE])
            raise InputError(f"unknown variable {variable!r}{meant}")
    return said


def _check(
    values: Mapping[str, object],
    *,
    where: str | None,
    name: Callable[[str], str] = str,
) -> dict[str, Any]:
    """The values under their fields; whatever is wrong is named as it was written."""
    checked: dict[str, Any] = {}
    for key, value in values.items():
        target, read = _READERS[key]
        try:
            checked[target] = read(value)
        except InputError as error:
            raise InputError(error.reason, key=name(key), where=where, hint=error.hint) from None
    return checked


_READERS: dict[str, tuple[str, Callable[[object], Any]]] = {
    "database": ("database", readers.text),
    "host": ("host", readers.text),
    "port": ("port", readers.port),
    "base_url": ("base_url", readers.url),
    "log_level": ("log_level", readers.one_of(*LOG_LEVELS)),
    "log_format": ("log_format", readers.one_of(*LOG_FORMATS)),
    "name": ("name", readers.text),
    "poll": ("poll_us", readers.duration(10 * MILLISECOND, HOUR)),
    "park_after": ("park_after_us", readers.duration(0, HOUR)),
    "grace": ("grace_us", readers.duration(0, HOUR)),
    "fire_concurrency": ("fire_concurrency", readers.whole(1, 1_000)),
    "isolation": ("isolation", readers.one_of(*ISOLATIONS)),
    "accounts_per_process": ("accounts_per_process", readers.whole(1, 1_000)),
    "max_workers": ("max_workers", readers.whole(1, 10_000)),
    "worker_memory": ("worker_memory", readers.size),
    "key_file": ("key_file", readers.text),
    "sandbox_effects": ("sandbox_effects", readers.text),
    "per_contact": ("per_contact", readers.frequency),
    "alerts_urls": ("alerts_urls", readers.addresses),
    "alerts_again": ("alerts_again_us", readers.duration(MINUTE, 30 * DAY)),
    "webhooks": ("webhooks", webhooks_of),
    "answering": ("answering", ways_of),
    "answering_at_once": ("answering_at_once", readers.whole(1, 10_000)),
    "opt_out": ("opt_out", opting_out_of),
}
"""Every key of the file but ``policy``: its field, and how it is read.

Those of a section have its name before theirs, as in a variable.
"""

ALERTS = "alerts"
ANSWERING = "answering"
_OF_ALERTS = ("alerts_urls", "alerts_again")
_OF_SECTIONS = (*_OF_ALERTS, "answering_at_once")
