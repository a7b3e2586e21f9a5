"""A campaign from a stored audience: whoever belongs to it at its launch is written to."""

import pytest

from tests.cli.conftest import CommandLine

CAMPAIGN = """
name = "news"
accounts = ["box"]
action = "email"
audience = "readers"
[[steps]]
[[steps.parts]]
text = "Hello {{ first_name }}"
[[steps]]
after = "2d"
[[steps.parts]]
text = "Hello again {{ first_name }}"
"""


@pytest.fixture
def draft(paceline: CommandLine) -> CommandLine:
    paceline.ok("account", "add", "box", "--provider", "sandbox", "--set", "rate=60/min")
    paceline.write("one.csv", "email,first_name\nanna@example.com,Anna\nbert@example.com,Bert\n")
    paceline.ok("audience", "import", "one.csv", "--name", "readers")
    paceline.write("news.toml", CAMPAIGN)
    paceline.ok("campaign", "create", "-f", "news.toml")
    return paceline


def _targets(paceline: CommandLine) -> set[tuple[str, str]]:
    lines = paceline.ok("campaign", "export", "news").out.splitlines()
    heading = lines[0].split(",")
    rows = [dict(zip(heading, line.split(","), strict=False)) for line in lines[1:]]
    return {(row["target"], row["state"]) for row in rows}


def test_whoever_joins_before_the_launch_is_written_to(draft: CommandLine) -> None:
    draft.write("two.csv", "email,first_name\ncleo@example.com,Cleo\n")
    draft.ok("audience", "import", "two.csv", "--name", "readers")
    assert len(_targets(draft)) == 2
    draft.ok("campaign", "launch", "news")
    status = draft.ok("campaign", "status", "news", "--json").json
    assert (status["total"], status["counts"]["ready"], status["counts"]["planned"]) == (6, 3, 3)
    assert {target for target, _ in _targets(draft)} == {
        "anna@example.com",
        "bert@example.com",
        "cleo@example.com",
    }
    assert draft.ok("verify", "--json").json["violations"] == []


def test_whoever_joins_after_the_launch_is_not(draft: CommandLine) -> None:
    draft.ok("campaign", "launch", "news")
    draft.write("two.csv", "email,first_name\ncleo@example.com,Cleo\n")
    draft.ok("audience", "import", "two.csv", "--name", "readers")
    assert {target for target, _ in _targets(draft)} == {"anna@example.com", "bert@example.com"}


def test_a_newcomer_whose_template_cannot_be_filled_in_stops_the_launch(
    draft: CommandLine,
) -> None:
    draft.write("two.csv", "email,phone\ncleo@example.com,\n")
    draft.ok("audience", "import", "two.csv", "--name", "readers")
    complaint = draft.refused("campaign", "launch", "news")
    assert "target cleo@example.com has no value for first_name" in complaint
    assert draft.ok("campaign", "status", "news", "--json").json["state"] == "draft"
    assert draft.ok("verify", "--json").json["violations"] == []


def test_an_audience_that_is_gone_stops_the_launch(draft: CommandLine) -> None:
    draft.ok("audience", "remove", "readers", "--yes")
    complaint = draft.refused("campaign", "launch", "news")
    assert "the audience readers of campaign news is gone" in complaint


def test_a_newcomer_without_an_address_is_named(draft: CommandLine) -> None:
    draft.write("two.csv", "phone,first_name\n+4915112345678,Cleo\n")
    draft.ok("audience", "import", "two.csv", "--name", "readers")
    out = draft.ok("campaign", "launch", "news").out
    assert "1 person of the audience cannot be reached:" in out
    assert "has no e-mail address" in out
