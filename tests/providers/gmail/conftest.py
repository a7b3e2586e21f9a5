"""A fresh Gmail on loopback per test, and a world with a mailbox there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.gmail.fake import FakeGmail
from tests.providers.gmail.live import LiveWorld
from tests.providers.loopback import running


@pytest.fixture
def fake() -> Iterator[FakeGmail]:
    with running(FakeGmail()) as server:
        yield server


@pytest.fixture
def live(tmp_path: Path, fake: FakeGmail) -> LiveWorld:
    return LiveWorld(f"sqlite:///{tmp_path / 'live.db'}", fake)
