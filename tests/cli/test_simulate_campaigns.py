"""``paceline simulate -f`` says the same as ``plan``: what is sent, what is not, and why."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, iso, parse_instant
from paceline.engine import clock as clocks
from paceline.sim import rehearsal
from paceline.sim.checks import Violation
from paceline.store.database import open_store
from tests.cli.conftest import NOW, CommandLine, StillClock

ONE_TEXT = '[[parts]]\ntext = "Hello"\n'


@pytest.fixture(autouse=True)
def always_that_sunday(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forecast begins now."""
    monkeypatch.setattr(clocks, "SystemClock", lambda: StillClock(NOW))


@pytest.fixture
def add(paceline: CommandLine) -> Any:
    def add_account(name: str, **limits: str) -> None:
        words = [f"--set={key.replace('ly_', 'ly.')}={value}" for key, value in limits.items()]
        paceline.ok("account", "add", name, "--provider", "sandbox", *words)

    return add_account


def campaign(paceline: CommandLine, top: str, count: int = 9, rest: str = ONE_TEXT) -> str:
    rows = "\n".join(f"person-{number}" for number in range(count))
    paceline.write("people.csv", f"address\n{rows}\n")
    name = "" if "name" in top else 'name = "opening"\n'
    return str(paceline.write("o.toml", f'{name}audience = "people.csv"\n{top}\n{rest}'))


@contextmanager
def stored(paceline: CommandLine) -> Iterator[Any]:
    store = open_store(f"sqlite:///{paceline.folder / 'paceline.db'}", clock=lambda: NOW)
    try:
        with store.write() as tx:
            yield tx
    finally:
        store.close()


def forecast(paceline: CommandLine, file: str, *words: str) -> Any:
    return paceline.ok("simulate", "-f", file, "--seeds", "1", "--json", *words).json


def plan(paceline: CommandLine, file: str) -> Any:
    return paceline.ok("plan", file, "--json").json


def agree(told: Any, planned: Any) -> None:
    """Wherever nothing is drawn."""
    assert told["sent"] == planned["messages"]
    assert told["unsent"] == planned["unreachable_by"]
    for account, theirs in zip(told["accounts"], planned["accounts"], strict=True):
        assert account["sent"] == theirs["messages"]
        assert account["most_per_day"] == max(theirs["per_day"].values(), default=0)
    if planned["finish"] is None:
        assert told["done_at"] is None and told["if_an_account_dies"] is None
    else:
        late_us = parse_instant(told["done_at"]["latest"]) - parse_instant(planned["finish"])
        assert 0 <= late_us < HOUR


# ---------------------------------------------------------------------- what is not sent


def test_what_expires_is_told_as_the_plan_tells_it(paceline: CommandLine, add: Any) -> None:
    add("shop", daily_message="2", zone="UTC")
    file = campaign(paceline, 'accounts = ["shop"]\nexpire_after = "30h"')
    told = forecast(paceline, file)
    agree(told, plan(paceline, file))
    assert (told["total"], told["sent"]) == (9, 4)
    assert told["unsent"] == {"expired at 2026-11-16 16:00 UTC": 5}
    lines = paceline.ok("simulate", "-f", file).out.splitlines()
    assert lines[0] == "opening: 4 of 9 messages from one account (played 3 times)"
    assert lines[1:3] == [
        "  done 2026-11-16 00:00:00 UTC",
        "  5 not sent: expired at 2026-11-16 16:00 UTC",
    ]
    assert lines[3].startswith("  shop: 4 of 9 messages, done ")


def test_what_waits_for_a_dead_account_is_what_it_would_have_sent(
    paceline: CommandLine, add: Any
) -> None:
    add("shop", daily_message="2", zone="UTC")
    file = campaign(paceline, 'accounts = ["shop"]\nexpire_after = "30h"')
    death = forecast(paceline, file)["if_an_account_dies"]
    assert (death["after"], death["sent"], death["left"], death["waiting"]) == (2, 2, 7, 2)
    assert death["until"] == iso(NOW + 30 * HOUR)
    assert death["unsent"] == {"expired at 2026-11-16 16:00 UTC": 5}
    text = paceline.ok("simulate", "-f", file).out
    waits = "2 of 9 are sent, 2 wait for it to come back, until 2026-11-16 16:00:00 UTC at the"
    assert waits in text


def test_what_expires_before_anybody_looks_has_waited_too(paceline: CommandLine, add: Any) -> None:
    """A play goes on for minutes after the last message: what is over by then says nothing."""
    add("shop", spacing="2m")
    file = campaign(paceline, 'accounts = ["shop"]\nexpire_after = "11m"')
    death = forecast(paceline, file)["if_an_account_dies"]
    assert (death["after"], death["waiting"]) == (3, 3)
    assert sum(death["unsent"].values()) == 3


def test_a_window_that_is_closed_lets_nothing_be_sent(paceline: CommandLine, add: Any) -> None:
    add("shop")
    file = campaign(paceline, 'accounts = ["shop"]\nwindow = "08:00-09:00"\nat_close = "skip"')
    agree(forecast(paceline, file), plan(paceline, file))
    assert paceline.ok("simulate", "-f", file).out.splitlines() == [
        "opening: nothing can be sent from one account",
        "  9 not sent: delivery window closed",
        "  shop: nothing",
        "broken limits and promises: none",
    ]


@pytest.mark.parametrize("top", ['accounts = ["shop", "team"]', 'pool = ["shop", "team"]'])
def test_a_paused_account_is_given_nothing(paceline: CommandLine, add: Any, top: str) -> None:
    add("shop")
    add("team")
    paceline.ok("account", "pause", "team")
    file = campaign(paceline, top)
    told = forecast(paceline, file)
    agree(told, plan(paceline, file))
    assert told["accounts"][1]["shut"] == "account is paused: paused by an operator"
    assert told["if_an_account_dies"]["waiting"] == told["sent"] - told["sent"] // 2
    said = paceline.ok("simulate", "-f", file).out
    assert "  team: nothing, account is paused: paused by an operator" in said


def test_a_cap_of_nothing_ends(paceline: CommandLine, add: Any) -> None:
    """Nobody waits for twenty years for an account that may never send."""
    add("shop", daily_message="0")
    file = campaign(paceline, 'accounts = ["shop"]')
    told = forecast(paceline, file)
    agree(told, plan(paceline, file))
    assert told["unsent"] == {"daily cap 0 leaves no room for 1 send": 9}


def test_an_account_that_cools_down_sends_when_it_has(paceline: CommandLine, add: Any) -> None:
    add("shop")
    until_at = NOW + 5 * HOUR
    with stored(paceline) as tx:
        tx.accounts.move(tx.accounts.find("shop").id, "cool_down", reason="hot", until_at=until_at)
    file = campaign(paceline, 'accounts = ["shop"]')
    told = forecast(paceline, file)
    agree(told, plan(paceline, file))
    assert parse_instant(told["done_at"]["earliest"]) >= until_at


def test_an_account_that_is_warm_is_not_played_as_a_new_one(
    paceline: CommandLine, add: Any
) -> None:
    add("shop", warmup="2 +50%/day to 40", zone="UTC")
    with stored(paceline) as tx:
        tx.accounts.update(tx.accounts.find("shop").id, warm_since_at=NOW - 30 * DAY)
    file = campaign(paceline, 'accounts = ["shop"]')
    told = forecast(paceline, file)
    agree(told, plan(paceline, file))
    assert (told["accounts"][0]["most_per_day"], told["violations"]) == (9, [])


def test_whoever_is_no_part_of_it_is_named(paceline: CommandLine, add: Any) -> None:
    add("shop")
    file = campaign(paceline, 'accounts = ["shop"]')
    paceline.ok("suppress", "add", "person-3", "--kind", "other")
    told = forecast(paceline, file)
    assert told["unreachable"] == plan(paceline, file)["unreachable_by"]
    assert (
        "1 person is left out: recipient is suppressed" in paceline.ok("simulate", "-f", file).out
    )


def test_an_empty_audience_is_called_empty(paceline: CommandLine, add: Any) -> None:
    add("shop")
    file = campaign(paceline, 'accounts = ["shop"]', count=0)
    said = paceline.refused("simulate", "-f", file)
    assert said.endswith("audience: the audience is empty")
    assert said == paceline.refused("plan", file)


# ---------------------------------------------------------------------- halfway


def test_halfway_is_counted_in_messages(paceline: CommandLine, add: Any) -> None:
    add("shop", daily_message="6", zone="UTC")
    file = campaign(paceline, 'accounts = ["shop"]', count=10, rest=ONE_TEXT * 2)
    told = forecast(paceline, file)
    death = told["if_an_account_dies"]
    assert (death["after"], death["sent"], death["waiting"]) == (5, 5, 5)
    (account,) = told["accounts"]
    assert (account["most_per_day"], account["most_parts_per_day"]) == (3, 6)
    agree(told, plan(paceline, file))
    text = paceline.ok("simulate", "-f", file).out
    assert "banned after 5 messages" in text
    assert "at most 3 a day in 6 parts (daily 6 message)" in text


def test_a_pool_that_only_one_can_serve_waits_for_it(paceline: CommandLine, add: Any) -> None:
    add("shop")
    file = campaign(paceline, 'pool = ["shop"]')
    death = forecast(paceline, file)["if_an_account_dies"]
    assert (death["sent"], death["waiting"]) == (4, 5)


def test_of_a_pool_the_one_that_sends_most_dies(paceline: CommandLine, add: Any) -> None:
    add("slow", rate="1/h")
    add("quick", rate="60/min")
    file = campaign(paceline, 'pool = ["slow", "quick"]', count=30)
    death = forecast(paceline, file)["if_an_account_dies"]
    assert (death["account"], death["sent"], death["waiting"]) == ("quick", 30, 0)
    assert "30 of 30 are sent, none waits for it" in paceline.ok("simulate", "-f", file).out


def test_who_sends_a_single_message_dies_before_it(paceline: CommandLine, add: Any) -> None:
    add("shop")
    file = campaign(paceline, 'accounts = ["shop"]', count=1)
    death = forecast(paceline, file)["if_an_account_dies"]
    assert (death["after"], death["sent"], death["waiting"]) == (0, 0, 1)
    text = paceline.ok("simulate", "-f", file).out
    assert "if shop dies before its first message:" in text
    assert "0 of 1 are sent, 1 waits for it to come back" in text


# ---------------------------------------------------------------------- how long, and what breaks


def test_a_start_years_ahead_is_waited_for(paceline: CommandLine, add: Any) -> None:
    add("shop", daily_message="2", zone="UTC")
    file = campaign(paceline, 'accounts = ["shop"]\nstart_at = "2028-06-01T00:00"')
    told = forecast(paceline, file)
    agree(told, plan(paceline, file))
    assert (told["sent"], told["violations"]) == (9, [])


def test_it_is_followed_for_longer_than_a_year(paceline: CommandLine, add: Any) -> None:
    add("shop", weekly_message="1", zone="UTC")
    file = campaign(paceline, 'accounts = ["shop"]', count=70)
    told = forecast(paceline, file)
    agree(told, plan(paceline, file))
    assert (told["sent"], told["violations"]) == (70, [])


def test_what_no_play_is_long_enough_for_is_not_sent_and_breaks_nothing(
    paceline: CommandLine, add: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehearsal, "LONGEST_US", 3 * DAY)
    add("shop", daily_message="1", zone="UTC")
    told = forecast(paceline, campaign(paceline, 'accounts = ["shop"]'))
    assert told["violations"] == []
    assert told["unsent"] == {"no room for it within 20 years": told["total"] - told["sent"]}


@pytest.fixture
def breaks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    perform = rehearsal.perform

    def badly(*words: Any) -> Any:
        verdict, evidence = perform(*words)
        broken = Violation("never over", "3 of 2 message on shop", NOW)
        return replace(verdict, violations=(broken,)), evidence

    monkeypatch.setattr(rehearsal, "perform", badly)
    yield


@pytest.mark.usefixtures("breaks")
def test_each_broken_limit_is_told_and_where(paceline: CommandLine, add: Any) -> None:
    add("shop")
    answer = paceline("simulate", "-f", campaign(paceline, 'accounts = ["shop"]'), "--seeds", "1")
    assert answer.code == 3, "1 says that nothing could be played"
    assert answer.out.splitlines()[-3:] == [
        "broken limits and promises: 2",
        "  seed 0: never over: 3 of 2 message on shop",
        "  seed 0, with shop banned: never over: 3 of 2 message on shop",
    ]


def test_a_database_that_is_not_there_is_no_broken_limit(paceline: CommandLine) -> None:
    file = campaign(paceline, 'accounts = ["shop"]')
    answer = paceline("simulate", "-f", file)
    assert answer.code == 1
    assert "there is no database" in answer.err


def test_every_limit_that_slows_it_is_named(paceline: CommandLine, add: Any) -> None:
    add("shop", per_recipient="1/week", concurrency="3")
    told = forecast(paceline, campaign(paceline, 'accounts = ["shop"]', count=2))
    assert told["accounts"][0]["limits"] == ["concurrency 3", "per_recipient 1/week"]


# ---------------------------------------------------------------------- what it is asked for


def test_it_is_read_from_standard_input_as_the_docs_say(
    paceline: CommandLine, add: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    add("shop")
    text = Path(campaign(paceline, 'accounts = ["shop"]')).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert forecast(paceline, "-")["sent"] == 9
    docs = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    (listed,) = [line for line in docs.splitlines() if line.startswith("`-` in place of a file")]
    assert "`simulate -f`" in listed
    assert "| 3 | `simulate -f`" in docs


@pytest.mark.parametrize("option", ["--world", "--faults"])
def test_what_does_not_go_with_a_campaign_is_refused(
    paceline: CommandLine, add: Any, option: str
) -> None:
    add("shop")
    file = campaign(paceline, 'accounts = ["shop"]')
    value = {"--world": "campaign", "--faults": "none"}[option]
    said = paceline.refused("simulate", "-f", file, option, value)
    assert said.startswith(f"paceline: {option}: ")


def test_it_is_played_as_often_as_is_asked(paceline: CommandLine, add: Any) -> None:
    add("shop", spacing="1m..3m")
    file = campaign(paceline, 'accounts = ["shop"]\nexpire_after = "10m"')
    told = paceline.ok("simulate", "-f", file, "--seeds", "5", "--json").json
    assert told["plays"] == 5
    assert told["sent"] < told["most_sent"]
    few, many = told["sent"], told["most_sent"]
    first = f"opening: between {few} and {many} of 9 messages from one account (played 5 times)"
    assert first in paceline.ok("simulate", "-f", file, "--seeds", "5").out
    assert "(played 3 times)" in paceline.ok("simulate", "-f", file).out


def test_no_campaign_is_called_what_the_sandbox_obeys(paceline: CommandLine, add: Any) -> None:
    add("shop")
    file = campaign(paceline, 'name = "bounce"\naccounts = ["shop"]')
    assert forecast(paceline, file)["sent"] == 9


def test_a_follow_up_that_is_bidden_is_left_out_and_said_to_be(
    paceline: CommandLine, add: Any
) -> None:
    add("shop")
    steps = '[[steps]]\nparts = [{ text = "a" }]\n[[steps]]\non = "reply"\nparts = [{ text = "b" }]'
    told = forecast(paceline, campaign(paceline, 'accounts = ["shop"]', rest=steps))
    assert told["sent"] == 9
    assert told["left_out"][-1].startswith("the follow-up that whoever bids it")
