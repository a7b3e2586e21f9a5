"""Every table, as SQLAlchemy metadata. How it came to be, step by step, is in ``migrations``.

Instants are BIGINT microseconds, structured values are JSON in TEXT on both databases, so that
the same statements serve both. States are held to their machines by CHECK constraints.
"""

from __future__ import annotations

from paceline.store.schema.common import (
    METADATA,
)
from paceline.store.schema.people import (
    addresses,
    audience_members,
    audiences,
    contacts,
)
from paceline.store.schema.sending import (
    IN_FLIGHT,
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
    events,
    idempotency_keys,
    media,
    settings,
    suppressions,
    uploads,
)

__all__ = [
    "CONTROL",
    "IN_FLIGHT",
    "METADATA",
    "SIGNALS",
    "UNSETTLED",
    "accounts",
    "addresses",
    "alerts",
    "audience_members",
    "audiences",
    "campaigns",
    "contacts",
    "counters",
    "deliveries",
    "events",
    "idempotency_keys",
    "lanes",
    "ledger",
    "media",
    "policies",
    "processes",
    "run_accounts",
    "runs",
    "settings",
    "suppressions",
    "uploads",
    "usage",
]
