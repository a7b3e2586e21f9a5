"""The examples run as they are: their own comments set them up, and the plan comes to an end."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

EXAMPLES = Path(__file__).parents[2] / "examples"


def _set_up(paceline: CommandLine, path: Path) -> None:
    for command in re.findall(r"^#\s+paceline (account add .*)$", path.read_text(), re.M):
        paceline.ok(*shlex.split(command))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_an_example_is_planned_and_launched_as_its_comments_say(
    paceline: CommandLine, path: Path
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
