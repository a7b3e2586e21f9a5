"""What the tests of several providers share."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import httpx
import pytest

from paceline.core.instants import MILLISECOND, MINUTE
from paceline.providers import http
from paceline.providers.opening import HttpProvider


@pytest.fixture(scope="session", autouse=True)
def trusted_once() -> Iterator[None]:
    """Whom to trust is read once for all tests: most of them make a provider of their own, and
    reading it takes longer than all that they do. Not for mail, where accounts trust others."""
    certificates = cache(http.certificates)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(HttpProvider, "_certificates", lambda provider: certificates())
        yield


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> list[httpx.AsyncClient]:
    """Every client that is made from now on."""
    found: list[httpx.AsyncClient] = []
    made = httpx.AsyncClient.__init__

    def note(self: httpx.AsyncClient, *args: Any, **more: Any) -> None:
        found.append(self)
        made(self, *args, **more)

    monkeypatch.setattr(httpx.AsyncClient, "__init__", note)
    return found


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doubts are looked into after moments instead of minutes."""
    waits = (100 * MILLISECOND, 200 * MILLISECOND, 300 * MILLISECOND, MINUTE)
    monkeypatch.setattr("paceline.core.retry.ASK_AFTER_US", waits)
    monkeypatch.setattr("paceline.engine.settling.ASK_AFTER_US", waits)
    monkeypatch.setattr("paceline.engine.recovery.CLEAN_UP_US", MILLISECOND)


@pytest.fixture
def soon_held(soon: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doubts are looked into once, after a moment, and then left to a person."""
    monkeypatch.setattr("paceline.core.retry.ASK_AFTER_US", (100 * MILLISECOND,))
