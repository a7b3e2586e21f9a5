"""A campaign as it lies on disk: a TOML file, its audience beside it, its media beside it.

Everything is read and complained about here, naming file and key, before anything is stored. What
the values mean is decided in ``engine/campaign_spec.py``.
"""

from __future__ import annotations

import mimetypes
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paceline.cli.campaign_people import Written, people_of, picked, stored_audience
from paceline.cli.csv_rows import STANDARD
from paceline.core.errors import InputError, NotFoundError
from paceline.core.model import Target
from paceline.core.nearest import did_you_mean
from paceline.core.schedule import Rule
from paceline.core.template import content_variables
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.people import Unreachable, targets_of
from paceline.engine.ports import Providers, Tx
from paceline.engine.reminder_spec import ReminderSpec
from paceline.engine.routes import Route, route, route_of

LARGEST_MEDIA = 64 << 20


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
    shown: str
    """What complaints call the file."""
    audience: str | None = None
    """The stored audience it names, whose people are read with ``with_people``."""
    unreachable: tuple[Unreachable, ...] = ()
    people: tuple[Written, ...] | None = None
    """The rows it has itself, or lie beside it; None if it names a stored audience."""
    inline: bool = False
    """Whether they are written into it, under ``targets``."""
    way: Route | None = None
    """Where its targets are to be reached."""

    def with_people(self, tx: Tx, providers: Providers, also: Iterable[str] = ()) -> CampaignFile:
        """The same with the people of its audience as they are now, each under the address that
        its accounts can write to; ``also`` are further accounts that take part."""
        names = dict.fromkeys((*self.spec.accounts, *also))
        # Those that do not exist are complained about, or imagined, by whoever needs them.
        senders = [found for name in names if (found := tx.accounts.find(name)) is not None]
        way = route_of(senders, self.spec.action, providers)
        made = self._stored(tx, way) if self.people is None else self._picked(way)
        if made.unreachable and not made.targets:
            first, more = made.unreachable[0], len(made.unreachable) - 1
            rest = f", and {more} more" if more else ""
            reason = f"nobody in it can be reached: {first.who} {first.why}{rest}"
            raise InputError(reason, key="audience")
        return made

    def _picked(self, way: Route) -> CampaignFile:
        if way == self.way:
            return self
        people = self.people or ()
        targets, unreachable = picked(people, way)
        duplicates = len(people) - len(targets) - len(unreachable)
        return replace(
            self, targets=targets, unreachable=unreachable, duplicates=duplicates, way=way
        )

    def _stored(self, tx: Tx, way: Route) -> CampaignFile:
        name = self.audience or ""
        try:
            found = targets_of(tx, name, way)
        except NotFoundError:
            known = did_you_mean(name, [audience.name for audience in tx.audiences.list()])
            reason = f"there is neither a file '{name}' nor an audience of that name{known}"
            hint = None if known else "paceline audience list shows those there are"
            raise NotFoundError(reason, key="audience", hint=hint) from None
        return replace(
            self,
            spec=replace(self.spec, audience=found.settings()),
            targets=found.targets,
            unreachable=tuple(found.unreachable),
        )

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """What is wrong with the campaign names the file, and the key that is really in it.

        What is wrong with an option (``--rate``) is not the file's fault.
        """
        try:
            yield
        except InputError as error:
            if error.key is not None and error.key.startswith("--"):
                raise
            if self.inline and error.key == "audience":
                error = type(error)(error.reason, key="targets", where=error.where, hint=error.hint)
            raise error.within(self.shown) from None

    def stored_spec(self, tx: Tx, at: int) -> CampaignSpec:
        """The campaign with its media put into the store."""
        ids = {
            name: tx.media.put(file.name, file.mime, file.content, at).id
            for name, file in self.media.items()
        }
        return self.spec.with_media(ids)


def read_campaign(path: Path) -> CampaignFile:
    """The campaign of a file, with what lies beside it; ``-`` is standard input."""
    return _read_file(path, CampaignSpec.from_mapping)


def read_reminder(path: Path) -> tuple[CampaignFile, Rule]:
    """The same for a reminder: what it has in common with a campaign, and when it fires."""
    rules: list[Rule] = []

    def parse(raw: Mapping[str, Any]) -> CampaignSpec:
        spec = ReminderSpec.from_mapping(raw)
        rules.append(spec.rule)
        return spec.campaign

    return _read_file(path, parse), rules[0]


def _read_file(path: Path, parse: Callable[[Mapping[str, Any]], CampaignSpec]) -> CampaignFile:
    shown = "standard input" if path == STANDARD else str(path)
    try:
        raw = _read_toml(path)
        spec = parse(raw)
        stored = stored_audience(raw, path.parent)
        needed = frozenset().union(*map(content_variables, spec.all_contents))
        people = None if stored is not None else tuple(people_of(raw, path.parent, needed))
        media = dict(_media(spec, path.parent))
    except InputError as error:
        raise error.within(shown) from None
    file = CampaignFile(spec, [], 0, media, shown, stored, people=people, inline="targets" in raw)
    # Until the accounts are known, any kind of address will do that suits what is sent.
    return file if people is None else file._picked(route(spec.action))


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
    typed = path == STANDARD
    content = sys.stdin.buffer.read() if typed else _read(path, path.name, LARGEST_MEDIA)
    try:
        return tomllib.loads(_decoded(content))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not valid TOML: {error}") from None


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"is not a text in UTF-8 (line {line})") from None


def _media(spec: CampaignSpec, folder: Path) -> Iterator[tuple[str, MediaFile]]:
    for step, content in enumerate(spec.all_contents, start=1):
        within = f"steps[{step}]." if len(spec.all_contents) > 1 else ""
        for number, part in enumerate(content.parts, start=1):
            for name in part.files:
                try:
                    yield name, read_media(folder / name, name)
                except InputError as error:
                    key = "media" if name == part.media else "attachments"
                    raise InputError(error.reason, key=f"{within}parts[{number}].{key}") from None
