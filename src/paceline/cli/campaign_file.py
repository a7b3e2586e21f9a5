"""A campaign as it lies on disk: a TOML file, its audience beside it, its media beside it.

Everything is read and complained about here, naming file and key, before anything is stored. What
the values mean is decided in ``engine/campaign_spec.py``.
"""

from __future__ import annotations

import csv
import io
import mimetypes
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.cli.output import plural
from paceline.core.errors import InputError
from paceline.core.model import Target
from paceline.core.template import content_variables
from paceline.engine.campaign_spec import CampaignSpec, refuse_steering, targets_from
from paceline.engine.ports import Tx

LARGEST_MEDIA = 64 << 20
LARGEST_AUDIENCE = 512 << 20
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
        rows = list(_rows(raw, path.parent))
        _check_rows(rows, raw, content_variables(spec.content))
        key = "audience" if "audience" in raw else "targets"
        targets = targets_from([_filled(row) for _, row in rows], key)
        media = dict(_media(spec, path.parent))
    except InputError as error:
        raise error.within(str(path)) from None
    return CampaignFile(spec, targets, len(rows) - len(targets), media)


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
            place = f"{raw['audience']}: line {number}" if in_file else f"row {number}"
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


def _audience(name: object, folder: Path) -> Iterator[Row]:
    if not isinstance(name, str) or not name.strip():
        raise InputError("must name a CSV file", key="audience")
    path = folder / name
    try:
        content = _read(path, name, LARGEST_AUDIENCE)
    except InputError as error:
        raise InputError(error.reason, key="audience") from None
    try:
        yield from _table(_decoded(content))
    except InputError as error:
        raise InputError(f"{name}: {error}", key="audience") from None


def _table(text: str) -> Iterator[Row]:
    header_line = text.partition("\n")[0]
    # Spreadsheets write a semicolon where the comma is used for decimals.
    delimiter = max(",;\t", key=header_line.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = _header(next(reader, []))
        ended = reader.line_num
        for row in reader:
            begun, ended = ended + 1, reader.line_num
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                columns = plural(len(row), "column", "columns")
                raise InputError(f"line {begun} has {columns}, the header has {len(header)}")
            cells = dict(zip(header, row, strict=True))
            if not cells[_ADDRESS].strip():
                raise InputError(f"line {begun} has no address")
            yield begun, cells
    except csv.Error as error:
        raise InputError(f"line {reader.line_num}: {error}") from None


def _header(cells: list[str]) -> list[str]:
    header = [cell.strip() for cell in cells]
    if _ADDRESS not in header:
        found = ", ".join(cell for cell in header if cell) or "nothing"
        raise InputError(f"the first line must name a column 'address'; it names {found}")
    for name in header:
        if not name:
            raise InputError("a column of the first line has no name")
        if header.count(name) > 1:
            raise InputError(f"the first line names the column '{name}' twice")
    return header
