"""A message on the wire, field by field, and what is refused before anything is written."""

import base64
from typing import Any

import pytest

from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Message, Provider, Webhooks
from paceline.providers.waha import WahaProvider
from paceline.providers.waha.driver import WahaDriver
from paceline.providers.waha.wire import own_id
from tests.providers.loopback import said
from tests.providers.remote import CLOCK
from tests.providers.waha.fake import CHAT, GROUP, KEY, PHONE, SESSION, FakeWaha, error
from tests.providers.waha.stage import CONTENT, hand_over, media, message, picture, play, send

K = OutcomeKind
OURS = own_id("home-7-0")


def body(fake: FakeWaha) -> dict[str, Any]:
    (call,) = fake.sends()
    read: dict[str, Any] = call.json()
    return read


def test_it_is_a_provider_with_webhooks() -> None:
    provider: Provider = WahaProvider(CLOCK)
    webhooks: Webhooks = WahaProvider(CLOCK)
    assert provider.name == "waha" and webhooks is not None
    assert provider.secrets == {"api_key", "webhook_secret"}
    able = provider.capabilities
    assert (able.channel, able.media, able.groups) == ("whatsapp", True, True)
    assert able.finds and able.resolves and not able.proves_absence


def test_what_an_account_can_do_depends_on_its_engine() -> None:
    settings = {"base_url": "https://x.example", "api_key": KEY}
    able = WahaProvider(CLOCK).capabilities_of({**settings, "own_ids": False, "look_up": False})
    assert not able.finds and not able.resolves


def test_a_text_to_a_person(fake: FakeWaha) -> None:
    outcome = send(fake, message(text="Grüße 👋\nzwei"))
    assert outcome == Outcome(K.ACCEPTED, provider_id=OURS)
    (call,) = fake.sends()
    assert call.path == "/sendText" and call.headers["x-api-key"] == KEY
    assert body(fake) == {
        "session": SESSION,
        "chatId": CHAT,
        "text": "Grüße 👋\nzwei",
        "id": OURS,
    }


def test_a_text_to_a_group(fake: FakeWaha) -> None:
    assert send(fake, message(GROUP.upper())) == Outcome(K.ACCEPTED, provider_id=OURS)
    assert body(fake)["chatId"] == GROUP


@pytest.mark.parametrize(
    "written", [CHAT, CHAT.replace("c.us", "s.whatsapp.net"), PHONE[1:], "+49 151 12345678"]
)
def test_a_person_is_called_by_number(fake: FakeWaha, written: str) -> None:
    assert send(fake, message(written)).kind is K.ACCEPTED
    assert body(fake)["chatId"] == CHAT


def test_a_chat_s_own_id_is_taken_as_it_is(fake: FakeWaha) -> None:
    """In some countries it is a number that nobody could dial."""
    assert send(fake, message("551187654321@c.us")).kind is K.ACCEPTED
    assert body(fake)["chatId"] == "551187654321@c.us"
    assert send(fake, message("+551187654321")).code == "target"


def test_one_who_hides_can_be_answered(fake: FakeWaha) -> None:
    assert send(fake, message("111222333444555@LID")).kind is K.ACCEPTED
    assert body(fake)["chatId"] == "111222333444555@lid"


def test_an_id_is_the_message_s_own_and_looks_like_any_other() -> None:
    # Pinned: a version that made others could not find what the one before it had sent.
    assert own_id("home-7-0") == "3EB0EF459BE876CE225A3C"
    made = {own_id(f"home-{delivery}-{part}") for delivery in range(500) for part in range(3)}
    assert len(made) == 1_500
    assert all(len(one) == 22 and one.startswith("3EB0") and one.isupper() for one in made)
    assert all("home" not in one for one in made)


def test_the_same_message_twice_reaches_people_once(fake: FakeWaha) -> None:
    """Whoever has decided to send one again that may be out sends it under its own id."""
    first, again = send(fake, message()), send(fake, message())
    assert first == again and len(fake.sends()) == 2
    assert len(fake.messages) == 1
    other = send(fake, message(key="home-7-1"))
    assert other.provider_id != first.provider_id and len(fake.messages) == 2


def test_an_engine_that_takes_no_ids_gets_none(fake: FakeWaha) -> None:
    fake.engine = "WEBJS"
    outcome = send(fake, message(), own_ids=False)
    assert outcome == Outcome(K.ACCEPTED, provider_id=fake.messages[0]["id"])
    assert "id" not in body(fake)


@pytest.mark.parametrize("engine", ["GOWS", "NOWEB", "WEBJS"])
@pytest.mark.parametrize("target", [PHONE, GROUP])
def test_every_engine_s_answer_is_understood(fake: FakeWaha, engine: str, target: str) -> None:
    fake.engine = engine
    outcome = send(fake, message(target), own_ids=engine != "WEBJS")
    assert outcome == Outcome(K.ACCEPTED, provider_id=fake.messages[0]["id"])


@pytest.mark.parametrize(
    ("mime", "path"),
    [
        ("image/jpeg", "/sendImage"),
        ("image/PNG", "/sendImage"),
        ("video/mp4; codecs=avc1", "/sendVideo"),
        ("video/3gpp", "/sendVideo"),
        ("application/pdf", "/sendFile"),
        ("image/gif", "/sendFile"),
        ("video/quicktime", "/sendFile"),
        ("", "/sendFile"),
    ],
)
@pytest.mark.parametrize("text", ["", "Look!"])
def test_a_file_goes_out_with_its_caption(fake: FakeWaha, mime: str, path: str, text: str) -> None:
    async def scene(driver: WahaDriver) -> Outcome:
        return await driver.send(picture(await hand_over(driver, media(mime)), text=text))

    assert play(fake.settings(), scene) == Outcome(K.ACCEPTED, provider_id=OURS)
    assert fake.sends()[0].path == path
    data = base64.b64encode(CONTENT).decode()
    # A caption also where it is empty: WAHA makes one up for a film without.
    assert body(fake) == {
        "session": SESSION,
        "chatId": CHAT,
        "file": {"mimetype": mime, "filename": media().name, "data": data},
        "caption": text,
        "id": OURS,
    }
    assert fake.messages[0]["file"] == CONTENT


@pytest.mark.parametrize(
    ("sent", "code", "reason"),
    [
        (message("anna@example.com"), "target", "neither a phone number nor"),
        (message("120363@newsletter"), "target", "neither a phone number nor"),
        (message("status@broadcast"), "target", "neither a phone number nor"),
        (message("chat:1"), "target", "neither a phone number nor"),
        (message(" "), "target", "neither a phone number nor"),
        (message("+4900000000000"), "target", "phone number"),
        (message("0151 12345678"), "target", "has no country code"),
        (message(text=" \n"), "text", "nothing in the message"),
        (message(text="x" * 65_537), "text", "65537 characters, and WhatsApp takes 65536"),
        (message(text="broken \ud800"), "text", "characters in it that no text has"),
        (message(action="email"), "action", "cannot send 'email'"),
        (picture(None), "media-unknown", "not at hand any more"),
        (picture("x"), "media-unknown", "not at hand any more"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_known_to_be_wrong_is_never_sent(
    fake: FakeWaha, sent: Message, code: str, reason: str
) -> None:
    outcome = send(fake, sent)
    assert (outcome.kind, outcome.code) == (K.REJECTED, code)
    assert reason in outcome.reason
    assert not fake.sends()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"id": f"true_{CHAT}_3EB0AA"}, "3EB0AA"),
        ({"id": f"true_{GROUP}_3EB0AA_{CHAT}"}, "3EB0AA"),
        ({"id": "3EB0AA"}, "3EB0AA"),
        ({"id": {"id": "3EB0AA", "_serialized": "x"}}, "3EB0AA"),
        ({"id": {"_serialized": f"true_{CHAT}_3EB0AA"}}, "3EB0AA"),
        ({"key": {"id": "3EB0AA", "fromMe": True}}, "3EB0AA"),
        ({}, None),
        ({"id": None}, None),
        ({"id": 7}, None),
        ({"id": {}}, None),
        ({"key": ""}, None),
        ([{"id": "3EB0AA"}], None),
        ("yes", None),
    ],
    ids=str,
)
def test_a_yes_counts_if_it_is_waha_s(fake: FakeWaha, answer: object, kind: str | None) -> None:
    outcome = send(fake, message(), said(201, answer))
    expected = K.UNKNOWN if kind is None else K.ACCEPTED
    assert (outcome.kind, outcome.provider_id) == (expected, kind)


def test_the_provider_s_reason_is_kept_to_one_line(fake: FakeWaha) -> None:
    words = ["chatId must be\n a string", "text is bad", 7, "third", "fourth"]
    outcome = send(fake, message(), error(400, words))
    assert outcome.reason == "chatId must be a string: text is bad"
