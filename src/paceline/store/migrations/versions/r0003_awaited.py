"""Messages know whether a later step still waits for what becomes of them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

FOLLOWING = "state IN ('planned', 'ready') AND step > 1"
AWAITED = "awaited AND state IN ('sent', 'failed', 'bounced', 'skipped', 'cancelled')"


def upgrade() -> None:
    op.add_column(
        "deliveries",
        sa.Column("awaited", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.drop_index("ix_deliveries_following", "deliveries")
    op.create_index(
        "ix_deliveries_following", "deliveries", ["run_id", "after_id"], **_only(FOLLOWING)
    )
    op.execute(
        "UPDATE deliveries SET awaited = true WHERE id IN"
        f" (SELECT after_id FROM deliveries WHERE {FOLLOWING} AND state = 'planned')"
    )
    op.create_index("ix_deliveries_awaited", "deliveries", ["run_id", "id"], **_only(AWAITED))


def _only(rows: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(rows), "postgresql_where": sa.text(rows)}
