"""What tasks in the event loop are called, so that one that stands in everybody's way is known.

A lane's task is named after its account, and so is every call of a driver that is made for it.
What a lane has done by the loop itself runs in no task, and is done in its name (``acting_for``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

_LANE = "lane "

_acting: list[str | None] = [None]
"""For whom the loop does what it does in no task: a place for another thread to look at."""


def lane_name(account: str) -> str:
    return f"{_LANE}{account}"


def whose_lane(name: str) -> str | None:
    """The account for whose lane something of this name is done."""
    return name.removeprefix(_LANE) if name.startswith(_LANE) else None


def acting_for(name: str | None, act: Callable[..., object], *arguments: Any) -> None:
    """Do in somebody's name what the loop calls by itself."""
    before, _acting[0] = _acting[0], name
    try:
        act(*arguments)
    finally:
        _acting[0] = before


def who_acts(loop: asyncio.AbstractEventLoop) -> str | None:
    """The name in which a loop does what it does right now, as seen from any thread."""
    current = asyncio.current_task(loop)
    return _acting[0] if current is None else current.get_name()


def on_whose_behalf() -> str | None:
    """The name of whoever asks, for what is begun on its behalf."""
    return who_acts(asyncio.get_running_loop())
