"""A fresh stage of every case there is, for every test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.providers.conformance.case import Case, Stage
from tests.providers.conformance.cases import CASES


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture
def stage(case: Case) -> Iterator[Stage]:
    with case.stage() as made:
        yield made


@pytest.fixture(params=[case for case in CASES if case.media], ids=str)
def shelf(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A stage of those that can send files."""
    case: Case = request.param
    with case.stage() as made:
        yield made
