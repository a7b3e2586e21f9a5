"""Settings, and where a session is."""

from pathlib import Path
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Provider
from paceline.providers.whatsapp import provider as providers
from paceline.providers.whatsapp.provider import WhatsAppProvider
from paceline.providers.whatsapp.settings import read_settings


def whatsapp() -> Provider:
    return WhatsAppProvider(SystemClock(), Path("somewhere"))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "installed", lambda: True)


@pytest.mark.usefixtures("installed")
def test_settings_are_complete_and_read_back() -> None:
    complete = whatsapp().check({})
    assert complete == {"session": "", "look_up": True, "online": False}
    assert read_settings(complete).to_mapping() == complete


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"session": "a?b"}, "session: 'a\\?b' is no name for a session"),
        ({"session": "folder/"}, ""),
        ({"session": ".."}, "session: '..' is no name for a session"),
        ({"session": 7}, "session: is to be a text"),
        ({"look_up": "yes"}, "look_up: "),
        ({"lookup": True}, "lookup: whatsapp has no such setting, did you mean 'look_up'?"),
    ],
)
@pytest.mark.usefixtures("installed")
def test_bad_settings_are_refused_by_name(given: dict[str, Any], message: str) -> None:
    if not message:
        assert whatsapp().check(given)["session"] == "folder/"
        return
    with pytest.raises(InputError, match=message):
        whatsapp().check(given)


def test_where_the_session_is() -> None:
    folder = Path("data/whatsapp")
    assert read_settings({}).session_in(folder, "team") == folder / "team.session"
    assert read_settings({"session": "old.db"}).session_in(folder, "team") == folder / "old.db"
    elsewhere = read_settings({"session": "/var/lib/wa/team.db"})
    assert elsewhere.session_in(folder, "team") == Path("/var/lib/wa/team.db")


def test_who_looks_nobody_up_says_so() -> None:
    assert whatsapp().capabilities_of({}).resolves
    assert not whatsapp().capabilities_of({"look_up": False}).resolves


def test_without_the_extra_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="install it with: scripts/install --whatsapp"):
        whatsapp().check({})
    # What it can do is known all the same: plans and checks need not send.
    assert whatsapp().capabilities_of({}).groups
