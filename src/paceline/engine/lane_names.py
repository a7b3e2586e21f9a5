"""What tasks in the event loop are called, so that one that stands in everybody's way is known.

A lane's task is named after its account, and so is every call of a driver that is made for it.
"""

from __future__ import annotations

import asyncio

_LANE = "lane "


def lane_name(account: str) -> str:
    return f"{_LANE}{account}"


def whose_lane(name: str) -> str | None:
    """The account for whose lane something of this name is done."""
    return name.removeprefix(_LANE) if name.startswith(_LANE) else None


def on_whose_behalf() -> str | None:
    """The name of whoever asks, for what is begun on its behalf."""
    current = asyncio.current_task()
    return None if current is None else current.get_name()
