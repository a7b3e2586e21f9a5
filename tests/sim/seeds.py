"""The suite's seeds: how many of each world are played, and how a broken one is told.

They are spread over several files, because the suite is spread over the cores by file.
"""

from paceline.sim.many import simulate_many
from paceline.sim.weather import Faults


def all_is_well(world: str, faults: Faults, seeds: range) -> None:
    """Play these seeds here, one after the other; what is broken says how to see it again."""
    for verdict in simulate_many(seeds, world=world, faults=faults, workers=1):
        told = "\n".join(line for excerpt in verdict.excerpts[:1] for line in excerpt)
        assert not verdict.violations, (
            f"{verdict.violations[0].invariant}: {verdict.violations[0].detail}\n{told}\n"
            f"paceline simulate --seeds 1 --from {verdict.seed} --faults {faults} --world {world}"
        )


def chunks(seeds: int, size: int) -> list[range]:
    return [range(first, min(first + size, seeds)) for first in range(0, seeds, size)]
