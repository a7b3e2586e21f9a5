"""``paceline limits``: what goes against a limit, putting it right, and where limits come from."""

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR
from paceline.engine import limits
from tests.cli.conftest import CommandLine

COLD = """
name = "cold"
accounts = ["sales"]
action = "email"
audience = "people.csv"
[[parts]]
subject = "Hello"
text = "Hello {{ first_name }}"
"""
MANY = re.M | re.S
HINT = (
    "5 planned deliveries no longer fit; lanes will move them when their time comes, or run: "
    "paceline limits fix sales"
)
PEOPLE = "address,first_name\n" + "".join(f"p{n}@example.com,P{n}\n" for n in range(30))


@pytest.fixture
def cold(accounts: CommandLine, spring: Callable[..., Path]) -> CommandLine:
    """Thirty cold messages: twenty planned for Monday, ten for Tuesday."""
    accounts.ok("campaign", "create", "-f", str(spring(COLD, PEOPLE)), "--launch")
    return accounts


@pytest.fixture
def left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is laid out anew in passing, as for a very large campaign."""
    monkeypatch.setattr(limits, "MOST_LAID_ANEW", 0)


def test_nothing_against_a_limit(cold: CommandLine) -> None:
    answer = cold.ok("limits", "check")
    assert answer.out == (
        "nothing against a limit: 2 accounts, 30 days back and all that is planned\n"
    )
    assert cold.ok("limits", "check", "sales", "--json").json == {"ok": True, "violations": []}
    assert cold.ok("limits", "fix").out == "nothing is planned against a limit\n"


def test_a_changed_limit_lays_out_anew_what_waits(cold: CommandLine) -> None:
    answer = cold.ok("account", "set", "sales", "--set", "daily.email=10")
    said, laid = answer.out.splitlines()
    assert said == "account sales changed (policy cold-email and its own daily)"
    assert laid.startswith("30 deliveries wait: ")
    assert laid.endswith(" laid out anew")
    assert answer.err == ""
    cold.ok("limits", "check")
    # What concerns no limit lays out nothing.
    answer = cold.ok("account", "set", "sales", "--option", "latency=1s")
    assert len(answer.out.splitlines()) == 1


def test_a_cancelled_campaign_leaves_its_slots_to_others(
    cold: CommandLine, spring: Callable[..., Path]
) -> None:
    other = COLD.replace('"cold"', '"warm"')
    cold.ok("campaign", "create", "-f", str(spring(other, PEOPLE)), "--launch")
    last = max(_due(cold))
    answer = cold.ok("campaign", "cancel", "warm", "--yes")
    assert "30 deliveries wait: " in answer.out
    assert max(_due(cold)) < last


def _due(line: CommandLine) -> list[str]:
    export = line.ok("campaign", "export", "cold", "--json").out.splitlines()
    return [json.loads(row)["due_at"] for row in export]


def test_what_no_longer_fits_is_told_checked_and_fixed(cold: CommandLine, left_alone: None) -> None:
    answer = cold.ok("account", "set", "sales", "--set", "daily.email=15")
    assert answer.err.splitlines() == [
        "30 deliveries wait, too many to lay them out anew now; lanes keep every limit when their "
        "time comes",
        HINT,
    ]
    answer = cold("limits", "check")
    assert answer.code == 1
    heading, row, empty, hint = answer.out.splitlines()
    assert heading.split() == ["ACCOUNT", "DAY", "WHEN", "LIMIT", "COUNT", "TOO", "MANY"]
    assert row.split() == ["sales", "2026-11-16", "planned", "daily", "email", "20/15", "5"]
    assert (empty, hint) == ("", HINT)
    (found,) = cold("limits", "check", "sales", "--json").json["violations"]
    assert found == {
        "account": "sales",
        "pool": None,
        "when": "planned",
        "day": "2026-11-16",
        "limit": "daily",
        "action": "email",
        "count": 20,
        "cap": 15,
        "offending": 5,
        "why": "daily cap 15 on 2026-11-16 was planned to 20",
        "deliveries": [16, 17, 18, 19, 20],
    }
    before = _due(cold)
    would = cold.ok("limits", "fix", "--dry-run").out
    assert would.startswith("sales: would move 5 to 2026-11-17 ")
    assert _due(cold) == before
    moved = cold.ok("limits", "fix", "sales", "--json").json
    assert moved["dry_run"] is False
    (sales,) = moved["accounts"]
    assert {one["delivery"] for one in sales["moved"]} == {16, 17, 18, 19, 20}
    assert {one["to_at"][:10] for one in sales["moved"]} == {"2026-11-17"}
    assert sales["no_slot"] == []
    cold.ok("limits", "check")
    assert cold.ok("limits", "fix").out == "nothing is planned against a limit\n"


def test_the_page_about_limits_shows_what_the_commands_print(
    paceline: CommandLine, spring: Callable[..., Path], left_alone: None
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "limits.md").read_text()
    shown = dict(
        re.findall(r"^\$ paceline (limits check|limits fix --dry-run)\n(.*?)```", page, MANY)
    )
    paceline.ok("account", "add", "ann", "--provider", "sandbox", "--policy", "cold-email")
    people = "address,first_name\n" + "".join(f"p{n}@example.com,P{n}\n" for n in range(40))
    file = spring(COLD.replace("sales", "ann"), people)
    paceline.ok("campaign", "create", "-f", str(file), "--launch")
    paceline.ok("account", "set", "ann", "--set", "daily.email=10")
    assert paceline("limits", "check").out == shown["limits check"]
    assert paceline("limits", "fix", "--dry-run").out == shown["limits fix --dry-run"]


POOLED = """
name = "cold"
pool = ["m1", "m2"]
action = "email"
audience = "people.csv"
[[steps]]
[[steps.parts]]
subject = "Hello"
text = "Hello {{ first_name }}"
[[steps]]
after = "3d"
[[steps.parts]]
subject = "Again"
text = "Hello again {{ first_name }}"
"""


def test_what_a_pool_shares_is_told_and_fixed(
    paceline: CommandLine, spring: Callable[..., Path], left_alone: None
) -> None:
    for name in ("m1", "m2"):
        paceline.ok("account", "add", name, "--provider", "sandbox", "--policy", "cold-email")
    paceline.ok("campaign", "create", "-f", str(spring(POOLED, PEOPLE)), "--launch")
    assert paceline.ok("limits", "check").out.startswith("nothing against a limit: 2 accounts")
    paceline.ok("account", "set", "m1", "--set", "daily.email=5")
    noted = paceline.ok("account", "set", "m2", "--set", "daily.email=5").err
    assert "planned deliveries no longer fit" in noted
    assert noted.endswith("paceline limits fix m1 m2\n")
    answer = paceline("limits", "check")
    assert answer.code == 1
    monday = answer.out.splitlines()[1]
    told = ["pool", "of", "cold", "2026-11-16", "planned", "daily", "email", "30/10", "20"]
    assert monday.split() == told
    found = paceline("limits", "check", "--json").json["violations"][0]
    assert (found["account"], found["pool"], found["offending"]) == (None, "cold", 20)
    would = paceline.ok("limits", "fix", "--dry-run").out
    assert would.startswith("pool of cold: would move ")
    assert "the message before it moves" in would
    (pool,) = paceline.ok("limits", "fix", "m2", "--json").json["accounts"]
    assert (pool["account"], pool["pool"], pool["no_slot"]) == (None, "cold", [])
    paceline.ok("limits", "check")
    assert paceline.ok("limits", "fix").out == "nothing is planned against a limit\n"


def test_minutes_closer_than_the_rate_are_told(cold: CommandLine, left_alone: None) -> None:
    cold.ok("account", "set", "sales", "--set", "rate=1/h")
    found = cold("limits", "check", "--json").json["violations"]
    assert {one["limit"] for one in found} == {"rate"}
    assert re.fullmatch(r"rate 1/h: 20 planned between 09:00 and 1\d:\d\d", found[0]["why"]), found[
        0
    ]["why"]
    cold.ok("limits", "fix")
    cold.ok("limits", "check")


def test_one_that_no_longer_fits(cold: CommandLine, left_alone: None) -> None:
    answer = cold.ok("account", "set", "sales", "--set", "daily.email=19")
    assert "1 planned delivery no longer fits; lanes will move it when its time" in answer.err


def test_what_has_no_slot_is_told(
    accounts: CommandLine, spring: Callable[..., Path], left_alone: None
) -> None:
    file = spring('expire_after = "12h"\nstart_at = "2026-11-16T14:00:00Z"\n' + COLD, PEOPLE)
    accounts.ok("account", "set", "sales", "--set", "daily.email=40", "--set", "spacing=6m")
    accounts.ok("campaign", "create", "-f", str(file), "--launch")
    accounts.ok("account", "set", "sales", "--set", "daily.email=29")
    out = accounts.ok("limits", "fix").out
    assert out.startswith("sales: no legal slot for delivery 30: it expires at 2026-11-1")
    assert out.endswith(", before its next legal slot\n")


def _imported(line: CommandLine, day: str, count: int) -> None:
    rows = "".join(f"{day}T15:{n:02}:00Z,q{n}@example.com\n" for n in range(count))
    file = line.write("past.csv", f"at,target\n{rows}")
    line.ok("history", "import", str(file), "--account", "sales", "--action", "email")


def test_past_violations_are_listed(cold: CommandLine) -> None:
    _imported(cold, "2026-11-13", 23)
    # What others have sent was under no limit of ours.
    cold.ok("limits", "check")
    with closing(sqlite3.connect(cold.folder / "paceline.db")) as database:
        database.execute(
            "UPDATE ledger SET code = '', "
            "policy_id = (SELECT policy_id FROM accounts WHERE name = 'sales')"
        )
        database.commit()
    answer = cold("limits", "check", "--json")
    assert answer.code == 1
    told = {
        one["limit"]: (one["when"], one["day"], one["count"], one["cap"], one["offending"])
        for one in answer.json["violations"]
    }
    assert told == {
        "daily": ("past", "2026-11-13", 23, 20, 3),
        "gap": ("past", "2026-11-13", 22, None, 22),
    }
    assert "no longer fit" not in cold("limits", "check").out
    cold.ok("limits", "check", "--days", "1")


@pytest.mark.parametrize("columns", ["40", "80"])
def test_tables_fit_on_narrow_screens(
    cold: CommandLine, left_alone: None, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold.ok("account", "set", "sales", "--set", "daily.email=15")
    monkeypatch.setenv("COLUMNS", columns)
    tables = [cold("limits", "check").out.split("\n\n5 planned")[0]]
    tables.append(
        cold.ok("limits", "show", "sales").out.split("\n\ndays and")[0].split("\n\n", 1)[1]
    )
    for text in tables:
        assert max(map(len, text.splitlines())) <= int(columns)
    assert "20/15" in tables[0]
    assert "the account's own" in " ".join(tables[1].split())


def _limits(line: CommandLine, name: str) -> dict[str, dict[str, Any]]:
    view = line.ok("limits", "show", name, "--json").json
    return {one["limit"]: one for one in view["limits"]}


def test_show_says_where_each_limit_comes_from(
    paceline: CommandLine, spring: Callable[..., Path]
) -> None:
    paceline.write("paceline.toml", '[policy.ours]\nextends = "cold-email"\nmin_gap = "8m"\n')
    own = ("--set", "weekly.email=60")
    paceline.ok("account", "add", "sales", "--provider", "sandbox", "--policy", "ours", *own)
    found = _limits(paceline, "sales")
    assert found["daily.email"] == {
        "limit": "daily.email",
        "value": "20",
        "from": "preset cold-email",
        "used": 0,
        "cap": 20,
    }
    sources = {name: one["from"] for name, one in found.items()}
    assert sources["min_gap"] == "policy ours in paceline.toml"
    assert sources["weekly.email"] == "the account's own"
    assert sources["rate"] == "default"
    out = paceline.ok("limits", "show", "sales").out
    assert "sales: limits in force at 2026-11-15 05:00 America/New_York" in out
    assert "days and weeks begin at midnight in America/New_York, weeks on Monday" in out
    paceline.write("paceline.toml", '[policy.ours]\nextends = "cold-email"\n')
    answer = paceline.ok("limits", "show", "sales")
    assert answer.err == "paceline.toml has changed since: it holds when paceline up starts next\n"


def test_what_is_used_is_shown(cold: CommandLine) -> None:
    cold.clock.now_at += 6 * HOUR
    _imported(cold, "2026-11-15", 3)
    assert _limits(cold, "sales")["daily.email"]["used"] == 3
    assert "3/20" in cold.ok("limits", "show", "sales").out
    cold.clock.now_at += DAY
    assert _limits(cold, "sales")["daily.email"]["used"] == 0


def test_an_unknown_account_is_refused(accounts: CommandLine) -> None:
    for words in (("check", "salse"), ("fix", "salse"), ("show", "salse")):
        answer = accounts("limits", *words)
        assert answer.code == 2
        assert answer.complaint == "paceline: no account named 'salse', did you mean 'sales'?"
    assert "400" in accounts.refused("limits", "check", "--days", "401")
