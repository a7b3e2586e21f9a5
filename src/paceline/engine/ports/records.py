"""The rows the engine and the store exchange, as plain immutable records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from paceline.core.instants import Instant
from paceline.core.states import AccountState, CampaignState, DeliveryState, RunState

RunKind = Literal["campaign", "direct", "reminder"]


@dataclass(frozen=True, slots=True)
class Account:
    """A sending identity; ``policy`` is the effective one, ``policy_id`` its version."""

    id: int
    name: str
    provider: str
    address: str
    settings: Mapping[str, Any] = field(repr=False)
    """As its provider has them, secrets and all: nobody is to see them by accident."""
    policy_name: str | None
    overrides: Mapping[str, Any]
    policy_id: int
    policy: Mapping[str, Any]
    state: AccountState
    state_reason: str
    state_until_at: Instant | None
    warm_since_at: Instant
    created_at: Instant
    removed_at: Instant | None = None
    answering: Mapping[str, Any] = field(default_factory=dict)
    """How whoever writes to it is answered; empty where nobody said."""


@dataclass(frozen=True, slots=True)
class Campaign:
    id: int
    name: str
    kind: RunKind
    state: CampaignState
    content: list[dict[str, Any]]
    settings: Mapping[str, Any]
    reason: str
    created_at: Instant
    launched_at: Instant | None
    finished_at: Instant | None


@dataclass(frozen=True, slots=True)
class Run:
    """One firing of a campaign. ``content`` is the campaign's, or what it was when it fired."""

    id: int
    campaign_id: int
    campaign: str
    kind: RunKind
    state: RunState
    total: int
    window: str | None
    opens_at: Instant | None
    closes_at: Instant | None
    priority: int
    content: list[dict[str, Any]]
    reason: str
    started_at: Instant | None
    finished_at: Instant | None
    summary: str
    pooled: bool = False
    """Whether deliveries that have no account yet may be taken by any of several."""
    fired_for: Instant | None = None
    """When a reminder was to fire; None for what was fired by hand, or is no reminder."""
    follow_ups: bool = False
    """Whether all of it was bidden by those it goes to, after something of the campaign's."""

    def parts_of(self, step: int) -> list[dict[str, Any]]:
        """What one of its steps says."""
        return [part for part in self.content if part.get("step", 1) == step]


class Delivery(NamedTuple):
    id: int
    run_id: int
    account_id: int | None
    """None while a pooled delivery is nobody's yet."""
    position: int
    target: str
    fields: Mapping[str, str]
    content: list[dict[str, Any]] | None
    """Its own content, where it has one; else the campaign's counts."""
    action: str
    reply: bool
    state: DeliveryState
    scheduled_at: Instant
    due_at: Instant | None
    expires_at: Instant | None
    recipient_hours: str | None
    parts_done: int
    attempts: int
    retries: int
    reason: str
    provider_id: str | None
    sent_at: Instant | None
    contact_id: int | None = None
    """The person, where the audience knew one: an address is only where they are reached."""
    step: int = 1
    delivered_at: Instant | None = None
    read_at: Instant | None = None
    """By the provider's receipts: of its last part, and in a group of whoever was first."""
    suppressed: bool = False
    """Whether the target is suppressed at the time of reading; the intent asks again."""
    before: DeliveryState | None = None
    """What the message that it follows is at the time of reading; the intent asks again."""


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """What is needed to create a delivery. ``due_at`` makes it ready; without it it is planned."""

    run_id: int
    account_id: int | None
    position: int
    target: str
    scheduled_at: Instant
    due_at: Instant | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    content: list[dict[str, Any]] | None = None
    action: str = "message"
    reply: bool = False
    expires_at: Instant | None = None
    recipient_hours: str | None = None
    contact_id: int | None = None
    step: int = 1
    awaited: bool = False
    """Whether one of the next step waits for it; ``Steps.link`` puts it right where nobody says."""
    after_id: int | None = None
    """What it follows, where that is known already."""
    bidden: bool = False
    """Whether it follows because somebody has done something: one of its run and place at most."""
    bidden_by: int | None = None
    """The number of what they wrote, where it was that."""


@dataclass(frozen=True, slots=True)
class LaneRow:
    account_id: int
    generation: int
    owner: int | None
    revision: int
    wake_at: Instant | None


@dataclass(frozen=True, slots=True)
class Lease:
    """What a lane must show to commit an intent."""

    account_id: int
    process_id: int
    generation: int


@dataclass(frozen=True, slots=True)
class ProcessRow:
    id: int
    name: str
    started_at: Instant
    lease_until_at: Instant


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One line of the ledger: an ``intent``, its ``outcome``, or the ``resolution`` of a doubt.

    A resolution is what was found out later about an attempt whose outcome was unknown.
    """

    delivery_id: int
    part: int
    attempt: int
    kind: Literal["intent", "outcome", "resolution"]
    account_id: int
    run_id: int
    action: str
    at: Instant
    intent_at: Instant
    started_at: Instant | None
    slots: int
    policy_id: int
    generation: int
    outcome: str | None = None
    code: str = ""
    reason: str = ""
    provider_id: str | None = None
    latency_us: int | None = None


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What is stored about a delivery at the moment in which somebody calls its provider."""

    state: str
    attempts: int
    account_id: int
    run_id: int
    reply: bool
    lane_generation: int
    checkpoint: str | None
    intent_at: Instant | None
    """Of the last attempt at the part; ``None`` if there is no intent."""
    generation: int | None
    policy_id: int | None
    action: str | None
    settled: bool
    """Whether that intent has its outcome already."""


@dataclass(frozen=True, slots=True)
class Upload:
    account_id: int
    media_id: str
    handle: str
    uploaded_at: Instant
    expires_at: Instant | None


@dataclass(frozen=True, slots=True)
class Media:
    """A media file, named by the SHA-256 of its bytes."""

    id: str
    name: str
    mime: str
    size: int


@dataclass(frozen=True, slots=True)
class Event:
    id: int
    at: Instant
    kind: str
    text: str
    account_id: int | None = None
    run_id: int | None = None
    delivery_id: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    """What it tells in values: as ``core/events.py`` says for its kind."""
