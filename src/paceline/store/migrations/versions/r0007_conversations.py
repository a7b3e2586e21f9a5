"""Conversations, their turns, and how accounts answer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column(
        "accounts", sa.Column("answering", sa.Text(), nullable=False, server_default="{}")
    )
    op.create_table(
        "conversations",
        sa.Column("id", _ID, nullable=False),
        _big("account_id"),
        *(_text(name) for name in ("chat", "mode", "reason")),
        *(_big(name, optional=True) for name in ("first_at", "last_at", "due_at")),
        _big("heard_at"),
        _big("created_at"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conversations")),
        _refers("conversations", "account_id", "accounts"),
        sa.UniqueConstraint("account_id", "chat", name=op.f("uq_conversations_account_id")),
        sa.CheckConstraint(
            "mode IN ('auto', 'human', 'muted')", name=op.f("ck_conversations_mode")
        ),
    )
    due = sa.text("due_at IS NOT NULL AND mode = 'auto'")
    op.create_index(
        "ix_conversations_due", "conversations", ["due_at"], sqlite_where=due, postgresql_where=due
    )
    op.create_index("ix_conversations_heard", "conversations", ["heard_at"])
    op.create_table(
        "turns",
        sa.Column("id", _ID, nullable=False),
        _big("conversation_id"),
        *(_text(name) for name in ("state", "owner")),
        _big("generation"),
        _big("lease_until_at", optional=True),
        _big("attempts"),
        _big("delivery_id", optional=True),
        _text("reason"),
        _big("started_at"),
        _big("ended_at", optional=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_turns")),
        _refers("turns", "conversation_id", "conversations"),
        _refers("turns", "delivery_id", "deliveries"),
        sa.CheckConstraint(
            "state IN ('thinking', 'replying', 'done', 'handed', 'discarded')",
            name=op.f("ck_turns_state"),
        ),
    )
    active = sa.text("state IN ('thinking', 'replying')")
    op.create_index(
        "uq_turns_active",
        "turns",
        ["conversation_id"],
        unique=True,
        sqlite_where=active,
        postgresql_where=active,
    )
    op.create_index("ix_turns_conversation_id", "turns", ["conversation_id", "id"])
    _know_their_turns()


def _know_their_turns() -> None:
    """Without constraints, which SQLite could only add by writing the whole table anew."""
    for name in ("conversation_id", "turn_id"):
        op.add_column("inbound", _big(name, optional=True))
    op.create_index("ix_inbound_conversation", "inbound", ["conversation_id", "turn_id", "id"])


def _big(name: str, *, optional: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=optional, autoincrement=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _refers(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}")
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=name)
