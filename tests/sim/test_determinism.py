"""The same seed gives the same trace, to the byte: in one process, in another, on more cores."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from paceline.sim.many import Report, simulate_many
from paceline.sim.simulation import simulate
from paceline.sim.weather import Faults

ROOT = Path(__file__).resolve().parents[2]
WORLDS = ("groups", "campaign", "takeover", "storm", "inbox", "talks")
SHORT = {"inbox": 6, "talks": 9}
"""Of worlds that last for days, a seed that does not take long."""

STORY = """
import sys
from paceline.sim.many import Report, simulate_many
for told in sys.argv[1:]:
    world, _, seed = told.partition(":")
    seeds = range(int(seed), int(seed) + 1)
    verdicts = tuple(simulate_many(seeds, world=world, faults="heavy", workers=1))
    print(world, Report(verdicts).trace())
"""


def report(world: str, seeds: range, workers: int, faults: Faults = "heavy") -> Report:
    verdicts = simulate_many(seeds, world=world, faults=faults, workers=workers)
    return Report(tuple(sorted(verdicts, key=lambda verdict: verdict.seed)))


@cache
def told_here(world: str) -> Report:
    """Played once for all who compare with it, with whatever hashes this process has."""
    return report(world, of(world), 1)


def of(world: str) -> range:
    seed = SHORT.get(world, 0)
    return range(seed, seed + 1)


@pytest.mark.parametrize("world", WORLDS)
def test_the_same_seed_gives_the_same_trace_again(world: str) -> None:
    first, second = told_here(world), report(world, of(world), 1)
    assert first.to_mapping() == second.to_mapping()
    assert first == second


def test_another_seed_gives_another_trace() -> None:
    digests = {verdict.digest for verdict in report("campaign", range(4), 1).verdicts}
    assert len(digests) == 4


def test_the_trace_depends_neither_on_hashes_nor_on_the_folder(tmp_path: Path) -> None:
    """It is told there as it is here."""
    hash_seed = "12345" if os.environ.get("PYTHONHASHSEED") != "12345" else "54321"
    around = os.environ | {"PYTHONHASHSEED": hash_seed, "TMPDIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", STORY, *(f"{name}:{of(name).start}" for name in WORLDS)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=around,
        timeout=120,
    )
    assert list(tmp_path.iterdir()) == []
    assert ran.stdout == "".join(f"{name} {told_here(name).trace()}\n" for name in WORLDS)


def test_two_workers_report_what_one_does() -> None:
    alone, together = report("campaign", range(2), 1), report("campaign", range(2), 2)
    assert together == alone
    assert together.to_mapping() == alone.to_mapping()


def test_a_seed_is_the_same_in_any_company() -> None:
    alone = simulate(3, world="groups", faults="light")
    in_company = report("groups", range(2, 5), 1, "light").verdicts[1]
    assert in_company == alone
