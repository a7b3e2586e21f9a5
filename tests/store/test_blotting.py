"""Erasing goes through every text there is, on both databases; and none may be forgotten."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import Text, select

from paceline.core.events import EventKind
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import DeliveryState
from paceline.engine.commands import erasing
from paceline.engine.once import once
from paceline.engine.ports import Address, Contact, Inbound, NewAlert
from paceline.store.blotting import MENTIONS
from paceline.store.schema import METADATA
from tests.store.scene import T0, Scene, settlement

MAIL, PHONE, NAME = "anna@example.com", "+4915112345678", "Annabel"
TRACES = ("anna@", "annabel", "15112345678", "151 12345678")

THEIRS = {
    "addresses.address",
    "contacts.fields",
    "conversations.chat",
    "contacts.opt_in_source",
    "deliveries.content",
    "deliveries.fields",
    "deliveries.provider_id",
    "deliveries.reason",
    "deliveries.target",
    "early_receipts.provider_id",
    "idempotency_keys.digest",
    "idempotency_keys.key",
    "inbound.chat",
    "inbound.files",
    "inbound.provider_id",
    "inbound.sender",
    "ledger.provider_id",
    "ledger.reason",
    "muted_people.address",
    "reminder_targets.fields",
    "reminder_targets.target",
    "suppressions.address",
    "suppressions.reason",
}
"""What is about one person, or called by one: emptied, or a hash."""

NOBODYS = {
    *(f"accounts.{name}" for name in ("address", "name", "overrides", "policy_name", "provider")),
    *("accounts.settings", "accounts.state", "addresses.kind", "alerts.key", "alerts.kind"),
    *(f"campaigns.{name}" for name in ("content", "kind", "name", "settings", "state")),
    *("audiences.name", "counters.state", "events.kind", "groups.name", "groups.target"),
    *(f"deliveries.{name}" for name in ("action", "recipient_hours", "state")),
    *(f"ledger.{name}" for name in ("action", "code", "kind", "outcome")),
    *(
        "idempotency_keys.kind",
        "inbound.kind",
        "watches.cursor",
        "media.id",
        "media.mime",
        "media.name",
    ),
    *("policies.body", "policies.digest", "policies.name", "processes.name"),
    *(
        "reminders.rule",
        "reminders.zone",
        "runs.content",
        "runs.state",
        "runs.window",
        "settings.key",
    ),
    *("suppressions.source", "uploads.handle", "uploads.media_id", "watches.cursor"),
    *("accounts.answering", "conversations.mode", "turns.owner", "turns.state", "webhooks.name"),
    "held_ways.way",
}
"""Words of ours, and what operators have called or written for everybody."""


def test_of_every_text_it_is_known_whether_it_may_name_somebody() -> None:
    """A new column belongs to one of the three: say what ``contact erase`` does with it."""
    texts = {
        f"{table.name}.{column.name}"
        for table in METADATA.sorted_tables
        for column in table.columns
        if isinstance(column.type, Text)
    }
    mentions = {f"{table.name}.{name}" for table, name in MENTIONS}
    assert texts - THEIRS - mentions - NOBODYS == set(), "what does an erasure do with these?"
    assert not (THEIRS & mentions or mentions & NOBODYS or THEIRS & NOBODYS)


def everything(scene: Scene) -> str:
    """All that all tables say."""
    rows = [scene.sql(str(select(table))) for table in METADATA.sorted_tables]
    return json.dumps([[list(map(str, row)) for row in some] for some in rows])


def anna(scene: Scene) -> int:
    with scene.store.write() as tx:
        (contact_id,) = tx.contacts.add([Contact(0, (), {"name": NAME}, f"{NAME} said so", T0)], T0)
        both = (Address("email", MAIL), Address("phone", PHONE))
        tx.contacts.give([(contact_id, entry) for entry in both])
        tx.suppressions.add(PHONE, f"{NAME} called from {PHONE}", "operator", T0)
    return contact_id


@pytest.mark.parametrize("column", sorted({f"{t.name}.{n}" for t, n in MENTIONS}))
def test_a_mention_is_taken_out_and_the_rest_stays(scene: Scene, column: str) -> None:
    anna(scene)
    table, name = column.split(".")
    _something_in(scene)
    text = f'"held: <{MAIL.upper()}>, +49 151 12345678, {PHONE[1:]}; joanna@example.com stays"'
    (key,) = METADATA.tables[table].primary_key.columns
    (first, *_) = scene.sql(f"SELECT {key.name} FROM {table} WHERE {name} IS NOT NULL")
    scene.sql(f"UPDATE {table} SET {name} = :t WHERE {key.name} = :k", t=text, k=first[0])
    with scene.store.write() as tx:
        erasing.erase(tx, MAIL, T0)
    ((left,),) = scene.sql(f"SELECT {name} FROM {table} WHERE {key.name} = :k", k=first[0])
    assert left == '"held: <(erased)>, (erased), (erased); joanna@example.com stays"'


def _something_in(scene: Scene) -> None:
    """One row at least in every table of the list."""
    lane, _, _ = scene.on_its_way(target="bob@example.com")
    scene.sql("UPDATE usage SET checkpoint = '{}'")
    with scene.store.write() as tx:
        tx.alerts.put(NewAlert(key="k", kind="k", text="t"), T0)
        tx.events.add(EventKind.SENDING_RESUMED, "something", at=T0)
        tx.hooks.open("crm")
        tx.held_ways.hold("help", "no credit left", T0, T0)
        tx.watches.take(lane.account_id, 0)
        number = tx.inbox.add(lane.account_id, Inbound("m", "bob", "bob", "hello", T0), None, T0)
        assert number is not None
        talk = tx.conversations.hear(lane.account_id, "bob", T0)
        tx.inbox.put_into(number, talk.id)
        tx.turns.begin(talk.id, "one", 0, T0)
        tx.conversations.change(talk.id, before_mute="taken")


def test_nothing_that_is_theirs_names_them(scene: Scene) -> None:
    contact_id = anna(scene)
    content = [{"kind": "text", "text": f"Dear {NAME}"}]
    own: dict[str, Any] = {"fields": {"name": NAME}, "content": content, "contact_id": contact_id}
    lane, run_id, refused = scene.on_its_way(target=MAIL, **own)
    outcome = Outcome(OutcomeKind.REJECTED, f"{NAME} is away", "x", f"true_{PHONE}@c.us_1")
    failed = settlement(refused, run_id, DeliveryState.FAILED, outcome, parts_done=0)
    scene.settle(lane, failed._replace(reason=f"{NAME} is away"))
    waits = scene.delivery(run_id, lane.account_id, target=PHONE, **own)
    with scene.store.write() as tx:
        once(tx, f"welcome {NAME}", "message", [MAIL, NAME], T0, lambda: waits)
        once(tx, f"campaign for {MAIL}", "campaign", [], T0, lambda: run_id)
        told = {"delivery": refused, "run": run_id, "verdict": "sent"}
        text = f"{MAIL} resolved"
        tx.events.add(EventKind.UNKNOWN_RESOLVED, text, at=T0, delivery_id=refused, data=told)
        tx.muting.add([MAIL, PHONE], T0, None)
        for name in (f"true_{PHONE[1:]}@c.us_2", "bob's"):
            tx.receipts.keep(lane.account_id, name, T0, read=True)
        assert erasing.erase(tx, MAIL, T0 + 1).deliveries == 2
    left = everything(scene)
    assert not [trace for trace in TRACES if trace in left.lower()], left
    assert (scene.get(refused).state, scene.get(refused).reason) == ("failed", "(erased)")
    assert scene.get(waits).reason == "contact was erased"
    assert [row.slots for row in _ledger(scene, refused)] == [1, -1], "limits are counted as before"
    keys = {key for (key,) in scene.sql("SELECT key FROM idempotency_keys")}
    assert f"erased:message-{waits}" in keys
    assert len(keys) == 2
    assert [tuple(row) for row in scene.sql("SELECT provider_id FROM early_receipts")] == [
        ("bob's",)
    ]
    with scene.store.read() as tx:
        assert {entry.reason for entry in tx.suppressions.walk()} == {
            "contact was erased",
            "(erased) called from (erased)",
        }
        assert tx.audit.recount() == tx.audit.misplaced() == []


def _ledger(scene: Scene, number: int) -> list[Any]:
    with scene.store.read() as tx:
        return sorted(tx.ledger.of_delivery(number), key=lambda row: row.kind)


def test_a_reminder_to_them_reaches_nobody(scene: Scene) -> None:
    anna(scene)
    scene.run()
    ((campaign_id,),) = scene.sql("SELECT id FROM campaigns")
    scene.sql(
        "INSERT INTO reminders (id, campaign_id, rule, zone, enabled, edited_at)"
        " VALUES (1, :c, '', 'UTC', true, 1)",
        c=campaign_id,
    )
    scene.sql(
        "INSERT INTO reminder_targets (reminder_id, position, target, fields)"
        " VALUES (1, 1, :t, :f), (1, 2, 'bob@example.com', '{}')",
        t=MAIL,
        f=json.dumps({"name": NAME}),
    )
    with scene.store.write() as tx:
        erasing.erase(tx, PHONE, T0)
    (left,) = scene.sql("SELECT target, fields FROM reminder_targets ORDER BY position")
    assert tuple(left) == ("bob@example.com", "{}"), "no firing falls short for their sake"
    scene.sql("DELETE FROM reminder_targets")
    scene.sql("DELETE FROM reminders")
