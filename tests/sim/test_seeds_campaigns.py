"""Seeds of the worlds of whole campaigns: steps, pools, breakers, storms, weeks in an office."""

import pytest

from tests.sim.seeds import all_is_well, chunks


@pytest.mark.parametrize("seeds", chunks(6, 3), ids=str)
def test_pool_in_heavy_weather(seeds: range) -> None:
    all_is_well("pool", "heavy", seeds)


@pytest.mark.parametrize("seeds", chunks(8, 4), ids=str)
def test_sequel_in_heavy_weather(seeds: range) -> None:
    all_is_well("sequel", "heavy", seeds)


@pytest.mark.parametrize("seeds", chunks(4, 2), ids=str)
def test_breaker_in_heavy_weather(seeds: range) -> None:
    all_is_well("breaker", "heavy", seeds)


@pytest.mark.parametrize("seeds", chunks(8, 4), ids=str)
def test_storm_of_crashes(seeds: range) -> None:
    all_is_well("storm", "heavy", seeds)


def test_two_weeks_in_an_office_with_a_change_of_the_clocks() -> None:
    all_is_well("office", "heavy", range(1, 2))
