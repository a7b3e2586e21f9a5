"""Campaigns and runs: their states, and the instants that go with them."""

import pytest

from paceline.core.errors import ConflictError, NotFoundError
from paceline.core.states import CAMPAIGN, RUN, CampaignState, DeliveryState, RunState
from paceline.engine.ports import Campaign, Contact
from tests.store.scene import T0, Scene

CONTENT = [{"kind": "text", "text": "Hi {{ name }}"}]


def _campaign(scene: Scene, name: str = "spring") -> Campaign:
    with scene.store.write() as tx:
        return tx.campaigns.add(
            name=name, kind="campaign", content=CONTENT, settings={"at_close": "skip"}, at=T0
        )


def test_a_campaign_is_kept_as_it_was_given(scene: Scene) -> None:
    made = _campaign(scene)
    assert (made.name, made.kind, made.state) == ("spring", "campaign", CampaignState.DRAFT)
    assert (made.content, made.settings) == (CONTENT, {"at_close": "skip"})
    assert (made.created_at, made.launched_at, made.finished_at) == (T0, None, None)
    with scene.store.write() as tx:
        assert tx.campaigns.get(made.id) == tx.campaigns.find("spring") == made
        assert tx.campaigns.find("autumn") is None
        with pytest.raises(ConflictError, match="a campaign named 'spring' exists already"):
            tx.campaigns.add(name="spring", kind="direct", content=[], settings={}, at=T0)
        assert tx.campaigns.list() == [made]
        with pytest.raises(NotFoundError, match="campaign 999999 does not exist"):
            tx.campaigns.get(999_999)


def test_campaigns_are_listed_by_state(scene: Scene) -> None:
    draft, running = _campaign(scene), _campaign(scene, "autumn")
    with scene.store.write() as tx:
        tx.campaigns.move(running.id, "launch", at=T0)
        assert [c.id for c in tx.campaigns.list()] == [draft.id, running.id]
        assert [c.id for c in tx.campaigns.list(CampaignState.RUNNING)] == [running.id]
        assert tx.campaigns.list(CampaignState.PAUSED) == []


def test_a_campaign_remembers_its_first_launch_and_its_end(scene: Scene) -> None:
    campaign_id = _campaign(scene).id
    with scene.store.write() as tx:
        assert tx.campaigns.move(campaign_id, "finish", at=T0) is None
        assert tx.campaigns.move(campaign_id, "launch", at=T0 + 1) is CampaignState.RUNNING
        tx.campaigns.move(campaign_id, "pause", at=T0 + 2, reason="breaker")
        assert tx.campaigns.get(campaign_id).reason == "breaker"
        tx.campaigns.move(campaign_id, "resume", at=T0 + 3)
        tx.campaigns.move(campaign_id, "finish", at=T0 + 4)
        over = tx.campaigns.get(campaign_id)
        assert (over.launched_at, over.finished_at, over.reason) == (T0 + 1, T0 + 4, "")
        tx.campaigns.move(campaign_id, "retry", at=T0 + 5)
        assert tx.campaigns.get(campaign_id).finished_at is None


def test_every_event_moves_exactly_where_the_table_says(scene: Scene) -> None:
    campaign_id, run_id = _campaign(scene).id, scene.run()
    for state in CampaignState:
        for event in sorted({event for _, event in CAMPAIGN.table}):
            scene.sql("UPDATE campaigns SET state = :s", s=state.value)
            with scene.store.write() as tx:
                moved = tx.campaigns.move(campaign_id, event, at=T0)
                assert moved is CAMPAIGN.table.get((state, event))
                assert tx.campaigns.get(campaign_id).state is (moved or state)
    for run_state in RunState:
        for event in sorted({event for _, event in RUN.table}):
            scene.sql("UPDATE runs SET state = :s", s=run_state.value)
            with scene.store.write() as tx:
                then = tx.runs.move(run_id, event, at=T0)
                assert then is RUN.table.get((run_state, event))
                assert tx.runs.get(run_id).state is (then or run_state)


def test_a_run_carries_its_campaign_along(scene: Scene) -> None:
    campaign = _campaign(scene)
    with scene.store.write() as tx:
        run = tx.runs.add(
            campaign_id=campaign.id,
            window="09:00-17:00 UTC",
            opens_at=T0 + 1,
            closes_at=T0 + 9,
            priority=2,
            at=T0,
        )
        second = tx.runs.add(campaign_id=campaign.id, state=RunState.RUNNING, at=T0 + 3)
        assert tx.runs.of_campaign(campaign.id) == [run, second]
        assert tx.runs.of_campaign(campaign.id, [RunState.RUNNING]) == [second]
        assert tx.runs.get(run.id) == run
        with pytest.raises(NotFoundError, match="run 999999 does not exist"):
            tx.runs.get(999_999)
    assert (run.campaign, run.kind, run.content) == ("spring", "campaign", CONTENT)
    assert (run.window, run.opens_at, run.closes_at, run.priority) == (
        "09:00-17:00 UTC",
        T0 + 1,
        T0 + 9,
        2,
    )
    assert (run.state, run.total, run.started_at) == (RunState.WAITING, 0, None)
    assert (second.state, second.started_at) == (RunState.RUNNING, T0 + 3)


def test_a_run_remembers_its_start_its_end_and_its_summary(scene: Scene) -> None:
    run_id = scene.run(RunState.WAITING)
    with scene.store.write() as tx:
        assert tx.runs.move(run_id, "start", at=T0 + 1) is RunState.RUNNING
        assert tx.runs.move(run_id, "start", at=T0 + 2) is None
        tx.runs.move(run_id, "finish_some", at=T0 + 3, summary="1 of 2")
        over = tx.runs.get(run_id)
        assert (over.started_at, over.finished_at, over.summary) == (T0 + 1, T0 + 3, "1 of 2")
        tx.runs.move(run_id, "retry", at=T0 + 4)
        again = tx.runs.get(run_id)
        assert (again.started_at, again.finished_at, again.summary) == (T0 + 1, None, "")


def test_whom_later_runs_of_the_same_campaign_have_reached(scene: Scene) -> None:
    campaign, other, account_id = _campaign(scene), _campaign(scene, "autumn"), scene.account()
    with scene.store.write() as tx:
        earlier, asked, later, latest = (
            tx.runs.add(campaign_id=campaign.id, state=RunState.RUNNING, at=T0).id for _ in range(4)
        )
        elsewhere = tx.runs.add(campaign_id=other.id, state=RunState.RUNNING, at=T0).id
        (person,) = tx.contacts.add([Contact(0, (), {}, "", T0)], T0)
    for run_id, target, contact_id in (
        (earlier, "before", None),
        (asked, "this one", None),
        (later, "waits", person),
        (latest, "waits", person),
        (elsewhere, "another campaign", None),
    ):
        scene.delivery(run_id, account_id, target=target, contact_id=contact_id)
    skipped = scene.delivery(later, account_id, target="skipped")
    partly = scene.delivery(latest, account_id, target="partly")
    scene.sql("UPDATE deliveries SET parts_done = 1 WHERE id = :id", id=partly)
    with scene.store.write() as tx:
        tx.deliveries.move(skipped, "skip", at=T0, reason="no")
        tx.deliveries.move(partly, "skip", at=T0, reason="no")
    with scene.store.read() as tx:
        found = tx.runs.reached_after(asked, [DeliveryState.SKIPPED])
    assert sorted(found) == [("partly", None), ("waits", person)]
