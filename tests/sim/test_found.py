"""What the simulator has found in the engine: each with the seed that found it.

A seed reaches the same place only as long as nothing changes on the way there. So an entry also
names a twin without its cure: the twin is caught at that seed, or the entry has lost its sense and
another seed must be found.
"""

import pytest

from paceline.sim.many import _quiet
from paceline.sim.simulation import Verdict, simulate
from paceline.sim.weather import Faults
from tests.sim import twins

FOUND: list[tuple[str, Faults, int, str, twins.Break]] = [
    (
        "takeover",
        "heavy",
        29,
        "a lease that ran out and was renewed before the lane looked",
        twins.the_term_of_the_lease_is_ignored,
    ),
]


def played(world: str, faults: Faults, seed: int) -> Verdict:
    with _quiet():
        return simulate(seed, world=world, faults=faults)


@pytest.mark.parametrize(("world", "faults", "seed", "what", "uncured"), FOUND)
def test_what_was_found_stays_mended(
    world: str, faults: Faults, seed: int, what: str, uncured: twins.Break
) -> None:
    assert played(world, faults, seed).violations == ()


@pytest.mark.parametrize(("world", "faults", "seed", "what", "uncured"), FOUND)
def test_the_seed_still_reaches_it(
    world: str, faults: Faults, seed: int, what: str, uncured: twins.Break
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        uncured(patch)
        assert played(world, faults, seed).violations != (), what
