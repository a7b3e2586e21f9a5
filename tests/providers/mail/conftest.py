"""A fresh mailbox on loopback per test."""

from collections.abc import Iterator

import pytest

from tests.providers.mail.imap_server import ImapServer, running


@pytest.fixture
def imap() -> Iterator[ImapServer]:
    with running(ImapServer()) as server:
        yield server
