"""Seeds of the worlds that last for days: few, as each takes long; more in ``test_found.py``."""

import pytest

from tests.sim.seeds import all_is_well, chunks


@pytest.mark.parametrize("seeds", chunks(10, 5), ids=str)
def test_campaign_in_heavy_weather(seeds: range) -> None:
    all_is_well("campaign", "heavy", seeds)


@pytest.mark.parametrize("seeds", chunks(8, 4), ids=str)
def test_people_in_heavy_weather(seeds: range) -> None:
    all_is_well("people", "heavy", seeds)


@pytest.mark.parametrize("seeds", chunks(2, 1), ids=str)
def test_caps_in_heavy_weather(seeds: range) -> None:
    all_is_well("caps", "heavy", seeds)
