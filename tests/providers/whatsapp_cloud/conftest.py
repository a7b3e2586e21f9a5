"""A fresh Meta on loopback per test, and a world with an account there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.loopback import running
from tests.providers.whatsapp_cloud.fake import FakeMeta
from tests.providers.whatsapp_cloud.live import LiveWorld


@pytest.fixture
def fake() -> Iterator[FakeMeta]:
    with running(FakeMeta()) as server:
        yield server


@pytest.fixture
def live(tmp_path: Path, fake: FakeMeta) -> LiveWorld:
    return LiveWorld(f"sqlite:///{tmp_path / 'live.db'}", fake)
