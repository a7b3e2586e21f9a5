"""How far messages got: found by the provider's name without looking at others."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, text

from paceline.engine.ports.receipts import Early
from paceline.engine.ports.records import NewDelivery
from tests.store.scene import T0, Scene

PLAN = """
{explain} SELECT deliveries.id FROM deliveries WHERE deliveries.account_id = 1
AND deliveries.provider_id IS NOT NULL AND deliveries.provider_id = 'x' ORDER BY id DESC LIMIT 1
"""


def test_a_provider_s_name_is_looked_up_in_its_index(scene: Scene) -> None:
    # Of a table without rows a planner knows nothing, and takes any way.
    account_id, run_id = scene.account(), scene.run()
    plans = [
        NewDelivery(run_id, account_id, number, target=f"to-{number}@example.com", scheduled_at=T0)
        for number in range(2_000)
    ]
    with scene.store.write() as tx:
        tx.deliveries.add(plans, T0)
    scene.sql("UPDATE deliveries SET provider_id = 'named-' || id")
    scene.store.analyse()
    engine = create_engine(scene.url)
    explain = "EXPLAIN QUERY PLAN" if scene.kind == "sqlite" else "EXPLAIN"
    with engine.connect() as connection:
        told = str(connection.execute(text(PLAN.format(explain=explain))).all())
    engine.dispose()
    assert "ix_deliveries_named" in told


@pytest.mark.parametrize("read", [False, True])
def test_only_what_was_sent_can_have_been_delivered(scene: Scene, read: bool) -> None:
    account_id, run_id = scene.account(), scene.run()
    number = scene.delivery(run_id, account_id)
    with scene.store.write() as tx:
        assert not tx.receipts.note(number, 7, read=read)
        assert tx.receipts.named(account_id, "nobody's") is None
        assert not tx.receipts.under_way(account_id)
        found = tx.deliveries.get(number)
    assert (found.delivered_at, found.read_at) == (None, None)


def test_what_is_early_is_kept_until_its_message_is_known(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    number = scene.delivery(run_id, account_id)
    with scene.store.write() as tx:
        tx.receipts.keep(account_id, "wamid.1", 7, read=False)
        tx.receipts.keep(account_id, "wamid.1", 8, read=False)
        tx.receipts.keep(account_id, "wamid.1", 9, read=True)
        tx.receipts.keep(account_id, "wamid.2", 9, read=True)
        assert tx.receipts.early()
        assert tx.receipts.known(9) == []
    named = (
        "UPDATE deliveries SET provider_id = 'wamid.1', state = '{}', due_at = NULL, sent_at = 5"
    )
    scene.sql(named.format("sending"))
    with scene.store.read() as tx:
        assert tx.receipts.known(9) == [], "nobody knows yet whether it was sent"
    scene.sql(named.format("sent"))
    with scene.store.write() as tx:
        assert tx.receipts.known(9) == [Early(number, account_id, "wamid.1", 7, 9)]
        tx.receipts.forget(account_id, "wamid.1")
        assert tx.receipts.known(9) == []
        assert tx.receipts.forget_older(1_000_000) == 0
        assert tx.receipts.forget_older(-1_000_000) == 1
        assert not tx.receipts.early()
