"""Who is written to: contacts with their addresses, and the audiences they are gathered in."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text, UniqueConstraint

from paceline.store.schema.common import METADATA, Id

contacts = Table(
    "contacts",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("fields", Text, nullable=False),
    Column("opt_in_source", Text, nullable=False),
    Column("opt_in_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    # The row stays, because deliveries speak of it, but nobody is in it any more.
    Column("erased_at", BigInteger),
)

# An address belongs to one person; a person may have one on every channel.
addresses = Table(
    "addresses",
    METADATA,
    Column("address", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("contact_id", BigInteger, ForeignKey("contacts.id"), nullable=False),
)
Index("ix_addresses_contact", addresses.c.contact_id)

audiences = Table(
    "audiences",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False),
    # Raised by every change, so that a draft can tell whether its audience is still the same.
    Column("revision", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    UniqueConstraint("name"),
)

audience_members = Table(
    "audience_members",
    METADATA,
    Column(
        "audience_id",
        BigInteger,
        ForeignKey("audiences.id"),
        primary_key=True,
        autoincrement=False,
    ),
    Column(
        "contact_id",
        BigInteger,
        ForeignKey("contacts.id"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("position", BigInteger, nullable=False),
)
Index("ix_audience_members_contact", audience_members.c.contact_id)
Index("ix_audience_members_position", audience_members.c.audience_id, audience_members.c.position)
