"""A fresh WATI on loopback per test, and a world with an account there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.loopback import running
from tests.providers.wati.fake import FakeWati
from tests.providers.wati.live import LiveWorld


@pytest.fixture
def fake() -> Iterator[FakeWati]:
    with running(FakeWati()) as server:
        yield server


@pytest.fixture
def live(tmp_path: Path, fake: FakeWati) -> LiveWorld:
    return LiveWorld(f"sqlite:///{tmp_path / 'live.db'}", fake)
