"""What the suite for all drivers does not ask of WATI's reports."""

import json
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.engine.ports import Inbound, News, Receipt
from paceline.providers.wati.settings import read_settings
from paceline.providers.wati.webhooks import parse, verify
from tests.providers.conformance.wati import (
    ACCOUNT,
    AT,
    GOT,
    IN,
    OUT,
    SECRET,
    became,
    came,
    went,
)
from tests.providers.wati.fake import CHANNEL, PERSON, PHONE

SETTINGS = read_settings(ACCOUNT)
PASSKEY = read_settings({**ACCOUNT, "webhook_auth": "passkey", "webhook_secret": SECRET})


def read(body: Any, settings: Any = SETTINGS) -> list[News]:
    return parse(settings, json.dumps(body).encode())


# ---------------------------------------------------------------------- whether it was WATI


@pytest.mark.parametrize(
    "given",
    [None, "", "x", SECRET[:-1], SECRET + " ", SECRET.upper(), "\ud800", 7, True, [SECRET], {}],
    ids=str,
)
def test_a_passkey_is_the_very_word(given: Any) -> None:
    assert not verify(PASSKEY, {}, json.dumps({"passkey": given}).encode(), {})


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"null", b"[]", b"\xff", b"[" * 100_000, json.dumps(SECRET).encode()],
    ids=lambda body: repr(body[:6]),
)
def test_a_body_without_a_passkey_proves_nothing_and_breaks_nothing(body: bytes) -> None:
    assert not verify(PASSKEY, {}, body, {})


def test_a_passkey_counts_at_the_top_of_the_body_only() -> None:
    body = {"data": {"passkey": SECRET}, "text": SECRET}
    assert not verify(PASSKEY, {}, json.dumps(body).encode(), {})
    assert verify(PASSKEY, {}, json.dumps({"passkey": SECRET}).encode(), {})


def test_the_secret_may_live_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read_settings({**ACCOUNT, "webhook_secret": "env:WATI_HOOK"})
    monkeypatch.delenv("WATI_HOOK", raising=False)
    assert not verify(settings, {}, b"", {"token": ""})
    assert not verify(settings, {}, b"", {"token": "env:WATI_HOOK"})
    monkeypatch.setenv("WATI_HOOK", SECRET)
    assert verify(settings, {}, b"", {"token": SECRET})


def test_the_header_may_be_called_otherwise() -> None:
    written = {"webhook_auth": "header", "webhook_secret": SECRET, "webhook_header": "X-Mine"}
    settings = read_settings(ACCOUNT | written)
    assert verify(settings, {"x-mine": SECRET}, b"", {})
    assert not verify(settings, {"X-Webhook-Secret": SECRET}, b"", {})


# ---------------------------------------------------------------------- what it said


@pytest.mark.parametrize(
    ("written", "at"),
    [
        (str(AT // 1_000_000), AT),
        (AT // 1_000_000, AT),
        ("2026-11-15T09:00:00.6268572Z", AT + 626_857),
        ("1970-01-01T00:00:00+14:00", 0),
        (None, 0),
        ("soon", 0),
        (-5, 0),
        (True, 0),
        (1.5, 0),
        (10**30, 0),
        ("9" * 40, 0),
    ],
    ids=str,
)
def test_time_is_read_in_every_spelling(written: Any, at: int) -> None:
    (news,) = read({**became("sentMessageREAD_v2"), "timestamp": written})
    assert news.at == at


def test_a_date_is_next_best() -> None:
    (news,) = read(came(timestamp=None))
    assert news.at == AT + 1_626_857


@pytest.mark.parametrize(
    ("body", "news"),
    [
        (came(eventType="message_bsuid"), [IN]),
        (
            came(type="interactive", text=None, listReply={"title": "Yes please", "id": "1"}),
            [IN._replace(kind="interactive")],
        ),
        (
            went("sessionMessageSent", localMessageId=None),
            [Receipt("693fd65f961dc81779391640", "sent", AT)],
        ),
        (
            went("templateMessageSent_v2_bsuid", type="template", templateName="order_ready"),
            [OUT._replace(kind="template"), GOT],
        ),
        (became("sentMessageREPLIED_v2"), [GOT._replace(state="read")]),
        (became("sentMessageREAD"), [GOT._replace(state="read")]),
        (became("sessionMessageFailed"), [GOT._replace(state="failed")]),
    ],
    ids=lambda value: str(value)[:50],
)
def test_other_editions_and_kinds_are_read(body: Any, news: list[News]) -> None:
    assert read(body) == news


def test_the_same_message_has_one_name_in_every_edition_of_its_report() -> None:
    (first,), (second,) = read(came()), read(came(eventType="message_bsuid", id="another"))
    assert isinstance(first, Inbound) and isinstance(second, Inbound)
    assert first.provider_id == second.provider_id


def test_a_message_without_any_name_is_known_by_its_bytes() -> None:
    """As whoever passes reports on may send it: only who, what, and the passkey."""
    bare = {"waId": PERSON, "text": "Message 1", "passkey": SECRET}
    (first,) = read(bare)
    (again,) = read(bare)
    (other,) = read(bare | {"text": "Message 2"})
    assert isinstance(first, Inbound) and isinstance(other, Inbound)
    assert (first.chat, first.text, first.kind) == (PHONE, "Message 1", "text")
    assert first == again and first.provider_id != other.provider_id
    assert SECRET not in repr(first)


def test_reports_for_another_number_are_another_s() -> None:
    settings = read_settings(ACCOUNT | {"channel": CHANNEL})
    reports = [came(), went("sessionMessageSent_v2"), became("sentMessageREAD_v2")]
    for report in reports:
        assert read(report, settings)
        assert read(report | {"channelPhoneNumber": f"+{CHANNEL}"}, settings)
        assert read(report | {"channelPhoneNumber": None}, settings), "nobody else's"
        assert read(report | {"channelPhoneNumber": "85200000000"}, settings) == []


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"text": "https://example.com/x"}, "https://example.com/x"),
        ({"type": "image", "text": "data/images/a b.jpg"}, "data/images/a b.jpg"),
        ({"type": "image", "text": "data/images/a.jpg"}, ""),
        ({"type": "video", "text": "https://live-mt-server.wati.io/api/file/a.mp4"}, ""),
        ({"type": "interactive", "text": None, "interactiveButtonReply": {"title": "A"}}, "A"),
        ({"type": "button", "text": "B", "buttonReply": {"text": "A"}}, "B"),
        ({"type": "location", "text": None}, ""),
        ({"text": 7}, ""),
    ],
    ids=str,
)
def test_what_was_said(more: dict[str, Any], text: str) -> None:
    (news,) = read(came(**more))
    assert isinstance(news, Inbound) and news.text == text


def test_an_echo_of_nobody_s_is_a_receipt_alone() -> None:
    (news,) = read(went("templateMessageSent_v2", waId=None))
    assert news == Receipt("home-7-0", "sent", AT, key="home-7-0")


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"eventType": None},
        {"eventType": 5, "waId": PERSON},
        {"text": "Hello", "id": "a"},
        {"eventType": "message", "id": "a", "text": "Hello"},
        {"eventType": "message", "id": "a", "waId": " "},
        {"eventType": "sentMessageREAD_v2"},
        {"eventType": "sessionMessageFailed", "failedCode": "131047"},
    ],
    ids=str,
)
def test_what_is_no_report_is_refused(body: Any) -> None:
    with pytest.raises(InputError):
        read(body)


def test_a_long_reason_is_kept_short() -> None:
    (news,) = read(became("templateMessageFailed", failedCode="131053", failedDetail="x" * 900))
    assert isinstance(news, Receipt) and news.code == "131053"
    assert len(news.reason) == 300
