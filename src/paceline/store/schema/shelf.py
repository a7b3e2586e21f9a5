"""What lies beside the messages: media, suppressions, events, webhooks, alerts, settings, keys.

Events have no foreign keys: they are a record of what happened, and outlive what they speak of.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, LargeBinary, Table, Text, text

from paceline.store.schema.common import METADATA, Id, only

CONTROL = "control"
"""The key of the settings row that says whether everything is stopped; it always exists."""

SIGNALS = "signals"
"""The key of what operators have put over the table of signals; every lane reads it."""

media = Table(
    "media",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("mime", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

uploads = Table(
    "uploads",
    METADATA,
    Column(
        "account_id",
        BigInteger,
        ForeignKey("accounts.id"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("media_id", Text, ForeignKey("media.id"), primary_key=True),
    Column("handle", Text, nullable=False),
    Column("uploaded_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
)

suppressions = Table(
    "suppressions",
    METADATA,
    Column("address", Text, primary_key=True),
    Column("reason", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    # The one delivery that it does not hold back: which tells whoever asked for it that they were
    # heard.
    Column("confirmation_id", BigInteger),
)

events = Table(
    "events",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("account_id", BigInteger),
    Column("run_id", BigInteger),
    Column("delivery_id", BigInteger),
    Column("data", Text, nullable=False, server_default="{}"),
)
Index("ix_events_account", events.c.account_id, events.c.id)
Index("ix_events_run", events.c.run_id, events.c.id)

# How far each outgoing webhook has come. Where it is and its secret are in the settings file alone.
webhooks = Table(
    "webhooks",
    METADATA,
    Column("name", Text, primary_key=True),
    # The last event it has dealt with.
    Column("cursor", BigInteger, nullable=False),
    # Whoever brings it events holds this, until then; by the database's clock.
    Column("generation", BigInteger, nullable=False),
    Column("lease_until_at", BigInteger),
    Column("failures", BigInteger, nullable=False),
    Column("failing_since_at", BigInteger),
    Column("next_try_at", BigInteger),
    Column("problem", Text, nullable=False),
    Column("delivered", BigInteger, nullable=False),
    Column("delivered_at", BigInteger),
    Column("skipped", BigInteger, nullable=False),
    Column("disabled_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
)

# How far messages got that nobody here knew by these names when their provider told of it: its
# answer, and the name with it, was still to be written down.
early_receipts = Table(
    "early_receipts",
    METADATA,
    Column(
        "account_id", BigInteger, ForeignKey("accounts.id"), primary_key=True, autoincrement=False
    ),
    Column("provider_id", Text, primary_key=True),
    Column("delivered_at", BigInteger, nullable=False),
    Column("read_at", BigInteger),
    Column("heard_at", BigInteger, nullable=False),
)

settings = Table(
    "settings",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

# An alert that is told again while it is open is counted, not told once more.
alerts = Table(
    "alerts",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("reasons", Text, nullable=False),
    Column("count", BigInteger, nullable=False),
    Column("first_at", BigInteger, nullable=False),
    Column("last_at", BigInteger, nullable=False),
    Column("told_at", BigInteger),
    # When a process set out to tell it. Only that it did is known, until it says that it has.
    Column("telling_at", BigInteger),
    # How often it had happened then, and when it was told last. What is news is a matter of these
    # and not of instants, which different clocks have written.
    Column("telling_count", BigInteger, nullable=False, server_default=text("0")),
    Column("told_count", BigInteger, nullable=False, server_default=text("0")),
    Column("cleared_at", BigInteger),
    Column("account_id", BigInteger),
    Column("run_id", BigInteger),
)
Index("ix_alerts_open", alerts.c.key, unique=True, **only("cleared_at IS NULL"))

# What was asked for under a key is done once, however often it is asked for.
idempotency_keys = Table(
    "idempotency_keys",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("subject_id", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
)
