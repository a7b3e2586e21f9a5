"""``paceline reminder`` as an operator types it, and the accounts it sends from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Answer, CommandLine

EXAMPLE = Path(__file__).parents[2] / "examples" / "reminders" / "standup.toml"


def wrong(paceline: CommandLine, *words: str) -> Answer:
    """The answer to what cannot be done."""
    answer = paceline(*words)
    assert answer.code in (1, 2), answer
    return answer


@pytest.fixture
def standup(paceline: CommandLine) -> CommandLine:
    paceline.ok("account", "add", "team", "--provider", "sandbox", "--option", "groups=1..2")
    paceline.ok("reminder", "create", "-f", str(EXAMPLE))
    return paceline


def test_the_example_is_created_enabled_and_says_when_it_fires(paceline: CommandLine) -> None:
    paceline.ok("account", "add", "team", "--provider", "sandbox")
    said = paceline.ok("reminder", "create", "-f", str(EXAMPLE)).out
    assert "reminder standup created: 3 targets from team" in said
    assert "fires next at" in said
    (listed,) = paceline.ok("reminder", "list", "--json").json
    assert (listed["name"], listed["state"], listed["targets"]) == ("standup", "enabled", 3)
    assert len(listed["next"]) == 5


def test_groups_it_cannot_write_to_are_named_before_anything_is_sent(standup: CommandLine) -> None:
    listed = standup.ok("account", "groups", "team", "--json").json
    assert [group["id"] for group in listed] == [
        "120363000000000001@g.us",
        "120363000000000002@g.us",
    ]
    edited = standup.ok("reminder", "edit", "standup", "--window", "0-24")
    assert "1 target cannot be reached:" in edited.out
    assert "120363000000000003@g.us: team is not a member of this group" in edited.out
    standup.ok("reminder", "fire", "standup", "--yes")
    (run,) = standup.ok("reminder", "runs", "standup", "--json").json
    assert run["state"] == "waiting"
    assert run["counts"]["ready"] == 2
    assert run["counts"]["skipped"] == 1


def test_fired_twice_under_one_key_it_is_fired_once(standup: CommandLine) -> None:
    standup.ok("reminder", "edit", "standup", "--window", "0-24")
    for _ in range(2):
        standup.ok("reminder", "fire", "standup", "--yes", "--key", "monday")
    assert len(standup.ok("reminder", "runs", "standup", "--json").json) == 1


def test_what_waits_says_behind_whom(standup: CommandLine) -> None:
    standup.ok("reminder", "edit", "standup", "--window", "0-24")
    for _ in range(2):
        standup.ok("reminder", "fire", "standup", "--yes")
    later, first = standup.ok("reminder", "runs", "standup", "--json").json
    assert later["waits_for"] == "its turn, behind run 1 on team"
    assert first["waits_for"] == "its account"


def test_switched_off_and_on(standup: CommandLine) -> None:
    standup.ok("reminder", "disable", "standup")
    assert standup.ok("reminder", "list", "--json").json[0]["state"] == "disabled"
    again = wrong(standup, "reminder", "disable", "standup")
    assert "is disabled already" in again.err
    assert "fires next at" in standup.ok("reminder", "enable", "standup").out
    standup.ok("reminder", "pause", "standup")
    assert standup.ok("reminder", "list", "--json").json[0]["state"] == "paused"
    assert "is paused" in wrong(standup, "reminder", "fire", "standup", "--yes").err
    standup.ok("reminder", "resume", "standup")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--window", "22-6"], "crosses midnight"),
        (["--cron", "0 25 * * *"], "is no cron rule"),
        (["--at", "tomorrow"], "is not a date"),
        (["--zone", "Asia/Kuala"], "unknown time zone"),
        (["--at", "2026-11-20", "--cron", "0 9 * * *"], "either at or cron"),
        (["--at-close", "stop"], "must be one of"),
        ([], "say what is to change"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(
    standup: CommandLine, options: list[str], words: str
) -> None:
    before = standup.ok("reminder", "show", "standup", "--json").json
    assert words in wrong(standup, "reminder", "edit", "standup", *options).err
    assert standup.ok("reminder", "show", "standup", "--json").json == before


def test_a_firing_outside_its_window_is_warned_of(standup: CommandLine) -> None:
    warned = standup.ok("reminder", "edit", "standup", "--cron", "0 20 * * *").err
    assert "outside its window (06:00-18:00 Asia/Kuala_Lumpur): nothing would be sent" in warned


def test_unknown_names_are_told_with_the_nearest(standup: CommandLine) -> None:
    assert "did you mean 'standup'" in wrong(standup, "reminder", "show", "standap").err


def test_reminders_and_campaigns_do_not_mix(standup: CommandLine) -> None:
    assert "no campaign named 'standup'" in wrong(standup, "campaign", "pause", "standup").err
    assert standup.ok("campaign", "list", "--json").json == []


def test_a_reassignment_without_anything_to_reassign(standup: CommandLine) -> None:
    assert "no run under way" in wrong(standup, "reminder", "reassign", "standup").err


@pytest.mark.parametrize(
    ("option", "words", "code"),
    [("", "it can be opened", 0), ("unauthorised=true", "refuses the credentials", 1)],
)
def test_an_account_is_checked_in_one_line(
    paceline: CommandLine, option: str, words: str, code: int
) -> None:
    more = ["--option", option] if option else []
    paceline.ok("account", "add", "team", "--provider", "sandbox", *more)
    found = paceline("account", "check", "team")
    assert found.code == code
    assert words in found.out
    assert len(found.out.splitlines()) == 1


def test_an_account_that_is_removed_leaves_its_reminders_to_the_others(
    standup: CommandLine,
) -> None:
    add = ("--provider", "sandbox", "--policy", "whatsapp-established")
    standup.ok("account", "add", "spare", *add)
    standup.write(
        "both.toml",
        'name = "both"\naccounts = ["team", "spare"]\ncron = "0 9 * * *"\nwindow = "0-24"\n'
        'targets = ["120363000000000001@g.us"]\n[[parts]]\ntext = "hello"\n',
    )
    standup.ok("reminder", "create", "-f", "both.toml")
    told = standup.ok("account", "remove", "spare", "--yes")
    assert "go on from their other accounts: both" in told.err
    assert "both fired: 1 message waits" in standup.ok("reminder", "fire", "both", "--yes").out
    standup.ok("reminder", "edit", "both", "--window", "0-23")


def test_what_is_over_says_how_to_give_it_another_time(standup: CommandLine) -> None:
    standup.ok("reminder", "disable", "standup")
    standup.ok("reminder", "enable", "standup")
    assert "is enabled already" in standup.refused("reminder", "enable", "standup")
    assert "Possible now: pause\n" in standup.refused("reminder", "resume", "standup") + "\n"
