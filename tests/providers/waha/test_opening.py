"""Opening an account: its settings, its key, and how WAHA says the session stands."""

from typing import Any

import pytest

from paceline.core.errors import InputError, ProviderError, ProviderRefused
from paceline.engine.ports import Driver
from paceline.providers.waha import WahaProvider, read_settings
from paceline.providers.waha.status import SESSIONS, standing_of, standing_of_session
from tests.providers.loopback import HTML, Scripted, running, said
from tests.providers.remote import CLOCK, patience
from tests.providers.waha.fake import KEY, SESSION, FakeWaha, error, not_working
from tests.providers.waha.stage import play

GOOD = {"base_url": "https://waha.example.com", "api_key": KEY}


async def nothing(driver: Driver) -> None:
    """Open, and close again."""


def test_settings_are_complete_and_read_back() -> None:
    complete = WahaProvider(CLOCK).check(GOOD)
    assert complete == GOOD | {
        "allow_http": False,
        "session": "default",
        "own_ids": True,
        "look_up": True,
        "webhook_secret": None,
    }
    assert read_settings(complete).to_mapping() == complete


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"base_url": "http://waha:3000"}, "base_url: the API key would travel unencrypted"),
        ({"base_url": "https://x.com?a=1"}, "base_url: .* is no address"),
        ({"base_url": "ftp://x", "allow_http": True}, "base_url: ftp:// cannot be spoken"),
        ({"base_url": "http://x?a=1", "allow_http": True}, "base_url: .* is no address"),
        ({"base_url": "http://waha:3000", "allow_http": "yes"}, "allow_http: "),
        ({"session": ""}, "session: '' is no session's name"),
        ({"session": "../admin"}, "session: .* is no session's name"),
        ({"session": 7}, "session: is to be a text, so write it in quotes"),
        ({"api_key": ""}, "api_key: is empty"),
        ({"api_key": "two\nlines"}, "api_key: .* characters in it"),
        ({"own_ids": "no"}, "own_ids: "),
        ({"look_up": 1}, "look_up: "),
        ({"webhook_secret": "a b"}, "webhook_secret: .* characters in it"),
        ({"apikey": "x"}, "apikey: waha has no such setting, did you mean 'api_key'?"),
    ],
)
def test_bad_settings_are_refused_by_name(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        read_settings(GOOD | changed)
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("key", ["api_key", "base_url"])
def test_what_is_missing_is_named(key: str) -> None:
    without = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(InputError, match=f"^{key}: waha needs this setting"):
        read_settings(without)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Waha.example.com/", "https://waha.example.com"),
        ("https://waha.example.com/api/", "https://waha.example.com"),
        ("https://example.com:8443/waha/api", "https://example.com:8443/waha"),
        ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
    ],
)
def test_an_address_is_taken_as_people_have_it(written: str, read: str) -> None:
    assert read_settings({**GOOD, "base_url": written}).base_url == read


def test_a_network_of_one_s_own_may_be_spoken_to_plainly() -> None:
    """As between two containers of one machine. Whoever wants that has to say so."""
    settings = read_settings({**GOOD, "base_url": "HTTP://waha:3000/api", "allow_http": True})
    assert settings.base_url == "http://waha:3000"
    assert read_settings(settings.to_mapping()) == settings
    secure = read_settings({**GOOD, "allow_http": True})
    assert secure.base_url == GOOD["base_url"]


def test_nobody_sees_a_secret_by_accident() -> None:
    settings = read_settings({**GOOD, "webhook_secret": "wEbHoOk"})
    assert KEY not in repr(settings) and "wEbHoOk" not in repr(settings)


@pytest.mark.parametrize("status", [*SESSIONS, "BRAND_NEW"])
def test_a_session_opens_as_its_status_allows(fake: FakeWaha, status: str) -> None:
    fake.state = status
    verdict = SESSIONS.get(status, "away")
    if verdict == "fine":
        play(fake.settings(), nothing)
        return
    words = {"away": "shop: offline: ", "stopped": "shop: not paired: "}[verdict]
    with pytest.raises(ProviderError, match=f"^{words}.*'{status}'(; .*)?$") as told:
        play(fake.settings(), nothing)
    assert isinstance(told.value, ProviderRefused) == (verdict == "stopped")


def test_what_is_to_be_done_is_said(fake: FakeWaha) -> None:
    fake.state = "STOPPED"
    with pytest.raises(ProviderError, match=r"'STOPPED'; start it in WAHA$"):
        play(fake.settings(), nothing)
    fake.state = "SCAN_QR_CODE"
    with pytest.raises(ProviderError, match=r"; scan its code with the phone$"):
        play(fake.settings(), nothing)


def test_a_browser_that_died_is_waited_for(fake: FakeWaha) -> None:
    """WEBJS fails and starts again by itself; with the others a failed session was logged out."""
    fake.engine, fake.state = "WEBJS", "FAILED"
    with pytest.raises(ProviderError, match=r"^shop: offline: .*'FAILED'") as told:
        play(fake.settings(own_ids=False), nothing)
    assert not isinstance(told.value, ProviderRefused)
    assert standing_of("FAILED", "WEBJS") != standing_of("FAILED", "GOWS")


def test_only_a_session_that_says_so_works() -> None:
    assert standing_of_session({"status": " working "}).verdict == "fine"
    odd: tuple[Any, ...] = (None, 5, "", [], {"status": "WORKING"})
    for status in odd:
        standing = standing_of_session({"status": status})
        assert standing.verdict == "away" and standing.reason.startswith("offline: ")


def test_an_engine_that_takes_no_ids_is_not_relied_on(fake: FakeWaha) -> None:
    """Or lost messages would be looked for under ids that nobody ever used."""
    fake.engine = "WEBJS"
    with pytest.raises(ProviderRefused, match=r"engine is WEBJS, .* --option own_ids=false$"):
        play(fake.settings(), nothing)
    play(fake.settings(own_ids=False), nothing)
    for engine in ("GOWS", "NOWEB", ""):
        fake.engine = engine
        play(fake.settings(), nothing)


PATH = f"/sessions/{SESSION}"


@pytest.mark.parametrize(
    ("scripted", "refused", "reason"),
    [
        (error(401), True, "token refused: Told in words: 401"),
        (error(403, "Forbidden resource"), True, "token refused: Forbidden resource"),
        (Scripted(401, b""), True, "token refused: answered 401"),
        (error(404), True, "no such session: Told in words: 404"),
        (Scripted(404, b"<html>", HTML), False, "offline: answered 404"),
        (Scripted(403, b"<html>", HTML), False, "offline: answered 403"),
        (not_working("STOPPED"), False, "offline: WAHA says the session is 'STOPPED'"),
        (not_working("FAILED"), True, "not paired: WAHA says the session is 'FAILED'"),
        (error(429), False, "offline: "),
        (error(503), False, "offline: "),
        (Scripted(502, b"<html>", HTML), False, "offline: answered 502"),
        (Scripted(200, b"<html>", HTML), False, "offline: answered 200"),
        (said(200, []), False, "offline: answered 200"),
        (said(200, {}), False, "offline: WAHA says the session is nowhere to be seen"),
        (Scripted(drops="read"), False, "offline: no answer from WAHA: RemoteProtocolError"),
        (Scripted(hangs=True), False, "offline: no answer from WAHA: ReadTimeout"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_keeps_an_account_shut_is_told_in_one_line(
    fake: FakeWaha, scripted: Scripted, refused: bool, reason: str
) -> None:
    fake.answers[PATH] = scripted
    with pytest.raises(ProviderError, match=f"^shop: {reason}") as told:
        play(fake.settings(), nothing, patience(fake))
    assert isinstance(told.value, ProviderRefused) == refused
    assert "\n" not in str(told.value)


def test_a_wrong_key_is_refused_and_not_shown(fake: FakeWaha) -> None:
    with pytest.raises(ProviderRefused, match="token refused: Unauthorized") as told:
        play(fake.settings(api_key="another-key"), nothing)
    assert "another-key" not in str(told.value)


def test_another_session_is_no_session(fake: FakeWaha) -> None:
    with pytest.raises(ProviderRefused, match=r"^shop: no such session: Session not found$"):
        play(fake.settings(session="other"), nothing)


def test_nobody_there_is_offline() -> None:
    with running(FakeWaha()) as fake:
        settings = fake.settings()
    with pytest.raises(ProviderError, match="offline: no answer from WAHA: ConnectError") as told:
        play(settings, nothing)
    assert not isinstance(told.value, ProviderRefused)
