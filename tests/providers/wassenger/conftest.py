"""A fresh Wassenger on loopback per test, and a world with an account there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.loopback import running
from tests.providers.wassenger.fake import FakeWassenger
from tests.providers.wassenger.live import LiveWorld


@pytest.fixture
def fake() -> Iterator[FakeWassenger]:
    with running(FakeWassenger()) as server:
        yield server


@pytest.fixture
def live(tmp_path: Path, fake: FakeWassenger) -> LiveWorld:
    return LiveWorld(f"sqlite:///{tmp_path / 'live.db'}", fake)
