"""What is noted of a simulated world's statements: in their order, and nothing that was undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from paceline.core.instants import SECOND
from paceline.engine.ports import Tx
from paceline.store.noting import Notes
from paceline.store.sqlite_in_memory import InMemoryStore
from tests.store.scene import T0, Scene, Ticker, intent

TRUE_AT = T0 + 7

Order = Callable[[Tx, int, int], object]


class Noted(Scene):
    notes: Notes

    def force(self, delivery_id: int, run_id: int, account_id: int, part: int = 0) -> None:
        """An intent that no guard has looked at."""
        self.store._driver.execute(  # type: ignore[attr-defined]
            "INSERT INTO ledger (delivery_id, part, attempt, kind, account_id, run_id, action, at,"
            " intent_at, slots, policy_id, generation, code, reason)"
            f" VALUES (?, ?, 1, 'intent', ?, ?, 'message', {T0}, {T0}, 1, 1, 1, '', '')",
            (delivery_id, part, account_id, run_id),
        )


@pytest.fixture
def scene() -> Iterator[Noted]:
    clock = Ticker()
    store = InMemoryStore(clock)
    noted = Noted(store, "", "sqlite", clock)
    noted.notes = store.note(lambda: TRUE_AT)
    yield noted
    store.close()


def test_an_intent_that_nothing_stands_in_the_way_of(scene: Noted) -> None:
    lane, _, delivery_id = scene.on_its_way()
    (note,) = scene.notes.intents()
    assert (note.at, note.delivery_id, note.part, note.attempt) == (TRUE_AT, delivery_id, 0, 1)
    assert note.account_id == lane.account_id
    assert (note.suppressed, note.account, note.run, note.stopped) == (
        False,
        "active",
        "running",
        None,
    )


def _suppress(entry: str) -> Order:
    return lambda tx, account_id, run_id: tx.suppressions.add(entry, "asked", "operator", T0)


ORDERS: tuple[tuple[Order, dict[str, object]], ...] = (
    (_suppress("anna@example.com"), {"suppressed": True}),
    (_suppress("@example.com"), {"suppressed": True}),
    (_suppress("@example.org"), {}),
    (_suppress("ben@example.com"), {}),
    (
        lambda tx, account_id, _: tx.accounts.move(account_id, "pause"),
        {"account": "paused"},
    ),
    (
        lambda tx, _, run_id: tx.runs.move(run_id, "pause", at=T0),
        {"run": "paused"},
    ),
    (lambda tx, *_: tx.settings.stop("an alarm"), {"stopped": "an alarm"}),
)


@pytest.mark.parametrize(("order", "found"), ORDERS)
def test_what_was_in_force_when_an_intent_was_written(
    scene: Noted, order: Order, found: dict[str, object]
) -> None:
    account_id, run_id = scene.account(), scene.run()
    first, second = (scene.delivery(run_id, account_id, target="anna@example.com") for _ in "ab")
    scene.force(first, run_id, account_id)
    with scene.store.write() as tx:
        order(tx, account_id, run_id)
    scene.force(second, run_id, account_id)
    before, after = scene.notes.intents()
    assert after == before._replace(delivery_id=second, **found)  # type: ignore[arg-type]


def test_what_is_undone_was_never_written(scene: Noted) -> None:
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id)
    delivery_id = scene.delivery(run_id, account_id)
    with pytest.raises(ZeroDivisionError), scene.store.write():
        scene.force(delivery_id, run_id, account_id)
        raise ZeroDivisionError
    assert scene.notes.intents() == ()
    assert scene.intend(lane, intent(delivery_id, run_id)).intended
    assert len(scene.notes.intents()) == 1


def test_how_long_nothing_was_heard_of_whoever_had_a_lane(scene: Noted) -> None:
    account_id = scene.account()
    first, second = scene.process(15 * SECOND), scene.process(60 * SECOND)
    scene.lane(account_id, first)
    assert scene.notes.takings() == (), "it was nobody's"
    scene.clock.now += 5 * SECOND
    with scene.store.write() as tx:
        tx.processes.renew(first, 15 * SECOND)
    scene.clock.now += 15 * SECOND
    lane = scene.lane(account_id, second)
    (taking,) = scene.notes.takings()
    assert taking == (TRUE_AT, account_id, lane.lease.generation, 15 * SECOND)
    with scene.store.write() as tx:
        tx.lanes.release(lane.lease)
    scene.lane(account_id, first)
    assert scene.notes.takings() == (taking,), "it was given back"


def test_other_databases_have_no_notes(scene: Noted) -> None:
    other = InMemoryStore(lambda: T0)
    listed = "SELECT count(*) FROM sqlite_temp_master"
    assert other._driver.execute(listed).fetchone() == (0,)
    other.close()
