"""Whom a campaign file is for: a table beside it, or targets written into it.

Columns are recognised as ``paceline audience import`` does it, so that a file can be used either
way. Which of somebody's addresses is written to depends on what is sent, and from where; that is
known only when the accounts are (``Written.target``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paceline.cli.csv_rows import open_csv
from paceline.core.address import KINDS, canonical, guess_kind, known_region, normalise
from paceline.core.errors import InputError
from paceline.core.model import Target
from paceline.engine.audience_columns import ADDRESS, Columns, variable
from paceline.engine.campaign_spec import refuse_steering
from paceline.engine.people import Unreachable
from paceline.engine.routes import Route

LARGEST_AUDIENCE = 512 << 20
TABLES = (".csv", ".tsv", ".txt")
"""Names that end like this are meant as files, whether or not there is one."""
FILE_KEYS = ("file", "map", "region")
_MAP = 'Say which is what: audience = { file = "people.csv", map = { email = "E-Mail" } }'


@dataclass(frozen=True, slots=True)
class Written:
    """One row: everything it says, and every address in it, as they were written."""

    place: str
    """What complaints call the row."""
    addresses: Mapping[str, str]
    """By what the column says that it is: a kind, or ``address`` for any."""
    fields: Mapping[str, str]
    region: str | None = None
    _spellings: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """By column, its address in the one spelling: numbers take their time to be understood, and
    are asked for again when the accounts are known."""

    def target(self, way: Route) -> Target | Unreachable:
        """Whom to write to, or why nobody can be."""
        wrong: Unreachable | None = None
        for name in (ADDRESS, *way.kinds):
            text = self.addresses.get(name)
            if text is None:
                continue
            try:
                address = self._spelled(name, text)
                if name == ADDRESS and (problem := way.problem(address)):
                    raise InputError(problem)
                return Target(address, self.fields, addresses=self._everywhere(name))
            except InputError as error:
                why = str(error).removeprefix(f"'{text}' ")
                wrong = wrong or Unreachable(None, text, why)
        return wrong or Unreachable(None, self._who(), way.missing())

    def _spelled(self, name: str, text: str) -> str:
        if (known := self._spellings.get(name)) is not None:
            return known
        by_looks = name == ADDRESS
        spelled = canonical(text, self.region) if by_looks else normalise(name, text, self.region)
        return self._spellings.setdefault(name, spelled)

    def _everywhere(self, chosen: str) -> tuple[tuple[str, str], ...]:
        """Every address in the row by its kind, the one that was chosen first: they are one
        person's. What is none is passed over, because it is not written to."""
        found: dict[str, str] = {}
        for name in sorted(self.addresses, key=lambda name: name != chosen):
            try:
                address = self._spelled(name, self.addresses[name])
            except InputError:
                continue
            if address not in found.values():
                found.setdefault(guess_kind(address) if name == ADDRESS else name, address)
        return tuple(found.items())

    def _who(self) -> str:
        whole = " ".join(filter(None, map(self.fields.get, ("first_name", "last_name"))))
        known = [self.fields.get("name"), whole, *self.addresses.values()]
        return next((text for text in known if text), self.place)

    def check(self, needed: frozenset[str], seen: set[tuple[str, ...]]) -> None:
        """Refuses what nobody could see in a table: control characters, and gaps in a greeting.

        Of several rows with the same addresses only the first is used.
        """
        reached = tuple(self.addresses.values())
        for address in reached:
            refuse_steering(address)
        if not reached or reached in seen:
            return
        seen.add(reached)
        empty = sorted(name for name in needed & self.fields.keys() if not self.fields[name])
        if empty:
            raise InputError(
                f"{', '.join(empty)} is empty",
                hint=f"Fill it in, or give the template a default: {empty[0]} | default('…')",
            )


def picked(people: Iterable[Written], way: Route) -> tuple[list[Target], tuple[Unreachable, ...]]:
    """Whom the rows are for, each once, and who cannot be reached. The first row of several for
    one address counts."""
    targets: dict[str, Target] = {}
    unreachable: list[Unreachable] = []
    for row in people:
        found = row.target(way)
        if isinstance(found, Unreachable):
            unreachable.append(found)
        else:
            # What has no value is looked after by the template's default.
            fields = {name: value for name, value in found.fields.items() if value}
            targets.setdefault(found.address, replace(found, fields=fields))
    return list(targets.values()), tuple(unreachable)


def people_of(raw: Mapping[str, Any], folder: Path, needed: frozenset[str]) -> Iterator[Written]:
    """The audience, whichever way it is given; ``needed`` are the variables of the templates."""
    if "audience" in raw and "targets" in raw:
        raise InputError("give either an audience file or targets, not both", key="audience")
    if "audience" in raw:
        yield from _audience(raw["audience"], folder, needed)
    elif "targets" in raw:
        yield from _inline(raw["targets"], needed)
    else:
        hint = "Name a CSV file or an audience, or write targets = […]"
        raise InputError("is missing", key="audience", hint=hint)


def stored_audience(raw: Mapping[str, Any], folder: Path) -> str | None:
    """The stored audience that is meant; None where it is a file, or no audience at all.

    A text names a file if there is one, and a stored audience otherwise. A table says which.
    """
    named = raw.get("audience")
    if isinstance(named, Mapping):
        keys, kinds = set(named), [key for key in ("name", "file") if key in named]
        if len(kinds) != 1 or not keys <= {"name", *FILE_KEYS} or not _is_name(named[kinds[0]]):
            reason = "must say either { name = … } or { file = … }"
            raise InputError(reason, key="audience")
        if "name" in named and len(named) > 1:
            raise InputError("only a file has a map or a region", key="audience")
        return str(named["name"]).strip() if "name" in named else None
    if "targets" in raw or not _is_name(named) or _is_file_name(str(named)):
        return None
    return None if (folder / str(named)).exists() else str(named).strip()


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_file_name(name: str) -> bool:
    return Path(name).suffix.lower() in TABLES or "/" in name or "\\" in name


# ---------------------------------------------------------------------- written into the campaign


def _inline(targets: object, needed: frozenset[str]) -> Iterator[Written]:
    if not isinstance(targets, list):
        raise InputError("must be a list of addresses or tables", key="targets")
    seen: set[tuple[str, ...]] = set()
    for number, target in enumerate(targets, start=1):
        if not isinstance(target, str | Mapping):
            raise InputError(f"{target!r} is neither an address nor a table", key="targets")
        cells = {ADDRESS: target} if isinstance(target, str) else _texts(target)
        try:
            columns = Columns.of(list(cells))
        except InputError as error:
            reason = error.reason.replace("no column", "nothing in it")
            raise InputError(f"row {number}: {reason}", key="targets") from None
        row = _written(f"row {number}", cells, columns)
        if not row.addresses:
            raise InputError(f"row {number} has no address", key="targets")
        try:
            row.check(needed, seen)
        except InputError as error:
            reason = f"row {number}: {error.reason}"
            raise InputError(reason, key="targets", hint=error.hint) from None
        yield row


def _texts(table: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): "" if value is None else str(value) for key, value in table.items()}


# ---------------------------------------------------------------------- beside the campaign


def _audience(named: object, folder: Path, needed: frozenset[str]) -> Iterator[Written]:
    table = named if isinstance(named, Mapping) else {"file": named}
    name = table.get("file")
    if not isinstance(name, str) or not name.strip():
        raise InputError("must name a CSV file or an audience", key="audience")
    mapped, region = _mapped(table.get("map", {})), _region(table.get("region"))
    try:
        yield from _table((folder / name).absolute(), name, mapped, region, needed)
    except InputError as error:
        raise InputError(str(error), key="audience") from None


def _table(
    path: Path, name: str, mapped: Mapping[str, str], region: str | None, needed: frozenset[str]
) -> Iterator[Written]:
    with open_csv(path, name) as table:
        if table.size > LARGEST_AUDIENCE:
            raise InputError(f"the file '{name}' is larger than {LARGEST_AUDIENCE >> 20} MiB")
        try:
            columns = Columns.of(table.header, mapped, region=region)
        except InputError as error:
            said = error.hint is not None and "--map" not in error.hint
            raise InputError(error.reason, where=name, hint=error.hint if said else _MAP) from None
        seen: set[tuple[str, ...]] = set()
        for row in table.rows():
            if row.problem:
                raise InputError(f"line {row.line} {row.problem}", where=name)
            written = _written(f"line {row.line}", row.cells, columns)
            if not written.addresses and ADDRESS in columns.meaning.values():
                # Where addresses have a column each, whoever has none is told of as unreachable.
                raise InputError(f"line {row.line} has no address", where=name)
            try:
                written.check(needed, seen)
            except InputError as error:
                raise error.within(f"{name}: line {row.line}") from None
            yield written


def _written(place: str, cells: Mapping[str, str], columns: Columns) -> Written:
    """A row under the names that its columns have in templates, and under those they stand for."""
    addresses: dict[str, str] = {}
    fields: dict[str, str] = {}
    for heading, cell in cells.items():
        text, name = cell.strip(), columns.meaning[heading]
        if name != ADDRESS:
            fields[variable(heading)] = text
            fields[name] = text
        if text and (name == ADDRESS or name in KINDS):
            addresses[name] = text
    return Written(place, addresses, fields, columns.region)


def _mapped(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        reason = 'must be a table such as { email = "E-Mail" }'
        raise InputError(reason, key="audience.map")
    return {str(what): heading.strip() for what, heading in value.items()}


def _region(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InputError("must be a text", key="audience.region")
    try:
        return known_region(value)
    except InputError as error:
        raise InputError(error.reason, key="audience.region", hint=error.hint) from None
