"""A campaign as people write it, checked: what is sent, to whom, from which accounts, and when.

Works on decoded values; reading the TOML file, the audience and the media from disk is done at the
edge. Every complaint names the key.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from paceline.core.calendar import day_start_of, next_day_start
from paceline.core.calendar import zone as zone_of
from paceline.core.durations import parse_duration, print_duration
from paceline.core.errors import InputError
from paceline.core.hours import Hours
from paceline.core.instants import Instant, iso, parse_instant
from paceline.core.model import REPLY, AtClose, Content, Part, Target
from paceline.core.nearest import did_you_mean
from paceline.core.template import variables
from paceline.core.week import parse_week

Assignment = Literal["fixed", "round_robin"]

KEYS = (
    "name",
    "accounts",
    "assignment",
    "action",
    "audience",
    "targets",
    "parts",
    "window",
    "at_close",
    "start_at",
    "zone",
    "expire_after",
    "recipient_hours",
    "priority",
)
LONGEST_NAME = 200
_STEERING = ("Cc", "Zl", "Zp")
PART_KEYS = ("text", "subject", "html", "media", "caption")


@dataclass(frozen=True, slots=True)
class Timing:
    """When a run may send. Worked out at its launch: a draft may lie about for days before."""

    window: Hours | None = None
    at_close: AtClose = "resume"
    start_at: Instant | None = None
    expire_after_us: int | None = None

    @classmethod
    def stored(cls, settings: Mapping[str, Any]) -> Timing:
        """As it is kept with a campaign (``CampaignSpec.settings``)."""
        window, start_at = settings.get("window"), settings.get("start_at")
        expire_after = settings.get("expire_after")
        return cls(
            window=Hours.parse(window) if window else None,
            at_close=settings.get("at_close", "resume"),
            start_at=parse_instant(start_at) if start_at else None,
            expire_after_us=parse_duration(expire_after) if expire_after else None,
        )

    def window_on(self, at: Instant) -> tuple[Instant | None, Instant | None]:
        """When a run that must end with its window opens and closes; None where it resumes.

        The window is that of the day the run starts on. Fired after it has closed, it stays
        closed: nothing is sent, rather than everything a day late.
        """
        if self.window is None or self.at_close == "resume":
            return None, None
        start_at = max(self.start_at or at, at)
        zone = self.window.zone
        day_at, end_at = day_start_of(start_at, zone), next_day_start(start_at, zone)
        opens_at = self.window.next_open(day_at)
        if opens_at is None or opens_at >= end_at:
            return start_at, start_at
        closes_at = opens_at
        while (again_at := self.window.next_open(closes_at)) is not None and again_at < end_at:
            # Hours that touch at midnight are one stretch, but this run is over with its day.
            closes_at = min(self.window.closes_at(again_at), end_at)
        return opens_at, closes_at


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """A checked campaign; ``content`` names media as the file does until they are stored."""

    name: str
    accounts: tuple[str, ...]
    content: Content
    assignment: Assignment = "round_robin"
    action: str = "message"
    window: Hours | None = None
    at_close: AtClose = "resume"
    start_at: Instant | None = None
    expire_after_us: int | None = None
    recipient_hours: str | None = None
    priority: int = 0

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> CampaignSpec:
        _known(raw, KEYS, "")
        zone = _zone(raw)
        assignment = _choice(raw, "assignment", "round_robin", get_args(Assignment))
        spec = cls(
            name=_name(raw),
            accounts=_accounts(raw, assignment),
            content=Content(tuple(_parts(raw))),
            assignment=assignment,
            action=_action(raw),
            window=_hours(raw, "window", zone),
            at_close=_choice(raw, "at_close", "resume", get_args(AtClose)),
            start_at=_instant(raw, "start_at", zone),
            expire_after_us=_duration(raw, "expire_after"),
            recipient_hours=_recipient_hours(raw),
            priority=_whole(raw, "priority"),
        )
        if spec.at_close == "skip" and spec.window is None:
            raise InputError("'skip' needs a window that closes", key="at_close")
        return spec

    def with_media(self, ids: Mapping[str, str]) -> CampaignSpec:
        """The same campaign with each media file's name replaced by what it is stored as."""
        parts = tuple(
            part._replace(media=ids[part.media]) if part.media else part
            for part in self.content.parts
        )
        return replace(self, content=Content(parts))

    @property
    def media(self) -> list[str]:
        """The media files the content names, each once."""
        return list(dict.fromkeys(part.media for part in self.content.parts if part.media))

    def settings(self) -> dict[str, Any]:
        """What is kept with the campaign for people to read back."""
        return {
            "accounts": list(self.accounts),
            "assignment": self.assignment,
            "action": self.action,
            "window": str(self.window) if self.window else None,
            "at_close": self.at_close,
            "start_at": iso(self.start_at) if self.start_at is not None else None,
            "expire_after": print_duration(self.expire_after_us) if self.expire_after_us else None,
            "recipient_hours": self.recipient_hours,
            "priority": self.priority,
        }

    def recipient_hours_of(self, target: Target) -> str | None:
        """The recipient's hours in their own zone, where they have one."""
        if self.recipient_hours is None:
            return None
        zone = target.fields.get("zone", "")
        if not zone:
            raise InputError(
                f"target {target.address} has no zone, which recipient_hours needs",
                key="audience",
            )
        try:
            return str(Hours.parse(self.recipient_hours, default_zone=zone))
        except InputError as error:
            reason = f"target {target.address}: {error.reason}"
            raise InputError(reason, key="audience", hint=error.hint) from None


def refuse_steering(address: str) -> None:
    """No address has a line break in it, a NUL, or anything else that steers instead of naming."""
    for letter in address:
        if unicodedata.category(letter) in _STEERING:
            raise InputError(f"the address has a control character in it (U+{ord(letter):04X})")


def targets_from(rows: Iterable[Mapping[str, Any]], where: str) -> list[Target]:
    """Targets from decoded rows: an address, and fields for the templates. Duplicates merge."""
    targets: dict[str, Target] = {}
    for number, row in enumerate(rows, start=1):
        fields = {str(k): "" if v is None else str(v) for k, v in row.items() if k != "address"}
        address = str(row.get("address") or "").strip()
        if not address:
            raise InputError(f"row {number} has no address", key=where)
        targets.setdefault(address, Target(address, fields))
    return list(targets.values())


def _known(raw: Mapping[str, Any], keys: tuple[str, ...], prefix: str) -> None:
    for key in raw:
        if key not in keys:
            raise InputError(f"unknown key '{prefix}{key}'{did_you_mean(key, keys)}")


def _text(raw: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = raw.get(key, default)
    if value is None:
        raise InputError("is missing", key=key)
    if not isinstance(value, str):
        raise InputError("must be a text", key=key)
    if not value.strip():
        raise InputError("must not be empty", key=key)
    return value.strip()


def _name(raw: Mapping[str, Any]) -> str:
    name = _text(raw, "name")
    if name.startswith("("):
        raise InputError("a name cannot start with a bracket", key="name")
    if "/" in name or "\\" in name:
        # It is part of paths, of addresses and of files that people name after it.
        raise InputError("a name cannot have a / or a \\ in it", key="name")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise InputError(f"must be one line of at most {LONGEST_NAME} characters", key="name")
    return name


def _zone(raw: Mapping[str, Any]) -> str:
    try:
        return zone_of(_text(raw, "zone", "UTC")).key
    except InputError as error:
        raise InputError(error.reason, key="zone", hint=error.hint) from None


def _action(raw: Mapping[str, Any]) -> str:
    action = _text(raw, "action", "message")
    if action == REPLY:
        raise InputError(f"'{REPLY}' is for answers; a campaign answers nobody", key="action")
    return action


def _choice(raw: Mapping[str, Any], key: str, default: str, known: tuple[str, ...]) -> Any:
    value = _text(raw, key, default)
    if value not in known:
        raise InputError(f"must be one of {', '.join(known)}, not '{value}'", key=key)
    return value


def _whole(raw: Mapping[str, Any], key: str) -> int:
    value = raw.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int) or not -100 <= value <= 100:
        raise InputError("must be a whole number from -100 to 100", key=key)
    return value


def _accounts(raw: Mapping[str, Any], assignment: str) -> tuple[str, ...]:
    value = raw.get("accounts")
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise InputError("must name at least one account", key="accounts")
    if len(set(names)) != len(names):
        raise InputError("names an account twice", key="accounts")
    if assignment == "fixed" and len(names) > 1:
        raise InputError("'fixed' takes a single account", key="accounts")
    return tuple(names)


def _parts(raw: Mapping[str, Any]) -> Iterable[Part]:
    entries = raw.get("parts")
    if not isinstance(entries, list) or not entries:
        raise InputError("a campaign needs at least one [[parts]]", key="parts")
    for number, entry in enumerate(entries, start=1):
        where = f"parts[{number}]"
        if not isinstance(entry, Mapping):
            raise InputError("must be a table", key=where)
        _known(entry, PART_KEYS, f"{where}.")
        try:
            yield _part(entry)
        except InputError as error:
            raise error.within(where) from None


def _part(entry: Mapping[str, Any]) -> Part:
    texts = {key: entry.get(key, "") for key in PART_KEYS}
    for key, value in texts.items():
        if not isinstance(value, str):
            raise InputError("must be a text", key=key)
        if key != "media":
            variables(value)
    if texts["media"]:
        if texts["text"] and texts["caption"]:
            raise InputError("a media part has a caption or a text, not both", key="caption")
        return Part(
            "media",
            text=texts["caption"] or texts["text"],
            subject=texts["subject"],
            html=texts["html"],
            media=texts["media"],
        )
    if texts["caption"]:
        raise InputError("only a media part has a caption", key="caption")
    if not texts["text"] and not texts["html"]:
        raise InputError("needs a text or a media file", key="text")
    return Part("text", text=texts["text"], subject=texts["subject"], html=texts["html"])


def _hours(raw: Mapping[str, Any], key: str, zone: str) -> Hours | None:
    if raw.get(key) is None:
        return None
    try:
        return Hours.parse(_text(raw, key), default_zone=zone)
    except InputError as error:
        raise error.within(key) from None


def _recipient_hours(raw: Mapping[str, Any]) -> str | None:
    if raw.get("recipient_hours") is None:
        return None
    text = _text(raw, "recipient_hours")
    try:
        _, zone = parse_week(text)
    except InputError as error:
        raise error.within("recipient_hours") from None
    if zone is not None:
        raise InputError(
            f"'{zone}' is not needed: every recipient has their own zone, in the column 'zone'",
            key="recipient_hours",
        )
    return text


def _instant(raw: Mapping[str, Any], key: str, zone: str) -> Instant | None:
    value = raw.get(key)
    if value is None:
        return None
    # TOML has dates of its own; people write either.
    text = value.isoformat() if hasattr(value, "isoformat") else _text(raw, key)
    try:
        return parse_instant(text, zone)
    except InputError as error:
        raise error.within(key) from None


def _duration(raw: Mapping[str, Any], key: str) -> int | None:
    if raw.get(key) is None:
        return None
    try:
        duration_us = parse_duration(_text(raw, key))
    except InputError as error:
        raise error.within(key) from None
    if not duration_us:
        raise InputError("must be above zero", key=key)
    return duration_us
