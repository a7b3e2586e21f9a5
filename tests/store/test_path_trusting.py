"""A group on trust: one flight where all is as the lanes believe, and nothing at all where not."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from paceline.core.errors import StoreSurprise, StoreUnavailable
from paceline.core.outcome import transient, unknown
from paceline.core.states import DeliveryState
from paceline.engine.clock import SystemClock
from paceline.engine.committing import Commit, Entry
from paceline.engine.ports import LaneResult, LaneUnit, Tx
from paceline.engine.ports.path import Sparing
from paceline.store.wire import Wire
from tests.store.scene import CHECKPOINT, T0, Lane, Scene, intent, settlement, unit
from tests.store.wiring import PID, end_session

D = DeliveryState
PLAIN = "ledger ORDER BY delivery_id, part, attempt, kind"
TABLES = (PLAIN, "deliveries ORDER BY id", "counters ORDER BY 1, 2, 3", "usage ORDER BY 1")

Group = tuple[list[Lane], int, list[int], list[int]]
"""Lanes of one process, a run, for each lane one delivery on its way and one that is to start."""


@pytest.fixture
def scene(postgres_scene: Scene) -> Scene:
    postgres_scene.trusting = True
    return postgres_scene


@pytest.fixture
def group(scene: Scene) -> Group:
    process_id, run_id = scene.process(), scene.run()
    lanes = [scene.lane(scene.account(), process_id) for _ in range(3)]
    under_way = [scene.delivery(run_id, lane.account_id) for lane in lanes]
    scene.apply(
        *(unit(lane, intent(one, run_id)) for lane, one in zip(lanes, under_way, strict=True))
    )
    return lanes, run_id, under_way, [scene.delivery(run_id, lane.account_id) for lane in lanes]


def _units(group: Group, **changes: Any) -> list[LaneUnit]:
    lanes, run_id, under_way, next_ones = group
    return [
        unit(lane, intent(wanted, run_id, **changes), (settlement(done, run_id),), CHECKPOINT)
        for lane, done, wanted in zip(lanes, under_way, next_ones, strict=True)
    ]


def _tables(scene: Scene) -> list[Any]:
    return [scene.sql(f"SELECT * FROM {table}") for table in TABLES]


def _trusted(scene: Scene, units: Sequence[LaneUnit]) -> list[LaneResult] | None:
    with scene.store.write() as tx:
        return tx.path.trust(units)


def test_it_comes_to_the_same_as_asking(scene: Scene, group: Group) -> None:
    units = _units(group)
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
    assert _trusted(scene, _units(group)) is not None
    assert len(flights) == 1


def _take_over(scene: Scene, group: Group) -> None:
    lane = group[0][1]
    scene.sql(
        "UPDATE lanes SET generation = generation + 1 WHERE account_id = :a", a=lane.account_id
    )


def _give_back(scene: Scene, group: Group) -> None:
    scene.sql("UPDATE lanes SET owner = NULL WHERE account_id = :a", a=group[0][1].account_id)


def _owned_by_another(scene: Scene, group: Group) -> None:
    owner, account_id = scene.process(), group[0][1].account_id
    scene.sql("UPDATE lanes SET owner = :o WHERE account_id = :a", o=owner, a=account_id)


def _forget_lane(scene: Scene, group: Group) -> None:
    scene.sql("DELETE FROM lanes WHERE account_id = :a", a=group[0][1].account_id)


def _touch(scene: Scene, group: Group) -> None:
    with scene.store.write() as tx:
        tx.lanes.touch(group[0][1].account_id, T0)


def _expire(scene: Scene, group: Group) -> None:
    scene.expire(group[0][1].lease.process_id)


def _stop(scene: Scene, group: Group) -> None:
    with scene.store.write() as tx:
        tx.settings.fence()
        tx.settings.stop("")


def _pause_run(scene: Scene, group: Group) -> None:
    with scene.store.write() as tx:
        tx.runs.move(group[1], "pause", at=T0)


def _account(event: str) -> Callable[[Scene, Group], None]:
    def moved(scene: Scene, group: Group) -> None:
        with scene.store.write() as tx:
            tx.accounts.move(group[0][1].account_id, event)

    return moved


def _remove_account(scene: Scene, group: Group) -> None:
    with scene.store.write() as tx:
        tx.accounts.update(group[0][1].account_id, removed_at=T0)


def _suppress(scene: Scene, group: Group) -> None:
    target = scene.get(group[3][1]).target
    with scene.store.write() as tx:
        tx.settings.fence()
        tx.suppressions.add(target, "asked", "operator", T0)


def _delivery(changed: str, place: int) -> Callable[[Scene, Group], None]:
    def change(scene: Scene, group: Group) -> None:
        scene.sql(f"UPDATE deliveries SET {changed} WHERE id = :d", d=group[place][1])

    return change


def _answered(scene: Scene, group: Group) -> None:
    lanes, run_id, under_way, _ = group
    scene.settle(lanes[1], settlement(under_way[1], run_id))


def _written_down(scene: Scene, group: Group) -> None:
    """Its answer is in the ledger, though the delivery does not show it."""
    _answered(scene, group)
    _delivery("state = 'sending', parts_done = 0, sent_at = NULL", 2)(scene, group)


def _doubted(scene: Scene, group: Group) -> None:
    lanes, run_id, under_way, _ = group
    lost = settlement(under_way[1], run_id, D.UNKNOWN, unknown("silence"), parts_done=0)
    scene.settle(lanes[1], lost)


def _uncounted(scene: Scene, group: Group) -> None:
    scene.sql(
        "DELETE FROM counters WHERE account_id = :a AND state = 'sent'", a=group[0][1].account_id
    )


SURPRISES: dict[str, Callable[[Scene, Group], None]] = {
    "taken over": _take_over,
    "given back": _give_back,
    "another's": _owned_by_another,
    "no lane": _forget_lane,
    "touched": _touch,
    "lease over": _expire,
    "stopped": _stop,
    "run paused": _pause_run,
    "account paused": _account("pause"),
    "account suspended": _account("suspend"),
    "account removed": _remove_account,
    "suppressed": _suppress,
    "cancelled": _delivery("state = 'cancelled', due_at = NULL", 3),
    "tried again since": _delivery("attempts = 1", 3),
    "another account's": _delivery("account_id = (SELECT min(account_id) FROM lanes)", 3),
    "follows one that is not sent": _delivery("after_id = id", 3),
    "answered already": _answered,
    "in the ledger already": _written_down,
    "in doubt": _doubted,
    "another attempt": _delivery("attempts = 2", 2),
    "another part": _delivery("parts_done = 1", 2),
    "moved elsewhere": _delivery("account_id = (SELECT min(account_id) FROM lanes)", 2),
    "no counter": _uncounted,
}


@pytest.mark.parametrize("surprise", SURPRISES)
def test_whatever_is_otherwise_undoes_all_of_it(scene: Scene, group: Group, surprise: str) -> None:
    SURPRISES[surprise](scene, group)
    before = _tables(scene)
    with pytest.raises(StoreSurprise):
        _trusted(scene, _units(group))
    assert _tables(scene) == before


EVERYBODY = ("lease over", "stopped", "run paused")
"""What keeps all lanes from starting anything."""

OF_AN_ANSWER = {
    "answered already": False,
    "in the ledger already": True,
    "in doubt": True,
    "another attempt": False,
    "another part": False,
    "moved elsewhere": True,
}
"""What concerns only what is settled, and whether it is."""


@pytest.mark.parametrize("surprise", [name for name in SURPRISES if name != "no counter"])
def test_the_journal_then_asks_and_only_the_culprit_is_refused(
    scene: Scene, group: Group, surprise: str
) -> None:
    SURPRISES[surprise](scene, group)
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        entries = [Entry(loop.create_future(), told) for told in _units(group)]

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
    assert _trusted(scene, _units(group, **changed)) is None
    assert _tables(scene) == before


def test_nor_is_what_depends_on_another_of_the_group(scene: Scene, group: Group) -> None:
    first, second, _ = _units(group)
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
    _touch(scene, group)
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
        assert tx.path.trust(_units(group)) is not None
        if asked_before:
            assert _session(tx) == pid
            assert tx.path.trust([unit(group[0][0])]) is not None
        end_session(scene.url, pid)
    assert not isinstance(failed.value, StoreSurprise)
    assert _tables(scene) == before
    assert _trusted(scene, _units(group)) is not None


def _session(tx: Tx) -> int:
    pid: int = tx._context.ask(PID).fetchone()[0]  # type: ignore[attr-defined]
    return pid
