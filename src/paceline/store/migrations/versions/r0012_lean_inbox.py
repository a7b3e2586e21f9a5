"""An index of the inbox that nothing was looked up by, and that every message was written to."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.drop_index("ix_inbound_chat", "inbound")
