"""Attachments: several files with one message, each uploaded once, and all of them again when one
of them is gone."""

from dataclasses import replace

import pytest

from paceline.core.errors import InputError
from paceline.core.model import Part
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.ports import Message
from paceline.providers.sandbox import SandboxDriver, SandboxProvider
from tests.engine.scenes import finish
from tests.engine.test_media import uploads
from tests.engine.world import World


def letter(world: World, *names: str, media: str | None = None) -> Part:
    """A part with files of these names, each with a content of its own."""
    now = world.clock.now()
    ids = {
        name: world.write(
            lambda tx, name=name: tx.media.put(name, "text/plain", name.encode(), now)  # type: ignore[misc]
        ).id
        for name in (*names, *([media] if media else []))
    }
    kind = "media" if media else "text"
    attached = tuple(ids[name] for name in names)
    return Part(kind, "for {{ target }}", media=ids.get(media or ""), attachments=attached)  # type: ignore[arg-type]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """The messages as the driver gets them."""
    messages: list[Message] = []
    real = SandboxDriver.send

    async def send(self: SandboxDriver, message: Message):  # type: ignore[no-untyped-def]
        messages.append(message)
        return await real(self, message)

    monkeypatch.setattr(SandboxDriver, "send", send)
    return messages


def test_every_file_is_uploaded_once_and_travels_with_every_message(
    world: World, sent: list[Message]
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(5, parts=(letter(world, "offer.pdf", "terms.pdf", media="photo.png"),))
        await finish(world)

    world.play(script)
    assert world.counts_at_end == {"sent": 5}
    assert len(uploads(world)) == 3
    ids = {effect.part.media: effect.provider_id for effect in uploads(world)}
    for message in sent:
        assert message.handle == ids[message.part.media]
        assert message.attached == tuple(ids[one] for one in message.part.attachments)
    assert len(sent) == 5


def test_the_same_file_twice_is_one_upload(world: World, sent: list[Message]) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(2, parts=(letter(world, "a.txt", "a.txt"),))
        await finish(world)

    world.play(script)
    assert len(uploads(world)) == 1
    assert all(one.attached == (one.attached[0],) * 2 for one in sent)


def test_files_that_are_gone_are_uploaded_again_and_cost_no_retry(world: World) -> None:
    """One is new to the account and the others are not: still nothing is given up."""

    async def script(world: World) -> None:
        world.account(policy={"retry": "none"})
        world.campaign(1, name="first", parts=(letter(world, "a.txt", "b.txt"),))
        await finish(world, "first")
        world.write(lambda tx: [tx.media.uploaded(one) for one in spoilt(tx.media.uploads())])
        world.campaign(3, name="second", parts=(letter(world, "a.txt", "b.txt", "c.txt"),))
        await finish(world, "second", process=world.process("two"))
        assert world.counts("second") == {"sent": 3}

    def spoilt(stored: list) -> list:  # type: ignore[type-arg]
        return [
            one.__class__(one.account_id, one.media_id, "gone", one.uploaded_at, one.expires_at)
            for one in stored
        ]

    world.play(script)
    refused = [one for one in world.calls() if one.answer == "rejected"]
    assert {one.code for one in refused} == {"media-unknown"} and len(refused) == 1


def test_files_that_are_gone_as_soon_as_they_are_there_fail_the_message(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"retry": "none"}, handle_expires="0s")
        world.campaign(1, parts=(letter(world, "a.txt", "b.txt"),))
        await finish(world)

    world.play(script)
    assert world.counts_at_end == {"failed": 1}


def test_a_provider_without_attachments_refuses_before_anything_is_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    less = replace(SandboxProvider.capabilities, attachments=False)
    monkeypatch.setattr(SandboxProvider, "capabilities_of", lambda self, settings: less)

    async def script(world: World) -> None:
        world.account()
        with pytest.raises(InputError, match=r"parts\[1\]\.attachments: .*cannot send attachments"):
            world.campaign(1, parts=(letter(world, "a.txt"),))

    world.play(script)


def spec(**part: object) -> CampaignSpec:
    return CampaignSpec.from_mapping(
        {"name": "x", "accounts": ["ann"], "audience": "a.csv", "parts": [{"text": "hi", **part}]}
    )


def test_a_file_says_what_is_attached() -> None:
    read = spec(attachments=["offer.pdf", "terms.pdf"])
    assert read.media == ["offer.pdf", "terms.pdf"]
    stored = read.with_media({"offer.pdf": "1", "terms.pdf": "2"})
    (part,) = stored.content.parts
    assert part.attachments == ("1", "2") and part.media is None
    assert Part.from_mapping(part.to_mapping()) == part


@pytest.mark.parametrize(
    ("wrong", "key"),
    [("offer.pdf", "attachments"), ([""], r"attachments\[1\]"), (["a", 5], r"attachments\[2\]")],
)
def test_what_is_no_list_of_files_is_refused(wrong: object, key: str) -> None:
    with pytest.raises(InputError, match=rf"parts\[1\]: {key}"):
        spec(attachments=wrong)
