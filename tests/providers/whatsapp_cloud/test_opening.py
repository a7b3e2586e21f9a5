"""Opening an account: its settings, its token, and how Meta says the number stands."""

from typing import Any

import pytest

from paceline.core.errors import InputError, ProviderError, ProviderRefused
from paceline.engine.ports import Driver, Remarking
from paceline.providers.whatsapp_cloud import WhatsAppCloudProvider, read_settings
from paceline.providers.whatsapp_cloud.status import ELSEWHERE, STATUSES
from tests.providers.loopback import HTML, Scripted, running, said
from tests.providers.remote import CLOCK, patience
from tests.providers.whatsapp_cloud.fake import BUSINESS, KEY, NUMBER, FakeMeta, error, no_such
from tests.providers.whatsapp_cloud.stage import play

GOOD = {"access_token": KEY, "phone_number_id": NUMBER}


async def nothing(driver: Driver) -> None:
    """Open, and close again."""


async def remark(driver: Driver) -> str:
    assert isinstance(driver, Remarking)
    return driver.remark


def test_settings_are_complete_and_read_back() -> None:
    complete = WhatsAppCloudProvider(CLOCK).check(GOOD)
    assert complete == GOOD | {
        "api_version": "v25.0",
        "base_url": "https://graph.facebook.com",
        "app_secret": None,
        "verify_token": None,
        "business_account_id": None,
    }
    assert read_settings(complete).to_mapping() == complete


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"phone_number_id": "+4930123456"}, "phone_number_id: .* is no id of Meta's"),
        ({"phone_number_id": "0123456"}, "phone_number_id: .* is no id of Meta's"),
        ({"phone_number_id": True}, "phone_number_id: is to be a text"),
        ({"phone_number_id": "../me"}, "phone_number_id: .* is no id of Meta's"),
        ({"business_account_id": "x"}, "business_account_id: .* is no id of Meta's"),
        ({"api_version": "latest"}, "api_version: 'vlatest' is no version, write it like v25.0"),
        ({"api_version": "v25"}, "api_version: "),
        ({"access_token": ""}, "access_token: .* characters in it"),
        ({"access_token": "two words"}, "access_token: .* characters in it"),
        ({"app_secret": "a b"}, "app_secret: .* characters in it"),
        ({"verify_token": 7}, "verify_token: is to be a text"),
        ({"base_url": "http://graph.facebook.com"}, "base_url: the API key would travel unenc"),
        ({"token": "x"}, "token: whatsapp_cloud has no such setting"),
        ({"phone_number": "x"}, "did you mean 'phone_number_id'"),
    ],
)
def test_bad_settings_are_refused_by_name(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        read_settings(GOOD | changed)
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("key", ["access_token", "phone_number_id"])
def test_what_is_missing_is_named(key: str) -> None:
    without = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(InputError, match=f"^{key}: whatsapp_cloud needs this setting"):
        read_settings(without)


def test_ids_and_versions_are_taken_as_people_have_them() -> None:
    read = read_settings(
        {
            **GOOD,
            "phone_number_id": int(NUMBER),
            "business_account_id": int(BUSINESS),
            "api_version": " 26.0",
            "base_url": "graph.facebook.com/",
        }
    )
    assert (read.phone_number_id, read.business_account_id) == (NUMBER, BUSINESS)
    assert read.versioned_url == "https://graph.facebook.com/v26.0"


def test_nobody_sees_a_secret_by_accident() -> None:
    settings = read_settings({**GOOD, "app_secret": "aPpSecret", "verify_token": "vErIfY"})
    shown = repr(settings)
    assert KEY not in shown and "aPpSecret" not in shown and "vErIfY" not in shown


def test_it_is_asked_how_it_stands(fake: FakeMeta) -> None:
    assert play(fake.settings(), remark) == ""
    (call,) = fake.calls
    assert (call.method, call.path) == ("GET", f"/{NUMBER}")
    assert call.query == {"fields": "status,quality_rating,platform_type"}


@pytest.mark.parametrize("status", [*STATUSES, "BRAND_NEW", "", None, 5])
def test_a_number_opens_as_its_status_allows(fake: FakeMeta, status: Any) -> None:
    assert fake.number is not None
    fake.number["status"] = status
    verdict, words = STATUSES.get(status, ("fine", ""))
    if verdict == "fine":
        assert play(fake.settings(), remark) == words
        return
    with pytest.raises(ProviderError, match=f"^shop: {words}: .*'{status}'$") as told:
        play(fake.settings(), nothing)
    assert isinstance(told.value, ProviderRefused) == (verdict == "stopped")


def test_what_recipients_think_of_it_is_told(fake: FakeMeta) -> None:
    assert fake.number is not None
    fake.number["quality_rating"] = "YELLOW"
    assert play(fake.settings(), remark) == "its quality is medium (YELLOW)"
    fake.number |= {"quality_rating": "RED", "status": "FLAGGED"}
    assert play(fake.settings(), remark) == (
        "flagged: its quality is low, and its limit may be lowered; its quality is low (RED)"
    )
    fake.number |= {"quality_rating": "UNKNOWN", "status": "CONNECTED"}
    assert play(fake.settings(), remark) == ""


@pytest.mark.parametrize("platform", sorted(ELSEWHERE))
def test_a_number_that_is_registered_elsewhere_cannot_send(fake: FakeMeta, platform: str) -> None:
    assert fake.number is not None
    fake.number["platform_type"] = platform
    with pytest.raises(ProviderRefused, match=f"^shop: not registered: .*'{platform}'$"):
        play(fake.settings(), nothing)


@pytest.mark.parametrize(
    ("scripted", "refused", "reason"),
    [
        (error(190, 401), True, r"token refused: \(#190\) Told in words"),
        (error(0, 401), True, "token refused: "),
        (Scripted(401, b""), True, "token refused: answered 401"),
        (error(10, 403), True, r"refused: \(#10\)"),
        (error(200, 403), True, r"refused: \(#200\)"),
        (error(100), True, r"refused: \(#100\)"),
        (error(368, 403), True, r"banned: \(#368\)"),
        (error(131031, 403), True, "banned: "),
        (no_such(NUMBER), True, "no such phone number id: Unsupported get request"),
        (error(803, 404), True, "no such phone number id: "),
        (error(4), False, "offline: "),
        (error(2, 503), False, "offline: "),
        (error(999999, 404), False, "offline: "),
        (Scripted(404, b"<html>", HTML), False, "offline: answered 404"),
        (Scripted(403, b"<html>", HTML), False, "offline: answered 403"),
        (Scripted(502, b"<html>", HTML), False, "offline: answered 502"),
        (Scripted(200, b"<html>", HTML), False, "offline: answered 200"),
        (said(200, []), False, "offline: answered 200"),
        (error(190, 200), True, "token refused: "),
        (Scripted(drops="read"), False, "offline: no answer from Meta: RemoteProtocolError"),
        (Scripted(hangs=True), False, "offline: no answer from Meta: ReadTimeout"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_keeps_an_account_shut_is_told_in_one_line(
    fake: FakeMeta, scripted: Scripted, refused: bool, reason: str
) -> None:
    fake.answers[f"/{NUMBER}"] = scripted
    with pytest.raises(ProviderError, match=f"^shop: {reason}") as told:
        play(fake.settings(), nothing, patience(fake))
    assert isinstance(told.value, ProviderRefused) == refused
    assert "\n" not in str(told.value)


def test_a_wrong_token_is_refused_and_not_shown(fake: FakeMeta) -> None:
    with pytest.raises(ProviderRefused, match="token refused: Error validating") as told:
        play(fake.settings(access_token="another-token"), nothing)
    assert "another-token" not in str(told.value)


def test_another_number_is_no_number(fake: FakeMeta) -> None:
    with pytest.raises(ProviderRefused, match=r"^shop: no such phone number id: Unsupported"):
        play(fake.settings(phone_number_id="999999999"), nothing)


def test_nobody_there_is_offline() -> None:
    with running(FakeMeta()) as fake:
        settings = fake.settings()
    with pytest.raises(ProviderError, match="offline: no answer from Meta: ConnectError") as told:
        play(settings, nothing)
    assert not isinstance(told.value, ProviderRefused)
