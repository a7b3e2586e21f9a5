"""A fresh mail server on loopback per test, its certificates, and a world with an account there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.smtp import certificates
from tests.providers.smtp.certificates import Certificates
from tests.providers.smtp.fake import FakeServer, running
from tests.providers.smtp.live import LiveWorld


@pytest.fixture(params=["one-by-one", "together"])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeServer]:
    """Whatever it is asked one by one comes to the same when it is asked together."""
    made = FakeServer()
    made.pipelining = request.param == "together"
    with running(made) as server:
        yield server


@pytest.fixture(scope="session")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def live(tmp_path: Path, fake: FakeServer) -> LiveWorld:
    return LiveWorld(f"sqlite:///{tmp_path / 'live.db'}", fake)
