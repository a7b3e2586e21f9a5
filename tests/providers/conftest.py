"""What the tests of several providers share."""

import pytest

from paceline.core.instants import MILLISECOND, MINUTE


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
