"""Seeds of the world in which people are conversed with, whatever befalls those who answer.

Few, because each takes long; what was found with others has tests of its own in ``tests/engine``.
"""

from tests.sim.seeds import all_is_well


def test_talks_in_heavy_weather() -> None:
    all_is_well("talks", "heavy", range(11, 13))


def test_talks_in_light_weather() -> None:
    all_is_well("talks", "light", range(1))


def test_talks_in_fair_weather() -> None:
    all_is_well("talks", "none", range(1))
