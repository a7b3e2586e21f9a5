"""What comes in: messages to accounts, and how far their mailboxes have been read."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Table,
    Text,
    UniqueConstraint,
)

from paceline.store.schema.common import METADATA, Id

inbound = Table(
    "inbound",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("account_id", BigInteger, ForeignKey("accounts.id"), nullable=False),
    # The provider's name of it: reported twice, it is here once.
    Column("provider_id", Text, nullable=False),
    Column("chat", Text, nullable=False),
    Column("sender", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("automatic", Boolean, nullable=False),
    Column("from_us", Boolean, nullable=False),
    # What it answers, where it says so.
    Column("delivery_id", BigInteger, ForeignKey("deliveries.id")),
    Column("at", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    # The conversation it belongs to, and the turn that it was answered in, if it was yet.
    Column("conversation_id", BigInteger),
    Column("turn_id", BigInteger),
    # The files that came with it, and how its provider is asked for them.
    Column("files", Text),
    UniqueConstraint("account_id", "provider_id"),
)
Index("ix_inbound_sender", inbound.c.sender)
Index("ix_inbound_conversation", inbound.c.conversation_id, inbound.c.turn_id, inbound.c.id)

# Whoever watches a mailbox holds its row, until then; by the database's clock.
watches = Table(
    "watches",
    METADATA,
    Column(
        "account_id", BigInteger, ForeignKey("accounts.id"), primary_key=True, autoincrement=False
    ),
    # How far it has been read, in the provider's own words.
    Column("cursor", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("lease_until_at", BigInteger),
    Column("problem", Text, nullable=False),
    Column("failing_since_at", BigInteger),
    Column("read_at", BigInteger),
)
