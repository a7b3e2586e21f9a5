"""What the suite for all drivers does not ask of Wassenger's reports."""

import json
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import parse_instant
from paceline.engine.ports import Inbound, News, Receipt
from paceline.providers.wassenger.settings import read_settings
from paceline.providers.wassenger.webhooks import parse, verify
from tests.providers.conformance.wassenger import ACCOUNT, AT, SECRET
from tests.providers.wassenger.fake import DEVICE, GROUP, PHONE

SETTINGS = read_settings(ACCOUNT)


def read(event: str, data: Any, **more: Any) -> list[News]:
    return parse(SETTINGS, json.dumps({"event": event, "data": data, **more}).encode())


@pytest.mark.parametrize(
    ("written", "at"),
    [
        (AT // 1_000_000, AT),
        (AT // 1_000, AT),
        (str(AT // 1_000_000), AT),
        ("2026-11-15T09:00:00Z", AT),
        ("2026-11-15T10:00:00+01:00", AT),
        ("2026-11-15T09:00:00.5Z", AT + 500_000),
        (None, 0),
        ("soon", 0),
        (-5, 0),
        (0, 0),
        (True, 0),
        (1.5, 0),
        (10**30, 0),
        ("9" * 40, 0),
    ],
    ids=str,
)
def test_time_is_read_in_every_spelling(written: Any, at: int) -> None:
    (news,) = read("message:out:sent", {"id": "a", "timestamp": written})
    assert news == Receipt("a", "sent", at)


def test_the_report_s_own_time_is_next_best() -> None:
    (news,) = read("message:out:sent", {"id": "a"}, created=AT // 1_000_000)
    assert news.at == AT
    (news,) = read("message:out:sent", {"id": "a"}, createdAt="2026-11-15T09:00:00Z")
    assert news.at == parse_instant("2026-11-15T09:00:00Z")


@pytest.mark.parametrize("device", [None, DEVICE, DEVICE.upper(), {"id": DEVICE}, {}, [], 5])
def test_a_report_without_another_device_is_ours(device: Any) -> None:
    expected = 1 if device != 5 else 0
    assert len(read("message:out:sent", {"id": "a"}, device=device)) == expected


def test_addresses_are_spelled_as_everywhere() -> None:
    data = {"id": "a", "from": f"{PHONE[1:]}@c.us", "body": "x"}
    (news,) = read("message:in:new", data)
    assert isinstance(news, Inbound) and (news.chat, news.sender) == (PHONE, PHONE)
    (news,) = read("message:in:new", {"id": "a", "from": "99@lid", "chat": GROUP})
    assert isinstance(news, Inbound)
    assert (news.chat, news.sender, news.group) == (GROUP, "99@lid", True)


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("message:in:new", {"body": "x", "fromNumber": PHONE}),
        ("message:in:new", {"id": "a", "body": "x"}),
        ("message:in:new", {"id": "a", "fromNumber": PHONE, "meta": {"isGroup": True}}),
        ("message:in:new", None),
        ("message:in:new", [1]),
        ("message:out:sent", {}),
        ("number:session", None),
        (None, {}),
        (5, {}),
    ],
)
def test_what_is_no_report_is_refused(event: Any, data: Any) -> None:
    with pytest.raises(InputError):
        read(event, data)


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"7", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(InputError):
        parse(SETTINGS, body)


def test_the_secret_may_live_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read_settings(
        {**ACCOUNT, "webhook_auth": "token", "webhook_secret": "env:WASSENGER_HOOK"}
    )
    monkeypatch.delenv("WASSENGER_HOOK", raising=False)
    assert not verify(settings, {}, b"", {"token": ""})
    assert not verify(settings, {}, b"", {"token": "env:WASSENGER_HOOK"})
    monkeypatch.setenv("WASSENGER_HOOK", SECRET)
    assert verify(settings, {}, b"", {"token": SECRET})


def test_the_header_may_be_called_otherwise() -> None:
    settings = read_settings(
        {**ACCOUNT, "webhook_auth": "header", "webhook_secret": SECRET, "webhook_header": "X-Mine"}
    )
    assert verify(settings, {"x-mine": SECRET}, b"", {})
    assert not verify(settings, {"X-Webhook-Secret": SECRET}, b"", {})
