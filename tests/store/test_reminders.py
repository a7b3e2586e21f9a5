"""Reminders and groups in the store, on both databases."""

from __future__ import annotations

import pytest

from paceline.core.errors import StoreError
from paceline.core.instants import DAY, SECOND
from paceline.core.model import Target
from paceline.engine.ports import Group, Reminder, Tx
from paceline.engine.ports.reminders import Firing
from tests.store.scene import T0, Scene


def made(tx: Tx, name: str = "standup") -> Reminder:
    campaign = tx.campaigns.add(name=name, kind="reminder", content=[], settings={}, at=T0)
    return tx.reminders.add(campaign.id, "0 9 * * *", "UTC", T0)


def found(tx: Tx, name: str = "standup") -> Reminder:
    reminder = tx.reminders.find(name)
    assert reminder is not None
    return reminder


def test_a_new_one_fires_never_until_somebody_switches_it_on(scene: Scene) -> None:
    with scene.store.write() as tx:
        reminder = made(tx)
        assert (reminder.enabled, reminder.next_at) == (False, None)
        assert tx.reminders.next_at() is None
        tx.reminders.switch(reminder.id, True, T0 + DAY)
        assert tx.reminders.next_at() == T0 + DAY
        assert tx.reminders.due(T0 + DAY - 1, 10) == []
        (due,) = tx.reminders.due(T0 + DAY, 10)
        assert due.name == "standup"


def test_whoever_moves_it_on_has_fired_it_and_nobody_else(scene: Scene) -> None:
    with scene.store.write() as tx:
        tx.reminders.switch(made(tx).id, True, T0)
        seen = found(tx)
    with scene.store.write() as tx:
        assert tx.reminders.advance(seen, T0 + DAY)
    with scene.store.write() as tx:
        assert not tx.reminders.advance(seen, T0 + DAY)
        assert found(tx).next_at == T0 + DAY


@pytest.mark.parametrize("what", ["edited", "disabled"])
def test_what_was_changed_since_it_was_seen_is_not_fired_as_it_was(scene: Scene, what: str) -> None:
    with scene.store.write() as tx:
        tx.reminders.switch(made(tx).id, True, T0)
        seen = found(tx)
        if what == "edited":
            tx.reminders.change(seen.id, "0 8 * * *", "UTC", T0, T0 + SECOND)
        else:
            tx.reminders.switch(seen.id, False, T0)
        assert not tx.reminders.advance(seen, T0 + DAY)


def test_those_that_wait_longest_come_first_and_not_all_at_once(scene: Scene) -> None:
    with scene.store.write() as tx:
        for number in range(5):
            tx.reminders.switch(made(tx, f"r{number}").id, True, T0 - number)
        assert [one.name for one in tx.reminders.due(T0, 3)] == ["r4", "r3", "r2"]


def test_targets_keep_their_order_and_their_fields(scene: Scene) -> None:
    many = [Target(f"g{number}@g.us", {"n": str(number)}) for number in range(2_500)]
    with scene.store.write() as tx:
        reminder = made(tx)
        assert tx.reminders.set_targets(reminder.id, many) == 2_500
        assert tx.reminders.targets(reminder.id) == many
        assert tx.reminders.set_targets(reminder.id, many[:2]) == 2
        assert tx.reminders.targets(reminder.id) == many[:2]
        assert tx.reminders.target_count(reminder.id) == 2


def test_groups_are_what_the_provider_said_last(scene: Scene) -> None:
    one, other = scene.account("one"), scene.account("other")
    with scene.store.write() as tx:
        tx.groups.put(one, [Group("a@g.us", "A", 3), Group("a@g.us", "A again")], T0)
        tx.groups.put(one, [Group("b@g.us", "B", None, False), Group("c@g.us", "Ö\0")], T0 + 1)
        tx.groups.put(other, [], T0 + 2)
        assert tx.groups.list(one) == [
            Group("b@g.us", "B", None, False),
            Group("c@g.us", "Ö", None, True),
        ]
        assert tx.groups.synced_at([one, other]) == {one: T0 + 1, other: T0 + 2}
        assert tx.groups.members([one, other], ["b@g.us", "c@g.us", "d@g.us"]) == {
            "b@g.us": {one: False},
            "c@g.us": {one: True},
        }


def test_two_firings_for_one_instant_are_impossible(scene: Scene) -> None:
    with scene.store.write() as tx:
        campaign_id = made(tx).campaign_id
        tx.runs.add(campaign_id=campaign_id, firing=Firing([{"text": "then"}], T0), at=T0)
    with pytest.raises(StoreError), scene.store.write() as tx:
        tx.runs.add(campaign_id=campaign_id, firing=Firing([], T0), at=T0)


def test_the_latest_time_that_was_fired_for_is_known_whoever_fired_by_hand_since(
    scene: Scene,
) -> None:
    with scene.store.write() as tx:
        campaign_id, other_id = made(tx).campaign_id, made(tx, "other").campaign_id
        assert tx.runs.last_fired_for(campaign_id) == 0
        for fired_for in (T0, T0 + DAY, None):
            tx.runs.add(campaign_id=campaign_id, firing=Firing([], fired_for), at=T0 + DAY)
        tx.runs.add(campaign_id=other_id, firing=Firing([], T0 + 2 * DAY), at=T0)
        assert tx.runs.last_fired_for(campaign_id) == T0 + DAY


def test_a_firing_says_what_its_reminder_said_then(scene: Scene) -> None:
    with scene.store.write() as tx:
        campaign_id = made(tx).campaign_id
        run = tx.runs.add(campaign_id=campaign_id, firing=Firing([{"text": "then"}], T0), at=T0)
        tx.campaigns.set_content(campaign_id, [{"text": "now"}], {})
        assert tx.runs.get(run.id).content == [{"text": "then"}]
        assert tx.runs.get(run.id).fired_for == T0


def test_removed_it_is_gone_with_its_targets_and_its_name_is_free(scene: Scene) -> None:
    with scene.store.write() as tx:
        seen = made(tx)
        tx.reminders.set_targets(seen.id, [Target("a@g.us"), Target("b@g.us")])
        run = tx.runs.add(campaign_id=seen.campaign_id, firing=Firing([], T0), at=T0)
        tx.reminders.switch(seen.id, True, T0)
        seen = found(tx)
    with scene.store.write() as tx:
        tx.reminders.remove(seen.id)
        tx.campaigns.rename(seen.campaign_id, "standup (removed)")
        assert tx.reminders.find("standup") is None
        assert tx.reminders.targets(seen.id) == []
    with scene.store.write() as tx:
        assert not tx.reminders.advance(seen, T0 + DAY), "whoever was about to fire it does not"
        assert made(tx).campaign_id != seen.campaign_id
        assert tx.runs.get(run.id).campaign == "standup (removed)"
