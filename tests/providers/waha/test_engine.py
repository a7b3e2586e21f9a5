"""Whole campaigns through the engine, the store and real connections to the fake."""

from collections import Counter

import pytest

from paceline.core.model import Part, Target
from tests.providers.remote import GROUPS, NOTE, PEOPLE
from tests.providers.waha.fake import GROUP, FakeWaha
from tests.providers.waha.live import LiveWorld
from tests.providers.waha.stage import play


@pytest.mark.parametrize("targets", [PEOPLE, GROUPS], ids=["people", "groups"])
def test_everybody_gets_it_once_and_the_file_with_every_message(
    live: LiveWorld, targets: list[Target]
) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect(concurrency=3)
        media = world.picture()
        world.campaign(targets=targets, parts=(*NOTE, Part("media", "{{ name }}", media=media.id)))
        await world.send_all()
        assert world.counts() == {"sent": 5}
        assert len(world.read(lambda tx: tx.media.uploads())) == 1, "one handle, used five times"

    live.play(script)
    assert live.targets() == Counter({one.address: 2 for one in targets})
    assert Counter(one["path"] for one in live.fake.messages) == {"/sendText": 5, "/sendImage": 5}
    assert len({one["id"] for one in live.fake.messages}) == 10


def test_whoever_is_not_on_whatsapp_is_never_written_to(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.chats[PEOPLE[1].address[1:]] = None
        world.fake.chats[PEOPLE[2].address[1:]] = "4915100000042@c.us"
        world.campaign(targets=PEOPLE[:3], parts=NOTE)
        await world.send_all()
        assert world.counts() == {"sent": 2, "bounced": 1}

    live.play(script)
    assert set(live.targets()) == {PEOPLE[0].address, "+4915100000042"}
    assert len(live.fake.asked("/contacts/check-exists")) == 3


def test_the_fake_minds_what_it_is_sent(fake: FakeWaha) -> None:
    """A fake that takes anything would show nothing."""
    odd = (
        {"session": "shop-1", "text": "x"},
        {"session": "shop-1", "chatId": GROUP, "text": ""},
        {"session": "shop-1", "chatId": "+49151", "text": "x"},
        {"session": "shop-1", "chatId": GROUP, "text": "x", "id": "home-7-0"},
        {"session": "shop-1", "chatId": GROUP, "text": "x", "caption": "y"},
    )

    async def scene(driver: object) -> None:
        line = driver._line  # type: ignore[attr-defined]
        for body in odd:
            await line.deliver("/api/sendText", json=body)

    play(fake.settings(), scene)
    assert len(fake.failures) == len(odd) and not fake.messages
    fake.failures.clear()
