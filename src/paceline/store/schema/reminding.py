"""Reminders, whom they go to, and the groups that accounts are members of."""

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

from paceline.store.schema.common import METADATA, Id, only

# What is said, from where and under which name is the campaign's; here is when, and to whom.
reminders = Table(
    "reminders",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id"), nullable=False),
    Column("rule", Text, nullable=False),
    Column("zone", Text, nullable=False),
    Column("enabled", Boolean, nullable=False),
    # Whoever moves it on from what it was has fired: two processes cannot both.
    Column("next_at", BigInteger),
    Column("edited_at", BigInteger, nullable=False),
    UniqueConstraint("campaign_id"),
)
Index("ix_reminders_next", reminders.c.next_at, **only("enabled AND next_at IS NOT NULL"))

reminder_targets = Table(
    "reminder_targets",
    METADATA,
    Column(
        "reminder_id",
        BigInteger,
        ForeignKey("reminders.id"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("target", Text, nullable=False),
    Column("fields", Text, nullable=False),
)
Index("ix_reminder_targets_target", reminder_targets.c.target)

groups = Table(
    "groups",
    METADATA,
    Column(
        "account_id", BigInteger, ForeignKey("accounts.id"), primary_key=True, autoincrement=False
    ),
    Column("target", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("size", BigInteger),
    Column("may_send", Boolean, nullable=False),
)

# An account that is a member of no group was asked all the same.
group_syncs = Table(
    "group_syncs",
    METADATA,
    Column(
        "account_id", BigInteger, ForeignKey("accounts.id"), primary_key=True, autoincrement=False
    ),
    Column("at", BigInteger, nullable=False),
)
