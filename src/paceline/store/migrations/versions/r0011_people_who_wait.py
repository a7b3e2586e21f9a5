"""Ways to answer that are held as a whole, people who are muted on every account, receipts that
come before the name of their message; and who waits, or got half a message, is found by address.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "held_ways",
        sa.Column("way", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        *(_big(name) for name in ("since_at", "tries", "try_at")),
        sa.PrimaryKeyConstraint("way", name=op.f("pk_held_ways")),
    )
    op.create_table(
        "muted_people",
        sa.Column("address", sa.Text(), nullable=False),
        _big("at"),
        sa.PrimaryKeyConstraint("address", name=op.f("pk_muted_people")),
    )
    op.create_table(
        "early_receipts",
        _big("account_id"),
        sa.Column("provider_id", sa.Text(), nullable=False),
        _big("delivered_at"),
        sa.Column("read_at", sa.BigInteger(), nullable=True),
        _big("heard_at"),
        sa.PrimaryKeyConstraint("account_id", "provider_id", name=op.f("pk_early_receipts")),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_early_receipts_account_id")
        ),
    )
    failed = sa.text("state = 'failed'")
    op.create_index(
        "ix_deliveries_failed",
        "deliveries",
        ["target"],
        sqlite_where=failed,
        postgresql_where=failed,
    )
    op.create_index(
        "ix_deliveries_waiting",
        "deliveries",
        ["target"],
        sqlite_where=sa.text("scheduled_at >= 0"),
        postgresql_where=sa.text("state IN ('planned', 'ready')"),
    )


def _big(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)
