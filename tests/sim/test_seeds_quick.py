"""Seeds of the worlds that are quick to play."""

import pytest

from tests.sim.seeds import all_is_well, chunks


@pytest.mark.parametrize("seeds", chunks(12, 6), ids=str)
def test_moods_in_heavy_weather(seeds: range) -> None:
    all_is_well("moods", "heavy", seeds)


@pytest.mark.parametrize("seeds", chunks(12, 6), ids=str)
def test_gallery_in_heavy_weather(seeds: range) -> None:
    all_is_well("gallery", "heavy", seeds)


@pytest.mark.parametrize("seeds", chunks(12, 6), ids=str)
def test_campaign_in_light_weather(seeds: range) -> None:
    all_is_well("campaign", "light", seeds)


@pytest.mark.parametrize("seeds", chunks(12, 6), ids=str)
def test_rush_in_heavy_weather(seeds: range) -> None:
    all_is_well("rush", "heavy", seeds)
