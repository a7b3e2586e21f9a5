"""Seeds of the world of reminders: nights in which the clocks change, and nobody lets it sleep.

Few, because each takes long; more of them are in ``test_found.py``.
"""

import pytest

from tests.sim.seeds import all_is_well, chunks


@pytest.mark.parametrize("seeds", chunks(2, 1), ids=str)
def test_reminders_in_heavy_weather(seeds: range) -> None:
    all_is_well("reminders", "heavy", seeds)


def test_reminders_in_light_weather() -> None:
    all_is_well("reminders", "light", range(1))
