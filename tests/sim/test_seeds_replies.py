"""Seeds of the world in which a campaign follows up on what people answer to it."""

from tests.sim.seeds import all_is_well


def test_replies_in_heavy_weather() -> None:
    all_is_well("replies", "heavy", range(2))


def test_replies_in_fair_weather() -> None:
    all_is_well("replies", "none", range(1))
