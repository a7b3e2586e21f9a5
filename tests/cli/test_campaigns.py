"""Campaigns from the command line: created whole, launched, steered, watched, exported."""

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from paceline.core.states import DeliveryState
from paceline.engine.fleet import NOBODY_RUNS
from tests.cli.conftest import CAMPAIGN, CommandLine

Spring = Callable[..., Path]


@pytest.fixture
def created(accounts: CommandLine, spring: Spring) -> CommandLine:
    accounts.ok("campaign", "create", "-f", str(spring()))
    return accounts


def test_a_campaign_is_created_whole(accounts: CommandLine, spring: Spring) -> None:
    answer = accounts.ok("campaign", "create", "-f", str(spring()))
    assert answer.out.splitlines() == [
        "campaign spring created: 3 deliveries on 2 accounts",
        "launch it with: paceline campaign launch spring",
    ]
    counts = accounts.counts()
    assert (counts["campaigns"], counts["runs"], counts["deliveries"]) == (1, 1, 3)
    assert counts["media"] == 1


def test_a_campaign_can_be_launched_at_once(accounts: CommandLine, spring: Spring) -> None:
    accounts.ok("campaign", "create", "-f", str(spring()), "--launch")
    status = accounts.ok("campaign", "status", "spring", "--json").json
    assert status["state"] == "running"
    assert status["counts"]["ready"] == 3


def test_the_list(created: CommandLine) -> None:
    out = created.ok("campaign", "list").out.splitlines()
    assert out[0].split() == ["NAME", "STATE", "TOTAL", "SENT", "CREATED"]
    assert out[1].split() == ["spring", "draft", "3", "0", "2026-11-15"]
    assert [entry["name"] for entry in created.ok("campaign", "list", "--json").json] == ["spring"]


def test_the_list_leaves_out_single_messages(accounts: CommandLine) -> None:
    accounts.ok("send", "team", "anna@example.com", "--text", "hi")
    assert accounts.ok("campaign", "list", "--json").json == []
    assert "paceline campaign create" in accounts.ok("campaign", "list").out


def test_the_status_adds_up(created: CommandLine) -> None:
    status = created.ok("campaign", "status", "spring", "--json").json
    assert set(status) == {
        "name", "state", "reason", "total", "counts", "accounts", "runs", "settings",
        "created_at", "launched_at", "finished_at", "stopped", "eta", "alerts",
            "follow_ups",
    }  # fmt: skip
    assert set(status["counts"]) == {state.value for state in DeliveryState}
    assert sum(status["counts"].values()) == status["total"] == 3
    assert {name: sum(c.values()) for name, c in status["accounts"].items()} == {
        "sales": 2,
        "team": 1,
    }
    assert status["launched_at"] is None


def test_the_status_for_people(created: CommandLine) -> None:
    out = created.ok("campaign", "status", "spring").out.splitlines()
    assert out[0] == "spring is draft"
    assert "0% (0 of 3)" in out[1]
    table = [line.split() for line in out[3:]]
    assert table == [
        ["ACCOUNT", "WAITING", "SENT", "FAILED", "TOTAL"],
        ["sales", "2", "0", "0", "2"],
        ["team", "1", "0", "0", "1"],
        ["in", "all", "3", "0", "0", "3"],
    ]


def test_a_running_campaign_says_when_it_will_be_done(created: CommandLine) -> None:
    assert created.ok("campaign", "status", "spring", "--json").json["eta"] is None
    created.ok("campaign", "launch", "spring")
    ahead = created.ok("campaign", "status", "spring", "--json").json["eta"]
    assert ahead["left"] == 3 and ahead["stuck"] == 0
    assert ahead["next"] == "2026-11-15T10:00:00Z" and ahead["account"] == "team"
    assert ahead["finish"].startswith("2026-11-16T14:"), "office hours in New York"
    created.ok("account", "pause", "team")
    ahead = created.ok("campaign", "status", "spring", "--json").json["eta"]
    assert ahead["account"] == "sales" and ahead["next"] == "2026-11-16T14:00:00Z"
    assert ahead["waits_for"].startswith("outside business hours (Mon-Fri 09:00-18:00")
    assert (ahead["stuck"], ahead["stuck_why"]) == (1, "account is paused: paused by an operator")
    done, following, stuck = created.ok("campaign", "status", "spring").out.splitlines()[-3:]
    assert done.startswith("done about 2026-11-16 09:") and done.endswith("America/New_York")
    assert following.startswith("next 2026-11-16 09:00 from sales: outside business hours")
    assert stuck == "1 cannot go: account is paused: paused by an operator"
    created.ok("campaign", "pause", "spring")
    assert created.ok("campaign", "status", "spring", "--json").json["eta"] is None


def test_steering(created: CommandLine) -> None:
    def state() -> str:
        return str(created.ok("campaign", "status", "spring", "--json").json["state"])

    answer = created.ok("campaign", "launch", "spring")
    assert answer.err == "no Paceline process is running: start one with 'paceline up'\n"
    assert state() == "running"
    created.ok("campaign", "pause", "spring", "--reason", "lunch")
    assert "spring is paused: lunch" in created.ok("campaign", "status", "spring").out
    created.ok("campaign", "resume", "spring")
    assert state() == "running"
    complaint = created.refused("campaign", "launch", "spring")
    assert complaint == (
        "paceline: campaign spring is running: cannot launch. Possible now: pause, cancel"
    )
    answer = created.ok("campaign", "cancel", "spring", "--yes")
    assert answer.out == "campaign spring cancelled: 0 had been sent, 3 will not be\n"
    assert state() == "cancelled"


def test_watching_ends_with_the_campaign(created: CommandLine) -> None:
    created.ok("campaign", "cancel", "spring", "--yes")
    out = created.ok("campaign", "status", "spring", "--watch").out
    assert out == "spring is cancelled: 3 cancelled\n"
    lines = created.ok("campaign", "status", "spring", "--watch", "--json").out.splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["cancelled"]


def test_watching_shows_each_change(created: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    created.ok("campaign", "launch", "spring")
    sleep_until = created.clock.sleep_until

    async def cancel_meanwhile(at: int) -> None:
        from paceline.config import load
        from paceline.engine.commands import campaigns
        from paceline.store.database import open_store

        store = open_store(load().database, clock=created.clock.now)
        with store.write() as tx:
            campaigns.cancel(tx, "spring", created.clock.now())
        store.close()
        await sleep_until(at)

    monkeypatch.setattr(created.clock, "sleep_until", cancel_meanwhile)
    out = created.ok("campaign", "status", "spring", "--watch").out
    running, cancelled = out.splitlines()
    assert running.startswith("spring is running: 3 ready; done about 2026-11-16 14:")
    assert cancelled == "spring is cancelled: 3 cancelled"


def test_export_as_csv(created: CommandLine) -> None:
    rows = list(csv.DictReader(io.StringIO(created.ok("campaign", "export", "spring").out)))
    assert [row["target"] for row in rows] == [
        "anna@example.com",
        "bob@example.com",
        "cleo@example.com",
    ]
    assert [row["account"] for row in rows] == ["sales", "team", "sales"]
    assert {row["state"] for row in rows} == {"planned"}


def test_export_as_json_lines(created: CommandLine) -> None:
    lines = created.ok("campaign", "export", "spring", "--json").out.splitlines()
    first = json.loads(lines[0])
    assert len(lines) == 3
    assert first["fields"] == {"first_name": "Anna"}
    assert first["scheduled_at"] == "2026-11-15T10:00:00Z"


def test_export_into_a_file(created: CommandLine) -> None:
    answer = created.ok("campaign", "export", "spring", "-o", "out.csv")
    assert (answer.out, answer.err) == ("", "3 deliveries written to out.csv\n")
    assert len((created.folder / "out.csv").read_text().splitlines()) == 4
    assert not (created.folder / "out.csv.part").exists()
    complaint = created.refused("campaign", "export", "spring", "-o", "nowhere/out.csv")
    assert complaint == "paceline: nowhere/out.csv: cannot write: No such file or directory"
    created.refused("campaign", "export", "sprung", "-o", "other.csv")
    assert sorted(path.name for path in created.folder.glob("o*")) == ["out.csv"]


def test_export_into_what_is_no_file_leaves_it_what_it_was(created: CommandLine) -> None:
    pipe = created.folder / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)  # so that nobody waits for the other end
    try:
        created.ok("campaign", "export", "spring", "-o", "pipe")
        assert pipe.is_fifo(), "a device or a pipe must not be replaced by a file"
        assert os.read(reader, 1 << 16).startswith(b"id,campaign,")
    finally:
        os.close(reader)


def test_export_leaves_a_file_as_private_as_it_was(created: CommandLine) -> None:
    kept = created.write("kept.csv", "old")
    kept.chmod(0o600)
    created.ok("campaign", "export", "spring", "-o", "kept.csv")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.read_text().startswith("id,campaign,")


def test_one_is_not_many(accounts: CommandLine, spring: Spring) -> None:
    path = spring(people="address,first_name\nanna,Anna\n")
    assert "created: 1 delivery on 2" in accounts.ok("campaign", "create", "-f", str(path)).out
    said = accounts.ok("campaign", "export", "spring", "-o", "out.csv").err
    assert said == "1 delivery written to out.csv\n"


def test_export_through_a_link_leaves_the_link(created: CommandLine) -> None:
    kept, link = created.folder / "kept.csv", created.folder / "link.csv"
    link.symlink_to(kept)
    created.ok("campaign", "export", "spring", "-o", "link.csv")
    assert link.is_symlink()
    assert kept.read_text().startswith("id,campaign,")


def test_an_unknown_campaign_brings_up_the_nearest(created: CommandLine) -> None:
    for words in (("status",), ("launch",), ("pause",), ("cancel", "--yes"), ("export",)):
        assert "did you mean 'spring'?" in created.refused("campaign", *words, "sprung")


def test_commands_that_are_suggested_can_be_pasted(accounts: CommandLine, spring: Spring) -> None:
    file = str(spring(CAMPAIGN.replace('"spring"', '"spring sale"')))
    created = accounts.ok("campaign", "create", "-f", file)
    assert created.out.endswith("launch it with: paceline campaign launch 'spring sale'\n")
    assert created.err == ""
    accounts.ok("campaign", "launch", "spring sale")
    paused = accounts.ok("campaign", "pause", "spring sale").out
    assert paused.endswith("go on with: paceline campaign resume 'spring sale'\n")
    assert accounts.refused("plan", file).endswith("paceline campaign status 'spring sale'")
    assert accounts.refused("why", "spring sale") == (
        "paceline: 'spring sale' is a campaign, and no account. "
        "See what it waits for: paceline campaign status 'spring sale'"
    )


def test_a_launch_says_so_if_nobody_sends(accounts: CommandLine, spring: Spring) -> None:
    launched = accounts.ok("campaign", "create", "-f", str(spring()), "--launch")
    assert launched.err == f"{NOBODY_RUNS}\n"


def test_a_full_disk_is_nobodys_wrong_word(created: CommandLine) -> None:
    answer = created("campaign", "export", "spring", "-o", "/dev/full")
    assert (answer.code, answer.complaint) == (
        1,
        "paceline: /dev/full: cannot write: No space left on device",
    )
