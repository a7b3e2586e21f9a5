"""A fresh mail server on loopback per test, its certificates, and a world with an account there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.core.outcome import Outcome
from paceline.engine.ports import Message
from paceline.providers.smtp.driver import SmtpDriver
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


@pytest.fixture(params=["in a task", "at once"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """However a letter is begun, it comes to the same: at once, and in a task where that cannot be,
    is what the engine does."""
    if request.param == "in a task":
        return
    real = SmtpDriver.send

    async def send(self: SmtpDriver, message: Message) -> Outcome:
        self.make_ready(message)
        call = self.begin(message)
        outcome = None if call is None else await call
        return outcome if outcome is not None else await real(self, message)

    monkeypatch.setattr(SmtpDriver, "send", send)


@pytest.fixture(scope="session")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def live(tmp_path: Path, fake: FakeServer) -> LiveWorld:
    return LiveWorld(f"sqlite:///{tmp_path / 'live.db'}", fake)
