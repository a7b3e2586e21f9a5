"""A message on the wire, field by field, and what is refused before anything is written."""

import json
from typing import Any

import pytest

from paceline.core.model import Part
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Driver, Message, Provider, Uploaded, Webhooks
from paceline.providers.answers import Answer
from paceline.providers.wati import WatiProvider, read_settings
from paceline.providers.wati.files import LARGEST_FILE
from paceline.providers.wati.wire import Request, read_sent, request_for
from tests.providers.forms import read_form
from tests.providers.remote import CLOCK
from tests.providers.wati.fake import CHANNEL, FILE, KEY, PERSON, TEMPLATE, TENANT, TEXT, FakeWati
from tests.providers.wati.fake import LONG as LONG_PATH
from tests.providers.wati.stage import LONG, file, media, message, play, send, send_file, template

K = OutcomeKind
BSUID = "HK.1234567890123"


def test_it_is_a_provider_with_webhooks() -> None:
    provider: Provider = WatiProvider(CLOCK)
    webhooks: Webhooks = WatiProvider(CLOCK)
    assert provider.name == "wati" and webhooks is not None
    assert provider.secrets == {"access_token", "webhook_secret"}
    able = provider.capabilities
    assert (able.channel, able.media, able.groups) == ("whatsapp", True, False)
    assert able.templates and able.needs_templates and able.receipts
    assert able.finds and not able.proves_absence


# ---------------------------------------------------------------------- texts


def test_a_text_goes_out_under_our_own_name(fake: FakeWati) -> None:
    outcome = send(fake, message(text="Grüße 👋\nzwei & mehr"))
    assert outcome == Outcome(K.ACCEPTED, provider_id="home-7-0")
    (call,) = fake.sends()
    assert call.path == f"{TEXT}{PERSON}" and not call.body
    assert call.headers["authorization"] == f"Bearer {KEY}"
    assert call.query == {"messageText": "Grüße 👋\nzwei & mehr", "localMessageId": "home-7-0"}


def test_a_text_too_long_for_an_address_goes_another_way(fake: FakeWati) -> None:
    outcome = send(fake, message(text=LONG))
    assert outcome == Outcome(K.ACCEPTED, provider_id="00000000-0000-0000-0000-000000000001")
    (call,) = fake.sends()
    assert call.path == LONG_PATH and call.json() == {"target": PERSON, "text": LONG}
    fits = send(fake, message(text="x" * 4096))
    assert fits.provider_id == "home-7-0", "plain letters take one place each"


@pytest.mark.parametrize("written", [f"+{PERSON}", f"{PERSON}@c.us", PERSON, "+49 1511 2345678"])
def test_a_person_is_called_by_number(fake: FakeWati, written: str) -> None:
    assert send(fake, message(written)).kind is K.ACCEPTED
    assert [one["to"] for one in fake.messages] == [PERSON]


def test_somebody_who_hides_their_number_can_be_answered(fake: FakeWati) -> None:
    fake.templates["order_ready"] = ()
    assert send(fake, message(BSUID)).kind is K.ACCEPTED
    assert send(fake, template()._replace(target=BSUID)).kind is K.ACCEPTED
    assert [one["to"] for one in fake.messages] == [BSUID, BSUID]
    assert BSUID not in fake.sends()[0].path, "the older call knows numbers alone"


def test_several_numbers_are_told_apart(fake: FakeWati) -> None:
    fake.templates["order_ready"] = ()
    for sent in (message(), message(text=LONG), template()):
        assert send(fake, sent, channel=f"+{CHANNEL}").kind is K.ACCEPTED
    assert send_file(fake, channel=CHANNEL).kind is K.ACCEPTED
    assert {(one["to"], one["channel"]) for one in fake.messages} == {(PERSON, CHANNEL)}


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize("text", ["", "Look!"])
def test_a_captioned_file_is_one_message(fake: FakeWati, text: str) -> None:
    kept = media("menu “1”.pdf", "application/pdf")
    outcome = send_file(fake, text, kept=kept)
    assert (outcome.kind, outcome.provider_id) == (K.ACCEPTED, fake.messages[0]["localMessageId"])
    (call,) = fake.sends()
    assert call.path == FILE and not call.query
    fields = read_form(call.headers["content-type"], call.body)
    told = {one.name: one.text for one in fields if one.name != "file"}
    assert told == {"target": PERSON} | ({"caption": text} if text else {})
    assert [one.mime for one in fields if one.name == "file"] == ["application/pdf"]
    assert [one["content"] for one in fake.messages] == [b"PNG"]


def test_a_sound_has_no_caption(fake: FakeWati) -> None:
    sound = media("a.mp3", "audio/mpeg")
    assert send_file(fake, "Listen", kept=sound).code == "media"
    assert not fake.sends()
    assert send_file(fake, kept=sound).kind is K.ACCEPTED


@pytest.mark.parametrize(
    ("mime", "most"), [("image/png", 5), ("video/mp4", 16), ("application/pdf", 32)]
)
def test_what_is_too_large_is_not_taken(fake: FakeWati, mime: str, most: int) -> None:
    async def scene(driver: Driver) -> list[Uploaded | Outcome]:
        sizes = (most * 2**20, most * 2**20 + 1)
        return [await driver.upload(media("a", mime), bytes(size)) for size in sizes]

    taken, refused = play(fake.settings(), scene)
    assert isinstance(taken, Uploaded) and most * 2**20 <= LARGEST_FILE
    assert isinstance(refused, Outcome) and (refused.kind, refused.code) == (K.REJECTED, "media")
    assert f"{most} can be sent as" in refused.reason


# ---------------------------------------------------------------------- templates


@pytest.mark.parametrize("older", [False, True])
def test_numbered_blanks_are_filled_in_order(fake: FakeWati, older: bool) -> None:
    fake.older = older
    fake.templates["order_ready"] = ("1", "2")
    outcome = send(fake, template("order_ready", "Anna\r\n\tvon      Au ", "Tuesday"))
    assert outcome == Outcome(K.ACCEPTED, provider_id="home-7-0")
    (call,) = fake.sends()
    assert call.path == TEMPLATE
    blanks = [{"name": "1", "value": "Anna von Au"}, {"name": "2", "value": "Tuesday"}]
    recipient = {"target": PERSON, "local_message_id": "home-7-0", "custom_params": blanks}
    assert call.json() == {
        "template_name": "order_ready",
        "broadcast_name": "order_ready-home-7-0",
        "recipients": [recipient],
    }


def test_named_blanks_are_filled_by_name(fake: FakeWati) -> None:
    fake.templates["order_ready"] = ("first_name", "day")
    assert send(fake, template(first_name="Anna", day="Tuesday")).kind is K.ACCEPTED
    (blanks,) = [one["blanks"] for one in fake.messages]
    assert blanks[0] == {"name": "first_name", "value": "Anna"}


def test_a_template_reaches_who_has_not_written(fake: FakeWati) -> None:
    fake.talking, fake.templates["order_ready"] = set(), ()
    assert send(fake, message()).code == "131047"
    assert send_file(fake).code == "131047"
    assert send(fake, template()).kind is K.ACCEPTED


@pytest.mark.parametrize("older", [False, True])
def test_a_number_that_whatsapp_does_not_know_is_refused(fake: FakeWati, older: bool) -> None:
    fake.older, fake.templates["order_ready"] = older, ()
    fake.strangers.add(PERSON)
    outcome = send(fake, template())
    assert (outcome.kind, outcome.code) == (K.REJECTED, "invalid-number")
    assert outcome.reason == "Invalid WhatsApp number"


# ---------------------------------------------------------------------- refused before it is sent


@pytest.mark.parametrize(
    ("sent", "code", "reason"),
    [
        (message("120363041234567890@g.us"), "target", "cannot write to groups"),
        (message("anna@example.com"), "target", "is no phone number"),
        (message(" "), "target", "is no phone number"),
        (message("+4900000000000"), "target", "phone number"),
        (message("0151 12345678"), "target", "has no country code"),
        (message(text=" \n"), "text", "nothing in the message"),
        (message(text="broken \ud800"), "text", "characters in it that no text has"),
        (template("order_ready", "\ud800"), "text", "characters in it that no text has"),
        (message(text="x" * 4097), "text", "4097 characters, and WhatsApp takes 4096"),
        (message(action="email"), "action", "cannot send 'email'"),
        (file(None), "media-unknown", "not at hand"),
        (file("a" * 64), "media-unknown", "not at hand"),
        (template("order_ready", "Anna", " "), "template", "'order_ready' is left empty"),
        (
            template()._replace(part=Part("template", template="a", media="a" * 64)),
            "media",
            "is chosen at WATI",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_known_to_be_wrong_is_never_sent(
    fake: FakeWati, sent: Message, code: str, reason: str
) -> None:
    outcome = send(fake, sent)
    assert (outcome.kind, outcome.code) == (K.REJECTED, code)
    assert reason in outcome.reason
    assert not fake.sends()


def test_a_caption_has_its_own_limit(fake: FakeWati) -> None:
    outcome = send_file(fake, "x" * 1025)
    assert (outcome.kind, outcome.code) == (K.REJECTED, "text")
    assert not fake.sends()


# ---------------------------------------------------------------------- what counts as a yes


@pytest.mark.parametrize(
    ("sent", "answer", "kind", "name"),
    [
        (message(), {"result": "success"}, K.ACCEPTED, "home-7-0"),
        (message(), {"result": "PENDING", "message": {"id": "a"}}, K.ACCEPTED, "home-7-0"),
        (message(), {"ok": True, "result": True, "message": None}, K.ACCEPTED, "home-7-0"),
        (message(), {"ok": True, "message": {"localMessageId": "b"}}, K.ACCEPTED, "b"),
        (message(), {"message": {"id": "a"}}, K.UNKNOWN, None),
        (message(), {"id": "a"}, K.UNKNOWN, None),
        (message(), {"result": "who knows"}, K.UNKNOWN, None),
        (message(), {"result": 1}, K.UNKNOWN, None),
        (message(), {}, K.UNKNOWN, None),
        (message(), [], K.UNKNOWN, None),
        (message(), "success", K.UNKNOWN, None),
        (message(), {"ok": True, "result": False}, K.TRANSIENT, None),
        (message(), {"ok": False, "result": "success"}, K.TRANSIENT, None),
        (message(text=LONG), {"message": {"id": "a"}}, K.ACCEPTED, "a"),
        (message(text=LONG), {"id": "a", "conversation_id": "b"}, K.ACCEPTED, "a"),
        (message(text=LONG), {"message": {"whatsappMessageId": "w"}}, K.ACCEPTED, "w"),
        (message(text=LONG), {"result": True}, K.ACCEPTED, None),
        (message(text=LONG), {"message": "queued"}, K.UNKNOWN, None),
        (template(), {"success": True, "broadcast_id": "7"}, K.ACCEPTED, "home-7-0"),
        (template(), {"success": True, "recipients": [{}]}, K.ACCEPTED, "home-7-0"),
        (template(), {"success": True, "recipients": []}, K.UNKNOWN, None),
        (template(), {"result": True, "receivers": []}, K.UNKNOWN, None),
        (template(), {"recipients": [{"local_message_id": "a"}]}, K.UNKNOWN, None),
        (template(), {"success": True, "recipients": [{"errors": ["No"]}]}, K.TRANSIENT, None),
        (template(), {"result": True, "validWhatsAppNumber": False}, K.REJECTED, None),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_yes_counts_if_it_is_wati_s(
    sent: Message, answer: Any, kind: OutcomeKind, name: str | None
) -> None:
    settings = read_settings({"endpoint": f"live-mt-server.wati.io/{TENANT}", "access_token": KEY})
    request = request_for(sent, settings, None)
    assert isinstance(request, Request)
    outcome = read_sent(Answer(200, {}, json.dumps(answer).encode()), request, CLOCK.now())
    assert (outcome.kind, outcome.provider_id) == (kind, name), outcome


def test_an_older_server_has_no_tenant_in_its_addresses() -> None:
    settings = read_settings({"endpoint": "live-server-123.wati.io", "access_token": KEY})
    request = request_for(message(), settings, None)
    assert isinstance(request, Request)
    assert request.path == f"{TEXT}{PERSON}".removeprefix(f"/{TENANT}")


def test_the_fake_minds_what_it_is_sent(fake: FakeWati) -> None:
    """A fake that takes anything would show nothing."""
    recipient = {"target": PERSON, "local_message_id": "a", "custom_params": []}
    good = {"template_name": "a", "broadcast_name": "b", "recipients": [recipient]}
    blank = {"name": "1", "value": "two\nlines"}
    odd: list[tuple[str, dict[str, Any]]] = [
        (f"{TEXT}{PERSON}", {"params": {"messageText": "x"}}),
        (f"{TEXT}{PERSON}", {"params": {"messageText": "", "localMessageId": "a"}}),
        (f"{TEXT}+{PERSON}", {"params": {"messageText": "x", "localMessageId": "a"}}),
        (f"{TEXT}{PERSON}", {"params": {"messageText": "x", "localMessageId": "a", "b": "c"}}),
        (LONG_PATH, {"json": {"target": PERSON, "text": "x", "channel": CHANNEL}}),
        (FILE, {"data": {"target": PERSON}, "files": [("picture", ("a", b"x"))]}),
        (TEMPLATE, {"json": {**good, "language": "en"}}),
        (TEMPLATE, {"json": {**good, "recipients": [{**recipient, "phone": PERSON}]}}),
        (TEMPLATE, {"json": {**good, "recipients": [{**recipient, "custom_params": [blank]}]}}),
    ]

    async def scene(driver: Any) -> None:
        for path, what in odd:
            await driver._line.deliver(path, **what)

    play(fake.settings(), scene)
    assert len(fake.failures) >= len(odd) and not fake.messages
    fake.failures.clear()
