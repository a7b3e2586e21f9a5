"""Opening an account: its settings, its token, and whether WATI lets it in."""

from typing import Any

import pytest

from paceline.core.errors import InputError, ProviderError, ProviderRefused
from paceline.engine.ports import Driver
from paceline.providers.wati import WatiProvider, read_settings
from tests.providers.loopback import HTML, Scripted, running, said
from tests.providers.remote import CLOCK, patience
from tests.providers.wati.fake import KEY, STANDING, TENANT, FakeWati, answer_of, error
from tests.providers.wati.stage import play

HOST = "https://live-mt-server.wati.io"
GOOD = {"endpoint": f"{HOST}/{TENANT}", "access_token": KEY}


async def nothing(driver: Driver) -> None:
    """Open, and close again."""


def test_settings_are_complete_and_read_back() -> None:
    complete = WatiProvider(CLOCK).check(GOOD)
    assert complete == GOOD | {
        "channel": None,
        "webhook_auth": "token",
        "webhook_secret": None,
        "webhook_header": "X-Webhook-Secret",
    }
    assert read_settings(complete).to_mapping() == complete


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"endpoint": HOST}, "endpoint: .* has no tenant id in it, write it like https://live-mt-"),
        ({"endpoint": f"{HOST}/api/v1/getContacts"}, "endpoint: .* has no tenant id in it"),
        ({"endpoint": f"{HOST}/a/b"}, "endpoint: .* is no endpoint of WATI's"),
        ({"endpoint": f"{HOST}/../1"}, "endpoint: .* is no endpoint of WATI's"),
        ({"endpoint": f"{HOST}/1?a=b"}, "endpoint: .* is no address"),
        ({"endpoint": f"http://live-mt-server.wati.io/{TENANT}"}, "endpoint: .* unencrypted"),
        ({"endpoint": 300123}, "endpoint: is to be a text"),
        ({"access_token": ""}, "access_token: is empty"),
        ({"access_token": "Bearer "}, "access_token: is empty|characters in it"),
        ({"access_token": "two words"}, "access_token: .* characters in it"),
        ({"channel": "shop"}, "channel: 'shop' is no phone number"),
        ({"channel": True}, "channel: is to be a text"),
        ({"webhook_auth": "signature"}, "webhook_auth: "),
        ({"webhook_secret": "a b"}, "webhook_secret: .* characters in it"),
        ({"webhook_header": "a b"}, "webhook_header: 'a b' is not the name of a header"),
        ({"token": "x"}, "token: wati has no such setting"),
        ({"end_point": "x"}, "did you mean 'endpoint'"),
    ],
)
def test_bad_settings_are_refused_by_name(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        read_settings(GOOD | changed)
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("key", ["endpoint", "access_token"])
def test_what_is_missing_is_named(key: str) -> None:
    without = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(InputError, match=f"^{key}: wati needs this setting"):
        read_settings(without)


@pytest.mark.parametrize(
    ("written", "origin", "tenant"),
    [
        (f"{HOST}/{TENANT}", HOST, f"/{TENANT}"),
        (f" Live-MT-Server.wati.io/{TENANT}/ ", HOST, f"/{TENANT}"),
        (f"{HOST}/{TENANT}/api/v1/sendSessionMessage/1", HOST, f"/{TENANT}"),
        ("https://live-server-123.wati.io", "https://live-server-123.wati.io", ""),
        ("https://live-server-123.wati.io/api/v1", "https://live-server-123.wati.io", ""),
    ],
)
def test_an_endpoint_is_taken_as_people_have_it(written: str, origin: str, tenant: str) -> None:
    read = read_settings(GOOD | {"endpoint": written})
    assert (read.origin, read.tenant) == (origin, tenant)


def test_a_token_and_a_number_are_taken_as_people_have_them() -> None:
    assert read_settings(GOOD | {"access_token": f" bearer  {KEY} "}).token() == KEY
    assert read_settings(GOOD | {"access_token": "x" * 900}).token() == "x" * 900
    for written in (85264318722, "+852 6431-8722", "(852) 64318722"):
        assert read_settings(GOOD | {"channel": written}).channel == "85264318722"


def test_nobody_sees_a_secret_by_accident() -> None:
    shown = repr(read_settings({**GOOD, "webhook_secret": "wEbHoOk"}))
    assert KEY not in shown and "wEbHoOk" not in shown


def test_opening_asks_for_what_changes_nothing(fake: FakeWati) -> None:
    play(fake.settings(), nothing)
    (call,) = fake.calls
    assert (call.method, call.path) == ("GET", STANDING)
    assert call.query == {"pageSize": "1", "pageNumber": "1"}


@pytest.mark.parametrize(
    "told",
    [{"result": "success"}, {"messageTemplates": []}, {"ok": True, "messageTemplates": None}],
)
def test_what_lets_an_account_open(fake: FakeWati, told: dict[str, Any]) -> None:
    fake.answers[STANDING] = said(200, told)
    play(fake.settings(), nothing)


@pytest.mark.parametrize(
    ("scripted", "refused", "reason"),
    [
        (Scripted(401), True, "token refused: answered 401"),
        (error(401), True, "token refused: Told in words: 401"),
        (Scripted(403), True, "token refused: answered 403"),
        (error(403), True, "token refused: "),
        (Scripted(404), True, "no such tenant: answered 404"),
        (error(404), True, "no such tenant: Told in words"),
        (error(400), True, "refused: Told in words"),
        (answer_of("no-credit"), True, "refused: Insufficient balance"),
        (said(200, {"result": False, "info": "(#190) Token expired"}), True, "refused: .#190. Tok"),
        (said(200, {"result": False, "info": "Odd"}), False, "offline: Odd"),
        (Scripted(404, b"<html>", HTML), False, "offline: answered 404"),
        (Scripted(403, b"<html>", HTML), False, "offline: answered 403"),
        (error(429), False, "offline: "),
        (error(500), False, "offline: "),
        (error(503), False, "offline: "),
        (Scripted(502, b"<html>", HTML), False, "offline: answered 502"),
        (Scripted(200, b"<html>", HTML), False, "offline: answered 200"),
        (said(200, []), False, "offline: answered 200"),
        (said(200, {}), False, "offline: answered 200"),
        (Scripted(drops="read"), False, "offline: no answer from WATI: RemoteProtocolError"),
        (Scripted(hangs=True), False, "offline: no answer from WATI: ReadTimeout"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_keeps_an_account_shut_is_told_in_one_line(
    fake: FakeWati, scripted: Scripted, refused: bool, reason: str
) -> None:
    fake.answers[STANDING] = scripted
    with pytest.raises(ProviderError, match=f"^shop: {reason}") as told:
        play(fake.settings(), nothing, patience(fake))
    assert isinstance(told.value, ProviderRefused) == refused
    assert "\n" not in str(told.value)


def test_a_wrong_token_is_refused_and_not_shown(fake: FakeWati) -> None:
    with pytest.raises(ProviderRefused, match="token refused: answered 401") as told:
        play(fake.settings(access_token="another-token"), nothing)
    assert "another-token" not in str(told.value)


def test_another_tenant_is_no_tenant(fake: FakeWati) -> None:
    with pytest.raises(ProviderRefused, match=r"^shop: no such tenant: answered 404"):
        play(fake.settings(endpoint=f"{fake.url}/999"), nothing)


def test_nobody_there_is_offline() -> None:
    with running(FakeWati()) as fake:
        settings = fake.settings()
    with pytest.raises(ProviderError, match="offline: no answer from WATI: ConnectError") as told:
        play(settings, nothing)
    assert not isinstance(told.value, ProviderRefused)
