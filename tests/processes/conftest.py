"""An installation on each kind of database."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.processes.service import Installation


@pytest.fixture(params=["sqlite", "postgresql"])
def installation(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    fresh_sqlite_url: Callable[[], str],
) -> Iterator[Installation]:
    if request.param == "sqlite":
        database = fresh_sqlite_url()
    else:
        database = request.getfixturevalue("fresh_postgres_url")()
    with closing(Installation(tmp_path, database)) as made:
        yield made
