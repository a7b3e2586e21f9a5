"""What the engine asks of the store about reminders, and about the groups accounts belong to."""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from paceline.core.instants import Instant
from paceline.core.model import Target
from paceline.core.states import DeliveryState
from paceline.engine.ports.providers import Group


@dataclass(frozen=True, slots=True)
class Reminder:
    """When something is sent again and again, or once. What is said, and from where, is in the
    campaign of the same name."""

    id: int
    campaign_id: int
    name: str
    rule: str
    zone: str
    enabled: bool
    next_at: Instant | None
    """When it fires next; None where it has fired for good, or is disabled."""
    edited_at: Instant


class Reminders(Protocol):
    def add(self, campaign_id: int, rule: str, zone: str, at: Instant) -> Reminder: ...

    def find(self, name: str) -> Reminder | None: ...

    def list(self) -> list_of[Reminder]: ...

    def due(self, now: Instant, limit: int) -> list_of[Reminder]:
        """Enabled reminders whose time has come, the one that waited longest first."""
        ...

    def next_at(self) -> Instant | None:
        """When the next enabled reminder fires."""
        ...

    def change(
        self, reminder_id: int, rule: str, zone: str, next_at: Instant | None, at: Instant
    ) -> None: ...

    def switch(self, reminder_id: int, enabled: bool, next_at: Instant | None) -> None: ...

    def remove(self, reminder_id: int) -> None:
        """Forget it and whom it went to; its campaign stays, with what was sent."""
        ...

    def advance(self, seen: Reminder, next_at: Instant | None) -> bool:
        """Move on to the next firing; False where somebody else has, or has changed it, since it
        was read. Whoever gets True fires, and nobody else ever does for that instant."""
        ...

    def set_targets(self, reminder_id: int, targets: Iterable[Target]) -> int: ...

    def targets(self, reminder_id: int) -> list_of[Target]:
        """In their order, all with one statement."""
        ...

    def target_count(self, reminder_id: int) -> int: ...


class Groups(Protocol):
    def put(self, account_id: int, groups: Iterable[Group], at: Instant) -> None:
        """What the account is a member of, instead of what was known before."""
        ...

    def list(self, account_id: int) -> list_of[Group]: ...

    def synced_at(self, account_ids: Sequence[int]) -> dict[int, Instant]:
        """When each was last asked; one that never was is missing."""
        ...

    def members(
        self, account_ids: Sequence[int], targets: Sequence[str]
    ) -> dict[str, dict[int, bool]]:
        """By group, the accounts that are members of it, and whether they may write there."""
        ...


class Firing(NamedTuple):
    """What makes a run one firing of a reminder."""

    content: Sequence[Mapping[str, Any]]
    """What the reminder says at that time, whoever edits it later."""
    fired_for: Instant | None
    """When it was to fire; None if by hand. Nobody fires twice for the same instant."""


class Undelivered(NamedTuple):
    """Deliveries of a run that came to the same end, for the same reason, on one account."""

    account_id: int | None
    state: DeliveryState
    reason: str
    deliveries: int
