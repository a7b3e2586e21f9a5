"""A fresh Unipile on loopback per test, and a world with accounts there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.loopback import running
from tests.providers.unipile.fake import FakeUnipile
from tests.providers.unipile.live import LiveWorld


@pytest.fixture
def fake() -> Iterator[FakeUnipile]:
    with running(FakeUnipile()) as server:
        yield server


@pytest.fixture
def live(tmp_path: Path, fake: FakeUnipile) -> LiveWorld:
    return LiveWorld(f"sqlite:///{tmp_path / 'live.db'}", fake)
