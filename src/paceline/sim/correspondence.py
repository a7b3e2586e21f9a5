"""All there is to judge a world with mail by, after its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.engine.ports import Event
from paceline.sim.post import Box, Click
from paceline.sim.register import Entry


@dataclass(frozen=True, slots=True)
class Correspondence:
    boxes: Mapping[str, Box]
    """Mailboxes, by the names of their accounts."""
    entries: Sequence[Entry]
    """What every commit made of what came back."""
    clicks: Sequence[Click]
    events: Sequence[Event]
    """What was told of it."""
