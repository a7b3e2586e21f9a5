"""When deliveries are due, many at a time, on both databases."""

from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from tests.store.scene import T0, Lane, Scene, intent

LATER = T0 + HOUR


def _ready(scene: Scene, count: int = 3) -> tuple[Lane, int, list[int]]:
    account_id, run_id = scene.account(), scene.run()
    rows = [scene.delivery(run_id, account_id) for _ in range(count)]
    return scene.lane(account_id), run_id, rows


def _stands(scene: Scene, *numbers: int) -> list[tuple[Instant, Instant | None, str]]:
    rows = [scene.get(number) for number in numbers]
    return [(row.scheduled_at, row.due_at, row.reason) for row in rows]


def test_a_plan_sets_both_instants_of_what_waits_and_was_never_tried(scene: Scene) -> None:
    lane, run_id, (first, second, third) = _ready(scene)
    assert scene.intend(lane, intent(second, run_id)).intended
    with scene.store.write() as tx:
        tx.deliveries.move(second, "retry", at=T0, due_at=T0)
        tx.deliveries.move(third, "cancel", at=T0)
        assert tx.timetable.plan([(number, LATER) for number in (first, second, third)]) == 1
    assert _stands(scene, first, second) == [(LATER, LATER, ""), (T0, T0, "")]
    assert scene.get(third).due_at is None


def test_laying_anew_leaves_the_plan_and_says_why(scene: Scene) -> None:
    _, _, (first, second, third) = _ready(scene)
    slots = [(first, LATER), (second, T0 + SECOND), (third, T0)]
    with scene.store.write() as tx:
        # A second is not worth a write; a plan is not so exact.
        assert tx.timetable.lay(slots, "a reason") == 1
    assert _stands(scene, first) == [(T0, LATER, "a reason")]
    assert _stands(scene, second, third) == [(T0, T0, "")] * 2


def test_many_slots_are_written_in_pieces(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    rows = [scene.delivery(run_id, account_id) for _ in range(130)]
    with scene.store.write() as tx:
        assert tx.timetable.plan((row, LATER + row * MINUTE) for row in rows) == 130
    assert all(scene.get(row).due_at == LATER + row * MINUTE for row in rows)


def test_what_is_overdue_is_put_off_and_nothing_else(scene: Scene) -> None:
    lane, run_id, (first, second, third) = _ready(scene)
    other = scene.delivery(scene.run(), lane.account_id)
    with scene.store.write() as tx:
        tx.timetable.plan([(third, LATER + 1)])
        moved = tx.timetable.put_off(lane.account_id, run_id, LATER, "Daily cap reached (2/2)", 9)
    assert moved == 2
    assert _stands(scene, first, second) == [(T0, LATER, "Daily cap reached (2/2)")] * 2
    assert _stands(scene, third, other) == [(LATER + 1, LATER + 1, ""), (T0, T0, "")]


def test_more_than_was_agreed_stay_as_they_are(scene: Scene) -> None:
    lane, run_id, rows = _ready(scene)
    with scene.store.write() as tx:
        assert tx.timetable.put_off(lane.account_id, run_id, LATER, "why", 2) == 0
    assert _stands(scene, *rows) == [(T0, T0, "")] * 3


def test_what_was_put_off_is_recalled_as_it_was_planned(scene: Scene) -> None:
    lane, run_id, (first, second, third) = _ready(scene)
    sleeper, laid = (scene.delivery(run_id, lane.account_id) for _ in range(2))
    with scene.store.write() as tx:
        tx.timetable.plan([(second, LATER)])
        tx.timetable.put_off(lane.account_id, run_id, LATER + HOUR, "Daily cap reached (2/2)", 9)
        tx.deliveries.postpone(third, T0 - 1, "due already")
        tx.deliveries.postpone(sleeper, LATER, "outside the recipient's hours")
        tx.timetable.lay([(laid, LATER)], "moved by limits fix")
        at = T0 + MINUTE
        assert tx.timetable.recall(lane.account_id, at) == 2
    assert _stands(scene, first, second) == [(T0, at, ""), (LATER, LATER, "")]
    assert scene.get(third).due_at == T0 - 1
    # One waits for a person and the other was laid there: neither for a limit.
    assert [scene.get(number).due_at for number in (sleeper, laid)] == [LATER, LATER]


def test_a_retry_is_not_put_off(scene: Scene) -> None:
    lane, run_id, (first, second, _) = _ready(scene)
    assert scene.intend(lane, intent(first, run_id)).intended
    with scene.store.write() as tx:
        tx.deliveries.move(first, "retry", at=T0, due_at=T0 + 1)
        assert tx.timetable.put_off(lane.account_id, run_id, LATER, "Daily cap reached", 9) == 2
    assert scene.get(first).due_at == T0 + 1
    assert scene.get(second).due_at == LATER
