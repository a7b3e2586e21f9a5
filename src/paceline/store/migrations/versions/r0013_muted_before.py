"""Why a person had a conversation before it was muted; and which names were muted with which."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("conversations", sa.Column("before_mute", sa.Text(), nullable=True))
    op.add_column("muted_people", sa.Column("by_id", sa.BigInteger(), nullable=True))
