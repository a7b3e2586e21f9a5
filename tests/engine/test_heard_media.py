"""What people send besides words: kept, named, and told to whoever answers."""

from __future__ import annotations

import asyncio
import json

import pytest

from paceline.core.answering import Rules
from paceline.core.enclosures import Enclosed
from paceline.core.instants import SECOND
from paceline.engine.conversation_view import conversation_view
from paceline.engine.ports.answering import Burst, ResponderRefused, Said
from paceline.providers.responders.http import body_of
from paceline.providers.responders.rules import RulesResponder
from paceline.providers.responders.window import all_in_words
from paceline.store.inbox import LONGEST_MESSAGE
from tests.engine.talking import EVA, Desk, Scripted, answered, conversation, hear
from tests.engine.world import World

VOICE = Enclosed(mime="audio/ogg", size=30_000, seconds=12, handle="https://files.example/s3cret")
OFFER = Enclosed("offer.pdf", "application/pdf", 2048, handle="media-id-77")


def test_a_burst_of_voices_and_pictures_alone_is_answered(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    responder = Scripted()

    async def script(world: World) -> None:
        answered(world)
        desk = Desk(world, responder)
        hear(world, "", kind="audio", files=(VOICE,))
        hear(world, "for you", kind="document", files=(OFFER,))
        await world.wait(20 * SECOND)
        (burst,) = responder.asked
        assert [one.files for one in burst.said] == [(VOICE,), (OFFER,)]
        assert all_in_words(burst) == (
            "[voice message, 12 s]\n[document, offer.pdf, 2.0 KB] for you"
        )
        lines = world.read(lambda tx: conversation_view(tx, conversation(world), 10))
        assert [line.text for line in lines if line.by == "them"] == [
            "[voice message, 12 s]",
            "[document, offer.pdf, 2.0 KB] for you",
        ]
        await desk.stop()

    world.play(script)
    assert "s3cret" not in "".join(capsys.readouterr())


def test_a_service_is_told_how_to_get_at_them() -> None:
    burst = Burst("k", "shop", EVA, (Said("them", "", 0, "audio", (VOICE,)), Said("them", "x", 0)))
    first, second = json.loads(body_of(burst, 0))["messages"]
    assert first["files"] == [
        {
            "mime": "audio/ogg",
            "size": 30_000,
            "seconds": 12,
            "handle": "https://files.example/s3cret",
        }
    ]
    assert "files" not in second


def test_a_table_of_words_hands_a_voice_to_a_person_unless_it_says_otherwise() -> None:
    burst = Burst("k", "shop", EVA, (Said("them", "", 0, "audio", (VOICE,)),))
    with pytest.raises(ResponderRefused):
        asyncio.run(RulesResponder(Rules(())).answer(burst))
    told = asyncio.run(RulesResponder(Rules((), "We cannot listen.")).answer(burst))
    assert told.text == "We cannot listen."


@pytest.mark.parametrize("length", [2_001, LONGEST_MESSAGE])
def test_what_people_wrote_is_kept_whole(world: World, length: int) -> None:
    async def script(world: World) -> None:
        answered(world)
        hear(world, "é" * length)
        (kept,) = world.read(lambda tx: tx.inbox.latest())
        assert kept.text == "é" * length
        hear(world, "x" * (LONGEST_MESSAGE + 1))
        assert len(world.read(lambda tx: tx.inbox.latest())[0].text) == LONGEST_MESSAGE

    world.play(script)
