"""How far outgoing webhooks have come, on both databases: one holder at a time, and guarded."""

from __future__ import annotations

import threading

from paceline.core.events import EventKind
from paceline.core.instants import HOUR, MINUTE
from paceline.engine.ports import Hook
from tests.store.scene import T0, Scene


def happen(scene: Scene, times: int = 1) -> None:
    with scene.store.write() as tx:
        for _ in range(times):
            tx.events.add(EventKind.SENDING_RESUMED, "x", at=T0)


def taken(scene: Scene, name: str = "crm") -> Hook | None:
    with scene.store.write() as tx:
        return tx.hooks.take(name, MINUTE)


def is_due(scene: Scene, name: str = "crm") -> bool:
    with scene.store.read() as tx:
        return tx.hooks.is_due(name)


def get(scene: Scene) -> Hook:
    with scene.store.read() as tx:
        found = tx.hooks.get("crm")
    assert found is not None
    return found


def opened(scene: Scene, happens: int = 1) -> Hook:
    with scene.store.write() as tx:
        tx.hooks.open("crm")
    happen(scene, happens)
    return get(scene)


def test_a_new_one_begins_after_what_has_happened(scene: Scene) -> None:
    happen(scene, 3)
    hook = opened(scene, happens=0)
    assert not is_due(scene)
    assert taken(scene) is None
    assert (hook.failures, hook.delivered, hook.problem) == (0, 0, "")
    happen(scene, 2)
    with scene.store.write() as tx:
        tx.hooks.open("crm")
        assert tx.hooks.list() == [hook], "to be made known twice changes nothing"
        assert tx.hooks.waiting("crm", ["sending.resumed", "run.missed"]) == 2
        assert tx.hooks.waiting("crm", ["run.missed"]) == 0
        assert tx.hooks.get("other") is None
    assert is_due(scene)


def test_one_at_a_time_until_the_lease_ends(scene: Scene) -> None:
    opened(scene)
    first = taken(scene)
    assert first is not None
    assert first.generation == 1
    assert not is_due(scene)
    assert taken(scene) is None
    with scene.store.write() as tx:
        tx.hooks.change(first, lease_until_at=tx.now - 1)
    second = taken(scene)
    assert second is not None
    with scene.store.write() as tx:
        assert tx.hooks.change(first, cursor=99) is None, "it is not theirs any more"
        after = tx.hooks.change(second, cursor=second.cursor + 1, problem="a\0b")
    assert after is not None
    assert (after.cursor, after.problem) == (second.cursor + 1, "ab")
    assert get(scene) == after


def test_two_at_once_and_one_of_them_gets_it(scene: Scene) -> None:
    opened(scene)
    together, found = threading.Barrier(2), []

    def work() -> None:
        together.wait()
        found.append(taken(scene))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(hook is None for hook in found) == [False, True]


def test_whoever_waits_or_is_disabled_is_not_due(scene: Scene) -> None:
    held = opened(scene)
    with scene.store.write() as tx:
        tx.hooks.change(held, next_try_at=tx.now + HOUR)
    assert not is_due(scene)
    with scene.store.write() as tx:
        tx.hooks.change(held, next_try_at=tx.now - 1)
    assert is_due(scene)
    with scene.store.write() as tx:
        tx.hooks.change(held, disabled_at=tx.now)
    assert not is_due(scene)
    assert taken(scene) is None


def test_to_resume_sends_away_whoever_is_at_it(scene: Scene) -> None:
    opened(scene, happens=3)
    held = taken(scene)
    assert held is not None
    with scene.store.write() as tx:
        tx.hooks.change(held, failures=5, failing_since_at=1, disabled_at=2, next_try_at=3)
        resumed = tx.hooks.resume("crm", None)
        assert tx.hooks.resume("other", None) is None
    assert resumed is not None
    assert (resumed.failures, resumed.failing_since_at, resumed.disabled_at) == (0, None, None)
    assert (resumed.lease_until_at, resumed.next_try_at) == (None, None)
    assert resumed.cursor == held.cursor
    with scene.store.write() as tx:
        assert tx.hooks.change(held, cursor=99) is None
        again = tx.hooks.resume("crm", 1)
    assert again is not None
    assert again.cursor == 1
    assert is_due(scene)
