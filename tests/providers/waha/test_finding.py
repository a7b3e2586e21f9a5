"""What became of a message without an answer: found by its id, never said to be absent."""

import json
from typing import Any

import pytest

from paceline.engine.ports import Found
from paceline.providers.answers import segment
from paceline.providers.waha.wire import own_id
from tests.providers.loopback import HTML, Scripted, said
from tests.providers.remote import patience
from tests.providers.waha.fake import CHAT, GROUP, PHONE, SESSION, FakeWaha, error, not_working
from tests.providers.waha.stage import hand_over, message, picture, play, send

OURS = own_id("home-7-0")
UNCLEAR = Found("unclear")
PATH = f"/{SESSION}/chats/{segment(CHAT)}/messages/{segment(f'true_{CHAT}_{OURS}')}"


def find(fake: FakeWaha, settings: dict[str, Any] | None = None, **about: Any) -> Found:
    made = fake.settings(**(settings or {}))
    return play(made, lambda driver: driver.find(message(**about), 0), patience(fake))


@pytest.mark.parametrize("engine", ["GOWS", "NOWEB"])
@pytest.mark.parametrize("target", [PHONE, GROUP])
def test_it_is_asked_for_by_its_id(fake: FakeWaha, engine: str, target: str) -> None:
    fake.engine = engine
    sent = send(fake, message(target, key="home-7-0"))
    assert sent.provider_id == OURS
    assert find(fake, target=target, text="changed since") == Found("present", OURS)
    assert find(fake, target=target, key="home-8-0") == UNCLEAR
    assert not fake.failures


def test_a_file_is_found_like_a_text(fake: FakeWaha) -> None:
    async def scene(driver: Any) -> Found:
        await driver.send(picture(await hand_over(driver)))
        found: Found = await driver.find(picture(None), 0)
        return found

    assert play(fake.settings(), scene) == Found("present", OURS)


def test_a_chat_with_another_number_is_looked_into(fake: FakeWaha) -> None:
    """Where WhatsApp knows a number by another one, the message is there."""
    fake.chats["5511987654321"] = "551187654321@c.us"

    async def scene(driver: Any) -> Found:
        sent = message("+5511987654321")
        target = await driver.resolve(sent)
        await driver.send(sent._replace(target=target))
        found: Found = await driver.find(sent, 0)
        return found

    assert play(fake.settings(), scene) == Found("present", OURS)
    assert fake.messages[0]["chat"] == "551187654321@c.us"
    assert find(fake, target="+5511987654321") == Found("present", OURS), "also after a restart"


def test_what_is_not_there_yet_proves_nothing(fake: FakeWaha) -> None:
    send(fake, message())
    fake.unlisted = True
    assert find(fake) == UNCLEAR


@pytest.mark.parametrize("ack", [0, 1, 2, 3, 4])
def test_it_is_out_however_far_it_got(fake: FakeWaha, ack: int) -> None:
    send(fake, message())
    fake.messages[0]["ack"] = ack
    assert find(fake).finding == "present"


def test_one_that_whatsapp_refused_proves_nothing(fake: FakeWaha) -> None:
    """It may be an earlier attempt at the same, whose id is the same."""
    send(fake, message())
    fake.messages[0]["ack"] = -1
    assert find(fake) == UNCLEAR


def test_an_engine_that_takes_no_ids_is_not_asked(fake: FakeWaha) -> None:
    fake.engine = "WEBJS"
    send(fake, message(), own_ids=False)
    assert find(fake, {"own_ids": False}) == UNCLEAR
    assert not fake.asked("/messages/")


@pytest.mark.parametrize(
    "scripted",
    [
        said(200, {"id": f"true_{CHAT}_3EB0OTHER", "fromMe": True, "ack": 1}),
        said(200, {"id": f"false_{CHAT}_{OURS}", "fromMe": False, "ack": 1}),
        said(200, {"id": f"true_{CHAT}_{OURS}", "ack": 1}),
        said(200, {"id": f"true_{CHAT}_{OURS}", "fromMe": True, "ackName": "ERROR"}),
        said(200, [{"id": f"true_{CHAT}_{OURS}", "fromMe": True}]),
        error(401),
        error(404, "Message not found"),
        error(429),
        error(400, 'Enable NOWEB store "config.noweb.store.enabled=True"'),
        not_working("STARTING"),
        error(500),
        Scripted(502, b"<html>", HTML),
        Scripted(404, b"<html>", HTML),
        Scripted(200, b"nonsense"),
        Scripted(200, json.dumps(None).encode()),
        Scripted(hangs=True),
        Scripted(drops="read"),
        Scripted(204),
    ],
    ids=lambda value: str(value)[:60],
)
def test_not_being_told_is_unclear(fake: FakeWaha, scripted: Scripted) -> None:
    send(fake, message())
    fake.answers[PATH] = scripted
    assert find(fake) == UNCLEAR
    assert fake.asked("/messages/"), "it was asked for, where the test says"


def test_a_number_that_cannot_be_looked_up_is_looked_for_as_it_is(fake: FakeWaha) -> None:
    send(fake, message())
    fake.answers["/contacts/check-exists"] = Scripted(502, b"<html>", HTML)
    assert find(fake) == Found("present", OURS)


def test_what_can_be_no_target_is_not_looked_for(fake: FakeWaha) -> None:
    assert find(fake, target="anna@example.com") == UNCLEAR
    assert not fake.asked("/messages/")
