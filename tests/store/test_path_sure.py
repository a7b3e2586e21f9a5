"""On SQLite a group of which all is as the lanes believe is written after two questions.

Whatever is otherwise comes to the same as asking one by one.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from paceline.core.errors import StoreError
from paceline.core.outcome import transient, unknown
from paceline.core.states import DeliveryState
from paceline.engine.ports import LaneResult, LaneUnit
from paceline.store import bulk, path_sqlite, path_sqlite_sure
from paceline.store.bulk import FEW
from paceline.store.path import BasePath
from tests.store.scene import CHECKPOINT, T0, Scene, intent, settlement, unit
from tests.store.surprises import SURPRISES, TABLES, Group, group_of, units_of

D = DeliveryState
UNNOTICED = ("in the ledger already", "no counter")
"""What nobody asks about beforehand: it shows when it is written, as it does one by one."""

Left = tuple[list[LaneResult] | str, list[Any]]
"""What a group is answered, or which error it is, and what it leaves in the tables."""


class Undone(Exception):
    pass


@pytest.fixture
def scene(sqlite_scene: Scene) -> Scene:
    return sqlite_scene


@pytest.fixture
def group(scene: Scene) -> Group:
    return group_of(scene, 3)


def _left(scene: Scene, units: Sequence[LaneUnit]) -> Left:
    """Of a transaction that is undone afterwards."""
    left: list[Left] = []
    with pytest.raises((Undone, StoreError)) as failed, scene.store.write() as tx:
        results = tx.path.apply(units)
        cursor = tx._context.cursor()  # type: ignore[attr-defined]
        tables = [cursor.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES]
        left.append((results, tables))
        raise Undone
    return left[0] if left else (str(failed.value), [])


def _asked(scene: Scene, units: Sequence[LaneUnit], patch: pytest.MonkeyPatch) -> Left:
    """The same one by one."""
    with patch.context() as only:
        only.setattr(path_sqlite, "believed", lambda _: None)
        return _left(scene, units)


@pytest.fixture
def asked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How large the groups were that were asked one by one."""
    sizes: list[int] = []
    ask = BasePath.apply

    def noted(self: BasePath, units: Sequence[LaneUnit]) -> list[LaneResult]:
        sizes.append(len(units))
        return ask(self, units)

    monkeypatch.setattr(BasePath, "apply", noted)
    return sizes


@pytest.mark.parametrize("lanes", [1, 2, FEW + 1, 40])
def test_it_comes_to_the_same_as_asking(
    scene: Scene, lanes: int, asked_one_by_one: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    units = units_of(group_of(scene, lanes))
    before = len(asked_one_by_one)
    sure = _left(scene, units)
    assert len(asked_one_by_one) == before, "nothing had to be asked"
    assert sure == _asked(scene, units, monkeypatch)
    assert sure[0] == [LaneResult(True, (True,), True)] * lanes
    scene.apply(*units)
    with scene.store.read() as tx:
        assert tx.audit.recount() == []


def test_rows_one_by_one_come_to_the_same_as_a_list_of_them(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = units_of(group_of(scene, 3))
    monkeypatch.setattr(bulk, "FEW", 0)
    as_a_list = _left(scene, units)
    monkeypatch.setattr(bulk, "FEW", 100)
    assert _left(scene, units) == as_a_list


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("surprise", SURPRISES)
def test_whatever_is_otherwise_is_asked_one_by_one(
    scene: Scene,
    group: Group,
    surprise: str,
    alone: bool,
    asked_one_by_one: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In company of others that are right, and by itself."""
    SURPRISES[surprise](scene, group)
    units = units_of(group)
    if alone:
        units = units[1:2]
    asked_one_by_one.clear()
    sure = _left(scene, units)
    assert asked_one_by_one == ([] if surprise in UNNOTICED else [len(units)])
    assert sure == _asked(scene, units, monkeypatch)


@pytest.mark.parametrize(
    ("settles", "intends"), [(True, True), (True, False), (False, True), (False, False)]
)
@pytest.mark.parametrize("surprise", SURPRISES)
def test_so_is_half_a_unit(
    scene: Scene,
    group: Group,
    surprise: str,
    settles: bool,
    intends: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a unit neither settles nor starts, it need not be right about."""
    SURPRISES[surprise](scene, group)
    units = [
        whole._replace(
            settlements=whole.settlements if settles else (),
            intent=whole.intent if intends else None,
        )
        for whole in units_of(group)
    ]
    assert _left(scene, units) == _asked(scene, units, monkeypatch)


@pytest.mark.parametrize(
    "changes",
    [
        {"state": D.READY, "outcome": transient("busy"), "due_at": T0, "retries": 1},
        {"state": D.UNKNOWN, "outcome": unknown("silence"), "parts_done": 0, "reason": "silence"},
        {"state": D.CANCELLED},
        {"state": D.SENDING},
    ],
)
def test_whatever_becomes_of_a_message(
    scene: Scene, group: Group, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes, run_id, under_way, _ = group
    units = [
        unit(lane, settlements=(settlement(done, run_id, **changes),), usage=CHECKPOINT)
        for lane, done in zip(lanes, under_way, strict=True)
    ]
    assert _left(scene, units) == _asked(scene, units, monkeypatch)


def test_two_answers_of_one_lane(
    scene: Scene, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second may be otherwise though the first is not."""
    lanes, run_id, under_way, _ = group
    again = scene.delivery(run_id, lanes[0].account_id)
    scene.intend(lanes[0], intent(again, run_id))
    settlements = tuple(settlement(done, run_id) for done in (under_way[0], again))
    told = [unit(lanes[0], settlements=settlements)]
    for moved in (True, False):
        sure = _left(scene, told)
        assert sure == _asked(scene, told, monkeypatch)
        assert sure[0] == [LaneResult(True, (True, moved), False)]
        scene.settle(lanes[0], settlements[1])


def test_nothing_has_to_be_asked_after_a_stop_that_is_over(
    scene: Scene, group: Group, asked_one_by_one: list[int]
) -> None:
    with scene.store.write() as tx:
        tx.settings.stop("enough")
    asked_one_by_one.clear()
    assert [one.intended for one in scene.apply(*units_of(group))] == [False] * 3
    assert asked_one_by_one == [3]
    with scene.store.write() as tx:
        tx.settings.go_on()
    lanes, run_id, _, next_ones = group
    starting = [unit(lane, intent(one, run_id)) for lane, one in zip(lanes, next_ones, strict=True)]
    assert [one.intended for one in scene.apply(*starting)] == [True] * 3
    assert asked_one_by_one == [3]


def test_several_runs_must_all_be_running(
    scene: Scene, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes, run_id, _, next_ones = group
    other = scene.run()
    wanted = [next_ones[0], scene.delivery(other, lanes[1].account_id)]
    units = [
        unit(lane, intent(one, its_run))
        for lane, one, its_run in zip(lanes, wanted, (run_id, other), strict=False)
    ]
    assert [one.intended for one in _left(scene, units)[0]] == [True, True]  # type: ignore[union-attr]
    with scene.store.write() as tx:
        tx.runs.move(other, "pause", at=T0)
    left = _left(scene, units)
    assert [one.intended for one in left[0]] == [True, False]  # type: ignore[union-attr]
    assert left == _asked(scene, units, monkeypatch)


@pytest.mark.parametrize("entry", ["to@example.com", "@example.com"])
def test_who_is_suppressed_still_hears_what_confirms_it(
    scene: Scene, group: Group, asked_one_by_one: list[int], entry: str
) -> None:
    lanes, run_id, _, _ = group
    first, second = (
        scene.delivery(run_id, lanes[0].account_id, target="to@example.com") for _ in "ab"
    )
    scene.sql(
        "INSERT INTO suppressions (address, reason, source, at, confirmation_id) "
        "VALUES (:address, 'asked', 'reply', 1, :first)",
        address=entry,
        first=first,
    )
    asked_one_by_one.clear()
    assert scene.intend(lanes[0], intent(first, run_id)).intended
    assert asked_one_by_one == []
    assert not scene.intend(lanes[0], intent(second, run_id)).intended
    with scene.store.read() as tx:
        found = {delivery.id: delivery.suppressed for delivery in map(tx.path.one, (first, second))}
    assert found == {first: False, second: True}


@pytest.mark.parametrize("analysed", [False, True])
@pytest.mark.parametrize("lanes", [1, 10])
def test_every_row_is_looked_up_by_its_key(scene: Scene, lanes: int, analysed: bool) -> None:
    """However many there are, and whatever the statistics say."""
    units_of(group_of(scene, 12))
    if analysed:
        scene.store.analyse()
    names = len(path_sqlite_sure._NAMES)
    asked = [
        (path_sqlite_sure._UNITS._texts[lanes], lanes * names),
        (path_sqlite_sure._gate(lanes), lanes + 2),
    ]
    with scene.store.read() as tx:
        cursor = tx._context.cursor()  # type: ignore[attr-defined]
        for statement, values in asked:
            steps = cursor.execute(f"EXPLAIN QUERY PLAN {statement}", (1,) * values).fetchall()
            scans = {step for *_, step in steps if step.startswith("SCAN")}
            assert scans <= {"SCAN w", f"SCAN {lanes} CONSTANT ROWS"}
            assert any(step.startswith("SEARCH") for *_, step in steps)
