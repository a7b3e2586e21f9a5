"""Reminders and whom they go to, what a firing froze, and the groups of accounts."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KINDS = "kind IN ('campaign', 'direct', 'reminder')"
STATES = "state IN ('draft', 'scheduled', 'running', 'paused', 'finished', 'cancelled')"
_KEPT = "id, name, kind, state, content, settings, reason, created_at, launched_at, finished_at"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _campaigns_anew()
    else:
        op.drop_constraint(op.f("ck_campaigns_kind"), "campaigns")
        op.create_check_constraint(op.f("ck_campaigns_kind"), "campaigns", KINDS)
    op.add_column("runs", _text("content", optional=True))
    op.add_column("runs", _big("fired_for", optional=True))
    op.create_index(
        "ix_runs_closing",
        "runs",
        ["closes_at"],
        **_only("closes_at IS NOT NULL AND state IN ('waiting', 'running', 'paused')"),
    )
    op.create_index(
        "ix_runs_firing",
        "runs",
        ["campaign_id", "fired_for"],
        unique=True,
        **_only("fired_for IS NOT NULL"),
    )
    _reminders()
    _groups()


def _text(name: str, *, optional: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=optional)


def _big(name: str, *, optional: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=optional, autoincrement=False)


def _only(rows: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(rows), "postgresql_where": sa.text(rows)}


def _campaigns_anew() -> None:
    """SQLite cannot change what a column may hold: the table is made again.

    Runs point at it. They are asked at the end of the transaction whether what they point at is
    there, and by then it is again.
    """
    op.execute("PRAGMA defer_foreign_keys = ON")
    op.execute(f"CREATE TABLE campaigns_before AS SELECT {_KEPT} FROM campaigns")
    op.drop_table("campaigns")
    op.create_table(
        "campaigns",
        sa.Column("id", ID, nullable=False),
        _text("name"),
        _text("kind"),
        _text("state"),
        _text("content"),
        _text("settings"),
        _text("reason"),
        _big("created_at"),
        _big("launched_at", optional=True),
        _big("finished_at", optional=True),
        sa.CheckConstraint(KINDS, name=op.f("ck_campaigns_kind")),
        sa.CheckConstraint(STATES, name=op.f("ck_campaigns_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_campaigns")),
        sa.UniqueConstraint("name", name=op.f("uq_campaigns_name")),
    )
    op.execute(f"INSERT INTO campaigns ({_KEPT}) SELECT {_KEPT} FROM campaigns_before")
    op.drop_table("campaigns_before")


def _reminders() -> None:
    op.create_table(
        "reminders",
        sa.Column("id", ID, nullable=False),
        _big("campaign_id"),
        _text("rule"),
        _text("zone"),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        _big("next_at", optional=True),
        _big("edited_at"),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_reminders_campaign_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reminders")),
        sa.UniqueConstraint("campaign_id", name=op.f("uq_reminders_campaign_id")),
    )
    op.create_index(
        "ix_reminders_next", "reminders", ["next_at"], **_only("enabled AND next_at IS NOT NULL")
    )
    op.create_table(
        "reminder_targets",
        _big("reminder_id"),
        _big("position"),
        _text("target"),
        _text("fields"),
        sa.ForeignKeyConstraint(
            ["reminder_id"], ["reminders.id"], name=op.f("fk_reminder_targets_reminder_id")
        ),
        sa.PrimaryKeyConstraint("reminder_id", "position", name=op.f("pk_reminder_targets")),
    )
    op.create_index("ix_reminder_targets_target", "reminder_targets", ["target"])


def _groups() -> None:
    op.create_table(
        "groups",
        _big("account_id"),
        _text("target"),
        _text("name"),
        _big("size", optional=True),
        sa.Column("may_send", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_groups_account_id")),
        sa.PrimaryKeyConstraint("account_id", "target", name=op.f("pk_groups")),
    )
    op.create_table(
        "group_syncs",
        _big("account_id"),
        _big("at"),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_group_syncs_account_id")
        ),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_group_syncs")),
    )
