"""Follow-ups: what a campaign sends only to those who bid it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    for table, name in (("runs", "follow_ups"), ("deliveries", "bidden")):
        op.add_column(
            table, sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false())
        )
    op.add_column("deliveries", sa.Column("bidden_by", sa.BigInteger()))
    bidden = sa.text("bidden")
    op.create_index(
        "uq_deliveries_bidden",
        "deliveries",
        ["run_id", "position"],
        unique=True,
        sqlite_where=bidden,
        postgresql_where=bidden,
    )
