"""A message on the wire, field by field, and what is refused before anything is written."""

from typing import Any

import pytest

from paceline.core.model import Part
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Message, Provider, Webhooks
from paceline.providers.whatsapp_cloud import WhatsAppCloudProvider
from tests.providers.loopback import said
from tests.providers.remote import CLOCK
from tests.providers.whatsapp_cloud.fake import KEY, PHONE, Approved, FakeMeta
from tests.providers.whatsapp_cloud.stage import file, kept, message, send, template, with_header

K = OutcomeKind
ENVELOPE = {
    "messaging_product": "whatsapp",
    "recipient_type": "individual",
    "to": PHONE,
    "biz_opaque_callback_data": "home-7-0",
}


def body(fake: FakeMeta) -> dict[str, Any]:
    (call,) = fake.sends()
    read: dict[str, Any] = call.json()
    return read


def test_it_is_a_provider_with_webhooks() -> None:
    provider: Provider = WhatsAppCloudProvider(CLOCK)
    webhooks: Webhooks = WhatsAppCloudProvider(CLOCK)
    assert provider.name == "whatsapp_cloud" and webhooks is not None
    assert provider.secrets == {"access_token", "app_secret", "verify_token"}
    able = provider.capabilities
    assert (able.channel, able.media, able.groups) == ("whatsapp", True, False)
    assert able.templates and able.needs_templates and able.receipts
    assert not able.finds and not able.proves_absence


def test_a_text_to_a_person(fake: FakeMeta) -> None:
    outcome = send(fake, message(text="Grüße 👋\nzwei"))
    assert outcome == Outcome(K.ACCEPTED, provider_id="wamid.HBgLTESTS00000001")
    (call,) = fake.sends()
    assert call.headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in call.path and not call.query
    assert body(fake) == ENVELOPE | {"type": "text", "text": {"body": "Grüße 👋\nzwei"}}


@pytest.mark.parametrize("written", [f"{PHONE[1:]}@c.us", f"{PHONE[1:]}@s.whatsapp.net", PHONE[1:]])
def test_a_person_is_called_by_number(fake: FakeMeta, written: str) -> None:
    assert send(fake, message(written)).kind is K.ACCEPTED
    assert body(fake)["to"] == PHONE


def test_somebody_who_hides_their_number_can_be_answered(fake: FakeMeta) -> None:
    hidden = "US.13491208655302741918"
    assert send(fake, message(hidden)).kind is K.ACCEPTED
    assert body(fake)["recipient"] == hidden and "to" not in body(fake)


@pytest.mark.parametrize(
    ("name", "mime", "kind", "more"),
    [
        ("a.png", "image/png", "image", {}),
        ("a.jpg", "image/jpeg; charset=binary", "image", {}),
        ("a.mp4", "video/mp4", "video", {}),
        ("a “1”.pdf", "application/pdf", "document", {"filename": "a “1”.pdf"}),
        ("a.gif", "image/gif", "document", {"filename": "a.gif"}),
    ],
)
@pytest.mark.parametrize("text", ["", "Look!"])
def test_a_captioned_file_is_one_message(
    fake: FakeMeta, name: str, mime: str, kind: str, more: dict[str, str], text: str
) -> None:
    handle = kept(fake, name, mime)
    assert send(fake, file(handle, text)).kind is K.ACCEPTED
    (media_id,) = fake.files
    shown = {"id": media_id} | more | ({"caption": text} if text else {})
    assert body(fake) == ENVELOPE | {"type": kind, kind: shown}
    assert len(fake.messages) == 1


def test_a_sound_has_no_caption(fake: FakeMeta) -> None:
    handle = kept(fake, "a.mp3", "audio/mpeg")
    assert send(fake, file(handle, "Listen")).code == "media"
    assert not fake.sends()
    assert send(fake, file(handle)).kind is K.ACCEPTED
    assert body(fake)["type"] == "audio"


def test_a_template_without_blanks(fake: FakeMeta) -> None:
    fake.templates["hello_world"] = Approved()
    assert send(fake, template("hello_world")).kind is K.ACCEPTED
    shown = {"name": "hello_world", "language": {"code": "en_US"}}
    assert body(fake) == ENVELOPE | {"type": "template", "template": shown}


def test_numbered_blanks_are_filled_in_order(fake: FakeMeta) -> None:
    fake.templates["order_ready"] = Approved(("de",), blanks=2)
    sent = template("order_ready", "Anna", "Tuesday", language="de")
    assert send(fake, sent).kind is K.ACCEPTED
    (part,) = body(fake)["template"]["components"]
    texts = [{"type": "text", "text": "Anna"}, {"type": "text", "text": "Tuesday"}]
    assert part == {"type": "body", "parameters": texts}


def test_named_blanks_are_filled_by_name(fake: FakeMeta) -> None:
    fake.templates["order_ready"] = Approved(names=("first_name", "day"))
    assert send(fake, template(first_name="Anna", day="Tuesday")).kind is K.ACCEPTED
    (part,) = body(fake)["template"]["components"]
    assert part["parameters"][0] == {
        "type": "text",
        "text": "Anna",
        "parameter_name": "first_name",
    }


@pytest.mark.parametrize(
    ("name", "mime", "kind"),
    [("a.png", "image/png", "image"), ("a.pdf", "application/pdf", "document")],
)
def test_a_template_may_show_a_file_above_its_text(
    fake: FakeMeta, name: str, mime: str, kind: str
) -> None:
    fake.templates["order_ready"] = Approved(blanks=1, header=kind)
    sent = with_header(template("order_ready", "Anna"), kept(fake, name, mime))
    assert send(fake, sent).kind is K.ACCEPTED
    header, text = body(fake)["template"]["components"]
    assert header["type"] == "header" and text["type"] == "body"
    (media_id,) = fake.files
    shown = {"id": media_id} | ({"filename": "a.pdf"} if kind == "document" else {})
    assert header["parameters"] == [{"type": kind, kind: shown}]
    assert fake.messages[0]["content"] == b"PNG"


def test_what_fills_a_blank_is_one_line(fake: FakeMeta) -> None:
    """Meta refuses line breaks and rows of spaces there, and a field may have them."""
    fake.templates["order_ready"] = Approved(blanks=1)
    assert send(fake, template("order_ready", "Anna\r\n\tvon      Au ")).kind is K.ACCEPTED
    (part,) = body(fake)["template"]["components"]
    assert part["parameters"] == [{"type": "text", "text": "Anna von Au"}]


HANDLE = '{"id":"1","kind":"image","name":"a.png"}'
SOUND = '{"id":"1","kind":"audio","name":"a.mp3"}'
LONG = message(text="x" * 4097)


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
        (LONG, "text", "4097 characters, and WhatsApp takes 4096"),
        (message(action="email"), "action", "cannot send 'email'"),
        (file(None), "media-unknown", "never uploaded"),
        (file("f1"), "media-unknown", "never uploaded"),
        (file('{"id":"1","kind":"hologram"}'), "media-unknown", "never uploaded"),
        (file("[1]"), "media-unknown", "never uploaded"),
        (file('{"kind":"image"}'), "media-unknown", "never uploaded"),
        (file(HANDLE, "x" * 1025), "text", "a caption of 1025 characters"),
        (template("order_ready", "Anna", " "), "template", "'order_ready' is left empty"),
        (with_header(template("order_ready"), SOUND), "media", "no sound"),
        (with_header(template("order_ready"), None), "media-unknown", "never uploaded"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_known_to_be_wrong_is_never_sent(
    fake: FakeMeta, sent: Message, code: str, reason: str
) -> None:
    outcome = send(fake, sent)
    assert (outcome.kind, outcome.code) == (K.REJECTED, code)
    assert reason in outcome.reason
    assert not fake.sends()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"messages": [{"id": "wamid.A"}]}, K.ACCEPTED),
        ({"messages": [{"id": "wamid.A", "message_status": "held_for_quality_assessment"}]}, None),
        ({"messages": [{"id": "wamid.A"}], "contacts": []}, K.ACCEPTED),
        ({"messages": []}, K.UNKNOWN),
        ({"messages": {"id": "wamid.A"}}, K.UNKNOWN),
        ({"messages": [{"id": None}]}, K.UNKNOWN),
        ({"messages": ["wamid.A"]}, K.UNKNOWN),
        ({"id": "wamid.A"}, K.UNKNOWN),
        ({}, K.UNKNOWN),
        ([], K.UNKNOWN),
        ("yes", K.UNKNOWN),
    ],
    ids=str,
)
def test_a_yes_counts_if_it_is_meta_s(
    fake: FakeMeta, answer: object, kind: OutcomeKind | None
) -> None:
    outcome = send(fake, message(), said(200, answer))
    assert outcome.kind is (kind or K.ACCEPTED), outcome
    if outcome.kind is K.ACCEPTED:
        assert outcome.provider_id == "wamid.A"


def test_the_fake_minds_what_it_is_sent(fake: FakeMeta) -> None:
    """A fake that takes anything would show nothing."""
    from tests.providers.whatsapp_cloud.stage import play

    good = ENVELOPE | {"type": "text", "text": {"body": "x"}}
    blank = {"type": "text", "text": "two\nlines"}
    shown = {"name": "a", "language": {"code": "de"}}
    odd: list[dict[str, Any]] = [
        {**good, "preview_url": True},
        {**good, "to": "4915112345678"},
        {**good, "text": {"body": ""}},
        {**good, "recipient_type": "group"},
        {key: told for key, told in good.items() if key != "biz_opaque_callback_data"},
        {**ENVELOPE, "type": "audio", "audio": {"id": "1", "caption": "x"}},
        {
            **ENVELOPE,
            "type": "template",
            "template": {**shown, "components": [{"type": "body", "parameters": [blank]}]},
        },
    ]

    async def scene(driver: object) -> None:
        line = driver._line  # type: ignore[attr-defined]
        for one in odd:
            await line.deliver("/106540352242922/messages", json=one)

    play(fake.settings(), scene)
    assert len(fake.failures) == len(odd) and not fake.messages
    fake.failures.clear()


def test_a_part_is_a_template_by_its_name(fake: FakeMeta) -> None:
    """What it would say otherwise is not sent beside it."""
    fake.templates["order_ready"] = Approved()
    part = Part("template", text="never seen", template="order_ready", language="en_US")
    assert send(fake, message(part=part)).kind is K.ACCEPTED
    assert "text" not in body(fake)
