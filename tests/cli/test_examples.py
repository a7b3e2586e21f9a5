"""The examples run as they are: their own comments set them up, the plan comes to an end, and what
they say is sent."""

import re
import shlex
from datetime import timedelta
from pathlib import Path

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND, Instant, parse_instant
from paceline.engine import clock as clocks
from paceline.sim import process
from tests.cli.conftest import NOW, CommandLine, StillClock
from tests.engine.scenes import slow_heart, until
from tests.engine.world import World

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.toml"))
FIRST = 3
"""Messages that each of them sends here."""

SIMULATED = {
    "d-conservative": timedelta(hours=1, minutes=42),
    "d-optimised": timedelta(minutes=56),
    "opening": timedelta(seconds=9),
    "order-ready": timedelta(seconds=18),
    "sequence": timedelta(days=4, hours=22),
}
"""How long each takes, to the minute, from that Sunday at ten. Of cold-email it would take long to
play: its kind is among the worlds of ``tests/sim/test_plans.py``."""


def _set_up(paceline: CommandLine, path: Path) -> None:
    for command in re.findall(r"^#\s+paceline (account add .*)$", path.read_text(), re.M):
        paceline.ok(*shlex.split(command))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_example_is_planned_and_launched_as_its_comments_say_and_begins_to_send(
    paceline: CommandLine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set_up(paceline, path)
    plan = paceline.ok("plan", str(path), "--json").json
    assert plan["finish"] is not None
    assert plan["messages"] > 0
    assert plan["unreachable"] == []
    paceline.ok("campaign", "create", "-f", str(path), "--launch")
    status = paceline.ok("campaign", "status", path.stem, "--json").json
    assert status["state"] == "running"
    assert sum(status["counts"].values()) == status["total"] >= plan["messages"]
    slow_heart(monkeypatch)
    planned_at = min(parse_instant(entry["first"]) for entry in plan["accounts"] if entry["first"])
    # Whatever waits for Monday is waited for by nobody.
    world = World(f"sqlite:///{paceline.folder / 'paceline.db'}", max(NOW, planned_at - MINUTE))
    world.play(_begin)
    status = paceline.ok("campaign", "status", path.stem, "--json").json
    assert status["counts"]["sent"] >= FIRST and status["counts"]["failed"] == 0
    first_at = min(effect.called_at for effect in world.sends())
    assert 0 <= first_at - planned_at <= MINUTE
    assert {effect.account for effect in world.sends()} <= {e["account"] for e in plan["accounts"]}


async def _begin(world: World) -> None:
    """A service in virtual time, until the first few are out."""
    service = world.process(poll_us=HOUR)
    await until(world, lambda: len(world.sends()) >= FIRST, MINUTE, HOUR)
    await service.stop()


@pytest.mark.parametrize("name", SIMULATED)
def test_a_simulation_is_done_when_the_plan_says(
    paceline: CommandLine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert process.SystemClock is clocks.SystemClock  # the simulated ones keep theirs
    monkeypatch.setattr(clocks, "SystemClock", lambda: StillClock(NOW))
    path = EXAMPLES / f"{name}.toml"
    _set_up(paceline, path)
    plan = paceline.ok("plan", str(path), "--json").json
    told = paceline.ok("simulate", "-f", str(path), "--seeds", "1", "--workers", "1", "--json").json
    assert told["sent"] == told["total"] == plan["messages"] and told["violations"] == []
    took_us = _at(told["done_at"]["latest"]) - NOW
    assert abs(took_us - SIMULATED[name] // timedelta(microseconds=1)) < MINUTE, took_us / MINUTE
    assert abs(_at(plan["finish"]) - _at(told["done_at"]["latest"])) < 90 * SECOND


def _at(text: str) -> Instant:
    return parse_instant(text)
