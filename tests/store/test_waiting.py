"""What a plan reads of what waits: by account, by pool, in order, and who must not be contacted."""

from typing import Any

from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports import NewDelivery, WaitingRow
from paceline.engine.ports.timetable import IN_LINE_WORDS, Later
from paceline.store.waiting import _OF_TARGET
from tests.store.scene import T0, Scene, intent


def waiting(scene: Scene, *run_ids: int) -> list[WaitingRow]:
    with scene.store.read() as tx:
        return list(tx.waiting.deliveries(run_ids))


def planned(scene: Scene, run_id: int, account_id: int | None, **more: Any) -> int:
    values = {"position": 0, "target": "somebody", "scheduled_at": T0} | more
    with scene.store.write() as tx:
        return tx.deliveries.add_one(NewDelivery(run_id, account_id, **values), T0)


def test_the_running_runs_of_some_accounts(scene: Scene) -> None:
    one, two = scene.account(), scene.account()
    ours, theirs, paused, idle = (
        scene.run(),
        scene.run(),
        scene.run(RunState.PAUSED),
        scene.run(),
    )
    scene.delivery(ours, one)
    scene.delivery(theirs, two)
    scene.delivery(paused, one)
    with scene.store.read() as tx:
        assert [run.id for run in tx.waiting.runs([one])] == [ours]
        assert [run.id for run in tx.waiting.runs([one, two])] == [ours, theirs]
        assert tx.waiting.runs([]) == []
        assert tx.waiting.accounts([ours, theirs]) == [one, two]
        assert tx.waiting.accounts([idle]) == []


def test_a_run_whose_deliveries_are_all_settled_holds_nothing(scene: Scene) -> None:
    lane, run_id, _ = scene.on_its_way()
    with scene.store.read() as tx:
        assert tx.waiting.runs([lane.account_id]) == []
        assert tx.waiting.accounts([run_id]) == []


def test_a_pool_waits_on_everybody_who_takes_from_it(scene: Scene) -> None:
    one, two, stranger = scene.account(), scene.account(), scene.account()
    run_id = scene.run()
    with scene.store.write() as tx:
        tx.pools.open(run_id, [one, two])
    planned(scene, run_id, None, due_at=T0)
    with scene.store.read() as tx:
        assert tx.waiting.pools([run_id]) == {run_id: (one, two)}
        assert [run.id for run in tx.waiting.runs([two])] == [run_id]
        assert tx.waiting.runs([stranger]) == []
        assert tx.waiting.accounts([run_id]) == [one, two]
    (row,) = waiting(scene, run_id)
    assert row.account_id is None


def test_the_columns_that_gates_care_about(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    content = [{"kind": "text", "text": "a"}, {"kind": "text", "text": "b"}]
    delivery_id = scene.delivery(
        run_id,
        account_id,
        target="anna",
        due_at=T0 + 5,
        expires_at=T0 + 9,
        content=content,
        action="email",
        reply=True,
        recipient_hours="09:00-12:00 UTC",
    )
    with scene.store.write() as tx:
        tx.suppressions.add("anna", "asked for it", "test", T0)
    (row,) = waiting(scene, run_id)
    assert row == WaitingRow(
        id=delivery_id,
        run_id=run_id,
        account_id=account_id,
        after_id=None,
        step=1,
        position=row.position,
        target="anna",
        contact_id=None,
        parts=2,
        action="email",
        reply=True,
        planned=False,
        scheduled_at=T0,
        due_at=T0 + 5,
        expires_at=T0 + 9,
        recipient_hours="09:00-12:00 UTC",
        parts_done=0,
        attempts=0,
        suppressed=True,
    )


def test_only_what_waits_is_read_run_by_run_in_the_order_of_numbers(scene: Scene) -> None:
    lane, run_id, flying = scene.on_its_way()
    later = scene.delivery(run_id, lane.account_id, due_at=T0 + 9)
    sooner = scene.delivery(run_id, lane.account_id, due_at=T0 + 1)
    draft = planned(scene, run_id, lane.account_id)
    other = scene.run()
    theirs = scene.delivery(other, lane.account_id)
    assert scene.state(flying) is DeliveryState.SENDING
    assert [row.id for row in waiting(scene, other, run_id)] == [later, sooner, draft, theirs]
    assert [row.planned for row in waiting(scene, run_id)] == [False, False, True]
    assert scene.intend(lane, intent(later, run_id)).intended
    assert [row.id for row in waiting(scene, run_id)] == [sooner, draft]


def test_what_is_due_on_one_account_in_the_order_in_which_it_falls_due(scene: Scene) -> None:
    lane, run_id, _ = scene.on_its_way()
    account_id = lane.account_id
    later = scene.delivery(run_id, account_id, due_at=T0 + 9)
    sooner = scene.delivery(run_id, account_id, due_at=T0 + 1)
    planned(scene, run_id, account_id)
    planned(scene, run_id, None, due_at=T0)
    scene.delivery(run_id, scene.account())
    other = scene.run()
    theirs = scene.delivery(other, account_id, due_at=T0)
    with scene.store.read() as tx:
        found = tx.waiting.due([other, run_id], account_id, 9)
        assert [row.id for row in found] == [sooner, later, theirs]
        assert [row.id for row in tx.waiting.due([other, run_id], account_id, 2)] == [sooner, later]
        assert tx.waiting.due([other, run_id], account_id, 0) == []


def test_what_stands_in_line_is_told_from_what_has_a_slot(scene: Scene) -> None:
    account_id, run_id = scene.account(), scene.run()
    slotted, in_line, asleep = (scene.delivery(run_id, account_id) for _ in range(3))
    reason = "Outside business hours (Mon-Fri 09:00-18:00 UTC)"
    with scene.store.write() as tx:
        moves = [Later(slotted, T0, T0 + 1, reason), Later(in_line, T0, T0, reason + IN_LINE_WORDS)]
        assert tx.timetable.put_off(account_id, moves) == 2
        tx.deliveries.postpone(asleep, T0, "outside the recipient's hours" + IN_LINE_WORDS)
    assert [row.id for row in waiting(scene, run_id) if row.in_line] == [in_line]


def test_who_must_not_be_contacted_of_very_many(scene: Scene) -> None:
    odd = ['quo"te', "back\\slash", "new\nline", "ünïcode", "com,ma", "{brace}"]
    with scene.store.write() as tx:
        for address in [*odd, "nobody asks about this one"]:
            tx.suppressions.add(address, "", "test", T0)
    addresses = [*odd, *(f"person-{number}" for number in range(25_000))]
    with scene.store.read() as tx:
        assert tx.waiting.suppressed(addresses) == set(odd)
        assert tx.waiting.suppressed([]) == set()


def test_what_waits_for_somebody_is_found_by_their_address_alone(scene: Scene) -> None:
    """Whoever writes STOP keeps nobody waiting, however much waits for others."""
    account_id, run_id, sent = scene.account(), scene.run(), scene.run()
    with scene.store.write() as tx:
        others = [
            NewDelivery(run_id, account_id, number, f"p-{number}", scheduled_at=T0, due_at=T0)
            for number in range(4_000)
        ]
        tx.deliveries.add(others, T0)
    first = planned(scene, run_id, account_id, target="eva", position=4_001)
    second = scene.delivery(sent, account_id, target="eva")
    scene.delivery(sent, account_id, target="ben")
    third = scene.delivery(sent, account_id, target="eva")
    with scene.store.write() as tx:
        tx.deliveries.move(third, "cancel", at=T0)
        assert [one.id for one in tx.waiting.of_target("eva")] == [first, second]
    if scene.kind != "sqlite":
        scene.sql("ANALYZE deliveries")
    with scene.store.read() as tx:
        context: Any = tx.waiting._context  # type: ignore[attr-defined]
        text, values = (
            _OF_TARGET._on_postgresql() if context.postgresql else _OF_TARGET._on_sqlite()
        )
        cursor = context.cursor()
        explain = "EXPLAIN" if context.postgresql else "EXPLAIN QUERY PLAN"
        cursor.execute(f"{explain} {text}", {**values, "target": "eva"})
        told = " ".join(str(line) for line in cursor.fetchall()).lower()
    assert "ix_deliveries_waiting" in told, told
    assert "seq scan on deliveries" not in told, told
