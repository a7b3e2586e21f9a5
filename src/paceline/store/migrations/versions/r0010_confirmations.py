"""Suppressions know the one message that tells whoever asked for them that they were heard."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("suppressions", sa.Column("confirmation_id", sa.BigInteger(), nullable=True))
