"""The same campaign asked for under the same key, at the same time, by several."""

from collections.abc import Callable
from typing import Any

import pytest

from paceline.engine import launching
from paceline.engine.launching import Launched
from tests.cli.conftest import CommandLine

CAMPAIGN = 'name = "race"\naccounts = ["team"]\ntargets = ["anna"]\n[[parts]]\ntext = "Hello"\n'
CREATE = ("campaign", "create", "-f", "race.toml", "--launch")
LAUNCH = launching.launch


@pytest.fixture(params=["sqlite", "postgresql"])
def race(
    request: pytest.FixtureRequest, paceline: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    if request.param == "postgresql":
        url = request.getfixturevalue("fresh_postgres_url")()
        monkeypatch.setenv("PACELINE_DATABASE", url)
    paceline.ok("account", "add", "team", "--provider", "sandbox")
    paceline.write("race.toml", CAMPAIGN)
    return paceline


def _after(others: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the campaign is there, and before it is launched, somebody else does this."""
    waiting = [others]

    def launch(*given: Any) -> Launched:
        while waiting:
            waiting.pop()()
        return LAUNCH(*given)

    monkeypatch.setattr(launching, "launch", launch)


@pytest.mark.parametrize("created", [True, False], ids=["whoever made it", "whoever found it"])
def test_whoever_is_second_to_launch_is_told_that_it_runs(
    race: CommandLine, monkeypatch: pytest.MonkeyPatch, created: bool
) -> None:
    if not created:
        race.ok(*CREATE[:-1], "--key", "r1")
    _after(lambda: race.ok(*CREATE, "--key", "r1"), monkeypatch)
    said = race.ok(*CREATE, "--key", "r1").out
    assert said == "campaign race exists under this key; it is running\n"
    status = race.ok("campaign", "status", "race", "--json").json
    assert (status["state"], status["total"]) == ("running", 1)


def test_without_a_key_it_is_told_as_what_it_is(
    race: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _after(lambda: race.ok("campaign", "launch", "race"), monkeypatch)
    assert "campaign race is running: cannot launch" in race.refused(*CREATE)
