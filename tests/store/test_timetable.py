"""When deliveries are due, many at a time, on both databases."""

from sqlalchemy import create_engine, text

from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.engine.ports import NewDelivery
from paceline.engine.ports.timetable import IN_LINE_WORDS, Later
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


def test_what_makes_room_for_others_keeps_its_limit(scene: Scene) -> None:
    lane, run_id, (plain, capped, in_line) = _ready(scene)
    early, still = (scene.delivery(run_id, lane.account_id) for _ in range(2))
    told, again = "shares its account with summer", "shares its account with autumn"
    with scene.store.write() as tx:
        tx.timetable.plan([(early, LATER)])
        moves = [
            Later(capped, T0, LATER, CAPPED),
            Later(in_line, T0, LATER, CAPPED + IN_LINE_WORDS),
            Later(still, T0, LATER, CAPPED),
        ]
        assert tx.timetable.put_off(lane.account_id, moves) == 3
        slots = [(number, LATER + HOUR) for number in (plain, capped, in_line)]
        assert tx.timetable.share([*slots, (early, T0), (still, LATER + SECOND)], told) == 4
        assert tx.timetable.share([(number, at + HOUR) for number, at in slots], again) == 3
    later = LATER + 2 * HOUR
    assert _stands(scene, plain, capped, in_line) == [
        (T0, later, again),
        (T0, later, f"{CAPPED}; {again}"),
        (T0, later, f"{CAPPED}; {again}"),
    ]
    assert _stands(scene, early) == [(LATER, T0, "")], "nobody has to ask why it is so early"
    assert _stands(scene, still) == [(T0, LATER, CAPPED)], "and a second is no move"
    with scene.store.write() as tx:
        assert tx.timetable.recall(lane.account_id, T0) == 3, "what was not put off stays"
    assert scene.get(plain).due_at == later


def test_many_slots_are_written_in_pieces(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    rows = [scene.delivery(run_id, account_id) for _ in range(130)]
    with scene.store.write() as tx:
        assert tx.timetable.plan((row, LATER + row * MINUTE) for row in rows) == 130
    assert all(scene.get(row).due_at == LATER + row * MINUTE for row in rows)


CAPPED = "Daily cap reached (2/2)"


def test_what_is_put_off_is_due_at_its_own_instant_and_says_why(scene: Scene) -> None:
    lane, _, (first, second, third) = _ready(scene)
    moves = [Later(first, T0, LATER, CAPPED), Later(second, T0, LATER + MINUTE, "in line")]
    with scene.store.write() as tx:
        assert tx.timetable.put_off(lane.account_id, moves) == 2
    assert _stands(scene, first, second) == [(T0, LATER, CAPPED), (T0, LATER + MINUTE, "in line")]
    assert _stands(scene, third) == [(T0, T0, "")]


def test_what_has_changed_since_it_was_looked_at_is_not_put_off(scene: Scene) -> None:
    lane, run_id, (moved, tried, cancelled) = _ready(scene)
    others = scene.delivery(run_id, scene.account())
    assert scene.intend(lane, intent(tried, run_id)).intended
    with scene.store.write() as tx:
        tx.timetable.lay([(moved, T0 + MINUTE)], "somebody was faster")
        tx.deliveries.move(tried, "retry", at=T0, due_at=T0)
        tx.deliveries.move(cancelled, "cancel", at=T0)
        numbers = (moved, tried, cancelled, others)
        moves = [Later(number, T0, LATER, CAPPED) for number in numbers]
        assert tx.timetable.put_off(lane.account_id, moves) == 0
    assert [scene.get(number).due_at for number in numbers] == [T0 + MINUTE, T0, None, T0]


def test_thousands_are_put_off_at_once(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    rows = [NewDelivery(run_id, account_id, n, f"p{n}", T0, due_at=T0) for n in range(2_100)]
    with scene.store.write() as tx:
        tx.deliveries.add(rows, T0)
        found = tx.waiting.due([run_id], account_id, 9_999)
        moves = [Later(row.id, T0, LATER + row.id, CAPPED) for row in found]
        assert tx.timetable.put_off(account_id, moves) == 2_100
        after = tx.waiting.due([run_id], account_id, 9_999)
    assert [row.due_at for row in after] == [LATER + row.id for row in found]


def test_what_was_put_off_is_recalled_as_it_was_planned(scene: Scene) -> None:
    lane, run_id, (first, second, third) = _ready(scene)
    sleeper, laid, in_line = (scene.delivery(run_id, lane.account_id) for _ in range(3))
    with scene.store.write() as tx:
        tx.timetable.plan([(second, LATER)])
        moves = [
            Later(first, T0, LATER + HOUR, CAPPED),
            Later(second, LATER, LATER + 2 * HOUR, CAPPED),
            Later(third, T0, LATER + HOUR, CAPPED),
            Later(in_line, T0, LATER + HOUR, CAPPED + IN_LINE_WORDS),
        ]
        assert tx.timetable.put_off(lane.account_id, moves) == 4
        tx.deliveries.postpone(third, T0 - 1, "due already")
        tx.deliveries.postpone(sleeper, LATER, "outside the recipient's hours")
        tx.timetable.lay([(laid, LATER)], "moved by limits fix")
        at = T0 + MINUTE
        assert tx.timetable.recall(lane.account_id, at) == 3
    assert _stands(scene, first, second, in_line) == [
        (T0, at, ""),
        (LATER, LATER, ""),
        (T0, at, ""),
    ]
    assert scene.get(third).due_at == T0 - 1
    # One waits for a person and the other was laid there: neither for a limit.
    assert [scene.get(number).due_at for number in (sleeper, laid)] == [LATER, LATER]


def _pooled(scene: Scene, count: int) -> tuple[list[Lane], int, list[int]]:
    lanes = [scene.lane(scene.account()) for _ in range(2)]
    run_id = scene.run()
    with scene.store.write() as tx:
        tx.pools.open(run_id, [lane.account_id for lane in lanes])
    rows = [scene.delivery(run_id, None) for _ in range(count)]  # type: ignore[arg-type]
    return lanes, run_id, rows


def test_what_is_nobodys_is_put_off_unless_somebody_has_moved_or_taken_it(scene: Scene) -> None:
    (one, other), run_id, (free, moved, taken, cancelled) = _pooled(scene, 4)
    own = scene.delivery(run_id, one.account_id)
    assert scene.intend(other, intent(taken, run_id, pooled=True)).intended
    with scene.store.write() as tx:
        tx.timetable.lay([(moved, T0 + MINUTE)], "somebody was faster")
        tx.deliveries.move(cancelled, "cancel", at=T0)
        numbers = (free, moved, taken, cancelled, own)
        moves = [Later(number, T0, LATER, CAPPED) for number in numbers]
        assert tx.timetable.put_off_pooled(moves) == 1
        found = tx.waiting.due([run_id], None, 9)
    assert _stands(scene, free, own) == [(T0, LATER, CAPPED), (T0, T0, "")]
    assert [row.id for row in found] == [moved, free], "as they fall due, and only nobody's"


def test_thousands_that_are_nobodys_are_put_off_at_once(scene: Scene) -> None:
    _, run_id, _ = _pooled(scene, 0)
    rows = [NewDelivery(run_id, None, n, f"p{n}", T0, due_at=T0) for n in range(2_100)]
    with scene.store.write() as tx:
        tx.deliveries.add(rows, T0)
        found = tx.waiting.due([run_id], None, 9_999)
        moves = [Later(row.id, T0, LATER + row.id, CAPPED) for row in found]
        assert tx.timetable.put_off_pooled(moves) == 2_100
        after = tx.waiting.due([run_id], None, 9_999)
    assert [row.due_at for row in after] == [LATER + row.id for row in found]


def test_what_is_nobodys_is_recalled_for_those_who_may_take_it(scene: Scene) -> None:
    (one, _), run_id, (capped, laid) = _pooled(scene, 2)
    own, stranger = scene.delivery(run_id, one.account_id), scene.account()
    with scene.store.write() as tx:
        tx.timetable.put_off_pooled([Later(capped, T0, LATER, CAPPED)])
        tx.timetable.put_off(one.account_id, [Later(own, T0, LATER, CAPPED)])
        tx.timetable.lay([(laid, LATER)], "a reason of somebody's")
        assert tx.timetable.recall_pooled(stranger, T0 + SECOND) == 0
        assert tx.timetable.recall_pooled(one.account_id, T0 + SECOND) == 1
    assert _stands(scene, capped, own, laid) == [
        (T0, T0 + SECOND, ""),
        (T0, LATER, CAPPED),
        (T0, LATER, "a reason of somebody's"),
    ]


def test_nobody_waits_for_one_that_is_just_being_taken(scene: Scene) -> None:
    """On PostgreSQL: whoever waited here could be waited for in turn. On SQLite nobody can."""
    (one, _), _, (held, free) = _pooled(scene, 2)
    moves = [Later(number, T0, LATER, CAPPED) for number in (held, free)]
    if scene.kind == "sqlite":
        with scene.store.write() as tx:
            assert tx.timetable.put_off_pooled(moves) == 2
        return
    engine = create_engine(scene.url)
    with engine.connect() as other:
        other.execute(text("SELECT 1 FROM deliveries WHERE id = :n FOR UPDATE"), {"n": held})
        with scene.store.write() as tx:
            assert tx.timetable.put_off_pooled(moves) == 1
        with scene.store.write() as tx:
            assert tx.timetable.recall_pooled(one.account_id, T0) == 1
    engine.dispose()
