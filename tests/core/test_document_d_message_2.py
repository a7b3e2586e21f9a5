"""Document D's fifth property: Message 2 goes out at once when somebody replies in time, and never
otherwise. The other seven are in ``test_document_d.py``."""

import random
from itertools import pairwise

import pytest
from hypothesis import given

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.model import Content, FollowUp, Part, Target
from paceline.core.states import DeliveryState
from tests.core.test_document_d import a_campaign, play, seeds
from tests.engine.scenes import deliveries, in_state, reply, send_direct, slow_heart, until
from tests.engine.talking import hear
from tests.engine.world import World


def reached_by(world: World) -> set[int]:
    """The deliveries that the provider holds."""
    return {int(effect.key.split("-")[1]) for effect in world.sends()}


async def _replies_only(world: World, rng: random.Random) -> None:
    """Monday 09:00, and business hours that begin at 14:00: whoever writes before was let by."""
    hours = {"hours": "Mon-Fri 14:00-18:00 UTC", "spacing": "5m", "batch": "2 then 10m"}
    world.account(policy=hours, latency="10ms..1s", seed=rng.randrange(1000))
    world.campaign(rng.randint(1, 6))
    process = world.process(poll_us=MINUTE)
    replied: set[int] = set()
    direct: set[int] = set()
    for number in range(rng.randint(0, 5)):
        await world.wait(rng.randint(0, 20 * MINUTE))
        if rng.random() < 0.6:
            replied.add(reply(world, f"eve-{number}"))
        else:
            direct.add(send_direct(world, f"adam-{number}"))
        await world.wait(2 * MINUTE)  # as often as this process looks for news, and a little
        assert reached_by(world) == replied, (
            "a reply leaves at once, and nothing else before the hours"
        )
    # In the hours as well: right after a paced message a reply need not keep its distance, nor
    # does it stand behind single messages that have to.
    held = len(world.sends())
    await until(world, lambda: len(world.sends()) > held, SECOND, 24 * HOUR)
    replied.add(reply(world, "eve-at-last"))
    await until(world, lambda: replied <= reached_by(world), SECOND, 2 * MINUTE)
    await until(world, lambda: world.state() == "finished", 10 * MINUTE, 24 * HOUR)
    await until(world, lambda: not in_state(world, DeliveryState.READY), 10 * MINUTE, 24 * HOUR)
    await process.stop()
    counted = {row.id: row for row in deliveries(world) if row.state is DeliveryState.SENT}
    campaign_size = world.counts()["sent"]
    assert len(counted) == campaign_size + len(replied) + len(direct), "nothing unbidden"
    assert len(world.sends()) == len(counted)
    paced = [
        effect.called_at for effect in world.sends() if int(effect.key.split("-")[1]) not in replied
    ]
    for first, second in pairwise(paced):
        assert second - first >= 5 * MINUTE, "only replies ignore the spacing"


@a_campaign
@given(seeds)
def test_property_5_replies_wait_for_less(seed: int) -> None:
    """What Message 2 stands on: a reply passes hours, spacing and batch pauses at once, nothing
    else ever does, and no message is sent that nobody asked for."""
    with pytest.MonkeyPatch.context() as patch:
        slow_heart(patch)
        play(seed, _replies_only)


async def _message_1_message_2(world: World, rng: random.Random) -> None:
    """People answer early, late, twice, never, through two hooks, or whenever a process dies; the
    test knows who did so in time, and the provider's own log who was sent what."""
    hours = {"hours": "Mon-Fri 08:00-20:00 UTC", "spacing": "2m", "batch": "3 then 10m"}
    world.account(policy=hours, latency="10ms..1s", seed=rng.randrange(1000))
    names = [f"+3460011{number:04}" for number in range(rng.randint(1, 5))]
    second = Content((Part("text", "Message 2"),))
    targets = [Target(name) for name in names]
    world.campaign(targets=targets, follow_up=FollowUp(second), stop_on_reply=rng.random() < 0.5)
    processes = [world.process(poll_us=3 * MINUTE)]
    firsts = dict.fromkeys(names, 0)
    bidden: dict[str, int] = {}
    wish = {name: rng.randint(0, 40 * HOUR) for name in names if rng.random() < 0.8}
    for step in range(100):
        await world.wait(30 * MINUTE)
        now = world.clock.now()
        for effect in world.sends():
            firsts[effect.target] = firsts[effect.target] or effect.at
        for name in [one for one in wish if firsts[one] and firsts[one] + wish[one] <= now]:
            del wish[name]
            if now <= firsts[name] + 24 * HOUR:
                bidden[name] = now
            for again in range(rng.randint(1, 3)):
                hook = rng.choice(["", f"again-{again}-"])
                hear(world, "yes", chat=name, provider_id=f"{hook}yes-{name}")
        if rng.random() < 0.05:
            await processes.pop().kill()
            processes.append(world.process(f"process {step}", poll_us=3 * MINUTE))
    await world.wait(30 * MINUTE)
    for process in processes:
        await process.stop()
    sent: dict[str, list[int]] = {}
    for effect in world.sends():
        sent.setdefault(effect.target, []).append(effect.called_at)
    for name in names:
        calls = sent.get(name, [])
        assert len(calls) == 1 + (name in bidden), "to whoever replied in time, once; never else"
        if name in bidden:
            assert bidden[name] <= calls[1] <= bidden[name] + 5 * MINUTE, "immediately"


@a_campaign
@given(seeds)
def test_property_5_message_1_message_2_logic_preservation(seed: int) -> None:
    """Message 2 is sent immediately when the contact replies within 24 h, and never otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        slow_heart(patch)
        play(seed, _message_1_message_2)
