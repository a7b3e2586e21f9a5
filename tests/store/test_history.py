"""What others have sent: told once, it counts for every limit."""

import pytest

from paceline.core.instants import DAY, MINUTE
from paceline.engine.commands import history
from paceline.engine.ports import PastMessage
from paceline.engine.runs import standing_run
from paceline.engine.verify import verify
from tests.store.counting import counted
from tests.store.scene import T0, Scene, intent, settlement


def told(scene: Scene, messages: list[PastMessage], at: int = T0) -> dict[int, int]:
    with scene.store.write() as tx:
        tx.contacts.hold(alone=True)
        run = standing_run(tx, history.STANDING, at)
        policy_id = tx.policies.version(history.STANDING, {}, at)
        return tx.history.add(run.id, policy_id, messages, at)


def past(account_id: int, number: int, at: int, target: str = "") -> PastMessage:
    return PastMessage(f"history:{account_id}-{number}", account_id, "email", target, at)


def test_what_is_told_twice_counts_once(scene: Scene) -> None:
    ann, bob = scene.account("ann"), scene.account("bob")
    some = [past(ann, n, T0 - n * MINUTE, f"p{n}@example.com") for n in range(3)]
    assert told(scene, [*some, past(bob, 0, T0 - DAY), some[0]]) == {ann: 3, bob: 1}
    assert told(scene, [*some, past(ann, 9, T0 - 5)]) == {ann: 1}
    assert told(scene, some) == {} == told(scene, [])
    with scene.store.read() as tx:
        assert tx.ledger.counts(ann, T0 - DAY) == {"email": 4}
        assert tx.ledger.counts(ann, T0 - MINUTE) == {"email": 3}
        assert tx.ledger.last_calls(ann, 0) == (T0, T0)
        assert tx.history.last_calls(ann, 0, T0) == (T0, T0)
        assert tx.history.last_calls(ann, 0, T0 - 1) == (T0 - 5, T0 - 5)
        assert tx.history.last_calls(ann, T0 + 1, T0 + DAY) == (None, None)
        assert tx.deliveries.contacted(["p1@example.com"], 0) == {"p1@example.com": (T0 - MINUTE,)}
        campaign = tx.campaigns.find(history.STANDING)
        assert campaign is not None
        (run,) = tx.runs.of_campaign(campaign.id)
        assert (run.total, run.kind) == (5, "direct")
        assert tx.path.restore(ann).runs == (), "no lane has anything to do with it"  # type: ignore[union-attr]
        assert verify(tx, T0) == []
    assert {state: n for state, n in scene.counts(run.id).items() if n} == {"sent": 5}


def test_the_next_delivery_has_a_number_of_its_own(scene: Scene) -> None:
    ann, run_id = scene.account(), scene.run()
    before = scene.delivery(run_id, ann)
    told(scene, [past(ann, n, T0) for n in range(3)])
    after = scene.delivery(run_id, ann)
    assert after >= before + 4


def test_a_chunk_is_a_handful_of_statements(scene: Scene) -> None:
    ann = scene.account()
    told(scene, [past(ann, 0, T0)])
    costs = []
    for first, count in ((10, 10), (1_000, 1_000)):
        with counted() as asked:
            told(scene, [past(ann, n, T0 - n) for n in range(first, first + count)])
        costs.append(len(asked))
    assert costs[0] == costs[1] <= 24


def test_what_others_sent_to_the_suppressed_is_not_held_against_us(scene: Scene) -> None:
    ann = scene.account()
    with scene.store.write() as tx:
        tx.suppressions.add("p@example.com", "asked", "operator", T0 - DAY)
    told(scene, [past(ann, 1, T0 - MINUTE, "p@example.com")])
    with scene.store.read() as tx:
        assert verify(tx, T0) == []
    scene.sql("UPDATE ledger SET code = ''")
    with scene.store.read() as tx:
        assert {found.invariant for found in verify(tx, T0)} == {"never to the suppressed"}


@pytest.mark.parametrize("before", [True, False])
def test_a_cap_is_broken_by_what_was_known_and_not_by_what_was_told_later(
    scene: Scene, before: bool
) -> None:
    """Twenty may go a day: nineteen went elsewhere, then two here."""
    noon = T0 // DAY * DAY + DAY // 2
    with scene.store.write() as tx:
        policy_id = tx.policies.version("strict", {"daily": {"email": 20}}, T0)
    ann, run_id = scene.account(), scene.run()
    elsewhere = [past(ann, n, noon - DAY // 4 + n) for n in range(19)]
    told(scene, elsewhere, at=noon - 1 if before else noon + MINUTE)
    lane = scene.lane(ann)
    for at in (noon, noon + 1):
        delivery_id = scene.delivery(run_id, ann, action="email")
        wish = intent(delivery_id, run_id, action="email", at=at)
        assert scene.intend(lane, wish._replace(policy_id=policy_id)).intended
        done = settlement(delivery_id, run_id, action="email", intent_at=at, settled_at=at)
        scene.settle(lane, done._replace(policy_id=policy_id, started_at=at))
    with scene.store.read() as tx:
        over = [found for found in verify(tx, noon + DAY) if found.invariant == "never over"]
    assert len(over) == before
