"""Opening an account: its settings, its key, and how Wassenger says the device stands."""

from typing import Any

import pytest

from paceline.core.errors import InputError, ProviderError, ProviderRefused
from paceline.engine.ports import Driver
from paceline.providers.wassenger import WassengerProvider, read_settings
from paceline.providers.wassenger.status import DEVICES, SESSIONS, standing_of_device
from tests.providers.loopback import HTML, Scripted, running, said
from tests.providers.remote import CLOCK, patience
from tests.providers.wassenger.fake import DEVICE, KEY, FakeWassenger, error
from tests.providers.wassenger.stage import play

GOOD = {"api_key": KEY, "device": DEVICE}


async def nothing(driver: Driver) -> None:
    """Open, and close again."""


def test_settings_are_complete_and_read_back() -> None:
    complete = WassengerProvider(CLOCK).check(GOOD)
    assert complete == GOOD | {
        "base_url": "https://api.wassenger.com/v1",
        "groups": True,
        "keep_files": "30d",
        "webhook_auth": "signature",
        "webhook_secret": None,
        "webhook_header": "X-Webhook-Secret",
    }
    assert read_settings(complete).to_mapping() == complete


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"device": "5f4d"}, "device: '5f4d' is no device id, which has 24 characters"),
        ({"device": "x" * 24}, "device: .* is no device id"),
        ({"device": 123456789012345678901234}, "device: is to be a text, so write it in quotes"),
        ({"base_url": "http://api.wassenger.com/v1"}, "base_url: the API key would travel unenc"),
        ({"base_url": "https://x.com?a=1"}, "base_url: .* is no address"),
        ({"api_key": ""}, "api_key: is empty"),
        ({"api_key": "two\nlines"}, "api_key: .* characters in it"),
        ({"groups": "yes"}, "groups: "),
        ({"keep_files": "400d"}, "keep_files: "),
        ({"webhook_auth": "none"}, "webhook_auth: "),
        ({"webhook_secret": "a b"}, "webhook_secret: .* characters in it"),
        ({"webhook_header": "a b"}, "webhook_header: 'a b' is not the name of a header"),
        ({"token": "x"}, "token: wassenger has no such setting"),
        ({"apikey": "x"}, "apikey: wassenger has no such setting, did you mean 'api_key'?"),
    ],
)
def test_bad_settings_are_refused_by_name(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        read_settings(GOOD | changed)
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("key", ["api_key", "device"])
def test_what_is_missing_is_named(key: str) -> None:
    without = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(InputError, match=f"^{key}: wassenger needs this setting"):
        read_settings(without)


def test_an_address_and_a_device_are_taken_as_people_have_them() -> None:
    read = read_settings({**GOOD, "device": f" {DEVICE.upper()} ", "base_url": "Api.wali.chat/v1/"})
    assert (read.device, read.base_url) == (DEVICE, "https://api.wali.chat/v1")


def test_nobody_sees_a_secret_by_accident() -> None:
    settings = read_settings({**GOOD, "webhook_secret": "wEbHoOk"})
    assert KEY not in repr(settings) and "wEbHoOk" not in repr(settings)


@pytest.mark.parametrize("status", [*SESSIONS, "brand-new", "", None, 5])
def test_a_session_opens_as_its_status_allows(fake: FakeWassenger, status: Any) -> None:
    assert fake.device is not None
    fake.device["session"] = {"status": status}
    verdict = SESSIONS.get(status, "fine")
    if verdict == "fine":
        play(fake.settings(), nothing)
        return
    words = {"away": "shop: offline: ", "stopped": "shop: not paired: "}[verdict]
    with pytest.raises(ProviderError, match=f"^{words}.*'{status}'$") as told:
        play(fake.settings(), nothing)
    assert isinstance(told.value, ProviderRefused) == (verdict == "stopped")


@pytest.mark.parametrize("status", [*DEVICES, "brand-new", "", None, 5])
def test_a_device_opens_as_its_status_allows(fake: FakeWassenger, status: Any) -> None:
    assert fake.device is not None
    fake.device["status"] = status
    verdict = DEVICES.get(status, "away" if status == "brand-new" else "fine")
    if verdict == "fine":
        play(fake.settings(), nothing)
        return
    with pytest.raises(ProviderError, match=f"^shop: not operative: .*'{status}'$") as told:
        play(fake.settings(), nothing)
    assert isinstance(told.value, ProviderRefused) == (verdict == "stopped")


def test_what_says_more_is_told() -> None:
    assert (
        "not paired"
        in standing_of_device({"status": "brand-new", "session": {"status": "new"}}).reason
    )
    assert standing_of_device({"status": "operative"}).verdict == "fine"
    assert standing_of_device({"session": "online"}).verdict == "fine"
    assert standing_of_device({}).verdict == "fine"
    both = standing_of_device({"status": "disabled", "session": {"status": "offline"}})
    assert both.verdict == "stopped"


@pytest.mark.parametrize(
    ("scripted", "refused", "reason"),
    [
        (error(401), True, "token refused: Told in words: 401"),
        (error(403), True, "token refused: "),
        (Scripted(401, b""), True, "token refused: answered 401"),
        (error(402), True, "refused: "),
        (error(404), True, "no such device: "),
        (Scripted(404, b"<html>", HTML), False, "offline: answered 404"),
        (Scripted(403, b"<html>", HTML), False, "offline: answered 403"),
        (error(429), False, "offline: "),
        (error(503), False, "offline: "),
        (Scripted(502, b"<html>", HTML), False, "offline: answered 502"),
        (Scripted(200, b"<html>", HTML), False, "offline: answered 200"),
        (said(200, []), False, "offline: answered 200"),
        (Scripted(drops="read"), False, "offline: no answer from Wassenger: RemoteProtocolError"),
        (Scripted(hangs=True), False, "offline: no answer from Wassenger: ReadTimeout"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_keeps_an_account_shut_is_told_in_one_line(
    fake: FakeWassenger, scripted: Scripted, refused: bool, reason: str
) -> None:
    fake.answers[f"/devices/{DEVICE}"] = scripted
    with pytest.raises(ProviderError, match=f"^shop: {reason}") as told:
        play(fake.settings(), nothing, patience(fake))
    assert isinstance(told.value, ProviderRefused) == refused
    assert "\n" not in str(told.value)


def test_a_wrong_key_is_refused_and_not_shown(fake: FakeWassenger) -> None:
    with pytest.raises(ProviderRefused, match="token refused: Unauthorized") as told:
        play(fake.settings(api_key="another-key"), nothing)
    assert "another-key" not in str(told.value)


def test_another_device_is_no_device(fake: FakeWassenger) -> None:
    with pytest.raises(ProviderRefused, match=r"^shop: no such device: Device not found$"):
        play(fake.settings(device="0" * 24), nothing)


def test_nobody_there_is_offline() -> None:
    with running(FakeWassenger()) as fake:
        settings = fake.settings()
    with pytest.raises(ProviderError, match="offline: no answer from Wassenger: ConnectError") as t:
        play(settings, nothing)
    assert not isinstance(t.value, ProviderRefused)
