"""How far messages got, by the provider's receipts; and the files of what came in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    for name in ("delivered_at", "read_at"):
        op.add_column("deliveries", sa.Column(name, sa.BigInteger(), nullable=True))
    named = sa.text("provider_id IS NOT NULL")
    op.create_index(
        "ix_deliveries_named",
        "deliveries",
        ["account_id", "provider_id"],
        sqlite_where=named,
        postgresql_where=named,
    )
    op.add_column("inbound", sa.Column("files", sa.Text(), nullable=True))
