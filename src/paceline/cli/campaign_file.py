"""A campaign as it lies on disk: a TOML file, its audience beside it, its media beside it.

Everything is read and complained about here, naming file and key, before anything is stored. What
the values mean is decided in ``engine/campaign_spec.py``.
"""

from __future__ import annotations

import mimetypes
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paceline.cli.csv_rows import CsvTable, open_csv
from paceline.core.errors import InputError, NotFoundError
from paceline.core.model import Target
from paceline.core.template import content_variables
from paceline.engine.campaign_spec import CampaignSpec, refuse_steering, targets_from
from paceline.engine.people import Unreachable, reached_by
from paceline.engine.ports import Providers, Tx

LARGEST_MEDIA = 64 << 20
LARGEST_AUDIENCE = 512 << 20
TABLES = (".csv", ".tsv", ".txt")
"""Names that end like this are meant as files, whether or not there is one."""
_ADDRESS = "address"

Row = tuple[int, Mapping[str, Any]]
"""A row of the audience, with the line on which it begins."""


@dataclass(frozen=True, slots=True)
class MediaFile:
    name: str
    mime: str
    content: bytes


@dataclass(frozen=True, slots=True)
class CampaignFile:
    """A campaign, read and checked as far as that is possible without a database."""

    spec: CampaignSpec
    targets: list[Target]
    duplicates: int
    media: Mapping[str, MediaFile]
    audience: str | None = None
    """The stored audience it names, whose people are read with ``with_people``."""
    unreachable: tuple[Unreachable, ...] = ()

    def with_people(self, tx: Tx, providers: Providers) -> CampaignFile:
        """The same with the people of its audience, as they are now; as it is if it names none."""
        if self.audience is None:
            return self
        spec = self.spec
        try:
            found = reached_by(tx, self.audience, spec.action, spec.accounts, providers)
        except NotFoundError as error:
            if tx.audiences.find(self.audience) is not None:
                raise error from None  # it is an account that does not exist
            reason = f"there is neither a file '{self.audience}' nor an audience of that name"
            hint = "paceline audience list shows those there are"
            raise NotFoundError(reason, key="audience", hint=hint) from None
        return replace(
            self,
            spec=replace(spec, audience=found.settings()),
            targets=found.targets,
            unreachable=tuple(found.unreachable),
        )

    def stored_spec(self, tx: Tx, at: int) -> CampaignSpec:
        """The campaign with its media put into the store."""
        ids = {
            name: tx.media.put(file.name, file.mime, file.content, at).id
            for name, file in self.media.items()
        }
        return self.spec.with_media(ids)


def read_campaign(path: Path) -> CampaignFile:
    try:
        raw = _read_toml(path)
        spec = CampaignSpec.from_mapping(raw)
        stored = _stored_audience(raw, path.parent)
        rows = [] if stored is not None else list(_rows(raw, path.parent))
        _check_rows(rows, raw, content_variables(spec.content))
        key = "audience" if "audience" in raw else "targets"
        targets = targets_from([_filled(row) for _, row in rows], key)
        media = dict(_media(spec, path.parent))
    except InputError as error:
        raise error.within(str(path)) from None
    return CampaignFile(spec, targets, len(rows) - len(targets), media, stored)


def read_media(path: Path, shown: str) -> MediaFile:
    """One media file; complaints call it what the person called it."""
    content = _read(path, shown, LARGEST_MEDIA)
    if not content:
        raise InputError(f"the file '{shown}' is empty")
    mime = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return MediaFile(path.name, mime, content)


def _read(path: Path, shown: str, largest: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except FileNotFoundError:
        raise InputError(f"no such file '{shown}'") from None
    except OSError as error:
        raise InputError(f"cannot read '{shown}': {error.strerror}") from None
    if len(content) > largest:
        raise InputError(f"the file '{shown}' is larger than {largest >> 20} MiB")
    return content


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_decoded(_read(path, path.name, LARGEST_MEDIA)))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not valid TOML: {error}") from None


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"is not a text in UTF-8 (line {line})") from None


def _media(spec: CampaignSpec, folder: Path) -> Iterator[tuple[str, MediaFile]]:
    for number, part in enumerate(spec.content.parts, start=1):
        if part.media:
            try:
                yield part.media, read_media(folder / part.media, part.media)
            except InputError as error:
                raise InputError(error.reason, key=f"parts[{number}].media") from None


def _check_rows(rows: list[Row], raw: Mapping[str, Any], needed: frozenset[str]) -> None:
    """Refuses what nobody could see in a table: control characters, and gaps in a greeting."""
    seen: set[str] = set()
    for number, row in rows:
        address = str(row.get(_ADDRESS) or "").strip()
        try:
            refuse_steering(address)
            if address not in seen:
                _refuse_gaps(row, needed)
        except InputError as error:
            in_file = "audience" in raw
            place = f"{_file_named(raw['audience'])}: line {number}" if in_file else f"row {number}"
            key = "audience" if in_file else "targets"
            raise InputError(f"{place}: {error.reason}", key=key, hint=error.hint) from None
        seen.add(address)


def _refuse_gaps(row: Mapping[str, Any], needed: frozenset[str]) -> None:
    empty = sorted(name for name in needed & row.keys() if not str(row[name]).strip())
    if empty:
        raise InputError(
            f"{', '.join(empty)} is empty",
            hint=f"Fill it in, or give the template a default: {empty[0]} | default('…')",
        )


def _filled(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row without its empty cells: what has no value is looked after by a default."""
    return {name: value for name, value in row.items() if name == _ADDRESS or str(value).strip()}


def _rows(raw: Mapping[str, Any], folder: Path) -> Iterator[Row]:
    """The audience, whichever way it is given: a CSV file, or written into the campaign."""
    if "audience" in raw and "targets" in raw:
        raise InputError("give either an audience file or targets, not both", key="audience")
    if "audience" in raw:
        yield from _audience(raw["audience"], folder)
    elif "targets" in raw:
        yield from _inline(raw["targets"])
    else:
        raise InputError(
            "is missing", key="audience", hint="Name a CSV file with a column 'address'"
        )


def _inline(targets: object) -> Iterator[Row]:
    if not isinstance(targets, list):
        raise InputError("must be a list of addresses or tables", key="targets")
    for number, target in enumerate(targets, start=1):
        if isinstance(target, str):
            yield number, {_ADDRESS: target}
        elif isinstance(target, Mapping):
            yield number, target
        else:
            raise InputError(f"{target!r} is neither an address nor a table", key="targets")


def _stored_audience(raw: Mapping[str, Any], folder: Path) -> str | None:
    """The stored audience that is meant; None where it is a file, or no audience at all.

    A text names a file if there is one, and a stored audience otherwise. A table says which.
    """
    named = raw.get("audience")
    if isinstance(named, Mapping):
        if [*named] not in (["name"], ["file"]) or not _is_name(*named.values()):
            reason = "must say either { name = … } or { file = … }"
            raise InputError(reason, key="audience")
        return str(named["name"]).strip() if "name" in named else None
    if "targets" in raw or not _is_name(named) or _is_file_name(str(named)):
        return None
    return None if (folder / str(named)).exists() else str(named).strip()


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_file_name(name: str) -> bool:
    return Path(name).suffix.lower() in TABLES or "/" in name or "\\" in name


def _file_named(audience: object) -> object:
    return audience.get("file") if isinstance(audience, Mapping) else audience


def _audience(named: object, folder: Path) -> Iterator[Row]:
    name = _file_named(named)
    if not isinstance(name, str) or not name.strip():
        raise InputError("must name a CSV file or an audience", key="audience")
    try:
        with open_csv(folder / name, name) as table:
            if table.size > LARGEST_AUDIENCE:
                too_large = f"the file '{name}' is larger than {LARGEST_AUDIENCE >> 20} MiB"
                raise InputError(too_large)
            yield from _people(table)
    except InputError as error:
        raise InputError(str(error), key="audience") from None


def _people(table: CsvTable) -> Iterator[Row]:
    if _ADDRESS not in table.header:
        found = ", ".join(cell for cell in table.header if cell) or "nothing"
        reason = f"the first line must name a column 'address'; it names {found}"
        hint = (
            "Rename it; or store the file with 'paceline audience import', which knows more names"
        )
        raise InputError(reason, where=table.shown, hint=hint)
    table.check_header()
    for row in table.rows():
        problem = row.problem or ("" if row.cells[_ADDRESS].strip() else "has no address")
        if problem:
            raise InputError(f"line {row.line} {problem}", where=table.shown)
        yield row.line, row.cells
