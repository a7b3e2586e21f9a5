"""What a group of the message path can be wrong about, one thing at a time."""

from collections.abc import Callable
from typing import Any

from paceline.core.outcome import unknown
from paceline.core.states import DeliveryState
from paceline.engine.ports import LaneUnit
from tests.store.scene import CHECKPOINT, T0, Lane, Scene, intent, settlement, unit

D = DeliveryState
PLAIN = "ledger ORDER BY delivery_id, part, attempt, kind"
TABLES = (PLAIN, "deliveries ORDER BY id", "counters ORDER BY 1, 2, 3", "usage ORDER BY 1")

Group = tuple[list[Lane], int, list[int], list[int]]
"""Lanes of one process, a run, for each lane one delivery on its way and one that is to start."""


def group_of(scene: Scene, lanes: int) -> Group:
    process_id, run_id = scene.process(), scene.run()
    ours = [scene.lane(scene.account(), process_id) for _ in range(lanes)]
    under_way = [scene.delivery(run_id, lane.account_id) for lane in ours]
    scene.apply(
        *(unit(lane, intent(one, run_id)) for lane, one in zip(ours, under_way, strict=True))
    )
    return ours, run_id, under_way, [scene.delivery(run_id, lane.account_id) for lane in ours]


def units_of(group: Group, **changes: Any) -> list[LaneUnit]:
    lanes, run_id, under_way, next_ones = group
    return [
        unit(lane, intent(wanted, run_id, **changes), (settlement(done, run_id),), CHECKPOINT)
        for lane, done, wanted in zip(lanes, under_way, next_ones, strict=True)
    ]


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


def _of_another_run(place: int) -> Callable[[Scene, Group], None]:
    def change(scene: Scene, group: Group) -> None:
        other = scene.run()
        scene.delivery(other, group[0][1].account_id)  # so that the account has its counters
        _delivery(f"run_id = {other}", place)(scene, group)

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
    "another run's": _of_another_run(3),
    "follows one that is not sent": _delivery("after_id = id", 3),
    "answered already": _answered,
    "in the ledger already": _written_down,
    "in doubt": _doubted,
    "another attempt": _delivery("attempts = 2", 2),
    "another part": _delivery("parts_done = 1", 2),
    "moved elsewhere": _delivery("account_id = (SELECT min(account_id) FROM lanes)", 2),
    "moved to another run": _of_another_run(2),
    "no counter": _uncounted,
}


EVERYBODY = ("lease over", "stopped", "run paused")
"""What keeps all lanes from starting anything."""

OF_AN_ANSWER = {
    "answered already": False,
    "in the ledger already": True,
    "in doubt": True,
    "another attempt": False,
    "another part": False,
    "moved elsewhere": True,
    "moved to another run": True,
}
"""What concerns only what is settled, and whether it is."""
