"""A message on the wire, field by field, and what is refused before anything is written."""

import json
from typing import Any

import pytest

from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Message, Provider, Webhooks
from paceline.providers.wassenger import WassengerProvider
from tests.providers.loopback import said
from tests.providers.remote import CLOCK
from tests.providers.wassenger.fake import DEVICE, GROUP, KEY, PHONE, FakeWassenger, error
from tests.providers.wassenger.stage import message, picture, send

K = OutcomeKind


def body(fake: FakeWassenger) -> dict[str, Any]:
    (call,) = fake.sends()
    read: dict[str, Any] = json.loads(call.body)
    return read


def test_it_is_a_provider_with_webhooks() -> None:
    provider: Provider = WassengerProvider(CLOCK)
    webhooks: Webhooks = WassengerProvider(CLOCK)
    assert provider.name == "wassenger" and webhooks is not None
    assert provider.secrets == {"api_key", "webhook_secret"}
    able = provider.capabilities
    assert (able.channel, able.media, able.groups) == ("whatsapp", True, True)
    assert able.finds and not able.proves_absence


def test_a_text_to_a_person(fake: FakeWassenger) -> None:
    outcome = send(fake, message(text="Grüße 👋\nzwei"))
    assert outcome == Outcome(K.ACCEPTED, provider_id=f"{1:024x}")
    (call,) = fake.sends()
    assert call.headers["token"] == KEY and "authorization" not in call.headers
    assert body(fake) == {
        "phone": PHONE,
        "message": "Grüße 👋\nzwei",
        "device": DEVICE,
        "reference": "home-7-0",
        "enqueue": "never",
        "retries": 0,
    }


def test_a_text_to_a_group(fake: FakeWassenger) -> None:
    assert send(fake, message(GROUP)).kind is K.ACCEPTED
    assert body(fake)["group"] == GROUP and "phone" not in body(fake)


@pytest.mark.parametrize("written", [f"{PHONE[1:]}@c.us", f"{PHONE[1:]}@s.whatsapp.net", PHONE[1:]])
def test_a_person_is_called_by_number(fake: FakeWassenger, written: str) -> None:
    assert send(fake, message(written)).kind is K.ACCEPTED
    assert body(fake)["phone"] == PHONE


@pytest.mark.parametrize("text", ["", "Look!"])
def test_a_captioned_picture_is_one_message(fake: FakeWassenger, text: str) -> None:
    fake.files["f1"] = {"id": "f1", "content": b"x"}
    assert send(fake, picture("f1", text=text)).kind is K.ACCEPTED
    assert body(fake)["media"] == {"file": "f1"}
    assert body(fake).get("message", "") == text
    assert len(fake.messages) == 1


@pytest.mark.parametrize(
    ("sent", "code", "reason"),
    [
        (message("anna@example.com"), "target", "neither a phone number nor a WhatsApp group"),
        (message("120363@newsletter"), "target", "neither a phone number nor"),
        (message("chat:1"), "target", "neither a phone number nor"),
        (message(" "), "target", "neither a phone number nor"),
        (message("+49 1"), "target", "neither a phone number nor"),
        (message("+4900000000000"), "target", "phone number"),
        (message("0151 12345678"), "target", "has no country code"),
        (message(text=" \n"), "text", "nothing in the message"),
        (message(text="broken \ud800"), "text", "characters in it that no text has"),
        (message(action="email"), "action", "cannot send 'email'"),
        (picture(None), "media-unknown", "never uploaded"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_known_to_be_wrong_is_never_sent(
    fake: FakeWassenger, sent: Message, code: str, reason: str
) -> None:
    outcome = send(fake, sent)
    assert (outcome.kind, outcome.code) == (K.REJECTED, code)
    assert reason in outcome.reason
    assert not fake.sends()


def test_a_number_without_groups_writes_to_none(fake: FakeWassenger) -> None:
    outcome = send(fake, message(GROUP), groups=False)
    assert (outcome.kind, outcome.code) == (K.REJECTED, "target")
    assert not fake.sends()


@pytest.mark.parametrize("wraps", [True, False])
def test_an_answer_may_be_a_list_of_one(fake: FakeWassenger, wraps: bool) -> None:
    fake.wraps = wraps
    assert send(fake, message()) == Outcome(K.ACCEPTED, provider_id=f"{1:024x}")


@pytest.mark.parametrize(
    ("status", "answer", "kind"),
    [
        (201, {"id": "a1", "status": "queued"}, K.ACCEPTED),
        (200, {"id": "a1"}, K.ACCEPTED),
        (201, {"id": "a1", "status": "failed", "failureReason": "no\n session"}, K.TRANSIENT),
        (201, {"id": "a1", "status": "failed"}, K.TRANSIENT),
        (201, {}, K.UNKNOWN),
        (201, {"id": None}, K.UNKNOWN),
        (201, [], K.UNKNOWN),
        (201, [{"id": "a"}, {"id": "b"}], K.UNKNOWN),
        (201, "yes", K.UNKNOWN),
        (200, {"status": 429, "message": "slow"}, K.THROTTLED),
        (200, {"status": 401}, K.UNAUTHORISED),
    ],
    ids=str,
)
def test_a_yes_counts_if_it_is_wassenger_s(
    fake: FakeWassenger, status: int, answer: object, kind: OutcomeKind
) -> None:
    outcome = send(fake, message(), said(status, answer))
    assert outcome.kind is kind, outcome
    if isinstance(answer, dict) and answer.get("status") == "failed":
        assert outcome.code == "failed"
        assert outcome.reason in ("no session", "Wassenger could not send it")


def test_the_provider_s_reason_is_kept_to_one_line(fake: FakeWassenger) -> None:
    errors = [{"path": "phone", "message": "is\n bad"}, {"path": 7}, "odd"]
    outcome = send(fake, message(), error(400, "", message="Invalid", errors=errors))
    assert outcome.reason == "Invalid: phone is bad"
