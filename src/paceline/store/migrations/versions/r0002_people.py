"""People and their audiences, pools of accounts, steps, alerts, and keys of what was asked for."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

STATES = (
    "planned",
    "ready",
    "sending",
    "sent",
    "failed",
    "bounced",
    "skipped",
    "unknown",
    "cancelled",
)
_KEPT = (
    "id, run_id, account_id, position, target, fields, content, action, reply, state, "
    "scheduled_at, due_at, expires_at, recipient_hours, parts_done, attempts, retries, reason, "
    "provider_id, sent_at, moved_at"
)
_INDEXES: tuple[tuple[str, list[str], str | None], ...] = (
    (
        "ix_deliveries_begun",
        ["account_id", "run_id", "due_at", "id"],
        "due_at IS NOT NULL AND attempts > 0",
    ),
    ("ix_deliveries_contacted", ["target", "sent_at"], "sent_at IS NOT NULL"),
    ("ix_deliveries_due", ["account_id", "run_id", "due_at", "id"], "due_at IS NOT NULL"),
    (
        "ix_deliveries_in_flight",
        ["target"],
        "state IN ('sending', 'unknown') AND attempts > 0",
    ),
    ("ix_deliveries_run", ["run_id", "id"], None),
    ("ix_deliveries_sending", ["account_id", "id"], "state = 'sending'"),
    ("ix_deliveries_unknown", ["run_id"], "state = 'unknown'"),
)


def upgrade() -> None:
    _contacts()
    _audiences()
    if op.get_bind().dialect.name == "sqlite":
        _deliveries_anew()
    else:
        _deliveries_changed()
    op.create_index(
        "ix_deliveries_contact",
        "deliveries",
        ["contact_id", "sent_at"],
        **_only("contact_id IS NOT NULL AND sent_at IS NOT NULL"),
    )
    op.create_index(
        "ix_deliveries_following",
        "deliveries",
        ["run_id", "after_id"],
        **_only("state = 'planned' AND step > 1"),
    )
    _run_accounts()
    _alerts()
    _idempotency_keys()


def _text(name: str, *, optional: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=optional)


def _big(name: str, *, optional: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=optional, autoincrement=False)


def _small(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False, autoincrement=False)


def _only(rows: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(rows), "postgresql_where": sa.text(rows)}


def _contacts() -> None:
    op.create_table(
        "contacts",
        sa.Column("id", ID, nullable=False),
        _text("fields"),
        _text("opt_in_source"),
        _big("opt_in_at", optional=True),
        _big("created_at"),
        _big("changed_at"),
        _big("erased_at", optional=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contacts")),
    )
    op.create_table(
        "addresses",
        _text("address"),
        _text("kind"),
        _big("contact_id"),
        sa.ForeignKeyConstraint(
            ["contact_id"], ["contacts.id"], name=op.f("fk_addresses_contact_id")
        ),
        sa.PrimaryKeyConstraint("address", name=op.f("pk_addresses")),
    )
    op.create_index("ix_addresses_contact", "addresses", ["contact_id"])


def _audiences() -> None:
    op.create_table(
        "audiences",
        sa.Column("id", ID, nullable=False),
        _text("name"),
        _big("revision"),
        _big("created_at"),
        _big("changed_at"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audiences")),
        sa.UniqueConstraint("name", name=op.f("uq_audiences_name")),
    )
    op.create_table(
        "audience_members",
        _big("audience_id"),
        _big("contact_id"),
        _big("position"),
        sa.ForeignKeyConstraint(
            ["audience_id"], ["audiences.id"], name=op.f("fk_audience_members_audience_id")
        ),
        sa.ForeignKeyConstraint(
            ["contact_id"], ["contacts.id"], name=op.f("fk_audience_members_contact_id")
        ),
        sa.PrimaryKeyConstraint("audience_id", "contact_id", name=op.f("pk_audience_members")),
    )
    op.create_index("ix_audience_members_contact", "audience_members", ["contact_id"])
    op.create_index("ix_audience_members_position", "audience_members", ["audience_id", "position"])


def _deliveries_changed() -> None:
    op.alter_column("deliveries", "account_id", nullable=True)
    op.add_column("deliveries", _big("contact_id", optional=True))
    op.create_foreign_key(
        op.f("fk_deliveries_contact_id"), "deliveries", "contacts", ["contact_id"], ["id"]
    )
    # The default fills the rows that are there without rewriting them; nobody relies on it later.
    op.add_column(
        "deliveries",
        sa.Column("step", sa.Integer(), nullable=False, server_default=sa.text("1")),
    )
    op.alter_column("deliveries", "step", server_default=None)
    op.add_column("deliveries", _big("after_id", optional=True))


def _deliveries_anew() -> None:
    """SQLite cannot make a column optional: the table is made again, and everything moves over.

    Nothing points at deliveries with a foreign key, so nothing notices.
    """
    for name, _, _ in _INDEXES:
        op.drop_index(name, "deliveries")
    op.rename_table("deliveries", "deliveries_before")
    _deliveries()
    op.execute(f"INSERT INTO deliveries ({_KEPT}, step) SELECT {_KEPT}, 1 FROM deliveries_before")
    op.drop_table("deliveries_before")
    for name, columns, rows in _INDEXES:
        op.create_index(name, "deliveries", columns, **(_only(rows) if rows else {}))


def _deliveries() -> None:
    listed = ", ".join(f"'{state}'" for state in STATES)
    op.create_table(
        "deliveries",
        sa.Column("id", ID, nullable=False),
        _big("run_id"),
        _big("account_id", optional=True),
        _big("contact_id", optional=True),
        _small("step"),
        _big("after_id", optional=True),
        _big("position"),
        _text("target"),
        _text("fields"),
        _text("content", optional=True),
        _text("action"),
        sa.Column("reply", sa.Boolean(), nullable=False),
        _text("state"),
        _big("scheduled_at"),
        _big("due_at", optional=True),
        _big("expires_at", optional=True),
        _text("recipient_hours", optional=True),
        _small("parts_done"),
        _small("attempts"),
        _small("retries"),
        _text("reason"),
        _text("provider_id", optional=True),
        _big("sent_at", optional=True),
        _big("moved_at"),
        sa.CheckConstraint(
            "due_at IS NULL OR state IN ('ready', 'unknown')", name=op.f("ck_deliveries_due_waits")
        ),
        sa.CheckConstraint(
            "state <> 'ready' OR due_at IS NOT NULL", name=op.f("ck_deliveries_ready_is_due")
        ),
        sa.CheckConstraint(
            "state <> 'sent' OR sent_at IS NOT NULL", name=op.f("ck_deliveries_sent_has_instant")
        ),
        sa.CheckConstraint(f"state IN ({listed})", name=op.f("ck_deliveries_state")),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_deliveries_account_id")
        ),
        sa.ForeignKeyConstraint(
            ["contact_id"], ["contacts.id"], name=op.f("fk_deliveries_contact_id")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_deliveries_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
    )


def _run_accounts() -> None:
    op.create_table(
        "run_accounts",
        _big("run_id"),
        _big("account_id"),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_run_accounts_account_id")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_accounts_run_id")),
        sa.PrimaryKeyConstraint("run_id", "account_id", name=op.f("pk_run_accounts")),
    )
    op.create_index("ix_run_accounts_account", "run_accounts", ["account_id"])


def _alerts() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", ID, nullable=False),
        _text("key"),
        _text("kind"),
        _text("text"),
        _text("reasons"),
        _big("count"),
        _big("first_at"),
        _big("last_at"),
        _big("told_at", optional=True),
        _big("telling_at", optional=True),
        _big("cleared_at", optional=True),
        _big("account_id", optional=True),
        _big("run_id", optional=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alerts")),
    )
    op.create_index("ix_alerts_open", "alerts", ["key"], unique=True, **_only("cleared_at IS NULL"))


def _idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        _text("key"),
        _text("kind"),
        _big("subject_id"),
        _text("digest"),
        _big("at"),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_idempotency_keys")),
    )
