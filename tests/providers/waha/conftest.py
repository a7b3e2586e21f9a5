"""A fresh WAHA on loopback per test, and a world with an account there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.loopback import running
from tests.providers.waha.fake import FakeWaha
from tests.providers.waha.live import LiveWorld


@pytest.fixture
def fake() -> Iterator[FakeWaha]:
    with running(FakeWaha()) as server:
        yield server


@pytest.fixture
def live(tmp_path: Path, fake: FakeWaha) -> LiveWorld:
    return LiveWorld(f"sqlite:///{tmp_path / 'live.db'}", fake)
