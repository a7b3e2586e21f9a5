"""Whole campaigns through the engine, the store and real connections to the fake."""

from collections import Counter
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.core.model import Content, Part, Target
from paceline.engine.commands import campaigns
from paceline.engine.commands.receipts import resolve_by_receipt
from paceline.engine.ports import Receipt
from tests.providers.loopback import Scripted
from tests.providers.remote import PEOPLE
from tests.providers.wati.live import LiveWorld

GROUP = "120363041234567890@g.us"
NOTE = Part("template", template="order_ready", language="en_US", values=(("", "{{ name }}"),))


def world_with(live: LiveWorld, **policy: Any) -> LiveWorld:
    live.fake.templates["order_ready"] = ("1",)
    live.fake.talking = set()
    live.connect(**policy)
    return live


def say(world: LiveWorld, target: str, part: Part) -> int:
    """A single message, which is taken for an answer."""
    content, now = Content((part,)), world.clock.now()
    return world.write(
        lambda tx: campaigns.send_direct(
            tx, "ann", target, content, "message", now, providers=world.providers
        )
    )


def states(world: LiveWorld, ids: list[int]) -> list[str]:
    return world.read(lambda tx: [str(tx.deliveries.get(one).state) for one in ids])


def test_everybody_gets_the_template_once_with_their_own_name(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world_with(world, concurrency=3)
        world.campaign(targets=PEOPLE, parts=(NOTE,))
        await world.send_all()
        assert world.counts() == {"sent": 5}

    live.play(script)
    assert live.targets() == Counter({one.address: 1 for one in PEOPLE})
    filled = {f"+{one['to']}": one["blanks"][0]["value"] for one in live.fake.messages}
    assert filled == {one.address: one.fields["name"] for one in PEOPLE}
    assert len({one["localMessageId"] for one in live.fake.messages}) == 5


def test_what_it_cannot_send_is_refused_before_it_starts(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world_with(world)
        with pytest.raises(InputError, match=r"^parts\[1\]: wati lets ann write to people only wi"):
            world.campaign(targets=PEOPLE, parts=(Part("text", "Hello {{ name }}"),))
        with pytest.raises(InputError, match=rf"{GROUP} is a group, not a phone number"):
            world.campaign(targets=[Target(GROUP, {"name": "x"})], parts=(NOTE,))
        assert world.read(lambda tx: tx.campaigns.find("spring")) is None

    live.play(script)
    assert not live.fake.sends()


def test_an_answer_may_be_anything_and_wati_decides(live: LiveWorld) -> None:
    """Whoever has not written gets none: it fails, and the account goes on."""

    async def script(world: LiveWorld) -> None:
        world_with(world)
        anna, bob = PEOPLE[0].address, PEOPLE[1].address
        world.fake.talking = {anna.removeprefix("+")}
        media = world.picture()
        ids = [
            say(world, anna, Part("text", "At six")),
            say(world, bob, Part("text", "At six")),
            say(world, anna, Part("media", "Here", media=media.id)),
        ]
        process = world.lively()
        await world.until_so(lambda: {"ready", "sending"}.isdisjoint(states(world, ids)))
        await process.stop()
        assert states(world, ids) == ["sent", "failed", "sent"]
        reason = world.read(lambda tx: tx.deliveries.get(ids[1])).reason
        assert reason == "Ticket has been expired."
        assert world.account_now().state == "active"

    live.play(script)
    assert [one["content"] for one in live.fake.messages] == [None, b"PNG"]


def test_a_template_that_is_not_there_pauses_the_campaign_after_one(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world_with(world)
        world.fake.templates.clear()
        world.campaign(targets=PEOPLE, parts=(NOTE,))
        process = world.lively()
        await world.until_so(lambda: world.state() == "paused")
        await process.stop()
        assert world.counts() == {"failed": 1, "ready": 4}

    live.play(script)


# ---------------------------------------------------------------------- lost answers


@pytest.mark.usefixtures("soon_held")
def test_what_cannot_be_found_is_held_until_a_report_names_it(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world_with(world)
        world.fake.script.append(Scripted(drops="read", takes=True))
        world.fake.unlisted = True
        world.campaign(targets=PEOPLE[:1], parts=(NOTE,))
        await world.leave_to_a_person()
        assert world.counts() == {"unknown": 1}
        account, now = world.account_now(), world.clock.now()
        (entry,) = world.fake.messages
        key = entry["localMessageId"]
        receipt = Receipt(key, "delivered", now, key=key)
        taken = world.write(lambda tx: resolve_by_receipt(tx, account.id, receipt, now))
        assert (taken, world.counts()) == ("resolved", {"sent": 1})

    live.play(script)
    assert len(live.fake.sends()) == 1
