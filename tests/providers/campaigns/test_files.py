"""A file that the provider, or the process, has lost is at hand again for the next campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.providers.campaigns.case import Case
from tests.providers.campaigns.cases import CASES

SHELVES = [case for case in CASES if case.files is not None]


@pytest.mark.parametrize("case", SHELVES, ids=str)
def test_a_file_that_was_lost_is_there_again(case: Case, tmp_path: Path) -> None:
    """The handle of the campaign before is told to be gone, and nobody is given up for it."""
    files = case.files
    assert files is not None

    async def script(world: Any) -> None:
        world.connect(*files.connect)
        files.ready(world.fake)
        parts = (files.part(world.picture().id),)
        for name in ("spring", "summer"):
            case.campaign(world, name=name, **{"parts": parts, **files.more})
            await world.send_all(name)
            assert world.counts(name) == {"sent": 5}
            files.lose(world)

    with case.live(tmp_path) as world:
        world.play(script)
        assert world.targets().total() == 10
        if files.uploads is not None:
            assert len(world.fake.uploaded()) == files.uploads
        files.check(world.fake)
