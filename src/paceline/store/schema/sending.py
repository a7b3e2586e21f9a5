"""What is sent, by whom, and what became of it: accounts, campaigns, deliveries, ledger, lanes.

Foreign keys are left out where every message would pay for them, or where the row must outlive
what it speaks of: the ledger and the counters (written several times per message, and only ever
beside a delivery whose own keys were checked).
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from paceline.core.states import AccountState, CampaignState, DeliveryState, RunState
from paceline.store.schema.common import METADATA, ROOMY, Id, one_of, only

UNSETTLED = tuple(
    state.value
    for state in (
        DeliveryState.PLANNED,
        DeliveryState.READY,
        DeliveryState.SENDING,
        DeliveryState.UNKNOWN,
    )
)
"""States of deliveries for which something is still to be done."""

IN_FLIGHT = "deliveries.state IN ('sending', 'unknown') AND deliveries.attempts > 0"
"""Deliveries that may have reached somebody, though nobody has said so yet.

That they were attempted goes without saying; it keeps statements that only name the two states,
and find their rows by key, away from the index that is made with these words.
"""

PARTLY = "deliveries.state = 'failed' AND deliveries.parts_done > 0"
"""Deliveries of which somebody has got the beginning, and no more."""

FOLLOWING = "state IN ('planned', 'ready') AND step > 1"
"""Deliveries that are called off if the message before them was not delivered."""

OVER = "'sent', 'failed', 'bounced', 'skipped', 'cancelled'"
AWAITED = f"awaited AND state IN ({OVER})"

policies = Table(
    "policies",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("name", "digest"),
)

accounts = Table(
    "accounts",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("policy_name", Text),
    Column("overrides", Text, nullable=False),
    Column("policy_id", BigInteger, ForeignKey("policies.id"), nullable=False),
    Column("state", Text, nullable=False),
    Column("state_reason", Text, nullable=False),
    Column("state_until_at", BigInteger),
    Column("warm_since_at", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("removed_at", BigInteger),
    Column("answering", Text, nullable=False, server_default="{}"),
    one_of("state", AccountState),
)
# A removed account keeps its row, because the ledger speaks of it, but gives its name back.
Index(
    "ix_accounts_name",
    accounts.c.name,
    unique=True,
    **only("removed_at IS NULL"),
)

campaigns = Table(
    "campaigns",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("launched_at", BigInteger),
    Column("finished_at", BigInteger),
    UniqueConstraint("name"),
    one_of("kind", ("campaign", "direct", "reminder")),
    one_of("state", CampaignState),
)

runs = Table(
    "runs",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("campaign_id", BigInteger, ForeignKey("campaigns.id"), nullable=False),
    Column("state", Text, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("window", Text),
    Column("opens_at", BigInteger),
    Column("closes_at", BigInteger),
    Column("priority", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("summary", Text, nullable=False),
    # A firing says what its reminder said then, whoever edits that meanwhile.
    Column("content", Text),
    Column("fired_for", BigInteger),
    # What a campaign sends to those who bid it, and to nobody else.
    Column("follow_ups", Boolean, nullable=False, server_default=false()),
    Column("created_at", BigInteger, nullable=False),
    Column("started_at", BigInteger),
    Column("finished_at", BigInteger),
    one_of("state", RunState),
)
Index("ix_runs_campaign_id", runs.c.campaign_id)
# What its window should have ended by itself, and has not: looked for once in a while.
Index(
    "ix_runs_closing",
    runs.c.closes_at,
    **only("closes_at IS NOT NULL AND state IN ('waiting', 'running', 'paused')"),
)
Index(
    "ix_runs_firing",
    runs.c.campaign_id,
    runs.c.fired_for,
    unique=True,
    **only("fired_for IS NOT NULL"),
)

deliveries = Table(
    "deliveries",
    METADATA,
    Column("id", Id, primary_key=True),
    # Checked when a delivery is created; an update that leaves the key alone does not ask again.
    Column("run_id", BigInteger, ForeignKey("runs.id"), nullable=False),
    # Empty while a pooled delivery is nobody's: whoever intends it first has it from then on.
    Column("account_id", BigInteger, ForeignKey("accounts.id")),
    Column("contact_id", BigInteger, ForeignKey("contacts.id")),
    Column("step", Integer, nullable=False),
    # The delivery of the step before, which has to be sent first.
    Column("after_id", BigInteger),
    # Whether one of the next step has still to be told what becomes of this one.
    Column("awaited", Boolean, nullable=False, server_default=false()),
    # Whether it is there because somebody has done something after the one before.
    Column("bidden", Boolean, nullable=False, server_default=false()),
    # By which message of theirs, where it was one.
    Column("bidden_by", BigInteger),
    Column("position", BigInteger, nullable=False),
    Column("target", Text, nullable=False),
    Column("fields", Text, nullable=False),
    Column("content", Text),
    Column("action", Text, nullable=False),
    Column("reply", Boolean, nullable=False),
    Column("state", Text, nullable=False),
    Column("scheduled_at", BigInteger, nullable=False),
    Column("due_at", BigInteger),
    Column("expires_at", BigInteger),
    Column("recipient_hours", Text),
    Column("parts_done", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("retries", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("provider_id", Text),
    Column("sent_at", BigInteger),
    Column("moved_at", BigInteger, nullable=False),
    # By the provider's receipts: of its last part, and in a group of whoever was first.
    Column("delivered_at", BigInteger),
    Column("read_at", BigInteger),
    one_of("state", DeliveryState),
    CheckConstraint("due_at IS NULL OR state IN ('ready', 'unknown')", name="due_waits"),
    CheckConstraint("state <> 'ready' OR due_at IS NOT NULL", name="ready_is_due"),
    CheckConstraint("state <> 'sent' OR sent_at IS NOT NULL", name="sent_has_instant"),
)
# Only waiting rows are in the queue's index: a settled delivery costs the next claim nothing.
Index(
    "ix_deliveries_due",
    deliveries.c.account_id,
    deliveries.c.run_id,
    deliveries.c.due_at,
    deliveries.c.id,
    **only("due_at IS NOT NULL"),
)
# The few that were begun go before all that are fresh, and are found without looking at those.
Index(
    "ix_deliveries_begun",
    deliveries.c.account_id,
    deliveries.c.run_id,
    deliveries.c.due_at,
    deliveries.c.id,
    **only("due_at IS NOT NULL AND attempts > 0"),
)
_IN_FLIGHT = IN_FLIGHT.replace("deliveries.", "")
Index("ix_deliveries_in_flight", deliveries.c.target, **only(_IN_FLIGHT))
# Whoever asks for nothing more is looked for among all that waits. On SQLite among all there is: to
# leave an index costs half as much as the rest of a message, to stay in it nothing. Its condition,
# which always holds, keeps everybody away who does not name it.
Index(
    "ix_deliveries_waiting",
    deliveries.c.target,
    **only("scheduled_at >= 0", on_postgresql="state IN ('planned', 'ready')"),
)
# Somebody may answer the beginning of a message. Without parts_done, which changes with every part.
Index("ix_deliveries_failed", deliveries.c.target, **only("state = 'failed'"))
# Most receipts name a message as the provider does.
Index(
    "ix_deliveries_named",
    deliveries.c.account_id,
    deliveries.c.provider_id,
    **only("provider_id IS NOT NULL"),
)
# With the number, though the account would do: PostgreSQL keeps entries that differ apart with
# less work than many that are the same, and every delivery passes through here.
Index(
    "ix_deliveries_sending",
    deliveries.c.account_id,
    deliveries.c.id,
    **only("state = 'sending'"),
)
# How many came back in a day: asked for whenever one does.
Index(
    "ix_deliveries_bounced",
    deliveries.c.account_id,
    deliveries.c.moved_at,
    **only("state = 'bounced'"),
)
Index(
    "ix_deliveries_unknown",
    deliveries.c.run_id,
    **only("state = 'unknown'"),
)
Index("ix_deliveries_run", deliveries.c.run_id, deliveries.c.id)
Index(
    "ix_deliveries_contacted",
    deliveries.c.target,
    deliveries.c.sent_at,
    **only("sent_at IS NOT NULL"),
)

# What a person was sent on any channel: the frequency gate counts people and not addresses.
Index(
    "ix_deliveries_contact",
    deliveries.c.contact_id,
    deliveries.c.sent_at,
    **only("contact_id IS NOT NULL AND sent_at IS NOT NULL"),
)

# The followers of a message, as long as it concerns them what becomes of it.
Index(
    "ix_deliveries_following",
    deliveries.c.run_id,
    deliveries.c.after_id,
    **only(FOLLOWING),
)
# Messages that are over, and whose followers do not know it yet: only these are looked at every
# minute, however many others wait.
Index(
    "ix_deliveries_awaited",
    deliveries.c.run_id,
    deliveries.c.id,
    **only(AWAITED),
)

# However often somebody answers, and whoever hears of it: one follow-up.
Index(
    "uq_deliveries_bidden",
    deliveries.c.run_id,
    deliveries.c.position,
    unique=True,
    **only("bidden"),
)

run_accounts = Table(
    "run_accounts",
    METADATA,
    Column("run_id", BigInteger, ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    Column(
        "account_id", BigInteger, ForeignKey("accounts.id"), primary_key=True, autoincrement=False
    ),
)
Index("ix_run_accounts_account", run_accounts.c.account_id)

ledger = Table(
    "ledger",
    METADATA,
    Column("delivery_id", BigInteger, primary_key=True, autoincrement=False),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, primary_key=True),
    Column("account_id", BigInteger, nullable=False),
    Column("run_id", BigInteger, nullable=False),
    Column("action", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("intent_at", BigInteger, nullable=False),
    Column("started_at", BigInteger),
    Column("slots", Integer, nullable=False),
    Column("policy_id", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("outcome", Text),
    Column("code", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("provider_id", Text),
    Column("latency_us", BigInteger),
    one_of("kind", ("intent", "outcome", "resolution")),
    # The key is the row's place on disk: one tree to write instead of two.
    sqlite_with_rowid=False,
)
Index("ix_ledger_account", ledger.c.account_id, ledger.c.intent_at)

usage = Table(
    "usage",
    METADATA,
    Column(
        "account_id",
        BigInteger,
        ForeignKey("accounts.id"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("checkpoint", Text),
    info=ROOMY,
)

processes = Table(
    "processes",
    METADATA,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("lease_until_at", BigInteger, nullable=False),
    # A number is never given out twice, or a newcomer would inherit a dead process's lanes.
    sqlite_autoincrement=True,
)

lanes = Table(
    "lanes",
    METADATA,
    Column(
        "account_id",
        BigInteger,
        ForeignKey("accounts.id"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("generation", BigInteger, nullable=False),
    Column("owner", BigInteger, ForeignKey("processes.id")),
    Column("revision", BigInteger, nullable=False),
    Column("wake_at", BigInteger),
    info=ROOMY,
)
Index(
    "ix_lanes_free",
    lanes.c.wake_at,
    **only("owner IS NULL AND wake_at IS NOT NULL"),
)
Index(
    "ix_lanes_owner",
    lanes.c.owner,
    lanes.c.wake_at,
    **only("owner IS NOT NULL"),
)

# One row per account, so that lanes of different accounts never wait for each other here; what a
# run has done is their sum. Pooled deliveries that are nobody's yet are counted under account 0.
counters = Table(
    "counters",
    METADATA,
    Column("account_id", BigInteger, primary_key=True, autoincrement=False),
    Column("run_id", BigInteger, primary_key=True, autoincrement=False),
    Column("state", Text, primary_key=True),
    Column("n", BigInteger, nullable=False),
    one_of("state", DeliveryState),
    sqlite_with_rowid=False,
    info=ROOMY,
)
Index("ix_counters_run", counters.c.run_id)
