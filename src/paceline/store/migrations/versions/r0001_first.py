"""Everything Paceline stores, in its first shape."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

DELIVERY_STATES = "planned ready sending sent failed bounced skipped unknown cancelled"
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _policies()
    _accounts()
    _campaigns()
    _runs()
    _deliveries()
    _delivery_indexes()
    _ledger()
    _usage()
    _processes()
    _lanes()
    _media()
    _uploads()
    _suppressions()
    _counters()
    _events()
    _settings()
    op.execute("""INSERT INTO settings (key, value) VALUES ('control', '{"stopped": null}')""")


def _text(name: str, *, optional: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=optional)


def _big(name: str, *, optional: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=optional, autoincrement=False)


def _small(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False, autoincrement=False)


def _only(rows: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(rows), "postgresql_where": sa.text(rows)}


def _one_of(name: str, states: str) -> sa.CheckConstraint:
    allowed = ", ".join(f"'{state}'" for state in states.split())
    return sa.CheckConstraint(f"state IN ({allowed})", name=op.f(name))


def _policies() -> None:
    op.create_table(
        "policies",
        sa.Column("id", ID, nullable=False),
        _text("name"),
        _text("digest"),
        _text("body"),
        _big("created_at"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_policies")),
        sa.UniqueConstraint("name", "digest", name=op.f("uq_policies_name")),
    )


def _accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", ID, nullable=False),
        _text("name"),
        _text("provider"),
        _text("address"),
        _text("settings"),
        _text("policy_name", optional=True),
        _text("overrides"),
        _big("policy_id"),
        _text("state"),
        _text("state_reason"),
        _big("state_until_at", optional=True),
        _big("warm_since_at"),
        _big("created_at"),
        _big("removed_at", optional=True),
        _one_of("ck_accounts_state", "active paused limit_reached cooling_down suspended"),
        sa.ForeignKeyConstraint(["policy_id"], ["policies.id"], name=op.f("fk_accounts_policy_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
    )
    op.create_index(
        "ix_accounts_name",
        "accounts",
        ["name"],
        unique=True,
        **_only("removed_at IS NULL"),
    )


def _campaigns() -> None:
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
        sa.CheckConstraint("kind IN ('campaign', 'direct')", name=op.f("ck_campaigns_kind")),
        _one_of("ck_campaigns_state", "draft scheduled running paused finished cancelled"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_campaigns")),
        sa.UniqueConstraint("name", name=op.f("uq_campaigns_name")),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", ID, nullable=False),
        _big("campaign_id"),
        _text("state"),
        _big("total"),
        _text("window", optional=True),
        _big("opens_at", optional=True),
        _big("closes_at", optional=True),
        _small("priority"),
        _text("reason"),
        _text("summary"),
        _big("created_at"),
        _big("started_at", optional=True),
        _big("finished_at", optional=True),
        _one_of("ck_runs_state", "waiting running paused success partial failed missed cancelled"),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_runs_campaign_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index("ix_runs_campaign_id", "runs", ["campaign_id"])


def _deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("id", ID, nullable=False),
        _big("run_id"),
        _big("account_id"),
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
        _one_of("ck_deliveries_state", DELIVERY_STATES),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_deliveries_account_id")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_deliveries_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
    )


def _delivery_indexes() -> None:
    op.create_index(
        "ix_deliveries_begun",
        "deliveries",
        ["account_id", "run_id", "due_at", "id"],
        **_only("due_at IS NOT NULL AND attempts > 0"),
    )
    op.create_index(
        "ix_deliveries_contacted",
        "deliveries",
        ["target", "sent_at"],
        **_only("sent_at IS NOT NULL"),
    )
    op.create_index(
        "ix_deliveries_due",
        "deliveries",
        ["account_id", "run_id", "due_at", "id"],
        **_only("due_at IS NOT NULL"),
    )
    op.create_index(
        "ix_deliveries_in_flight",
        "deliveries",
        ["target"],
        **_only("state IN ('sending', 'unknown') AND attempts > 0"),
    )
    op.create_index("ix_deliveries_run", "deliveries", ["run_id", "id"])
    op.create_index(
        "ix_deliveries_sending",
        "deliveries",
        ["account_id", "id"],
        **_only("state = 'sending'"),
    )
    op.create_index(
        "ix_deliveries_unknown",
        "deliveries",
        ["run_id"],
        **_only("state = 'unknown'"),
    )


def _ledger() -> None:
    op.create_table(
        "ledger",
        _big("delivery_id"),
        _small("part"),
        _small("attempt"),
        _text("kind"),
        _big("account_id"),
        _big("run_id"),
        _text("action"),
        _big("at"),
        _big("intent_at"),
        _big("started_at", optional=True),
        _small("slots"),
        _big("policy_id"),
        _big("generation"),
        _text("outcome", optional=True),
        _text("code"),
        _text("reason"),
        _text("provider_id", optional=True),
        _big("latency_us", optional=True),
        sa.CheckConstraint(
            "kind IN ('intent', 'outcome', 'resolution')", name=op.f("ck_ledger_kind")
        ),
        sa.PrimaryKeyConstraint("delivery_id", "part", "attempt", "kind", name=op.f("pk_ledger")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_ledger_account", "ledger", ["account_id", "intent_at"])


def _usage() -> None:
    op.create_table(
        "usage",
        _big("account_id"),
        _text("checkpoint", optional=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_usage_account_id")),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_usage")),
        postgresql_with={"fillfactor": "50"},
    )


def _processes() -> None:
    op.create_table(
        "processes",
        sa.Column("id", ID, nullable=False),
        _text("name"),
        _big("started_at"),
        _big("lease_until_at"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_processes")),
        sqlite_autoincrement=True,
    )


def _lanes() -> None:
    op.create_table(
        "lanes",
        _big("account_id"),
        _big("generation"),
        _big("owner", optional=True),
        _big("revision"),
        _big("wake_at", optional=True),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=op.f("fk_lanes_account_id")),
        sa.ForeignKeyConstraint(["owner"], ["processes.id"], name=op.f("fk_lanes_owner")),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_lanes")),
        postgresql_with={"fillfactor": "50"},
    )
    op.create_index(
        "ix_lanes_free",
        "lanes",
        ["wake_at"],
        **_only("owner IS NULL AND wake_at IS NOT NULL"),
    )
    op.create_index(
        "ix_lanes_owner",
        "lanes",
        ["owner", "wake_at"],
        **_only("owner IS NOT NULL"),
    )


def _media() -> None:
    op.create_table(
        "media",
        _text("id"),
        _text("name"),
        _text("mime"),
        _big("size"),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        _big("created_at"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_media")),
    )


def _uploads() -> None:
    op.create_table(
        "uploads",
        _big("account_id"),
        _text("media_id"),
        _text("handle"),
        _big("uploaded_at"),
        _big("expires_at", optional=True),
        sa.ForeignKeyConstraint(
            ["account_id"], ["accounts.id"], name=op.f("fk_uploads_account_id")
        ),
        sa.ForeignKeyConstraint(["media_id"], ["media.id"], name=op.f("fk_uploads_media_id")),
        sa.PrimaryKeyConstraint("account_id", "media_id", name=op.f("pk_uploads")),
    )


def _suppressions() -> None:
    op.create_table(
        "suppressions",
        _text("address"),
        _text("reason"),
        _text("source"),
        _big("at"),
        sa.PrimaryKeyConstraint("address", name=op.f("pk_suppressions")),
    )


def _counters() -> None:
    op.create_table(
        "counters",
        _big("account_id"),
        _big("run_id"),
        _text("state"),
        _big("n"),
        _one_of("ck_counters_state", DELIVERY_STATES),
        sa.PrimaryKeyConstraint("account_id", "run_id", "state", name=op.f("pk_counters")),
        postgresql_with={"fillfactor": "50"},
        sqlite_with_rowid=False,
    )
    op.create_index("ix_counters_run", "counters", ["run_id"])


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("id", ID, nullable=False),
        _big("at"),
        _text("kind"),
        _text("text"),
        _big("account_id", optional=True),
        _big("run_id", optional=True),
        _big("delivery_id", optional=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )
    op.create_index("ix_events_account", "events", ["account_id", "id"])
    op.create_index("ix_events_run", "events", ["run_id", "id"])


def _settings() -> None:
    op.create_table(
        "settings",
        _text("key"),
        _text("value"),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_settings")),
    )
