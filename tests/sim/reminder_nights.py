"""Small worlds of reminders: a night in Berlin, each with one thing that can go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, parse_instant
from paceline.providers.sandbox.provider import group_id
from paceline.sim.reminding import Reminding, Routine
from paceline.sim.weather import MOODS, Faults
from paceline.sim.worlds import Sender, World

BERLIN = "Europe/Berlin"
AUTUMN = parse_instant("2026-10-25T00:50", BERLIN)
SPRING = parse_instant("2026-03-29T01:20", BERLIN)
HELLO = {"text": "good morning"}
PLAN = {"media": "plan.png", "caption": "today's plan"}


def _to(*numbers: int) -> tuple[str, ...]:
    return tuple(group_id(number) for number in range(*numbers))


def _reminding(name: str, targets: tuple[str, ...], **raw: Any) -> Reminding:
    usual = {
        "name": name,
        "accounts": ["phone-0"],
        "cron": "*/30 * * * *",
        "zone": BERLIN,
        "window": "0-24",
        "parts": [HELLO],
        "at_close": "skip",
        "priority": 0,
    }
    return Reminding({**usual, **raw}, targets)


def _night(
    *made: Reminding,
    start_at: Instant = AUTUMN,
    lasts_us: int = 70 * MINUTE,
    mood: Faults = "none",
    senders: tuple[Mapping[str, Any], ...] = ({},),
    policy: Mapping[str, Any] | None = None,
    drafts: tuple[Mapping[str, Any], ...] = (),
    dark: tuple[tuple[int, int], ...] = (),
    behind_us: int = 0,
    operated: bool = False,
) -> World:
    accounts = tuple(
        Sender(
            f"phone-{number}",
            {"rate": "60/min", "timeout": "10s", **(policy or {})},
            settings={"latency": "10ms..800ms", "groups": "1..40", **MOODS[mood], **settings},
        )
        for number, settings in enumerate(senders)
    )
    return World(
        "small",
        start_at,
        lasts_us=lasts_us,
        calm_us=2 * DAY,
        senders=accounts,
        mailings=(),
        processes=2,
        poll_us=MINUTE,
        operated=operated,
        routine=Routine(
            made,
            drafts=drafts,
            synced=frozenset(sender.name for sender in accounts),
            dark=dark,
            behind_us=behind_us,
        ),
    )


DOUBLED = _night(_reminding("standup", _to(1, 6)), lasts_us=2 * HOUR + 30 * MINUTE)
"""The clocks go back from three to two."""
SKIPPED = _night(
    _reminding("standup", _to(1, 6), cron="30 2 * * *"), start_at=SPRING, lasts_us=HOUR
)
SHORT = _night(
    _reminding("standup", _to(1, 41), cron="0 1-2 * * *", window="0-2"),
    mood="heavy",
    lasts_us=90 * MINUTE,
)
"""Its window closes when it has hardly begun."""
IN_TURN = _night(
    _reminding("standup", _to(1, 21), cron="0 1 * * *"),
    _reminding("backup", _to(21, 41), cron="0 1 * * *"),
    lasts_us=20 * MINUTE,
)
OVERTAKEN = _night(
    _reminding("standup", _to(1, 31), cron="0 1 * * *"),
    _reminding("backup", _to(31, 41), cron="1 1 * * *", window="0-2"),
    policy={"rate": "10/min"},
    lasts_us=20 * MINUTE,
)
"""The second one fires while the first is under way, and its window closes sooner."""
MORNING = _night(
    _reminding("standup", _to(1, 16), cron="0 1 * * *", window="2-5"),
    _reminding("backup", _to(21, 36), cron="9 1 * * *", window="2-5", priority=1),
    lasts_us=75 * MINUTE,
)
"""Both wait for their windows to open, and the second one goes first."""
MEMBERS = _night(
    _reminding("standup", _to(1, 21), cron="0 1 * * *", accounts=["phone-0", "phone-1"]),
    senders=({"groups": "1..12"}, {"groups": "8..18"}),
    lasts_us=20 * MINUTE,
)
PICTURES = _night(
    _reminding("standup", _to(1, 8), cron="*/20 * * * *", parts=[PLAN]), lasts_us=80 * MINUTE
)
"""Between two firings its lane is parked."""
DARK = _night(
    _reminding("standup", _to(1, 4), cron="*/10 * * * *", window="1-2"),
    lasts_us=100 * MINUTE,
    dark=((12 * MINUTE, 35 * MINUTE), (10 * MINUTE, 15 * MINUTE)),
)
"""Nobody is there for a while, twice, and the second time until after the window."""
CLOSING = _night(
    _reminding("standup", _to(1, 4), cron="59 1 * * *", window="1-2"),
    lasts_us=100 * MINUTE,
    dark=((68 * MINUTE, 2 * MINUTE + 20 * SECOND),),
)
"""Nobody is there for a moment, in which its window closes."""
CHANGED = _night(
    _reminding("standup", _to(1, 4), cron="*/10 * * * *"),
    lasts_us=100 * MINUTE,
    drafts=({"cron": "5-59/10 * * * *"}, {"cron": "*/10 * * * *"}),
    dark=((5 * MINUTE, 80 * MINUTE),),
    operated=True,
)
BEHIND = _night(
    _reminding("standup", _to(1, 3), cron="*/5 * * * *"),
    lasts_us=HOUR,
    behind_us=8 * MINUTE,
    operated=True,
)
"""By the clock of those who give orders, what has just fired is yet to come."""
BANNED = _night(
    _reminding(
        "standup",
        _to(1, 21),
        accounts=["phone-0", "phone-1"],
        cron="0 * * * *",
        parts=[HELLO, HELLO, HELLO],
    ),
    senders=({}, {"ban_after": 16}),
    policy={"concurrency": 3},
    lasts_us=80 * MINUTE,
    operated=True,
)
THROWN_OUT = _night(
    _reminding("standup", _to(1, 11), cron="0 1 * * *"),
    senders=({"ban_after": 3},),
    policy={"rate": "6/min"},
    lasts_us=15 * MINUTE,
)
CUT_SHORT = _night(
    _reminding("standup", _to(1, 11), cron="0 1 * * *", window="0-2"),
    senders=({"ban_after": 3},),
    policy={"rate": "6/min"},
    lasts_us=80 * MINUTE,
)
"""Its account is thrown out, and an hour later its window closes."""
DOUBTED = _night(
    _reminding("standup", _to(1, 7), cron="0 1 * * *"),
    senders=({"finds": False, "timeout_at": (3,), "reject_at": (5,)},),
    lasts_us=15 * MINUTE,
)
