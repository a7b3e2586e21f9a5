"""Somebody writes for the first time in the very instant in which they are muted, or their account
is answered in another way: whichever comes first, it is not missed by the other.

The order of events is forced by the database's own locks, as in ``test_races``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from paceline.core.answering import Rule, Rules, Way
from paceline.core.instants import SECOND
from paceline.core.states import DeliveryState
from paceline.engine import conversations, muting
from paceline.engine.commands.answering import answer_by
from paceline.engine.ports import Inbound, Tx
from paceline.engine.ports.conversations import Conversation
from tests.store.scene import T0, Scene
from tests.store.test_races import _in_transaction, _until_somebody_waits, pool
from tests.store.test_talking import EVA, account_of, write

WAYS = {"help": Way("help", Rules((Rule(("hi",), "hello"),)))}
Hears = Callable[[Tx, int], Conversation]

__all__ = ["pool"]


def at_once(tx: Tx, account_id: int) -> Conversation:
    """As one of many who write at the same time."""
    chat = (account_id, EVA)
    looked = tx.listening.look([account_id], [], chats=[chat])
    made = tx.listening.open({chat: T0})[chat]
    heard = conversations.heard_in(made, looked.accounts[account_id], T0)
    tx.conversations.change(made.id, first_at=T0, last_at=T0, due_at=heard.due_at)
    return made


def alone(tx: Tx, account_id: int) -> Conversation:
    message = Inbound("m1", EVA, EVA, "hi", T0)
    number = tx.inbox.add(account_id, message, None, T0)
    assert number is not None
    conversations.hear(tx, tx.accounts.get(account_id), message, number, T0)
    found = tx.conversations.find(account_id, EVA)
    assert found is not None
    return found


def several(tx: Tx, account_id: int) -> Conversation:
    return tx.listening.hold({(account_id, EVA): T0, (account_id, "+1"): T0})[account_id, EVA]


def mode_of(scene: Scene, account_id: int) -> str:
    with scene.store.read() as tx:
        found = tx.conversations.find(account_id, EVA)
    assert found is not None
    return found.mode


@pytest.mark.parametrize("hears", [at_once, alone, several])
def test_whoever_mutes_waits_for_what_is_being_heard(
    postgres_scene: Scene, pool: ThreadPoolExecutor, hears: Hears
) -> None:
    scene = postgres_scene
    number, ben = write(scene, "a"), scene.account()
    with scene.store.write() as tx:
        assert hears(tx, ben).mode == "auto"
        mute = pool.submit(
            _in_transaction, scene, lambda other: muting.mute_everywhere(other, number, T0)
        )
        _until_somebody_waits(scene, mute)
    assert len(mute.result()) == 2  # type: ignore[arg-type]
    assert mode_of(scene, ben) == "muted"


@pytest.mark.parametrize("hears", [at_once, alone, several])
def test_whoever_hears_waits_for_a_mute(
    postgres_scene: Scene, pool: ThreadPoolExecutor, hears: Hears
) -> None:
    scene = postgres_scene
    number, ben = write(scene, "a"), scene.account()
    with scene.store.write() as tx:
        assert len(muting.mute_everywhere(tx, number, T0)) == 1
        heard = pool.submit(_in_transaction, scene, lambda other: hears(other, ben))
        _until_somebody_waits(scene, heard)
    heard.result()
    assert mode_of(scene, ben) == "muted"


def test_those_who_hear_do_not_wait_for_each_other(
    postgres_scene: Scene, pool: ThreadPoolExecutor
) -> None:
    scene = postgres_scene
    ann, ben = scene.account(), scene.account()
    with scene.store.write() as tx:
        at_once(tx, ann)
        heard = pool.submit(_in_transaction, scene, lambda other: at_once(other, ben))
        heard.result()


@pytest.mark.parametrize("hears", [at_once, alone])
def test_what_comes_while_a_way_is_chosen_is_answered_in_it(
    postgres_scene: Scene, pool: ThreadPoolExecutor, hears: Hears
) -> None:
    """Who is heard before that, and who after."""
    scene = postgres_scene
    write(scene, "a", chat="+1")
    account_id = account_of(scene)
    with scene.store.read() as tx:
        name = tx.accounts.get(account_id).name

    def choose(tx: Tx) -> None:
        answer_by(tx, name, "help", WAYS, T0)

    with scene.store.write() as tx:
        hears(tx, account_id)
        chosen = pool.submit(_in_transaction, scene, choose)
        _until_somebody_waits(scene, chosen)
    chosen.result()
    with scene.store.read() as tx:
        assert [one.due_at for one in tx.conversations.list()] == [T0 + 8 * SECOND] * 2
    scene.sql("UPDATE accounts SET answering = '{}'")
    scene.sql("DELETE FROM inbound")
    scene.sql("DELETE FROM conversations")
    with scene.store.write() as tx:
        choose(tx)
        heard = pool.submit(_in_transaction, scene, lambda other: hears(other, account_id))
        _until_somebody_waits(scene, heard)
    heard.result()
    with scene.store.read() as tx:
        assert [one.due_at for one in tx.conversations.list()] == [T0 + 8 * SECOND]


def test_accounts_come_before_hearing(postgres_scene: Scene, pool: ThreadPoolExecutor) -> None:
    """One report tells of an account and of a message, while another way is chosen for it."""
    scene = postgres_scene
    account_id = account_of(scene)
    with scene.store.write() as tx:
        tx.accounts.move(account_id, "pause")
        chosen = pool.submit(
            _in_transaction, scene, lambda other: answer_by(other, "ann", "help", WAYS, T0)
        )
        _until_somebody_waits(scene, chosen)
        at_once(tx, account_id)
    chosen.result()
    with scene.store.read() as tx:
        assert [one.due_at for one in tx.conversations.list()] == [T0 + 8 * SECOND]


def test_lanes_come_before_hearing(postgres_scene: Scene, pool: ThreadPoolExecutor) -> None:
    """Somebody is muted for whom a follow-up waits, while they write."""
    scene = postgres_scene
    number, ann, run_id = write(scene, "a"), account_of(scene), scene.run()
    waits = scene.delivery(run_id, ann, target=EVA)
    scene.sql("UPDATE runs SET follow_ups = true")
    with scene.store.write() as tx:
        tx.lanes.touch(ann, T0)
        mute = pool.submit(
            _in_transaction, scene, lambda other: muting.mute_everywhere(other, number, T0)
        )
        _until_somebody_waits(scene, mute)
        at_once(tx, ann)
    mute.result()
    assert mode_of(scene, ann) == "muted"
    assert scene.state(waits) is DeliveryState.SKIPPED
