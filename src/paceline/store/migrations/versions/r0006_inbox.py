"""Messages that come in, mailboxes that are watched, and bounces that are counted by day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "inbound",
        sa.Column("id", _ID, nullable=False),
        _big("account_id"),
        *(_text(name) for name in ("provider_id", "chat", "sender", "subject", "text", "kind")),
        sa.Column("automatic", sa.Boolean(), nullable=False),
        sa.Column("from_us", sa.Boolean(), nullable=False),
        _big("delivery_id", optional=True),
        _big("at"),
        _big("received_at"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inbound")),
        _refers("inbound", "account_id", "accounts"),
        _refers("inbound", "delivery_id", "deliveries"),
        sa.UniqueConstraint("account_id", "provider_id", name=op.f("uq_inbound_account_id")),
    )
    op.create_index("ix_inbound_chat", "inbound", ["account_id", "chat", "id"])
    op.create_index("ix_inbound_sender", "inbound", ["sender"])
    op.create_table(
        "watches",
        _big("account_id"),
        _text("cursor"),
        _big("generation"),
        _big("lease_until_at", optional=True),
        _text("problem"),
        _big("failing_since_at", optional=True),
        _big("read_at", optional=True),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_watches")),
        _refers("watches", "account_id", "accounts"),
    )
    bounced = sa.text("state = 'bounced'")
    op.create_index(
        "ix_deliveries_bounced",
        "deliveries",
        ["account_id", "moved_at"],
        sqlite_where=bounced,
        postgresql_where=bounced,
    )


def _big(name: str, *, optional: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=optional, autoincrement=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _refers(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}")
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=name)
