"""Events in their order, on both databases: nothing is missed by whoever follows their numbers."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from paceline.core.events import EventKind
from paceline.core.instants import MINUTE
from paceline.core.states import DeliveryState
from paceline.engine.ports import Tx
from paceline.store.events import LONGEST_LIST
from tests.store.scene import T0, Scene, settlement


def add(tx: Tx, text: str, **more: object) -> None:
    tx.events.add(EventKind.SENDING_STOPPED, text, at=T0, data={"reason": text}, **more)  # type: ignore[arg-type]


def write(scene: Scene, *texts: str) -> None:
    with scene.store.write() as tx:
        for text in texts:
            add(tx, text)


def last(scene: Scene) -> int:
    with scene.store.read() as tx:
        found = tx.events.latest(limit=1)
    return found[0].id if found else 0


def after(scene: Scene, event_id: int, settled: int = 0, limit: int = 100) -> list[str]:
    with scene.store.read() as tx:
        return [event.text for event in tx.events.after(event_id, limit, settled)]


def settled(scene: Scene) -> int:
    with scene.store.read() as tx:
        return tx.events.settled()


@contextmanager
def half_written(scene: Scene, text: str) -> Iterator[threading.Event]:
    """Somebody who has written an event and not committed; set the event to let them roll back."""
    wrote, go_on, give_up = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        try:
            with scene.store.write() as tx:
                add(tx, text)
                wrote.set()
                go_on.wait(60)
                if give_up.is_set():
                    raise KeyError(text)
        except KeyError:
            wrote.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert wrote.wait(60)
    try:
        yield give_up
    finally:
        go_on.set()
        thread.join()


def test_values_are_kept_and_made_fit(scene: Scene) -> None:
    hostile = "a\0b\ud800" + "x" * 5_000
    with scene.store.write() as tx:
        told = {"signals": [hostile, *("n" for _ in range(500))]}
        tx.events.add(EventKind.SIGNALS_CHANGED, hostile, at=T0, data=told)
        (event,) = tx.events.latest()
    assert event.kind == "signals.changed"
    assert len(event.data["signals"]) == LONGEST_LIST
    assert event.data["signals"][0].startswith("ab?")
    assert len(event.data["signals"][0]) <= 2_000
    with scene.store.write() as tx, pytest.raises(ValueError, match="the list says"):
        tx.events.add(EventKind.SENDING_STOPPED, "x", at=T0)
    with scene.store.write() as tx, pytest.raises(ValueError, match="not on the list"):
        tx.events.add("run.success", "x", at=T0)  # type: ignore[arg-type]


def test_they_are_followed_from_the_oldest_on(scene: Scene) -> None:
    write(scene, "before")
    before = last(scene)
    write(scene, "one", "two", "three")
    assert after(scene, before) == ["one", "two", "three"]
    assert after(scene, before, limit=2) == ["one", "two"]
    assert after(scene, last(scene)) == []
    assert settled(scene) == last(scene)
    with scene.store.read() as tx:
        found = tx.events.latest(kinds=["sending.stopped"], limit=1)
        assert [event.text for event in found] == ["three"]
        assert tx.events.latest(kinds=["sending.resumed"]) == []


def test_nobody_passes_an_event_that_may_still_come(postgres_scene: Scene) -> None:
    scene = postgres_scene
    write(scene, "first")
    before = last(scene)
    with half_written(scene, "slow"):
        write(scene, "fast")
        assert after(scene, before) == [], "the slow one has the lower number"
        assert settled(scene) == 0
    assert after(scene, before) == ["slow", "fast"]


def test_an_event_that_was_rolled_back_holds_up_nobody_for_ever(postgres_scene: Scene) -> None:
    scene = postgres_scene
    write(scene, "first")
    before = last(scene)
    with half_written(scene, "never") as give_up:
        write(scene, "fast", "second")
        give_up.set()
    assert after(scene, before) == [], "it might be on its way, for all that is seen"
    known = settled(scene)
    assert known == last(scene)
    assert after(scene, before, known) == ["fast", "second"]
    write(scene, "third")
    assert after(scene, before, known) == ["fast", "second", "third"]


def test_what_is_known_of_the_past_says_nothing_of_later_gaps(postgres_scene: Scene) -> None:
    scene = postgres_scene
    write(scene, "first")
    known = settled(scene)
    with half_written(scene, "slow"):
        write(scene, "fast")
        assert after(scene, 0, known)[-1] == "first"
    assert after(scene, 0, known)[-2:] == ["slow", "fast"]


def test_how_far_runs_have_come(scene: Scene) -> None:
    lane, run_id, first = scene.on_its_way()
    for _ in range(3):
        scene.delivery(run_id, lane.account_id)
    empty = scene.run()
    with scene.store.read() as tx:
        assert tx.events.told_at() == [(run_id, T0), (empty, T0)]
        assert tx.events.told_at(but=[run_id]) == [(empty, T0)]
        (now_is,) = tx.events.progress([run_id, empty, run_id + 99])
    assert (now_is.run_id, now_is.kind) == (run_id, "campaign")
    assert (now_is.delivered, now_is.done, now_is.total) == (0, 0, 4)
    assert (now_is.told_done, now_is.told_at) == (0, T0)
    scene.settle(lane, settlement(first, run_id, DeliveryState.FAILED, parts_done=0))
    with scene.store.write() as tx:
        told = {"run": run_id, "campaign": "c", "reminder": None}
        for done in (1, 3):
            far = {**told, "delivered": 0, "done": done, "total": 4}
            at = T0 + done * MINUTE
            tx.events.add(EventKind.RUN_PROGRESS, "x", at=at, run_id=run_id, data=far)
        add(tx, "something else", run_id=run_id)
        (now_is,) = tx.events.progress_of(run_id)
        assert tx.events.progress_of(run_id + 99) == []
    assert (now_is.delivered, now_is.done, now_is.total) == (0, 1, 4)
    assert (now_is.told_done, now_is.told_at) == (3, T0 + 3 * MINUTE)
    with scene.store.read() as tx:
        assert tx.events.told_at(but=[empty]) == [(run_id, T0 + 3 * MINUTE)]


def test_of_a_run_that_somebody_holds_nothing_is_told_meanwhile(postgres_scene: Scene) -> None:
    scene = postgres_scene
    lane, run_id, _ = scene.on_its_way()
    assert lane.account_id
    with scene.store.write() as one:
        assert len(one.events.progress_of(run_id)) == 1
        with scene.store.write() as other:
            assert other.events.progress_of(run_id) == []
    with scene.store.write() as other:
        assert len(other.events.progress_of(run_id)) == 1


def test_whoever_follows_misses_nothing_however_many_write_at_once(scene: Scene) -> None:
    """Some commit late, some not at all; every number that counts is seen once, and in order."""
    writers, rounds = 6, 25
    over = threading.Event()

    def work(number: int) -> None:
        chance = random.Random(number)
        for turn in range(rounds):
            with suppress(KeyError), scene.store.write() as tx:
                for _ in range(chance.randint(1, 3)):
                    add(tx, f"{number}-{turn}")
                    over.wait(chance.random() / 500)
                if chance.random() < 0.3:
                    raise KeyError("rolled back")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    seen: list[int] = []
    known, idle = 0, 0
    while idle < 3:
        alive = any(thread.is_alive() for thread in threads)
        with scene.store.read() as tx:
            page = tx.events.after(seen[-1] if seen else 0, 7, known)
        seen += [event.id for event in page]
        if not page:
            known = max(known, settled(scene))
            idle += not alive
    for thread in threads:
        thread.join()
    with scene.store.read() as tx:
        every = sorted(event.id for event in tx.events.latest(limit=10_000))
    assert seen == every
    assert len(every) > writers * rounds // 2
