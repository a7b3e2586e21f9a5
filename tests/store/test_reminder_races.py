"""Firing, pausing, editing and reassigning at once, on PostgreSQL: nobody misses what another has
committed, and whoever waits for the fence waits in line for it.

The order of events is forced by the database's own locks, as in ``test_races.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from paceline.core.errors import ConflictError
from paceline.core.instants import DAY, MINUTE
from paceline.core.model import Target
from paceline.core.states import CampaignState, RunState
from paceline.engine.catalogue import Catalogue
from paceline.engine.clock import SystemClock
from paceline.engine.commands import accounts, reminders
from paceline.engine.commands.accounts import House, NewAccount
from paceline.engine.commands.reassigning import reassign
from paceline.engine.firing import ring
from paceline.engine.ports import Tx
from paceline.engine.reminder_spec import ReminderSpec
from paceline.providers.registry import Registry
from paceline.providers.sandbox import MemoryEffects, SandboxProvider
from tests.store.scene import T0, Scene, intent, unit
from tests.store.test_races import _in_transaction, _until_somebody_waits

PROVIDERS = Registry([SandboxProvider(SystemClock(), MemoryEffects())])
HOUSE = House(PROVIDERS, Catalogue())


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as made:
        yield made


def spec(**changes: object) -> ReminderSpec:
    raw = {"name": "standup", "accounts": ["a", "b"], "cron": "0 9 * * *", "window": "0-24"}
    return ReminderSpec.from_mapping({**raw, "parts": [{"text": "before"}], **changes})


def targets(*names: str) -> list[Target]:
    return [Target(f"12036300000000{name}@g.us") for name in names]


@pytest.fixture
def standup(postgres_scene: Scene) -> Scene:
    scene = postgres_scene
    with scene.store.write() as tx:
        for name in ("a", "b"):
            accounts.add(
                tx, NewAccount(name, "sandbox", f"{name}@sandbox", {}, None, {}), HOUSE, T0
            )
        reminders.create(tx, spec(), targets("01", "02"), PROVIDERS, T0)
    return scene


def fire(tx: Tx) -> object:
    return reminders.fire(tx, "standup", PROVIDERS, T0, key="once")


def ring_it(tx: Tx) -> object:
    seen = reminders.find(tx, "standup")
    assert seen.next_at is not None
    return ring(tx, seen, PROVIDERS, seen.next_at)


@pytest.mark.parametrize("begin", [fire, ring_it])
def test_it_fires_while_others_send(
    standup: Scene, pool: ThreadPoolExecutor, begin: Callable[[Tx], object]
) -> None:
    """Whoever sends holds the fence for a moment, and is never the only one: a firing waits in
    line for it and is not turned away."""
    account_id, run_id = standup.account(), standup.run()
    lane, delivery_id = standup.lane(account_id), standup.delivery(run_id, account_id)
    with standup.store.write() as tx:
        tx.path.apply([unit(lane, intent(delivery_id, run_id))])
        late = pool.submit(_in_transaction, standup, begin)
        _until_somebody_waits(standup, late)
    assert late.result() is not None


def edit_it(tx: Tx) -> object:
    new = spec(parts=[{"text": "after"}])
    return reminders.edit(tx, "standup", {}, PROVIDERS, T0, instead=new, targets=targets("03"))


@pytest.mark.parametrize("begin", [fire, ring_it, edit_it])
def test_whoever_holds_all_people_stalls_nobody_s_sending_by_a_firing(
    standup: Scene, pool: ThreadPoolExecutor, begin: Callable[[Tx], object]
) -> None:
    """An erasure or an import takes its time before it asks for the fence. A firing that waits for
    it must not have the fence already: nobody could send, and the two would wait for each other."""
    with standup.store.write() as tx:
        tx.contacts.hold(alone=True)
        late = pool.submit(_in_transaction, standup, begin)
        _until_somebody_waits(standup, late)
        tx.settings.fence()
    assert late.result() is not None


@pytest.mark.parametrize("begin", [fire, ring_it])
def test_a_pause_is_never_missed_by_a_firing(
    standup: Scene, pool: ThreadPoolExecutor, begin: Callable[[Tx], object]
) -> None:
    with standup.store.write() as tx:
        reminders.pause(tx, "standup", T0)
        late = pool.submit(_in_transaction, standup, begin)
        _until_somebody_waits(standup, late)
    if begin is fire:
        with pytest.raises(ConflictError, match="is paused"):
            late.result()
    else:
        late.result()
    with standup.store.read() as tx:
        campaign_id = reminders.find(tx, "standup").campaign_id
        assert tx.campaigns.get(campaign_id).state is CampaignState.PAUSED
        assert {run.state for run in tx.runs.of_campaign(campaign_id)} <= {RunState.MISSED}


@pytest.mark.parametrize("begin", [fire, ring_it])
def test_a_firing_is_all_old_or_all_new(
    standup: Scene, pool: ThreadPoolExecutor, begin: Callable[[Tx], object]
) -> None:
    new = spec(parts=[{"text": "after"}])
    with standup.store.write() as tx:
        reminders.edit(tx, "standup", {}, PROVIDERS, T0, instead=new, targets=targets("03"))
        late = pool.submit(_in_transaction, standup, begin)
        _until_somebody_waits(standup, late)
    late.result()
    with standup.store.read() as tx:
        (run,) = tx.runs.of_campaign(reminders.find(tx, "standup").campaign_id)
        assert [part["text"] for part in run.content] == ["after"]
        assert [row.target for row in tx.deliveries.page(run_id=run.id)] == [
            "1203630000000003@g.us"
        ]


def test_reassigning_twice_moves_nothing_the_second_time(scene: Scene) -> None:
    """On either database, also where one of those who cannot send has nothing left."""
    with scene.store.write() as tx:
        for name in ("a", "b", "c"):
            accounts.add(
                tx, NewAccount(name, "sandbox", f"{name}@sandbox", {}, None, {}), HOUSE, T0
            )
        made = spec(accounts=["a", "b", "c"])
        reminders.create(tx, made, targets("01", "02", "03"), PROVIDERS, T0)
        reminders.fire(tx, "standup", PROVIDERS, T0 + MINUTE)
        for name in ("a", "b"):
            accounts.pause(tx, name, T0)
        first = reassign(tx, "standup", PROVIDERS, T0 + DAY, from_account="a", to_accounts=())
        again = reassign(tx, "standup", PROVIDERS, T0 + DAY, from_account="a", to_accounts=())
    assert (first.moved, again.moved) == (1, 0)
