"""An installation on each kind of database."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes.service import Installation


@pytest.fixture(params=["sqlite", "postgresql"])
def installation(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    fresh_sqlite_url: Callable[[], str],
) -> Installation:
    if request.param == "sqlite":
        return Installation(tmp_path, fresh_sqlite_url())
    fresh_postgres_url = request.getfixturevalue("fresh_postgres_url")
    return Installation(tmp_path, fresh_postgres_url())
