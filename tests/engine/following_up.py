"""Campaigns with a follow-up, for tests: who is written to, and who was sent the second message."""

from __future__ import annotations

from typing import Any

from paceline.core.instants import HOUR, MINUTE
from paceline.core.model import Content, FollowUp, Part, Step, Target
from paceline.engine.ports import Delivery, Run
from paceline.providers.sandbox.effects import Effect
from tests.engine.scenes import deliveries
from tests.engine.talking import BEN, EVA
from tests.engine.world import Process, World

SECOND_MESSAGE = Content((Part("text", "here it is, {{ target }}"),))
ON_REPLY = FollowUp(SECOND_MESSAGE)
AGAIN = Step(2 * HOUR, Content((Part("text", "still there?"),)))


def outreach(world: World, *, names: tuple[str, ...] = (EVA, BEN), **spec: Any) -> Process:
    world.account(policy={"rate": "60/min"})
    world.campaign(targets=[Target(name) for name in names], **{"follow_up": ON_REPLY, **spec})
    return world.process(poll_us=MINUTE)


def second_messages(world: World) -> list[Effect]:
    bidden = {row.id for row in deliveries(world) if row.run_id == follow_ups(world).id}
    return [one for one in world.sends() if int(one.key.split("-")[1]) in bidden]


def follow_ups(world: World, name: str = "spring") -> Run:
    campaign = world.read(lambda tx: tx.campaigns.find(name))
    assert campaign is not None
    (run,) = [
        run for run in world.read(lambda tx: tx.runs.of_campaign(campaign.id)) if run.follow_ups
    ]
    return run


async def first_messages(world: World, count: int = 2) -> None:
    await world.until(lambda: world.counts().get("sent", 0) >= count)


def first_to(world: World, target: str) -> Delivery:
    return next(row for row in deliveries(world) if row.target == target and row.step == 1)
