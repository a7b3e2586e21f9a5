"""Seeds of the world in which providers ask for time, and people for news."""

import pytest

from tests.sim.seeds import all_is_well, chunks


@pytest.mark.parametrize("seeds", chunks(6, 3), ids=str)
def test_signals_in_heavy_weather(seeds: range) -> None:
    all_is_well("signals", "heavy", seeds)
