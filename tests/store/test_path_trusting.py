"""A group on trust: one flight where all is as the lanes believe, and nothing at all where not."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from paceline.core.errors import StoreSurprise, StoreUnavailable
from paceline.core.outcome import transient
from paceline.core.states import DeliveryState
from paceline.engine.clock import SystemClock
from paceline.engine.committing import Commit, Entry
from paceline.engine.ports import LaneResult, LaneUnit, Tx
from paceline.engine.ports.path import Sparing
from paceline.store.wire import Wire
from tests.store.scene import CHECKPOINT, T0, Scene, intent, settlement, unit
from tests.store.surprises import (
    EVERYBODY,
    OF_AN_ANSWER,
    SURPRISES,
    TABLES,
    Group,
    group_of,
    units_of,
)
from tests.store.wiring import PID, end_session

D = DeliveryState


@pytest.fixture
def scene(postgres_scene: Scene) -> Scene:
    postgres_scene.trusting = True
    return postgres_scene


@pytest.fixture
def group(scene: Scene) -> Group:
    return group_of(scene, 3)


def _tables(scene: Scene) -> list[Any]:
    return [scene.sql(f"SELECT * FROM {table}") for table in TABLES]


def _trusted(scene: Scene, units: Sequence[LaneUnit]) -> list[LaneResult] | None:
    with scene.store.write() as tx:
        return tx.path.trust(units)


def test_it_comes_to_the_same_as_asking(scene: Scene, group: Group) -> None:
    units = units_of(group)
    foretold = _trusted(scene, units)
    told = _tables(scene)

    # The same once more, from the beginning, by asking.
    _, run_id, under_way, next_ones = group
    scene.sql("DELETE FROM ledger WHERE kind = 'outcome' OR delivery_id = ANY (:n)", n=next_ones)
    scene.sql(
        "UPDATE deliveries SET state = 'sending', parts_done = 0, sent_at = NULL, due_at = NULL, "
        "provider_id = NULL, moved_at = :at WHERE id = ANY (:n)",
        at=T0,
        n=under_way,
    )
    scene.sql(
        "UPDATE deliveries SET state = 'ready', attempts = 0, due_at = :at WHERE id = ANY (:n)",
        at=T0,
        n=next_ones,
    )
    for state, number in (("sent", 0), ("sending", 1), ("ready", 1)):
        scene.sql(
            "UPDATE counters SET n = :n WHERE run_id = :run AND state = :state",
            n=number,
            run=run_id,
            state=state,
        )
    scene.sql("UPDATE usage SET checkpoint = '{}'")
    with scene.store.write() as tx:
        asked = tx.path.apply(units)

    assert foretold == asked == [LaneResult(True, (True,), True)] * 3
    assert told == _tables(scene)
    with scene.store.read() as tx:
        assert tx.audit.recount() == []


def test_a_group_is_one_flight(scene: Scene, group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    flights: list[int] = []
    sent = Wire._sent

    def counted(wire: Wire, last: bytes | None = None) -> Any:
        awaited = sent(wire, last)
        flights.append(len(awaited))
        return awaited

    def nothing_else(wire: Wire, command: bytes) -> bytes:
        raise AssertionError(f"{command!r} by itself")

    monkeypatch.setattr(Wire, "_sent", counted)
    monkeypatch.setattr(Wire, "_say", nothing_else)
    assert _trusted(scene, units_of(group)) is not None
    assert len(flights) == 1


@pytest.mark.parametrize("surprise", SURPRISES)
def test_whatever_is_otherwise_undoes_all_of_it(scene: Scene, group: Group, surprise: str) -> None:
    SURPRISES[surprise](scene, group)
    before = _tables(scene)
    with pytest.raises(StoreSurprise):
        _trusted(scene, units_of(group))
    assert _tables(scene) == before


@pytest.mark.parametrize("surprise", [name for name in SURPRISES if name != "no counter"])
def test_the_journal_then_asks_and_only_the_culprit_is_refused(
    scene: Scene, group: Group, surprise: str
) -> None:
    SURPRISES[surprise](scene, group)
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        entries = [Entry(loop.create_future(), told) for told in units_of(group)]

    results = Commit(scene.store, SystemClock()).answers(entries)

    others = surprise not in EVERYBODY
    starts = [others, others and surprise in OF_AN_ANSWER, others]
    assert [one.intended for one in results] == starts
    settles = [(True,), (OF_AN_ANSWER.get(surprise, True),), (True,)]
    assert [one.settled for one in results] == settles


@pytest.mark.parametrize(
    "changed",
    [
        {"starts": False},
        {"pooled": True},
        {"sparing": Sparing("somebody", None, 1, T0)},
    ],
)
def test_what_cannot_be_foretold_is_not(
    scene: Scene, group: Group, changed: dict[str, Any]
) -> None:
    before = _tables(scene)
    assert _trusted(scene, units_of(group, **changed)) is None
    assert _tables(scene) == before


def test_nor_is_what_depends_on_another_of_the_group(scene: Scene, group: Group) -> None:
    first, second, _ = units_of(group)
    lanes, run_id, under_way, _ = group
    part = settlement(under_way[0], run_id, D.SENDING)
    again = settlement(under_way[0], run_id, D.READY, transient("again"), due_at=T0)
    for units in (
        [],
        [first, first],
        [first, unit(lanes[0], usage=CHECKPOINT)],
        [first, second._replace(intent=first.intent)],
        [first, second._replace(settlements=first.settlements)],
        [unit(lanes[0], settlements=(part,))],
        [unit(lanes[0], intent(under_way[0], run_id, attempt=2), (again,))],
        [first, second._replace(lease=replace(second.lease, process_id=-1))],
    ):
        assert _trusted(scene, units) is None


def test_a_unit_without_intent_believes_in_no_revision(scene: Scene, group: Group) -> None:
    SURPRISES["touched"](scene, group)
    lanes, run_id, under_way, _ = group
    told = unit(lanes[1], settlements=(settlement(under_way[1], run_id),), usage=CHECKPOINT)
    assert _trusted(scene, [told]) == [LaneResult(True, (True,), False)]
    assert scene.state(under_way[1]) is D.SENT


@pytest.mark.parametrize("asked_before", [False, True])
def test_a_lost_session_leaves_it_to_be_found_out_and_is_not_begun_again(
    scene: Scene, group: Group, asked_before: bool
) -> None:
    """Whether such a flight was committed nobody knows; here it was not."""
    before = _tables(scene)
    with scene.store.write() as tx:
        pid = _session(tx)
    with pytest.raises(StoreUnavailable) as failed, scene.store.write() as tx:
        assert tx.path.trust(units_of(group)) is not None
        if asked_before:
            assert _session(tx) == pid
            assert tx.path.trust([unit(group[0][0])]) is not None
        end_session(scene.url, pid)
    assert not isinstance(failed.value, StoreSurprise)
    assert _tables(scene) == before
    assert _trusted(scene, units_of(group)) is not None


def _session(tx: Tx) -> int:
    pid: int = tx._context.ask(PID).fetchone()[0]  # type: ignore[attr-defined]
    return pid
