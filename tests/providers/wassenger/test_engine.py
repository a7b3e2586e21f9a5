"""A whole campaign through the engine, the store and real connections to the fake."""

from collections import Counter

import pytest

from paceline.core.errors import InputError
from paceline.core.model import Part, Target
from tests.providers.remote import GROUPS, NOTE, PEOPLE
from tests.providers.wassenger.fake import DEVICE, GROUP, FakeWassenger
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
