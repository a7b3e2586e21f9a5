"""A fresh Unipile on loopback per test."""

from collections.abc import Iterator

import pytest

from tests.providers.unipile.fake import FakeUnipile, running


@pytest.fixture
def fake() -> Iterator[FakeUnipile]:
    with running() as server:
        yield server
