"""What the suite for all drivers does not ask of Meta's reports."""

import json
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.engine.ports import Inbound, News, Receipt
from paceline.providers.whatsapp_cloud.settings import read_settings
from paceline.providers.whatsapp_cloud.webhooks import challenge, parse, verify
from tests.providers.conformance.whatsapp_cloud import (
    ACCOUNT,
    AT,
    NOBODY,
    SHAKE,
    VERIFY,
    account,
    said,
)
from tests.providers.whatsapp_cloud.fake import APP_SECRET, NUMBER, report, signed, status, value

SETTINGS = read_settings(ACCOUNT)


def read(body: Any) -> list[News]:
    return parse(SETTINGS, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("written", "at"),
    [
        (AT // 1_000_000, AT),
        (str(AT // 1_000_000), AT),
        ("2026-11-15T09:00:00Z", AT),
        ("2026-11-15T09:00:00+0000", AT),
        ("1970-01-01T00:00:00+14:00", 0),
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
    (news,) = read(report(value(statuses=[{**status("a", "sent", 1), "timestamp": written}])))
    assert news == Receipt("a", "sent", at)


@pytest.mark.parametrize(
    "body",
    [
        {"entry": []},
        {"object": "page", "entry": []},
        {"object": "whatsapp_business_account"},
        {"object": "whatsapp_business_account", "entry": {}},
        {"object": "whatsapp_business_account", "entry": [7]},
        {"object": "whatsapp_business_account", "entry": [{}]},
        {"object": "whatsapp_business_account", "entry": [{"changes": [7]}]},
        report([]),  # type: ignore[arg-type]
        report(value(statuses={})),
        report(value(statuses=["sent"])),
        report(value(statuses=[{"status": "sent"}])),
        report(value(messages=[{"type": "text", "from": "4915112345678"}])),
        said("text", NUMBER, text={"body": "x"}, **NOBODY),
    ],
    ids=lambda body: str(body)[:60],
)
def test_what_is_no_report_is_refused(body: Any) -> None:
    with pytest.raises(InputError):
        read(body)


@pytest.mark.parametrize(
    ("named", "chat", "also"),
    [
        ({"from": "4915112345678"}, "+4915112345678", ()),
        ({"from_user_id": "US.13491208655302741918"}, "US.13491208655302741918", ()),
        (
            {"from": "4915112345678", "from_user_id": "US.13491208655302741918"},
            "+4915112345678",
            ("US.13491208655302741918",),
        ),
    ],
)
def test_somebody_may_have_a_number_and_a_name_that_hides_it(
    named: dict[str, str], chat: str, also: tuple[str, ...]
) -> None:
    message = {"type": "text", "id": "wamid.1", "text": {"body": "Hi"}, **named}
    (news,) = read(report(value(messages=[message])))
    assert isinstance(news, Inbound) and (news.chat, news.sender, news.also) == (chat, chat, also)


def test_a_receipt_may_have_only_our_name() -> None:
    only = {"status": "sent", "timestamp": "1", "biz_opaque_callback_data": "home-7-0"}
    assert read(report(value(statuses=[only]))) == [Receipt("", "sent", 1_000_000, key="home-7-0")]


def test_without_the_business_account_s_id_nobody_knows_whose_it_is() -> None:
    without = read_settings({key: text for key, text in ACCOUNT.items() if "business" not in key})
    body = json.dumps(account("ACCOUNT_DELETED")).encode()
    assert len(parse(SETTINGS, body)) == 1
    assert parse(without, body) == []


def test_a_long_reason_is_kept_short() -> None:
    wordy = {"code": 131053, "title": "Media upload error", "error_data": {"details": "x" * 900}}
    (news,) = read(report(value(statuses=[status("a", "failed", 1, errors=[wordy])])))
    assert isinstance(news, Receipt) and news.code == "131053"
    assert news.reason.startswith("Media upload error: x") and len(news.reason) == 300


def test_the_secrets_may_live_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    written = {"app_secret": "env:META_APP_SECRET", "verify_token": "env:META_VERIFY"}
    settings = read_settings(ACCOUNT | written)
    monkeypatch.delenv("META_APP_SECRET", raising=False)
    monkeypatch.delenv("META_VERIFY", raising=False)
    assert not verify(settings, signed(b"{}", "env:META_APP_SECRET"), b"{}")
    assert not verify(settings, signed(b"{}", ""), b"{}")
    assert challenge(settings, SHAKE | {"hub.verify_token": "env:META_VERIFY"}) is None
    monkeypatch.setenv("META_APP_SECRET", APP_SECRET)
    monkeypatch.setenv("META_VERIFY", VERIFY)
    assert verify(settings, signed(b"{}"), b"{}")
    assert challenge(settings, SHAKE) == SHAKE["hub.challenge"]


def test_a_signature_of_the_older_kind_is_none() -> None:
    settings = read_settings(ACCOUNT | {"app_secret": APP_SECRET})
    made = signed(b"{}")["X-Hub-Signature-256"]
    assert verify(settings, {"X-Hub-Signature-256": made.upper().replace("SHA", "sha")}, b"{}")
    assert not verify(settings, {"X-Hub-Signature": made}, b"{}")
    assert not verify(settings, {"X-Hub-Signature-256": made.removeprefix("sha256=")}, b"{}")
