"""The servers that responders are tested against."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.providers.loopback import running
from tests.providers.responders.fake import FakeModel, FakeService


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with running(FakeModel()) as fake:
        yield fake


@pytest.fixture
def service() -> Iterator[FakeService]:
    with running(FakeService()) as fake:
        yield fake
