"""Somebody who is muted, erased or opts out tells something else in the very same moment: nobody
waits for somebody who waits for him.

The order of events is forced by the database's own locks, as in ``test_races``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count

import pytest

from paceline.engine import listening, muting
from paceline.engine.commands import erasing, hooking, returns
from paceline.engine.listening import Reported
from paceline.engine.ports import Inbound, Tx
from tests.store.scene import T0, Scene
from tests.store.test_races import _in_transaction, _until_somebody_waits, pool
from tests.store.test_talking import EVA, account_of, write

BEN = "+34600333444"
OTHER_NAMES = {EVA: "200001@lid", BEN: "100001@lid"}
"""The later the number, the earlier the other name."""
NEW = count(1)

Tells = Callable[[Tx, int, list[Inbound]], None]

__all__ = ["pool"]


def by_themselves(tx: Tx, account_id: int, messages: list[Inbound]) -> None:
    returns.prepare(tx, messages)
    returns.take_in(tx, tx.accounts.get(account_id), messages, T0)


def with_others(tx: Tx, account_id: int, messages: list[Inbound]) -> None:
    """As those of many accounts that report at once."""
    by = hooking.Stored(tx.accounts.get(account_id), None)
    (came_to,) = listening.take_in(tx, [Reported(by, tuple(messages), T0)])
    assert not isinstance(came_to, str), came_to


def by_both_names(*chats: str) -> list[Inbound]:
    """They write, and their provider tells another name of each."""
    return [
        Inbound(f"new-{next(NEW)}", chat, chat, "hi", T0, also=(OTHER_NAMES[chat],))
        for chat in chats
    ]


@pytest.fixture
def muted(postgres_scene: Scene) -> Scene:
    """Both of them are."""
    for name, chat in (("a", EVA), ("b", BEN)):
        number = write(postgres_scene, name, chat=chat)
        with postgres_scene.store.write() as tx:
            muting.mute_everywhere(tx, number, T0)
    return postgres_scene


@pytest.mark.parametrize("tell", [by_themselves, with_others])
def test_names_of_several_people_are_learned_in_one_order(
    muted: Scene, pool: ThreadPoolExecutor, tell: Tells
) -> None:
    """Another process learns the same names, from another account."""
    ann, news = account_of(muted), by_both_names(EVA, BEN)
    first, second = sorted(OTHER_NAMES.values())
    with muted.store.write() as tx:
        tx.muting.add([first], T0, 1)
        learned = pool.submit(_in_transaction, muted, lambda other: tell(other, ann, news))
        _until_somebody_waits(muted, learned)
        tx.muting.add([second], T0, 1)
    learned.result()
    with muted.store.read() as tx:
        assert tx.muting.among([first, second]) == {first, second}


def test_a_name_is_told_of_somebody_who_is_being_erased(
    muted: Scene, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between what is forgotten of them: who is muted, and their conversations."""
    ann, news = account_of(muted), by_both_names(EVA)
    late: list[Future[object]] = []
    with muted.store.write() as tx:
        forget = tx.conversations.blot_out

        def when_they_have_written(renamed: dict[str, str]) -> None:
            work = pool.submit(
                _in_transaction, muted, lambda other: by_themselves(other, ann, news)
            )
            late.append(work)
            _until_somebody_waits(muted, work)
            forget(renamed)

        monkeypatch.setattr(tx.conversations, "blot_out", when_they_have_written)
        erasing.erase(tx, EVA, T0)
    (told,) = late
    told.result()
    with muted.store.read() as tx:
        assert tx.muting.among([EVA, OTHER_NAMES[EVA]]) == frozenset()
        found = tx.conversations.find(ann, EVA)
    assert found is not None and found.mode == "auto", "whoever writes again was never muted"


def test_opting_out_holds_the_lanes_of_all_that_waits_in_one_order(
    postgres_scene: Scene, pool: ThreadPoolExecutor
) -> None:
    """What waits for the later address is of the earlier account."""
    scene = postgres_scene
    ann, ben, run_id = account_of(scene), scene.account(), scene.run()
    assert ann < ben
    waits = [scene.delivery(run_id, ben, target=EVA), scene.delivery(run_id, ann, target=BEN)]
    stop = [Inbound("s", EVA, BEN, "STOP", T0)]
    with scene.store.write() as tx:
        tx.lanes.touch(ann, T0)
        stopped = pool.submit(_in_transaction, scene, lambda other: by_themselves(other, ann, stop))
        _until_somebody_waits(scene, stopped)
        tx.lanes.touch(ben, T0)
    stopped.result()
    assert [scene.state(number) for number in waits] == ["cancelled", "cancelled"]
