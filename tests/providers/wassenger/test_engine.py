"""A whole campaign through the engine, the store and real connections to the fake."""

from collections import Counter

import pytest

from paceline.core.errors import InputError
from paceline.core.model import Part, Target
from tests.providers.loopback import Scripted
from tests.providers.remote import GROUPS, NOTE, PEOPLE
from tests.providers.wassenger.fake import DEVICE, GROUP, FakeWassenger, error
from tests.providers.wassenger.live import LiveWorld


@pytest.mark.parametrize("targets", [PEOPLE, GROUPS], ids=["people", "groups"])
def test_everybody_gets_it_once_and_the_file_is_uploaded_once(
    live: LiveWorld, targets: list[Target]
) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect(concurrency=3)
        media = world.picture()
        parts = (*NOTE, Part("media", "{{ name }}", media=media.id))
        world.campaign(targets=targets, parts=parts)
        await world.send_all()
        assert world.counts() == {"sent": 5}

    live.play(script)
    assert live.targets() == Counter({one.address: 2 for one in targets})
    assert len(live.fake.uploaded()) == 1
    assert len({one["reference"] for one in live.fake.messages}) == 10


def test_a_file_that_wassenger_lost_is_uploaded_again(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        media = world.picture()
        for name in ("spring", "summer"):
            world.campaign(targets=PEOPLE, parts=(Part("media", "x", media=media.id),), name=name)
            await world.send_all(name)
            assert world.counts(name) == {"sent": 5}
            world.fake.files.clear()

    live.play(script)
    assert len(live.fake.uploaded()) == 2
    assert len(live.fake.messages) == 10


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    "lost", [Scripted(drops="read", takes=True), Scripted(504, b"<html>", takes=True)]
)
def test_a_doubt_is_resolved_by_asking(live: LiveWorld, lost: Scripted) -> None:
    """It is found by our name of it when the list has caught up, and not sent again."""

    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.append(lost)
        world.fake.unlisted = True
        world.campaign(targets=PEOPLE[:1], parts=NOTE)
        process = world.lively()
        await world.until_so(
            lambda: any(call.method == "GET" and call.query for call in world.fake.calls)
        )
        assert world.counts() == {"unknown": 1}
        world.fake.unlisted = False
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


def test_a_device_that_is_gone_suspends_and_nobody_is_given_up(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.append(error(401))
        world.campaign(targets=PEOPLE, parts=NOTE)
        process = world.lively()
        await world.until_so(lambda: world.account_now().state == "suspended")
        await process.stop()
        assert "Told in words: 401" in world.account_now().state_reason
        assert world.counts() == {"ready": 5}

    live.play(script)
    assert not live.fake.messages


def test_a_phone_that_is_not_paired_is_never_used(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        assert world.fake.device is not None
        world.fake.device["session"] = {"status": "unauthorized"}
        world.campaign(targets=PEOPLE, parts=NOTE)
        process = world.lively()
        await world.until_so(lambda: world.account_now().state == "suspended")
        await process.stop()
        assert "not paired" in world.account_now().state_reason

    live.play(script)
    assert not live.fake.sends()


def test_groups_are_refused_where_the_number_has_none(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect({"groups": False})
        with pytest.raises(InputError, match=rf"{GROUP} is a group, not a phone number"):
            world.campaign(targets=[Target(GROUP, {"name": "x"})], parts=NOTE)
        world.campaign(targets=PEOPLE[:1], parts=NOTE)

    live.play(script)


def test_the_fake_minds_what_it_is_sent(fake: FakeWassenger) -> None:
    """A fake that takes anything would show nothing."""
    from tests.providers.wassenger.stage import play

    async def scene(driver: object) -> None:
        line = driver._line  # type: ignore[attr-defined]
        for odd in ({"device": DEVICE}, {"device": DEVICE, "phone": "+1", "enqueue": "always"}):
            await line.deliver("/messages", json=odd)

    play(fake.settings(), scene)
    assert len(fake.failures) == 2 and not fake.messages
    fake.failures.clear()
