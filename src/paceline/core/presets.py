"""Presets: the limits that experience suggests for each kind of account, by name.

An account's own settings go on top of them (see ``policy.merge``). They are written just as in
``paceline.toml``, so that what is printed here can be pasted there.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from paceline.core.errors import InputError
from paceline.core.nearest import did_you_mean


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings worth a name, and one line on whom they suit."""

    description: str
    settings: Mapping[str, Any]


_WHATSAPP = {"concurrency": 3, "part_gap": "200ms..500ms"}

LETTER = "5m"
"""How long a letter's answer may take. Servers look through a letter before they say that they have
it, and may take ten minutes (RFC 5321, 4.5.3.2.6); whoever hangs up before leaves it in doubt."""

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "whatsapp-established": Preset(
            "A WhatsApp number with a history: 40 a minute, 20 after a throttle",
            {
                "rate": "40/min",
                **_WHATSAPP,
                "throttle": {"to": "20/min", "recover": "30m"},
            },
        ),
        "whatsapp-new": Preset(
            "A WhatsApp number in its first weeks: 20 a minute",
            {"rate": "20/min", **_WHATSAPP},
        ),
        "campaign-whatsapp": Preset(
            "A WhatsApp campaign: every 3 seconds, a pause after 75, slower when errors rise",
            {
                "spacing": "3s",
                "batch": "75 then 30s",
                "adaptive": {"above": "5%", "slow_by": 1.5, "between": "2s..10s"},
                "breaker": {"above": "20%"},
                "retry": "3s doubling",
            },
        ),
        "cold-email": Preset(
            "Unsolicited e-mail: 20 a day in office hours, far and irregularly apart",
            {
                "hours": "Mon-Fri 09:00-18:00 America/New_York",
                "spacing": "5m..20m",
                "min_gap": "6m",
                "daily": {"email": 20},
                "timeout": LETTER,
            },
        ),
        "linkedin": Preset(
            "LinkedIn: 50 messages and 20 connection requests a day, 150 requests a week",
            {
                "daily": {"message": 50, "connection_request": 20},
                "weekly": {"connection_request": 150},
            },
        ),
        "gmail": Preset(
            "A Google Workspace mailbox: 60 a minute, 2000 a day",
            {"rate": "60/min", "zone": "UTC", "daily": {"email": 2000}, "timeout": LETTER},
        ),
        "gmail-free": Preset(
            "A free Gmail mailbox: 60 a minute, 500 a day",
            {"rate": "60/min", "zone": "UTC", "daily": {"email": 500}, "timeout": LETTER},
        ),
        "gmail-legacy-quota": Preset(
            "A Gmail project under the old quota: 2.5 a second, 2000 a day",
            {"rate": "2.5/s", "zone": "UTC", "daily": {"email": 2000}, "timeout": LETTER},
        ),
        "smtp": Preset(
            "Any SMTP server: 5 a second", {"rate": "5/s", "zone": "UTC", "timeout": LETTER}
        ),
    }
)


def preset(name: str) -> dict[str, Any]:
    """The settings of a preset, as a copy of one's own."""
    known = PRESETS.get(name)
    if known is None:
        nearest = did_you_mean(name, PRESETS)
        hint = None if nearest else f"Known presets are {', '.join(PRESETS)}"
        raise InputError(f"unknown preset {name!r}{nearest}", hint=hint)
    return deepcopy(dict(known.settings))
