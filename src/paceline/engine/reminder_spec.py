"""A reminder as people write it, checked: what a campaign has, and when it fires.

Works on decoded values, as ``campaign_spec.py`` does, which reads all that the two have in common.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from paceline.core.errors import InputError
from paceline.core.hours import Hours
from paceline.core.instants import DAY, Instant, local_text
from paceline.core.model import AtClose
from paceline.core.schedule import EXAMPLE, Rule
from paceline.engine.campaign_spec import CampaignSpec, Timing
from paceline.engine.spec_values import choice_of, refuse_unknown, text_of, zone_of

KEYS = (
    "name",
    "account",
    "accounts",
    "action",
    "targets",
    "audience",
    "parts",
    "at",
    "cron",
    "zone",
    "window",
    "at_close",
    "before_open",
    "priority",
    "retries",
)
USUAL_WINDOW = "6-18"
LOOKED_THROUGH = 400
"""How many firings are looked at when somebody asks whether all of them fall into the window."""

_WINDOW = re.compile(r"(\d{1,2})(?::(\d\d))?\s*-\s*(\d{1,2})(?::(\d\d))?")


@dataclass(frozen=True, slots=True)
class ReminderSpec:
    """A checked reminder. What it has in common with a campaign is kept as one."""

    campaign: CampaignSpec
    rule: Rule

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> ReminderSpec:
        refuse_unknown(raw, KEYS, "")
        zone, rule = zone_of(raw), rule_of(raw)
        shared = {key: raw[key] for key in KEYS if key in raw and key not in ("at", "cron")}
        accounts = _accounts(shared)
        shared |= {
            "accounts": accounts,
            "assignment": "fixed" if len(accounts) == 1 else "round_robin",
            "window": str(window_of(raw, zone)),
            "at_close": raw.get("at_close", "skip"),
        }
        return cls(CampaignSpec.from_mapping(shared), rule)

    @property
    def name(self) -> str:
        return self.campaign.name

    def outside_window(self, after: Instant) -> Instant | None:
        """The first of its firings, a year or so ahead, that falls outside its window."""
        window = self.campaign.window
        if window is None:
            return None
        for at in self.rule.next_few(after, LOOKED_THROUGH):
            if at > after + 366 * DAY:
                return None
            if not window.is_open(at):
                return at
        return None

    def warnings(self, after: Instant) -> list[str]:
        """What its writer should know, though it can be done."""
        zone, found = self.rule.zone, []
        if self.rule.after(after) is None:
            found.append(f"it never fires: {local_text(self.rule.at or 0, zone)} is over")
        astray_at = self.outside_window(after)
        if astray_at is not None:
            found.append(
                f"it fires at {local_text(astray_at, zone)}, outside its window "
                f"({self.campaign.window}): {self._then(astray_at)}"
            )
        return found

    def _then(self, fires_at: Instant) -> str:
        """What becomes of a firing outside the window."""
        opens_at, closes_at = day_of_window(self.campaign.window, fires_at)
        if fires_at < opens_at < closes_at:
            early = self.campaign.before_open == "send"
            return "it sends all the same" if early else "it waits until the window opens"
        late = self.campaign.at_close == "skip"
        return "nothing would be sent" if late else "it waits until the next day"


def day_of_window(window: Hours | None, at: Instant) -> tuple[Instant, Instant]:
    """When a window opens and closes on the day of an instant; both the same where it does not."""
    opens_at, closes_at = Timing(window=window, at_close="skip").window_on(at)
    return opens_at or at, closes_at or at


def rule_of(raw: Mapping[str, Any]) -> Rule:
    """When it fires: ``at`` or ``cron``, exactly one of them."""
    zone = zone_of(raw)
    if ("at" in raw) == ("cron" in raw):
        raise InputError(
            "say when it fires: either at or cron",
            key="at" if "at" in raw else "cron",
            hint=f'at = "2026-11-20" fires once, at nine; cron is {EXAMPLE}',
        )
    key = "at" if "at" in raw else "cron"
    try:
        if key == "at":
            value = raw["at"]
            text = value.isoformat() if hasattr(value, "isoformat") else text_of(raw, "at")
            return Rule.once(text, zone)
        return Rule.by_cron(text_of(raw, "cron"), zone)
    except InputError as error:
        raise (error if error.key == key else error.within(key)) from None


def window_of(raw: Mapping[str, Any], zone: str) -> Hours:
    """The hours in which it may send, the same every day: ``6-18``, or with minutes."""
    text = text_of(raw, "window", USUAL_WINDOW)
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise InputError(
            f"'{text}' is no delivery window", key="window", hint='Write it like "6-18"'
        )
    start_hour, start_minute, end_hour, end_minute = (int(part or 0) for part in match.groups())
    if start_minute > 59 or end_minute > 59:
        raise InputError(f"'{text}' has an hour of more than 60 minutes", key="window")
    start, end = start_hour * 60 + start_minute, end_hour * 60 + end_minute
    try:
        if not (start_minute or end_minute):
            return Hours.window(start_hour, end_hour, zone)
        if start >= end:
            raise InputError(
                f"window {text} crosses midnight",
                hint="A window opens and closes on the same day; 24 is midnight",
            )
        return Hours((((start, end),),) * 7, zone)
    except InputError as error:
        raise error.within("window") from None


def _accounts(shared: dict[str, Any]) -> list[str]:
    """``account`` is another way to write ``accounts`` of one."""
    if "account" in shared and "accounts" in shared:
        raise InputError("give either account or accounts, not both", key="account")
    value = shared.pop("account", shared.get("accounts"))
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        raise InputError("must name at least one account", key="accounts")
    return names


def edited(spec: ReminderSpec, changes: Mapping[str, Any], name: str) -> ReminderSpec:
    """The same reminder with what somebody wants changed of when it fires and when it may send."""
    zone = str(changes.get("zone", spec.rule.zone))
    rule = spec.rule
    if "at" in changes or "cron" in changes:
        rule = rule_of({**changes, "zone": zone})
    elif "zone" in changes:
        rule = Rule.parse(str(rule), zone) if rule.recurs else replace(rule, zone=zone)
    campaign = spec.campaign
    window = campaign.window
    if "window" in changes:
        window = window_of(changes, zone)
    elif window is not None:
        window = Hours(window.week, zone)
    at_close = choice_of(changes, "at_close", campaign.at_close, get_args(AtClose))
    return ReminderSpec(
        replace(campaign, name=name, window=window, zone=zone, at_close=at_close), rule
    )
