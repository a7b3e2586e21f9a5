"""Conversations and their turns."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Table,
    Text,
    UniqueConstraint,
)

from paceline.core.states import TurnState
from paceline.store.schema.common import METADATA, Id, one_of, only

MODES = ("auto", "human", "muted")
"""Who answers: whoever was set up to, a person, nobody at all."""

conversations = Table(
    "conversations",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("account_id", BigInteger, ForeignKey("accounts.id"), nullable=False),
    Column("chat", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("reason", Text, nullable=False),
    # Of what waits for an answer: when the first and the last of it came, and when its turn begins.
    Column("first_at", BigInteger),
    Column("last_at", BigInteger),
    Column("due_at", BigInteger),
    # When they wrote last, whatever became of it: some channels take answers only for so long.
    Column("heard_at", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # Of one that is muted: why a person had it before. Nothing where none had.
    Column("before_mute", Text),
    UniqueConstraint("account_id", "chat"),
    one_of("mode", MODES),
)
Index(
    "ix_conversations_due", conversations.c.due_at, **only("due_at IS NOT NULL AND mode = 'auto'")
)
Index("ix_conversations_heard", conversations.c.heard_at)

# Whoever makes a reply holds the turn, until then; by the database's clock.
turns = Table(
    "turns",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("conversation_id", BigInteger, ForeignKey("conversations.id"), nullable=False),
    Column("state", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("lease_until_at", BigInteger),
    Column("attempts", BigInteger, nullable=False),
    Column("delivery_id", BigInteger, ForeignKey("deliveries.id")),
    Column("reason", Text, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    one_of("state", TurnState),
)
# One at a time: the second insert is the one that fails, in whichever process.
Index(
    "uq_turns_active",
    turns.c.conversation_id,
    unique=True,
    **only("state IN ('thinking', 'replying')"),
)
Index("ix_turns_conversation_id", turns.c.conversation_id, turns.c.id)

# Addresses of people whom nobody answers, whichever account they write to.
muted_people = Table(
    "muted_people",
    METADATA,
    Column("address", Text, primary_key=True),
    Column("at", BigInteger, nullable=False),
    # By which conversation: all names of one person are muted, and answered again, together.
    Column("by_id", BigInteger),
)

# Ways to answer that answer nobody just now, by their names in the settings.
held_ways = Table(
    "held_ways",
    METADATA,
    Column("way", Text, primary_key=True),
    Column("reason", Text, nullable=False),
    Column("since_at", BigInteger, nullable=False),
    # How often it was tried since, and when it is next.
    Column("tries", BigInteger, nullable=False),
    Column("try_at", BigInteger, nullable=False),
)
