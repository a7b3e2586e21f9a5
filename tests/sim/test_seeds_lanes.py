"""Seeds of the worlds in which processes quarrel over lanes."""

import pytest

from tests.sim.seeds import all_is_well, chunks


@pytest.mark.parametrize("seeds", chunks(10, 5), ids=str)
def test_takeover_in_heavy_weather(seeds: range) -> None:
    all_is_well("takeover", "heavy", seeds)


@pytest.mark.parametrize("seeds", chunks(10, 5), ids=str)
def test_groups_in_heavy_weather(seeds: range) -> None:
    all_is_well("groups", "heavy", seeds)
