"""Migrating an empty database gives exactly what the metadata says, on both databases."""

from collections.abc import Callable
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, text

from paceline.core.errors import SchemaMismatch
from paceline.core.events import EventKind
from paceline.engine import muting
from paceline.engine.commands import returns
from paceline.engine.ports import Inbound
from paceline.engine.ports.conversations import Conversation
from paceline.engine.ports.steps import Advanced
from paceline.store import migrate
from paceline.store.database import open_store
from paceline.store.schema import METADATA
from tests.store.scene import Ticker

pytestmark = pytest.mark.usefixtures("real_databases")

SQLITE_SHAPE = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"
POSTGRESQL_SHAPE = """
SELECT 'column', table_name || '.' || column_name, data_type, is_nullable
FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid), ''
FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT 'index', indexname, indexdef, '' FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT 'options', relname, reloptions::text, '' FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND reloptions IS NOT NULL
"""


def _shape(engine: Engine) -> set[tuple[Any, ...]]:
    """Everything the database knows of its tables, including what Alembic does not compare."""
    query = SQLITE_SHAPE if engine.dialect.name == "sqlite" else POSTGRESQL_SHAPE
    with engine.connect() as connection:
        rows = [tuple(row) for row in connection.execute(text(query))]
    return {
        tuple(" ".join(value.split()) if isinstance(value, str) else value for value in row)
        for row in rows
        if migrate.VERSION_TABLE not in str(row)
    }


def test_migrating_gives_the_metadata(fresh_url: Callable[[], str]) -> None:
    migrated, made = create_engine(url := fresh_url()), create_engine(fresh_url())
    open_store(url, clock=Ticker()).close()
    METADATA.create_all(made)
    with migrated.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": migrate.VERSION_TABLE, "compare_type": True}
        )
        assert compare_metadata(context, METADATA) == []
    shape = _shape(migrated)
    assert _without_order(shape) == _without_order(_shape(made))
    assert len(shape) > 25
    migrated.dispose()
    made.dispose()


def _without_order(shape: set[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """The clauses of a CREATE TABLE may come in any order; what they say may not differ."""
    return {
        (*row[:-1], tuple(sorted(row[-1].replace(")", ",").split(","))))
        if str(row[-1]).startswith("CREATE TABLE")
        else row
        for row in shape
    }


def test_opening_again_changes_nothing(fresh_url: Callable[[], str]) -> None:
    url = fresh_url()
    for _ in range(2):
        open_store(url, clock=Ticker()).close()
    engine = create_engine(url)
    with engine.connect() as connection:
        assert migrate.present(connection) == migrate.NEWEST
        rows = connection.execute(text("SELECT count(*) FROM settings")).scalar_one()
    assert rows == 1
    engine.dispose()


def test_the_newest_schema_is_where_the_steps_lead() -> None:
    assert ScriptDirectory.from_config(migrate.config()).get_heads() == [migrate.NEWEST]


def test_asking_a_database_that_was_never_prepared_spoils_nothing(
    fresh_url: Callable[[], str],
) -> None:
    engine = create_engine(fresh_url())
    with engine.begin() as connection:
        assert migrate.present(connection) is None
        connection.execute(text(f"CREATE TABLE {migrate.VERSION_TABLE} (version_num text)"))
        assert migrate.present(connection) is None
        connection.execute(text(f"INSERT INTO {migrate.VERSION_TABLE} VALUES ('0001')"))
        assert migrate.present(connection) == "0001"
    engine.dispose()


def test_a_database_of_a_newer_version_is_refused(fresh_url: Callable[[], str]) -> None:
    url = fresh_url()
    open_store(url, clock=Ticker()).close()
    _set_version(url, "9999")
    with pytest.raises(
        SchemaMismatch, match=r"was made by a newer version of Paceline \(schema 9999\); upgrade"
    ):
        open_store(url, clock=Ticker())


def test_nothing_is_migrated_unless_that_is_wanted(
    fresh_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = fresh_url()
    open_store(url, clock=Ticker()).close()
    open_store(url, clock=Ticker(), create=False).close()
    present = migrate.NEWEST
    monkeypatch.setattr(migrate, "NEWEST", "9999")
    with pytest.raises(SchemaMismatch, match=rf"older version of Paceline \(schema {present}\)"):
        open_store(url, clock=Ticker(), create=False)


def _set_version(url: str, version: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(
            text(f"UPDATE {migrate.VERSION_TABLE} SET version_num = :version"),
            {"version": version},
        )
    engine.dispose()


def test_what_was_there_before_people_came_is_kept(fresh_url: Callable[[], str]) -> None:
    engine = create_engine(url := fresh_url())
    with engine.begin() as connection:
        command.upgrade(migrate.config(connection), "0001")
        for statement in FIRST_ROWS:
            connection.execute(text(statement))
    store = open_store(url, clock=Ticker())
    with store.read() as tx:
        (delivery,) = tx.deliveries.page()
        assert (delivery.id, delivery.account_id, delivery.target) == (7, 1, "anna")
        assert (delivery.contact_id, delivery.step, delivery.due_at) == (None, 1, 5)
    store.close()
    engine.dispose()


FIRST_ROWS = (
    "INSERT INTO policies (id, name, digest, body, created_at) VALUES (1, 'p', 'd', '{}', 1)",
    """INSERT INTO accounts (id, name, provider, address, settings, overrides, policy_id, state,
        state_reason, warm_since_at, created_at)
    VALUES (1, 'shop', 'sandbox', 'shop', '{}', '{}', 1, 'active', '', 1, 1)""",
    """INSERT INTO campaigns (id, name, kind, state, content, settings, reason, created_at)
    VALUES (1, 'spring', 'campaign', 'running', '[]', '{}', '', 1)""",
    """INSERT INTO runs (id, campaign_id, state, total, priority, reason, summary, created_at)
    VALUES (1, 1, 'running', 1, 0, '', '', 1)""",
    """INSERT INTO deliveries (id, run_id, account_id, position, target, fields, action, reply,
        state, scheduled_at, due_at, parts_done, attempts, retries, reason, moved_at)
    VALUES (7, 1, 1, 0, 'anna', '{}', 'message', false, 'ready', 5, 5, 0, 0, 0, '', 1)""",
)
"""What one waiting delivery takes in the schema 0001."""


def test_steps_that_waited_before_they_were_awaited_go_on(fresh_url: Callable[[], str]) -> None:
    engine = create_engine(url := fresh_url())
    with engine.begin() as connection:
        command.upgrade(migrate.config(connection), "0002")
        for statement in (*FIRST_ROWS[:-1], *SECOND_ROWS):
            connection.execute(text(statement))
    store = open_store(url, clock=Ticker())
    with store.write() as tx:
        assert tx.steps.waiting() == [1]
        assert tx.steps.advance(1, {2: 10, 3: 10}, 50) == Advanced(1, 0)
        assert tx.steps.waiting() == []
        assert [row.state for row in tx.deliveries.page()] == ["sent", "ready", "planned"]
    store.close()
    engine.dispose()


SECOND_ROWS = (
    "UPDATE runs SET total = 3",
    "INSERT INTO lanes (account_id, generation, revision) VALUES (1, 0, 0)",
    *(
        f"""INSERT INTO deliveries (id, run_id, account_id, step, after_id, position, target,
        fields, action, reply, state, scheduled_at, sent_at, parts_done, attempts, retries, reason,
        moved_at)
    VALUES ({step}, 1, 1, {step}, {before}, 0, 'anna', '{{}}', 'message', false, '{state}', 5,
        {sent_at}, 0, 1, 0, '', 1)"""
        for step, before, state, sent_at in (
            (1, "NULL", "sent", 9),
            (2, 1, "planned", "NULL"),
            (3, 2, "planned", "NULL"),
        )
    ),
    *(
        f"INSERT INTO counters (account_id, run_id, state, n) VALUES (1, 1, '{state}', {count})"
        for state, count in (("sent", 1), ("planned", 2), ("ready", 0))
    ),
)
"""A message that was sent, and two that follow it, in the schema 0002."""


def test_events_that_were_called_otherwise_are_on_the_list(fresh_url: Callable[[], str]) -> None:
    engine = create_engine(url := fresh_url())
    before = ["run.success", "run.failed", "campaign.breaker", "stopped", "going_on", "run.missed"]
    with engine.begin() as connection:
        command.upgrade(migrate.config(connection), "0004")
        for kind in before:
            values = {"kind": kind}
            connection.execute(
                text("INSERT INTO events (at, kind, text) VALUES (1, :kind, 'as it was')"), values
            )
    store = open_store(url, clock=Ticker())
    with store.read() as tx:
        found = tx.events.after(0, 100)
        assert [(event.text, event.data) for event in found] == [("as it was", {})] * len(before)
        assert [event.kind for event in found] == [
            *("run.finished", "run.finished", "campaign.paused"),
            *("sending.stopped", "sending.resumed", "run.missed"),
        ]
        assert {event.kind for event in found} <= set(EventKind)
    store.close()
    engine.dispose()


def test_whoever_was_muted_before_names_were_kept_together_is_answered_again_by_all(
    fresh_url: Callable[[], str],
) -> None:
    """Another name of theirs was told since; and later nobody is muted by it any more."""
    engine = create_engine(url := fresh_url())
    with engine.begin() as connection:
        command.upgrade(migrate.config(connection), "0001")
        for statement in FIRST_ROWS[:2]:
            connection.execute(text(statement))
        command.upgrade(migrate.config(connection), "0012")
        for statement in MUTED_ROWS:
            connection.execute(text(statement))
    store = open_store(url, clock=Ticker())

    def hear(name: str, chat: str, *also: str) -> Conversation:
        with store.write() as tx:
            message = Inbound(name, chat, chat, "hi", 5, also=also)
            returns.take_in(tx, tx.accounts.get(1), [message], 5)
            found = tx.conversations.find(1, chat)
            assert found is not None
            return found

    hidden = "123456789@lid"
    talk = hear("m1", "+34600111222", hidden)
    assert talk.mode == "muted"
    with store.write() as tx:
        assert tx.muting.of([hidden]) == {"+34600111222": talk.id, hidden: talk.id}
        (again,) = muting.unmute_everywhere(tx, talk.id, 6)
        assert (again.id, again.mode) == (talk.id, "auto"), "nobody knows any more who had it"
    assert hear("m2", hidden).mode == "auto"
    store.close()
    engine.dispose()


MUTED_ROWS = (
    """INSERT INTO conversations (id, account_id, chat, mode, reason, heard_at, created_at)
    VALUES (1, 1, '+34600111222', 'muted', 'muted by a person', 1, 1)""",
    "INSERT INTO muted_people (address, at) VALUES ('+34600111222', 1)",
)
"""Somebody who is muted everywhere, in the schema 0012."""
