"""Events tell their values as well as their words; outgoing webhooks, and how far each has come."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

RENAMED = {
    "run.success": "run.finished",
    "run.partial": "run.finished",
    "run.failed": "run.finished",
    "campaign.breaker": "campaign.paused",
    "campaign.signal": "campaign.paused",
    "stopped": "sending.stopped",
    "going_on": "sending.resumed",
}
"""What used to be called otherwise than on the list of events; their words stay."""


def upgrade() -> None:
    op.add_column("events", sa.Column("data", sa.Text(), nullable=False, server_default="{}"))
    events = sa.table("events", sa.column("kind", sa.Text))
    named = sa.case(RENAMED, value=events.c.kind)
    op.execute(sa.update(events).where(events.c.kind.in_(list(RENAMED))).values(kind=named))
    _count_what_was_told()
    op.create_table(
        "webhooks",
        sa.Column("name", sa.Text(), nullable=False),
        _big("cursor"),
        _big("generation"),
        _big("lease_until_at", optional=True),
        _big("failures"),
        _big("failing_since_at", optional=True),
        _big("next_try_at", optional=True),
        sa.Column("problem", sa.Text(), nullable=False),
        _big("delivered"),
        _big("delivered_at", optional=True),
        _big("skipped"),
        _big("disabled_at", optional=True),
        _big("created_at"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_webhooks")),
    )


def _count_what_was_told() -> None:
    """As far as instants can say it: what has happened since is news."""
    for name in ("telling_count", "told_count"):
        op.add_column(
            "alerts", sa.Column(name, sa.BigInteger(), nullable=False, server_default=sa.text("0"))
        )
    alerts = sa.table(
        "alerts",
        *(sa.column(name, sa.BigInteger) for name in ("count", "last_at", "told_at", "told_count")),
    )
    told = sa.update(alerts).where(alerts.c.told_at.is_not(None))
    since = sa.case((alerts.c.last_at > alerts.c.told_at, 1), else_=0)
    op.execute(told.values(told_count=alerts.c.count - since))


def _big(name: str, *, optional: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=optional, autoincrement=False)
