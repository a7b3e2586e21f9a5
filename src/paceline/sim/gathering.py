"""What the judges are given when a world has ended: what was seen, and what the tables hold."""

from __future__ import annotations

from paceline.core.durations import parse_duration
from paceline.core.instants import Instant
from paceline.core.policy import Policy
from paceline.engine import queries
from paceline.engine.ports import Delivery, Run
from paceline.sim.checks import Evidence
from paceline.sim.correspondence import Correspondence
from paceline.sim.diary import Annals, Diary
from paceline.sim.operators import REPLIES
from paceline.sim.posting import told
from paceline.sim.stage import Stage
from paceline.sim.talking import proceedings


def gathered(stage: Stage) -> Evidence:
    world, witness = stage.world, stage.around.witness
    with stage.around.store.read() as tx:
        names = {a.id: a.name for a in tx.accounts.list(with_removed=True)}
        runs: dict[int, Run] = {}
        deliveries: list[Delivery] = []
        for campaign in tx.campaigns.list():
            deliveries += queries.deliveries_of(tx, campaign)
            runs.update((run.id, run) for run in tx.runs.of_campaign(campaign.id))
        waits = {
            (run.id, step): parse_duration(text)
            for run in runs.values()
            for step, text in enumerate(
                tx.campaigns.get(run.campaign_id).settings.get("steps", []), start=2
            )
        }
        used = {call.facts.policy_id for call in witness.calls if call.facts is not None}
        policies = {
            number: Policy.from_mapping(tx.policies.body(number))
            for number in sorted(number for number in used if number is not None)
        }
    return Evidence(
        calls=witness.calls,
        defects=witness.defects,
        effects=stage.effects.all(),
        deliveries=deliveries,
        accounts=names,
        runs=runs,
        parts={
            (run.id, step): max(1, len(run.parts_of(step)))
            for run in runs.values()
            for step in range(1, 2 + len(run.content))
        },
        policies=policies,
        planned=sum(m.deliveries for m in world.mailings)
        + stage.operators.direct
        + sum(run.total for run in runs.values() if run.kind == "reminder" or run.follow_ups)
        + sum(run.total for run in runs.values() if world.talk and run.campaign == REPLIES),
        suppressed_at={**_suppressed_at(stage), **witness.suppressed_at},
        silences=stage.operators.silences,
        ended_at=stage.around.clock.now(),
        came_to_rest=stage.over,
        heard=witness.heard,
        loaded=witness.loaded,
        started_at=world.start_at,
        waits=waits,
        spread_us=stage.spread_us,
        looks=witness.looks,
        releases=stage.operators.releases,
        calm_at=world.start_at + world.lasts_us,
        pages=stage.chronicle.pages if stage.chronicle and world.signals is not None else (),
        tables=stage.operators.tables,
        rung=stage.around.phone.rung if stage.around.phone is not None else (),
        annals=_annals(stage),
        post=_correspondence(stage),
        talks=proceedings(stage),
    )


def _suppressed_at(stage: Stage) -> dict[str, Instant]:
    """By whatever an address came to be suppressed, and not by operators only."""
    entries = stage.register.entries if stage.register is not None else []
    return {address: entry.at for entry in entries for address in entry.suppressed}


def _correspondence(stage: Stage) -> Correspondence | None:
    office, register = stage.office, stage.register
    if office is None or register is None:
        return None
    with stage.around.store.read() as tx:
        events = told(tx)
    return Correspondence(office.boxes, register.entries, office.clicks, events)


def _annals(stage: Stage) -> Annals | None:
    world, diary = stage.world, stage.chronicle
    if world.routine is None or not isinstance(diary, Diary):
        return None
    senders = {sender.name: sender for sender in world.senders}
    return Annals(diary.pages, diary.entries, stage.operators.book, world.routine, senders)
