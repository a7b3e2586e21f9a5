"""Opening an account: its settings, its key, and how Unipile says it stands."""

from typing import Any

import httpx
import pytest

from paceline.core.errors import InputError, ProviderError, ProviderRefused
from paceline.core.states import ACCOUNT, AccountState
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Driver
from paceline.providers.unipile import UnipileProvider, read_settings, standing_of
from paceline.providers.unipile.status import STATUSES, standing_of_account
from tests.providers.loopback import HTML, Scripted, running
from tests.providers.remote import patience
from tests.providers.unipile.fake import KEY, LINKEDIN, FakeUnipile, error
from tests.providers.unipile.stage import play

GOOD = {
    "dsn": "https://api1.unipile.com:13111",
    "api_key": KEY,
    "account_id": "Yk08cDzzdsqs9_8ds",
    "kind": "linkedin",
}


async def nothing(driver: Driver) -> None:
    """Open, and close again."""


def test_settings_are_complete_and_read_back() -> None:
    complete = UnipileProvider(SystemClock()).check(GOOD)
    assert complete == GOOD | {
        "linkedin_api": "classic",
        "track_opens": False,
        "track_links": False,
        "webhook_secret": None,
        "webhook_header": "Unipile-Auth",
    }
    assert read_settings(complete).to_mapping() == complete


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("api1.unipile.com:13111", "https://api1.unipile.com:13111"),
        ("https://api1.unipile.com:13111/", "https://api1.unipile.com:13111"),
        (" https://API1.unipile.com:13111/api/v1 ", "https://api1.unipile.com:13111"),
        ("unipile.example.com", "https://unipile.example.com"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_an_address_is_taken_as_people_have_it(written: str, read: str) -> None:
    assert read_settings(GOOD | {"dsn": written}).dsn == read


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dsn": "http://api1.unipile.com:13111"}, "dsn: the API key would travel unencrypted"),
        ({"dsn": "http://127.0.0.1.example.com"}, "dsn: the API key would travel unencrypted"),
        ({"dsn": "ftp://api1.unipile.com"}, "dsn: ftp:// cannot be spoken"),
        ({"dsn": "https://me:pass@api1.unipile.com"}, "dsn: .* is no address"),
        ({"dsn": "https://api1.unipile.com/other"}, "dsn: .* is no address"),
        ({"dsn": "https://api1.unipile.com?x=1"}, "dsn: .* is no address"),
        ({"dsn": "https://api one.com"}, "dsn: .* is no address"),
        ({"dsn": "https://api1.unipile.com:99999"}, "dsn: .* is no address"),
        ({"dsn": "https://[::1"}, "dsn: .* is no address"),
        ({"dsn": ""}, "dsn: .* is no address"),
        ({"dsn": 13111}, "dsn: is to be a text, so write it in quotes"),
        ({"api_key": ""}, "api_key: is empty"),
        ({"api_key": "two\nlines"}, "api_key: .* characters in it"),
        ({"api_key": 12345}, "api_key: is to be a text"),
        ({"account_id": " "}, "account_id: is empty"),
        ({"kind": "fax"}, "kind: "),
        ({"linkedin_api": "modern"}, "linkedin_api: "),
        ({"track_opens": "yes"}, "track_opens: "),
        ({"apikey": "x"}, "apikey: unipile has no such setting, did you mean 'api_key'?"),
    ],
)
def test_bad_settings_are_refused_by_name(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        read_settings(GOOD | changed)
    assert KEY not in str(refused.value)
    if changed.get("api_key"):
        assert str(changed["api_key"]) not in str(refused.value)


@pytest.mark.parametrize("key", ["dsn", "api_key", "account_id", "kind"])
def test_what_is_missing_is_named(key: str) -> None:
    without = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(InputError, match=f"^{key}: unipile needs this setting"):
        read_settings(without)


def test_nobody_sees_the_key_by_accident() -> None:
    settings = read_settings(GOOD)
    assert KEY not in repr(settings) and KEY not in str(settings)


def test_the_key_may_live_in_the_environment(
    fake: FakeUnipile, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = fake.settings(api_key="env:UNIPILE_TEST_KEY")
    monkeypatch.delenv("UNIPILE_TEST_KEY", raising=False)
    with pytest.raises(ProviderRefused, match="UNIPILE_TEST_KEY holds no API key"):
        play(settings, nothing)
    monkeypatch.setenv("UNIPILE_TEST_KEY", KEY)
    play(settings, nothing)
    assert UnipileProvider(SystemClock()).check(settings)["api_key"] == "env:UNIPILE_TEST_KEY"


@pytest.mark.parametrize("status", [*STATUSES, "BRAND_NEW", "credentials", "", None, 5])
def test_an_account_is_opened_as_its_status_allows(fake: FakeUnipile, status: Any) -> None:
    fake.accounts[LINKEDIN]["status"] = status
    known = STATUSES.get(str(status).upper())
    if known is None or known.verdict == "fine":
        play(fake.settings(), nothing)
        return
    reported = f"shop: Unipile reports {status.upper()}: "
    with pytest.raises(ProviderError, match=reported) as told:
        play(fake.settings(), nothing)
    assert isinstance(told.value, ProviderRefused) == (known.verdict == "stopped")


@pytest.mark.parametrize(
    ("status", "event"),
    [
        ("OK", None),
        ("RECONNECTED", None),
        ("ERROR", "cool_down"),
        ("STOPPED", "cool_down"),
        ("CONNECTING", "cool_down"),
        ("CREDENTIALS", "suspend"),
        ("DELETED", "suspend"),
        ("whatever comes next", None),
    ],
)
def test_a_status_is_an_event_of_the_account(status: str, event: str | None) -> None:
    standing = standing_of(status)
    assert standing.account_event == event
    assert (standing.cool_down_us is not None) == (event == "cool_down")
    assert bool(standing.reason) == (event is not None)
    if event is not None:
        ACCOUNT.next(AccountState.ACTIVE, event)


def test_the_worst_of_several_sources_counts() -> None:
    def verdict(*statuses: object) -> str:
        sources = [{"id": "x", "status": status} for status in statuses]
        return standing_of_account({"sources": sources}).verdict

    assert verdict("OK", "CREDENTIALS", "ERROR") == "stopped"
    assert verdict("OK", "CONNECTING") == "away"
    assert verdict("OK", "OK") == verdict() == "fine"
    for odd in ({}, {"sources": None}, {"sources": ["OK", None]}, {"sources": {"status": "X"}}):
        assert standing_of_account(odd).verdict == "fine"


@pytest.mark.parametrize(
    ("scripted", "refused", "reason"),
    [
        (error(401, "disconnected_account"), True, "Disconnected account"),
        (error(403, "account_restricted"), True, "Account restricted"),
        (error(404, "resource_not_found"), True, "Resource not found"),
        (Scripted(401, b""), True, "answered 401"),
        (Scripted(404, b"<html>", HTML), False, "answered 404"),
        (error(429, "too_many_requests"), False, "Too many requests"),
        (error(500, "unexpected_error"), False, "Unexpected error"),
        (error(504, "request_timeout"), False, "Request timeout"),
        (Scripted(502, b"<html>", HTML), False, "answered 502"),
        (Scripted(200, b"<html>", HTML), False, "answered 200"),
        (Scripted(drops="read"), False, "no answer from Unipile"),
        (Scripted(hangs=True), False, "no answer from Unipile: ReadTimeout"),
    ],
)
def test_what_keeps_an_account_shut(
    fake: FakeUnipile, scripted: Scripted, refused: bool, reason: str
) -> None:
    fake.answers[f"/accounts/{LINKEDIN}"] = scripted
    with pytest.raises(ProviderError, match=f"shop: {reason}") as told:
        play(fake.settings(), nothing, patience(fake))
    assert isinstance(told.value, ProviderRefused) == refused


def test_an_account_that_stays_shut_leaves_no_client_behind(
    fake: FakeUnipile, clients: list[httpx.AsyncClient]
) -> None:
    fake.accounts[LINKEDIN]["status"] = "CREDENTIALS"
    with pytest.raises(ProviderRefused):
        play(fake.settings(), nothing)
    assert [client.is_closed for client in clients] == [True]


def test_a_wrong_key_is_refused_and_not_shown(fake: FakeUnipile) -> None:
    with pytest.raises(ProviderRefused, match="The key is not one of ours") as told:
        play(fake.settings(api_key="another-key"), nothing)
    assert "another-key" not in str(told.value)


def test_an_account_of_another_kind_is_refused(fake: FakeUnipile) -> None:
    with pytest.raises(ProviderRefused, match="knows this account as GOOGLE_OAUTH"):
        play(fake.settings("linkedin", account_id="mail-account_1"), nothing)
    with pytest.raises(ProviderRefused, match="knows this account as LINKEDIN, not as email"):
        play(fake.settings("email", account_id=LINKEDIN), nothing)


def test_nobody_there_is_away() -> None:
    with running(FakeUnipile()) as fake:
        settings = fake.settings()
    with pytest.raises(ProviderError, match="no answer from Unipile: ConnectError") as told:
        play(settings, nothing)
    assert not isinstance(told.value, ProviderRefused)
