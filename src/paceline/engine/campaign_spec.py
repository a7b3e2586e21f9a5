"""A campaign as people write it, checked: what is sent, to whom, from which accounts, and when.

Works on decoded values; reading the TOML file, the audience and the media from disk is done at the
edge. Every complaint names the key.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

from paceline.core.calendar import day_start_of, next_day_start
from paceline.core.durations import parse_duration, print_duration
from paceline.core.errors import InputError
from paceline.core.hours import HORIZON_DAYS, Hours
from paceline.core.instants import Instant, iso, parse_instant
from paceline.core.model import AtClose, Content, FollowUp, Part, Step, Target
from paceline.engine.spec_parts import (
    Steps,
    follow_up_settings,
    follow_up_stored,
    parts_of,
    steps_of,
)
from paceline.engine.spec_values import (
    accounts_of,
    action_of,
    choice_of,
    days_of,
    duration_of,
    hours_of,
    instant_of,
    name_of,
    recipient_hours_of,
    refuse_unknown,
    retries_of,
    whole_of,
    yes_or_no,
    zone_of,
)

Assignment = Literal["fixed", "round_robin", "pooled"]
BeforeOpen = Literal["hold", "send"]

KEYS = (
    "name",
    "accounts",
    "pool",
    "assignment",
    "action",
    "audience",
    "targets",
    "parts",
    "steps",
    "window",
    "at_close",
    "before_open",
    "start_at",
    "spread",
    "zone",
    "expire_after",
    "recipient_hours",
    "priority",
    "retries",
    "stop_on_reply",
)
AUDIENCE_KEYS = ("audience", "audience_revision")
"""What a campaign keeps of the stored audience it was made from."""
INVITATION = "connection_request"
_STEERING = ("Cc", "Zl", "Zp")


@dataclass(frozen=True, slots=True)
class Timing:
    """When a run may send. Worked out at its launch: a draft may lie about for days before."""

    window: Hours | None = None
    at_close: AtClose = "resume"
    start_at: Instant | None = None
    expire_after_us: int | None = None
    before_open: BeforeOpen = "hold"
    spread_days: int = 1
    zone: str = "UTC"

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
            before_open=settings.get("before_open", "hold"),
            spread_days=settings.get("spread_days", 1),
            zone=settings.get("zone", "UTC"),
        )

    def starts(self, at: Instant, count: int) -> Iterator[Instant]:
        """Before when each of so many deliveries must not go: an even share of every day."""
        days = self._days(max(self.start_at or at, at))
        for position in range(count):
            yield days[position * len(days) // count]

    def start_of(self, at: Instant, position: int, count: int) -> Instant:
        """The same for one of them."""
        days = self._days(max(self.start_at or at, at))
        return days[position * len(days) // count]

    def _days(self, start_at: Instant) -> list[Instant]:
        """When sending begins on each of the days it is spread over: those on which the window
        opens at all."""
        if self.spread_days == 1:
            return [start_at]
        if self.window is not None and (opens_at := self.window.next_open(start_at)) is not None:
            start_at = max(start_at, opens_at)
        days, day_at = [start_at], next_day_start(start_at, self.zone)
        for _ in range(HORIZON_DAYS):
            if len(days) == self.spread_days:
                break
            ends_at = next_day_start(day_at, self.zone)
            opens_at = day_at if self.window is None else self.window.next_open(day_at)
            if opens_at is not None and opens_at < ends_at:
                days.append(opens_at)
            day_at = ends_at
        return days

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
        return (None if self.before_open == "send" else opens_at), closes_at


class Said(NamedTuple):
    """A message of a campaign, and how it is sent."""

    action: str
    content: Content
    answering: bool = False
    """Whether they have just written to us."""


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
    steps: tuple[Step, ...] = ()
    """What follows the first message, each so long after the one before it was sent."""
    follow_up: FollowUp | None = None
    stop_on_reply: bool = False
    """Whether whoever answers is sent nothing more of it but what they have bidden."""
    before_open: BeforeOpen = "hold"
    spread_days: int = 1
    zone: str = "UTC"
    audience: Mapping[str, Any] = field(default_factory=dict)
    """The stored audience it was made from, and its revision, where there was one."""

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> CampaignSpec:
        refuse_unknown(raw, KEYS, "")
        raw = _with_pool(raw)
        zone = zone_of(raw)
        assignment = choice_of(raw, "assignment", "round_robin", get_args(Assignment))
        first, steps, follow_up = (
            steps_of(raw) if "steps" in raw else Steps(list(parts_of(raw, "parts")), (), None)
        )
        spec = cls(
            name=name_of(raw),
            accounts=accounts_of(raw, assignment),
            content=Content(tuple(first), retries_of(raw)),
            assignment=assignment,
            action=action_of(raw),
            window=hours_of(raw, "window", zone),
            at_close=choice_of(raw, "at_close", "resume", get_args(AtClose)),
            start_at=instant_of(raw, "start_at", zone),
            expire_after_us=duration_of(raw, "expire_after"),
            recipient_hours=recipient_hours_of(raw),
            priority=whole_of(raw, "priority"),
            steps=steps,
            follow_up=follow_up,
            stop_on_reply=yes_or_no(raw, "stop_on_reply"),
            before_open=choice_of(raw, "before_open", "hold", get_args(BeforeOpen)),
            spread_days=days_of(raw, "spread"),
            zone=zone,
        )
        _check_together(spec)
        return spec

    @classmethod
    def stored(
        cls, name: str, content: list[dict[str, Any]], settings: Mapping[str, Any]
    ) -> CampaignSpec:
        """A campaign as it is kept, read back."""
        timing = Timing.stored(settings)
        steps = tuple(
            Step(parse_duration(after), Content.from_list(content, number))
            for number, after in enumerate(settings.get("steps", ()), start=2)
        )
        return cls(
            name=name,
            accounts=tuple(settings["accounts"]),
            content=Content.from_list(content),
            assignment=settings["assignment"],
            action=settings["action"],
            window=timing.window,
            at_close=timing.at_close,
            start_at=timing.start_at,
            expire_after_us=timing.expire_after_us,
            recipient_hours=settings.get("recipient_hours"),
            priority=settings.get("priority", 0),
            steps=steps,
            follow_up=follow_up_stored(settings, content),
            stop_on_reply=settings.get("stop_on_reply", False),
            before_open=timing.before_open,
            spread_days=timing.spread_days,
            zone=timing.zone,
            audience={key: settings[key] for key in AUDIENCE_KEYS if key in settings},
        )

    def with_media(self, ids: Mapping[str, str]) -> CampaignSpec:
        """The same campaign with each media file's name replaced by what it is stored as."""
        steps = tuple(replace(step, content=step.content.stored(ids)) for step in self.steps)
        bidden = self.follow_up
        if bidden is not None:
            bidden = replace(bidden, content=bidden.content.stored(ids))
        return replace(self, content=self.content.stored(ids), steps=steps, follow_up=bidden)

    @property
    def contents(self) -> tuple[Content, ...]:
        """What every step says that everybody is sent, the first one first."""
        return (self.content, *(step.content for step in self.steps))

    @property
    def all_contents(self) -> tuple[Content, ...]:
        """The same, and last what only those are sent who bid it."""
        bidden = () if self.follow_up is None else (self.follow_up.content,)
        return (*self.contents, *bidden)

    @property
    def messages(self) -> Iterator[Said]:
        """Every message that somebody may be sent, as far as it has to be checked beforehand."""
        yield from (Said(self.action, content) for content in self.contents)
        if self.follow_up is not None:
            action = self.follow_up.action or self.action
            yield Said(action, self.follow_up.content, answering=self.follow_up.on == "reply")

    @property
    def parts(self) -> Iterator[Part]:
        """Every part of every step."""
        return (part for content in self.all_contents for part in content.parts)

    @property
    def media(self) -> list[str]:
        """The media files the content names, each once."""
        return list(dict.fromkeys(name for part in self.parts for name in part.files))

    def stored_content(self) -> list[dict[str, Any]]:
        """Every step's parts in one list, as it is kept with the campaign."""
        return [
            {**part, **({"step": number} if number > 1 else {})}
            for number, content in enumerate(self.all_contents, start=1)
            for part in content.to_list()
        ]

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
            "steps": [print_duration(step.after_us) for step in self.steps],
            **({} if self.content.retries is None else {"retries": self.content.retries}),
            **({"stop_on_reply": True} if self.stop_on_reply else {}),
            **follow_up_settings(self.follow_up),
            "before_open": self.before_open,
            "spread_days": self.spread_days,
            "zone": self.zone,
            **self.audience,
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


def _with_pool(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """``pool = […]`` is another way to write accounts that share everything."""
    if "pool" not in raw:
        return raw
    if "accounts" in raw:
        raise InputError("give either accounts or a pool, not both", key="pool")
    if raw.get("assignment", "pooled") != "pooled":
        raise InputError("a pool is always assigned as 'pooled'", key="assignment")
    rest = {key: value for key, value in raw.items() if key != "pool"}
    return {**rest, "accounts": raw["pool"], "assignment": "pooled"}


def _check_together(spec: CampaignSpec) -> None:
    """Values that are fine alone and make no sense together."""
    _check_follow_up(spec)
    if spec.at_close == "skip" and spec.window is None:
        raise InputError("'skip' needs a window that closes", key="at_close")
    if spec.at_close == "skip" and spec.steps:
        raise InputError(
            "'skip' ends everything with the day, and the steps that follow with it",
            key="at_close",
            hint="Write at_close = 'resume', or send a single step",
        )
    if spec.before_open == "send" and spec.at_close != "skip":
        raise InputError(
            "'send' is for what ends with its window",
            key="before_open",
            hint="Write at_close = 'skip' too, or widen the window",
        )
    if spec.spread_days > 1 and spec.at_close == "skip":
        raise InputError("what ends with its window cannot be spread over days", key="spread")


def _check_follow_up(spec: CampaignSpec) -> None:
    bidden = spec.follow_up
    if bidden is None:
        return
    where, invites = f"steps[{len(spec.all_contents)}]", spec.action == INVITATION
    if bidden.on == "accepted" and not invites:
        raise InputError(
            "only an invitation can be accepted",
            key=f"{where}.on",
            hint=f"Write action = '{INVITATION}' for the campaign, or on = 'reply' here",
        )
    if invites and bidden.action in (None, INVITATION):
        raise InputError(
            "nobody is invited twice",
            key=f"{where}.action",
            hint="Say what it is instead: action = 'message'",
        )


def refuse_steering(address: str, what: str = "address") -> None:
    """No address has a line break in it, a NUL, or anything else that steers instead of naming."""
    for letter in address:
        if unicodedata.category(letter) in _STEERING:
            raise InputError(f"the {what} has a control character in it (U+{ord(letter):04X})")
