"""A reminder's runs as an operator sees them: exported, called off, sent again, and noted."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from paceline.core.instants import DAY, MINUTE
from paceline.store.database import open_store
from tests.cli.conftest import CommandLine, StillClock

EXAMPLE = Path(__file__).parents[2] / "examples" / "reminders" / "standup.toml"
GROUP = "12036300000000000{}@g.us"
STOPPED = "everything is stopped since 2026-11-15 10:00 UTC: an alarm; go on with: paceline go-on"
NOBODY = "no Paceline process is running: start one with 'paceline up'"


@pytest.fixture
def standup(paceline: CommandLine) -> CommandLine:
    paceline.ok("account", "add", "team", "--provider", "sandbox", "--option", "groups=1..2")
    paceline.ok("reminder", "create", "-f", str(EXAMPLE))
    paceline.ok("reminder", "edit", "standup", "--window", "0-24")
    return paceline


def fire(paceline: CommandLine, *words: str) -> str:
    return paceline.ok("reminder", "fire", "standup", "--yes", *words).out


def suspend(paceline: CommandLine, name: str, reason: str) -> None:
    """As a provider does it."""
    url = f"sqlite:///{paceline.folder / 'paceline.db'}"
    store = open_store(url, clock=paceline.clock.now)
    with store.write() as tx:
        account = tx.accounts.find(name)
        assert account is not None
        tx.accounts.move(account.id, "suspend", reason=reason)
    store.close()


# ---------------------------------------------------------------------- what a run left


def test_a_run_is_exported_with_the_names_of_its_groups(standup: CommandLine) -> None:
    standup.ok("account", "groups", "team")
    fire(standup)
    rows = list(csv.DictReader(io.StringIO(standup.ok("reminder", "export", "standup").out)))
    assert list(rows[0]) == ["target", "name", "account", "state", "reason", "sent_at"]
    by_target = {row["target"]: row for row in rows}
    assert len(by_target) == 3
    assert by_target[GROUP.format(1)]["name"] == "Group 1"
    assert by_target[GROUP.format(1)]["state"] == "ready"
    third = by_target[GROUP.format(3)]
    assert (third["name"], third["state"]) == ("", "skipped")
    assert third["reason"] == "team is not a member of this group"
    told = standup.ok("reminder", "export", "standup", "rest.csv", "--run", "1")
    assert told.err == "3 deliveries of run 1 written to rest.csv\n"
    lines = standup.ok("reminder", "export", "standup", "-", "--json").out.splitlines()
    assert {json.loads(line)["account"] for line in lines} == {"team"}
    assert "has no run 7" in standup.refused("reminder", "export", "standup", "--run", "7")


def test_what_was_called_off_is_sent_after_all_from_another_account(standup: CommandLine) -> None:
    standup.ok("account", "add", "shop", "--provider", "sandbox")
    fire(standup)
    assert "run 1 of reminder standup is under way yet" in standup.refused(
        "reminder", "fire", "standup", "--rest", "--yes"
    )
    told = standup.ok("reminder", "cancel", "standup", "--yes").out
    assert "run 1 of reminder standup cancelled: 0 had been sent, 3 will not\n" in told
    assert "paceline reminder fire standup --rest --run 1\n" in told
    again = fire(standup, "--rest", "--from", "shop")
    assert "reminder standup fired with what run 1 left: 3 messages wait\n" in again
    second, first = standup.ok("reminder", "runs", "standup", "--json").json
    assert (first["state"], second["state"]) == ("cancelled", "waiting")
    standup.ok("reminder", "cancel", "standup", "--yes")
    before = standup.counts()
    told = standup.refused("reminder", "fire", "standup", "--rest", "--yes", "--from", "shopp")
    assert "no account named 'shopp'" in told
    assert standup.counts() == before


def test_options_of_the_rest_go_with_it(standup: CommandLine) -> None:
    told = standup.refused("reminder", "fire", "standup", "--yes", "--run", "1")
    assert "--run: goes with --rest" in told


def test_what_cannot_be_fired_by_hand_changes_nothing(standup: CommandLine) -> None:
    standup.ok("account", "remove", "team", "--yes")
    before = standup.counts()
    answer = standup("reminder", "fire", "standup", "--yes")
    assert answer.code == 2
    assert answer.err.splitlines()[-1].endswith("account team was removed")
    assert standup.counts() == before


def test_removed_with_its_name_free_and_its_runs_readable(standup: CommandLine) -> None:
    fire(standup)
    told = standup.refused("reminder", "remove", "standup", "--yes")
    assert "run 1 of reminder standup is under way" in told
    assert "paceline reminder cancel standup" in told
    standup.ok("reminder", "cancel", "standup", "--yes")
    assert standup.ok("reminder", "remove", "standup", "--yes").out == "reminder standup removed\n"
    assert standup.ok("reminder", "list", "--json").json == []
    standup.ok("reminder", "create", "-f", str(EXAMPLE), "--key", "k")
    exported = standup.ok("reminder", "export", "standup", "--run", "1").out
    assert len(exported.splitlines()) == 4
    standup.ok("reminder", "remove", "standup", "--yes")
    told = standup.refused("reminder", "create", "-f", str(EXAMPLE), "--key", "k")
    assert "the reminder that was made with the key 'k' was removed since" in told


# ---------------------------------------------------------------------- what is noted


def test_a_run_by_hand_says_when_it_started_and_a_second_one_is_asked_about(
    standup: CommandLine,
) -> None:
    fire(standup)
    again = standup.ok("reminder", "fire", "standup", "--yes")
    assert "run 1 of it is waiting; this is run 2" in again.err
    asked = standup.refused("reminder", "fire", "standup")
    assert "Run 1 of it is waiting. Run 2 of it is waiting. Fire reminder standup now?" in asked
    heading = standup.ok("reminder", "runs", "standup").out.splitlines()[0]
    assert heading.split() == ["RUN", "FIRED", "FOR", "STARTED", "STATE", "SENT", "TOTAL"]
    standup.ok("reminder", "pause", "standup")
    standup.ok("reminder", "resume", "standup")
    rows = standup.ok("reminder", "runs", "standup").out.splitlines()
    assert "by hand    2026-11-15 18:00" in rows[2]


@pytest.mark.parametrize("words", [("list",), ("runs", "standup"), ("fire", "standup", "--yes")])
def test_that_everything_is_stopped_and_nobody_runs(
    standup: CommandLine, words: tuple[str, ...]
) -> None:
    standup.ok("stop-all", "--reason", "an alarm")
    assert standup.ok("reminder", *words).err.splitlines()[-2:] == [STOPPED, NOBODY]
    if words[0] != "fire":
        for entry in standup.ok("reminder", *words, "--json").json:
            assert entry["stopped"]["reason"] == "an alarm"


@pytest.mark.parametrize("words", [("show",), ("fire", "--yes")])
def test_accounts_that_cannot_send_are_named(standup: CommandLine, words: tuple[str, ...]) -> None:
    suspend(standup, "team", "logged out by the phone")
    told = standup.ok("reminder", words[0], "standup", *words[1:]).err
    assert "account team is suspended: logged out by the phone\n" in told


def test_accounts_that_cannot_send_are_named_when_it_is_created(standup: CommandLine) -> None:
    standup.ok("account", "pause", "team", "--reason", "holidays")
    text = EXAMPLE.read_text().replace('name = "standup"', 'name = "again"')
    standup.write("again.toml", text)
    for file in EXAMPLE.parent.iterdir():
        if file.suffix != ".toml":
            standup.write(file.name, file.read_bytes())
    told = standup.ok("reminder", "create", "-f", "again.toml").err
    assert "account team is paused: holidays\n" in told


def test_list_show_and_edit_agree_about_one_that_is_due(
    standup: CommandLine, clock: StillClock
) -> None:
    (listed,) = standup.ok("reminder", "list", "--json").json
    clock.now_at += DAY
    (due,) = standup.ok("reminder", "list", "--json").json
    shown = standup.ok("reminder", "show", "standup", "--json").json
    assert due["due"] and not listed["due"]
    assert listed["next"][0] == due["next"][0] == shown["next"][0]
    edited = standup.ok("reminder", "edit", "standup", "--window", "0-23").out
    assert "fires next at 2026-11-16 09:00 Asia/Kuala_Lumpur (due), then " in edited
    assert "2026-11-16 09:00 Asia/Kuala_Lumpur (due)" in standup.ok("reminder", "list").out
    assert "2026-11-16 09:00 (due), " in standup.ok("reminder", "show", "standup").out


# ---------------------------------------------------------------------- accounts and audiences


def test_a_suspended_account_is_checked_as_such(standup: CommandLine) -> None:
    suspend(standup, "team", "banned by the provider")
    answer = standup("account", "check", "team")
    assert answer.code == 1
    assert answer.out == (
        "team (sandbox): it is suspended (banned by the provider); looked at now: "
        "it can be opened; let it go on with: paceline account resume team\n"
    )
    assert standup("account", "check", "team", "--json").json["ok"] is False
    standup.ok("account", "set", "team", "--option", "unauthorised=true")
    assert "account resume" not in standup("account", "check", "team").out, "it would be in vain"


def test_what_becomes_of_reminders_whose_account_goes(standup: CommandLine) -> None:
    fire(standup)
    told = standup.refused("account", "remove", "team", "--yes")
    assert "Add --cancel" in told
    assert "paceline reminder reassign standup --from team" in told
    told = standup.ok("account", "remove", "team", "--yes", "--cancel").err
    assert told == "reminder standup has no other account: it will fail until it is given one\n"


def test_what_becomes_of_reminders_whose_audience_goes(paceline: CommandLine) -> None:
    paceline.ok("account", "add", "team", "--provider", "sandbox")
    paceline.write("people.csv", "phone\n+4915112345678\n")
    paceline.ok("audience", "import", "people.csv")
    paceline.write(
        "calls.toml",
        'name = "calls"\naccount = "team"\naudience = "people"\ncron = "0 9 * * *"\n'
        '[[parts]]\ntext = "hello"\n',
    )
    paceline.ok("reminder", "create", "-f", "calls.toml")
    told = paceline.ok("audience", "remove", "people", "--yes").err
    assert told == "reminder calls goes to it: it will fail until it is given another one\n"


def test_what_nobody_else_can_send_stays_and_is_told_as_such(standup: CommandLine) -> None:
    standup.ok("account", "add", "shop", "--provider", "sandbox", "--option", "groups=1..1")
    standup.ok("account", "groups", "shop")
    fire(standup)
    told = standup.ok("reminder", "reassign", "standup", "--from", "team", "--to", "shop").out
    assert told == (
        "reminder standup: 1 to shop\n"
        "2 stay with team: 2 because shop is not a member of this group\n"
    )


def test_a_time_that_is_over_is_refused(paceline: CommandLine, clock: StillClock) -> None:
    paceline.ok("account", "add", "team", "--provider", "sandbox")
    paceline.write(
        "once.toml",
        'name = "once"\naccount = "team"\ntargets = ["120363000000000001@g.us"]\n'
        'at = "2026-11-15 10:30"\nzone = "UTC"\n[[parts]]\ntext = "hello"\n',
    )
    clock.now_at += 31 * MINUTE
    told = paceline.refused("reminder", "create", "-f", "once.toml")
    assert "at: 2026-11-15 10:30 UTC is over: it would never fire" in told
    assert paceline.counts()["campaigns"] == 0
