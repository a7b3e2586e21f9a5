"""Campaigns through the real engine and store, over real connections, to the fake."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import DAY
from paceline.core.model import Content, Part, Step, Target
from paceline.providers.registry import Registry
from paceline.providers.unipile import UnipileProvider
from tests.engine.world import World
from tests.providers.loopback import Scripted
from tests.providers.remote import PATIENT
from tests.providers.unipile.fake import error
from tests.providers.unipile.live import BRISK, LiveWorld

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


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("action", ["message", "connection_request"])
def test_a_doubt_is_resolved_by_asking(live: LiveWorld, action: str) -> None:
    """Lists lag at first: the message is found when they have caught up, and not sent again."""

    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.append(error(504, "request_timeout", takes=True))
        world.fake.lags = True
        world.campaign(targets=PEOPLE[:1], parts=NOTE, action=action)
        process = world.lively()
        asked = "/users/invite/sent" if action == "connection_request" else "/chat_attendees/"
        await world.until_so(
            lambda: any(asked in call.path for call in world.fake.calls if call.method == "GET")
        )
        assert world.counts() == {"unknown": 1}
        world.fake.lags = False
        await world.until_so(lambda: world.counts() == {"sent": 1})
        await process.stop()

    live.play(script)
    assert len(live.fake.sends()) == 1


@pytest.mark.usefixtures("soon_held")
def test_what_cannot_be_found_is_held_for_a_person(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.append(Scripted(drops="read"))
        world.campaign(targets=PEOPLE[:1], parts=NOTE)
        await world.leave_to_a_person()
        assert world.counts() == {"unknown": 1}

    live.play(script)
    assert len(live.fake.sends()) == 1


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


def test_a_disconnected_account_is_suspended_with_the_reason(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.append(error(401, "disconnected_account"))
        world.campaign(targets=PEOPLE, parts=NOTE)
        process = world.lively()
        await world.until_so(lambda: world.account_now().state == "suspended")
        await process.stop()
        told = "Disconnected account: Told in detail: disconnected_account."
        assert told in world.account_now().state_reason
        assert world.counts() == {"ready": 5}, "nobody is given up because of the account"

    live.play(script)
    assert not live.fake.sent


def test_an_account_that_needs_its_credentials_is_never_used(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.accounts["li-account_1"]["status"] = "CREDENTIALS"
        world.campaign(targets=PEOPLE, parts=NOTE)
        process = world.lively()
        await world.until_so(lambda: world.account_now().state == "suspended")
        await process.stop()
        assert "Unipile reports CREDENTIALS" in world.account_now().state_reason
        assert world.counts() == {"ready": 5}

    live.play(script)
    assert not live.fake.sends()


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


def test_a_file_is_attached_again_after_a_restart(live: LiveWorld) -> None:
    """The engine remembers a handle; the new process has not got the file and says so."""
    people = [Target(f"{number}@example.com", {"name": "N"}) for number in range(3)]

    async def script(world: LiveWorld) -> None:
        world.connect("email")
        media = world.write(
            lambda tx: tx.media.put("offer.pdf", "application/pdf", b"%PDF", world.clock.now())
        )
        parts = (Part("media", "See {{ name }}", media=media.id),)
        for name in ("spring", "summer"):
            world.campaign(targets=people, parts=parts, action="email", name=name)
            fresh = Registry([UnipileProvider(world.clock, timeout=PATIENT)])
            process = world.process(poll_us=BRISK, providers=fresh)
            await world.until_so(partial(has_finished, world, name))
            await process.stop()
            assert world.counts(name) == {"sent": 3}

    live.play(script)
    assert [one["files"][0][2] for one in live.fake.sent] == [b"%PDF"] * 6
