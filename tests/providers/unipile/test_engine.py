"""Campaigns through the real engine and store, over real connections, to the fake."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import DAY
from paceline.core.model import Content, Part, Step, Target
from tests.engine.world import World
from tests.providers.unipile.fake import error
from tests.providers.unipile.live import LiveWorld

PEOPLE = [Target(f"ACoAA-{number}", {"name": f"N{number}"}) for number in range(5)]
NOTE = (Part("text", "Hello {{ name }}"),)


def has_finished(world: World, name: str) -> bool:
    return world.state(name) == "finished"


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("message", "linkedin"),
        ("inmail", "linkedin"),
        ("connection_request", "linkedin"),
        ("email", "email"),
    ],
)
def test_everybody_gets_it_once(live: LiveWorld, action: str, kind: str) -> None:
    people = PEOPLE
    if kind == "email":
        people = [Target(f"p{number}@example.com", {"name": "N"}) for number in range(5)]

    async def script(world: LiveWorld) -> None:
        world.connect(kind)
        world.campaign(targets=people, parts=NOTE, action=action)
        await world.send_all()
        assert world.counts() == {"sent": 5}

    live.play(script)
    assert live.targets() == Counter(one.address for one in people)
    assert len(live.fake.sends()) == 5


@pytest.mark.usefixtures("soon_held")
def test_an_earlier_message_of_the_same_words_is_not_taken_for_the_lost_one(
    live: LiveWorld,
) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.campaign(targets=PEOPLE[:1], parts=NOTE, name="last month")
        process = world.lively()
        await world.until_so(partial(has_finished, world, "last month"))
        world.fake.sent[0]["at"] -= 30 * DAY
        world.fake.script.append(error(504, "request_timeout"))
        world.campaign(targets=PEOPLE[:1], parts=NOTE)
        await world.until_so(lambda: any("held for a person" in r for r in world.reasons(2)))
        await process.stop()
        assert world.counts() == {"unknown": 1}

    live.play(script)


def test_whoever_was_invited_before_counts_as_invited(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        for type_ in ("already_invited_recently", "already_connected"):
            world.fake.script.append(error(422, type_))
        world.campaign(targets=PEOPLE, parts=NOTE, action="connection_request")
        await world.send_all()
        assert world.counts() == {"sent": 5}

    live.play(script)
    assert len(live.fake.sent) == 3


def test_a_reached_limit_stops_the_account_for_a_day(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.append(error(422, "cannot_resend_yet"))
        world.campaign(targets=PEOPLE, parts=NOTE, action="connection_request")
        process = world.lively()
        await world.until_so(lambda: any("Cannot resend yet" in r for r in world.reasons()))
        await process.stop()
        assert world.counts() == {"ready": 5}

    live.play(script)
    assert len(live.fake.sends()) == 1


def test_a_campaign_an_account_cannot_send_is_refused_before_it_starts(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect("email")
        with pytest.raises(InputError, match=r"connection_request' from ann \(it can: email\)"):
            world.campaign(targets=PEOPLE, parts=NOTE, action="connection_request")

    live.play(script)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (NOTE * 2, "parts: a connection request has one part only"),
        ((Part("text", "{{ name }}" + "x" * 299),), r"ACoAA-0: 301 characters, and .* takes 300"),
        ((Part("media", media="a" * 64),), "cannot send media from ann"),
    ],
)
def test_what_no_connection_request_can_be_is_refused_before_it_starts(
    live: LiveWorld, parts: tuple[Part, ...], message: str
) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        with pytest.raises(InputError, match=message):
            world.campaign(targets=PEOPLE, parts=parts, action="connection_request")
        fits = (Part("text", "{{ name }}" + "x" * 298),)
        world.campaign(targets=PEOPLE, parts=fits, action="connection_request")

    live.play(script)


def test_nothing_of_its_kind_follows_an_invitation(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        again = (Step(DAY, Content(NOTE)),)
        with pytest.raises(
            InputError, match="steps: a connection request is sent to a person once"
        ):
            world.campaign(targets=PEOPLE, parts=NOTE, action="connection_request", steps=again)
        world.campaign(targets=PEOPLE, parts=NOTE, action="message", steps=again)

    live.play(script)
