"""Every table, as SQLAlchemy metadata. How it came to be, step by step, is in ``migrations``.

Instants are BIGINT microseconds, structured values are JSON in TEXT on both databases, so that
the same statements serve both. States are held to their machines by CHECK constraints.
"""

from __future__ import annotations

from paceline.store.schema.common import (
    METADATA,
    complete_for_postgresql,
)
from paceline.store.schema.inbox import inbound, watches
from paceline.store.schema.people import (
    addresses,
    audience_members,
    audiences,
    contacts,
)
from paceline.store.schema.reminding import (
    group_syncs,
    groups,
    reminder_targets,
    reminders,
)
from paceline.store.schema.sending import (
    AWAITED,
    FOLLOWING,
    IN_FLIGHT,
    PARTLY,
    UNSETTLED,
    accounts,
    campaigns,
    counters,
    deliveries,
    lanes,
    ledger,
    policies,
    processes,
    run_accounts,
    runs,
    usage,
)
from paceline.store.schema.shelf import (
    CONTROL,
    SIGNALS,
    alerts,
    early_receipts,
    events,
    idempotency_keys,
    media,
    settings,
    suppressions,
    uploads,
    webhooks,
)
from paceline.store.schema.talking import conversations, held_ways, muted_people, turns

__all__ = [
    "AWAITED",
    "CONTROL",
    "FOLLOWING",
    "IN_FLIGHT",
    "METADATA",
    "PARTLY",
    "SIGNALS",
    "UNSETTLED",
    "accounts",
    "addresses",
    "alerts",
    "audience_members",
    "audiences",
    "campaigns",
    "complete_for_postgresql",
    "contacts",
    "conversations",
    "counters",
    "deliveries",
    "early_receipts",
    "events",
    "group_syncs",
    "groups",
    "held_ways",
    "idempotency_keys",
    "inbound",
    "lanes",
    "ledger",
    "media",
    "muted_people",
    "policies",
    "processes",
    "reminder_targets",
    "reminders",
    "run_accounts",
    "runs",
    "settings",
    "suppressions",
    "turns",
    "uploads",
    "usage",
    "watches",
    "webhooks",
]
