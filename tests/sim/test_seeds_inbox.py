"""Seeds of the world in which mail comes back: bounces, complaints, answers, unsubscribing.

Few, because each takes long; those in heavy weather are in ``test_found.py``.
"""

from tests.sim.seeds import all_is_well


def test_inbox_in_light_weather() -> None:
    all_is_well("inbox", "light", range(1))
