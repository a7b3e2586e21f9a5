"""When an account was last called for, by its ledger: of anything, and of anything but a reply."""

from collections.abc import Callable

from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.model import REPLY
from paceline.core.outcome import unknown
from paceline.core.states import DeliveryState
from tests.store.scene import T0, Lane, Scene, intent, settlement

Send = Callable[..., None]


def sending(scene: Scene) -> tuple[Lane, Send]:
    """A lane, and a way to send by it: intended at one instant, called for at another."""
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id)

    def send(at: Instant, called_at: Instant | None, action: str = "message") -> None:
        delivery_id = scene.delivery(run_id, account_id)
        assert scene.intend(lane, intent(delivery_id, run_id, at=at, action=action)).intended
        done = settlement(delivery_id, run_id, intent_at=at, started_at=called_at, action=action)
        assert scene.settle(lane, done).settled == (True,)

    return lane, send


def last_calls(
    scene: Scene, lane: Lane, since_at: Instant = T0
) -> tuple[Instant | None, Instant | None]:
    with scene.store.read() as tx:
        return tx.ledger.last_calls(lane.account_id, since_at)


def test_whoever_was_never_called_for_has_no_last_call(scene: Scene) -> None:
    lane, _ = sending(scene)
    assert last_calls(scene, lane) == (None, None)


def test_an_intent_counts_as_a_call_that_nobody_saw(scene: Scene) -> None:
    """Whoever made it may have crashed during the call, and the checkpoint may have been moved back
    by a wrong clock since."""
    lane, send = sending(scene)
    send(T0, None)
    send(T0 + SECOND, None, REPLY)
    assert last_calls(scene, lane) == (T0 + SECOND, T0)
    run_id = scene.run()
    lost = scene.delivery(run_id, lane.account_id)
    assert scene.intend(lane, intent(lost, run_id, at=T0 + 2 * SECOND)).intended
    assert last_calls(scene, lane) == (T0 + 2 * SECOND, T0 + 2 * SECOND)


def test_it_is_the_call_that_counts_and_not_its_intent(scene: Scene) -> None:
    lane, send = sending(scene)
    send(T0, T0 + 9 * SECOND)
    send(T0 + SECOND, T0 + 2 * SECOND)
    assert last_calls(scene, lane) == (T0 + 9 * SECOND, T0 + 9 * SECOND)


def test_replies_are_told_apart(scene: Scene) -> None:
    lane, send = sending(scene)
    send(T0, T0 + SECOND)
    send(T0 + 2 * SECOND, T0 + 3 * SECOND, REPLY)
    assert last_calls(scene, lane) == (T0 + 3 * SECOND, T0 + SECOND)
    other, send_other = sending(scene)
    send_other(T0, T0 + SECOND, REPLY)
    assert last_calls(scene, other) == (T0 + SECOND, None)


def test_what_was_intended_earlier_is_known_from_the_checkpoint(scene: Scene) -> None:
    lane, send = sending(scene)
    send(T0, T0 + 9 * SECOND)
    assert last_calls(scene, lane, T0 + 1) == (None, None)


def test_nobody_elses_calls_count(scene: Scene) -> None:
    lane, send = sending(scene)
    other, send_other = sending(scene)
    send(T0, T0 + SECOND)
    send_other(T0, T0 + 2 * SECOND)
    assert last_calls(scene, lane) == (T0 + SECOND, T0 + SECOND)
    assert last_calls(scene, other) == (T0 + 2 * SECOND, T0 + 2 * SECOND)


def test_a_call_that_nobody_saw_was_made_by_the_time_it_was_given_up_at_the_latest(
    scene: Scene,
) -> None:
    """Between its intent and the call a slow commit may lie. Whoever takes the lane over says when
    it gave the call up; nothing that is known later may make the account any faster than that."""
    lane, _ = sending(scene)
    run_id = scene.run()
    lost = scene.delivery(run_id, lane.account_id)
    assert scene.intend(lane, intent(lost, run_id, at=T0)).intended
    at: dict[str, Instant | None] = {"started_at": None, "settled_at": T0 + MINUTE}
    given_up = settlement(lost, run_id, DeliveryState.UNKNOWN, unknown("?"), parts_done=0, **at)
    assert scene.settle(lane, given_up).settled == (True,)
    assert last_calls(scene, lane) == (T0 + MINUTE, T0 + MINUTE)
    found = settlement(lost, run_id, started_at=None, settled_at=T0 + 2 * MINUTE)
    assert scene.settle(lane, found).settled == (True,)
    assert last_calls(scene, lane) == (T0 + MINUTE, T0 + MINUTE)
