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
from urllib.parse import urlsplit

from paceline.core.durations import parse_duration
from paceline.core.errors import InputError, NotFoundError
from paceline.core.grammar import Frequency
from paceline.core.instants import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from paceline.core.nearest import did_you_mean
from paceline.core.policy import merge
from paceline.core.tables import table_of, text_of, whole_of
from paceline.core.webhooks import Webhook, webhooks_of
from paceline.engine.starts import FIRE_CONCURRENCY

FILE = "paceline.toml"
PREFIX = "PACELINE_"
CONFIG_VARIABLE = "PACELINE_CONFIG"
POLICY_VARIABLE = "PACELINE_POLICY"
_NOT_OURS = ("PACELINE_CONFIG", "PACELINE_POLICY", "PACELINE_PYTHON", "PACELINE_KEY")
"""Variables that are no setting: where the file is, policies, what the scripts build with, and the
key to secrets, which belongs in no file of settings."""

DEFAULT_PORT = 8470
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("console", "json")
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
    values = _check(written, where=_shown(found))
    values |= _check(about_alerts, where=_shown(found), name=lambda key: key.replace("_", ".", 1))
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
    known = [*(key for key in _READERS if key not in _OF_ALERTS), "policy", ALERTS]
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
    return anchored


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


def _text(value: object) -> str:
    text = text_of(value).strip()
    if not text:
        raise InputError("must not be empty")
    return text


def _port(value: object) -> int:
    # A variable is always a text.
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    port = whole_of(number)
    if not 0 <= port <= 65_535:
        raise InputError(f"{port} is not a port; it is between 0 and 65535")
    return port


def _url(value: object) -> str:
    text = _text(value)
    hint = "Write it like https://paceline.example.com"
    wrong = InputError(f"{text!r} is not an http or https address", hint=hint)
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in ("http", "https") or not host or any(map(str.isspace, text)):
        raise wrong
    if parts.query or parts.fragment:
        raise InputError(f"{text!r} has more than a path", hint=hint)
    return text.rstrip("/")


def _addresses(value: object) -> tuple[str, ...]:
    """A list of addresses; in a variable they are told apart by spaces, for they may hold commas.

    What is wrong with one is told by its place in the list: the address itself may be a secret.
    """
    if isinstance(value, str):
        value = value.split()
    if not isinstance(value, list):
        raise InputError("must be a list of addresses such as mailto://user:password@example.com")
    urls = [entry.strip() if isinstance(entry, str) else "" for entry in value]
    for number, url in enumerate(urls, start=1):
        scheme, mark, rest = url.partition("://")
        if not (scheme and mark and rest) or any(map(str.isspace, url)):
            hint = "Write it like mailto://user:password@example.com"
            raise InputError(f"number {number} is no address", hint=hint)
    return tuple(urls)


def _frequency(value: object) -> str:
    return str(Frequency.parse(_text(value)))


def _one_of(*known: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        text = _text(value).lower()
        if text not in known:
            raise InputError(f"{text!r} is none of {', '.join(known)}")
        return text

    return read


def _whole(least: int, most: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        number = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise InputError(f"must be a whole number from {least} to {most}")
        return number

    return read


def _duration(least_us: int, most_us: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        us = parse_duration(_text(value))
        if not least_us <= us <= most_us:
            raise InputError(f"{value!r} is too {'short' if us < least_us else 'long'}")
        return us

    return read


_READERS: dict[str, tuple[str, Callable[[object], Any]]] = {
    "database": ("database", _text),
    "host": ("host", _text),
    "port": ("port", _port),
    "base_url": ("base_url", _url),
    "log_level": ("log_level", _one_of(*LOG_LEVELS)),
    "log_format": ("log_format", _one_of(*LOG_FORMATS)),
    "name": ("name", _text),
    "poll": ("poll_us", _duration(10 * MILLISECOND, HOUR)),
    "park_after": ("park_after_us", _duration(0, HOUR)),
    "grace": ("grace_us", _duration(0, HOUR)),
    "fire_concurrency": ("fire_concurrency", _whole(1, 1_000)),
    "key_file": ("key_file", _text),
    "sandbox_effects": ("sandbox_effects", _text),
    "per_contact": ("per_contact", _frequency),
    "alerts_urls": ("alerts_urls", _addresses),
    "alerts_again": ("alerts_again_us", _duration(MINUTE, 30 * DAY)),
    "webhooks": ("webhooks", webhooks_of),
}
"""Every key of the file but ``policy``: its field, and how it is read.

Those of a section have its name before theirs, as in a variable.
"""

ALERTS = "alerts"
_OF_ALERTS = ("alerts_urls", "alerts_again")
