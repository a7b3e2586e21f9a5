"""``paceline simulate``: the report, a broken promise, and a campaign played before its launch."""

import json
from datetime import timedelta
from typing import Any

import pytest

from paceline.core.instants import DAY, SECOND, Instant, parse_instant, to_datetime
from paceline.engine import clock as clocks
from paceline.sim import forecast as forecasts
from paceline.sim import many, process
from paceline.sim.simulation import Verdict, simulate
from tests.cli.conftest import NOW, CommandLine, StillClock
from tests.sim.twins import the_intent_comes_after_the_effect

KEYS = {"seeds", "events", "crashes", "account_days", "violations", "trace"}


@pytest.fixture(autouse=True)
def always_that_sunday(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forecast begins now. The simulated processes have their own clocks, imported above."""
    assert process.SystemClock is clocks.SystemClock
    monkeypatch.setattr(clocks, "SystemClock", lambda: StillClock(NOW))


def people(paceline: CommandLine, count: int) -> None:
    rows = "\n".join(f"person-{number}" for number in range(count))
    paceline.write("people.csv", f"address\n{rows}\n")


def campaign(paceline: CommandLine, accounts: str, more: str = "") -> str:
    text = f'name = "opening"\naccounts = [{accounts}]\naudience = "people.csv"\n{more}\n'
    path = paceline.write("opening.toml", f'{text}[[parts]]\ntext = "Hello"\n')
    return str(path)


def test_the_report_as_text(paceline: CommandLine) -> None:
    answer = paceline.ok("simulate", "--seeds", "2", "--world", "campaign", "--workers", "1")
    first, broken, trace = answer.out.splitlines()
    assert first.startswith("2 worlds with heavy faults: ")
    assert broken == "broken promises: none"
    assert trace.startswith("trace ") and len(trace) == len("trace ") + 64


def test_the_report_as_json_is_nothing_else(paceline: CommandLine) -> None:
    words = ("simulate", "--seeds", "2", "--world", "campaign", "--workers", "1", "--json")
    answer = paceline.ok(*words)
    assert set(answer.json) == KEYS
    assert answer.json["seeds"] == 2
    assert answer.json["violations"] == []
    assert answer.json["events"] > 0 and answer.json["account_days"] > 0
    assert paceline.ok(*words).json == answer.json


def test_another_beginning_gives_other_worlds(paceline: CommandLine) -> None:
    words = ("simulate", "--seeds", "1", "--world", "campaign", "--json")
    first, other = paceline.ok(*words), paceline.ok(*words, "--from", "7")
    assert first.json["trace"] != other.json["trace"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--world", "campain"), "there is no world 'campain'"),
        (("--faults", "many"), "faults cannot be 'many'"),
        (("--seeds", "0"), "greater than or equal to 1"),
    ],
)
def test_what_does_not_exist_is_refused(
    paceline: CommandLine, words: tuple[str, ...], complaint: str
) -> None:
    answer = paceline("simulate", *words)
    assert answer.code == 2
    assert answer.out == ""
    assert complaint in answer.err


def test_nothing_is_stored(paceline: CommandLine) -> None:
    paceline.ok("simulate", "--seeds", "1", "--world", "campaign")
    assert list(paceline.folder.iterdir()) == []


def test_a_broken_promise_is_told_with_the_way_to_see_it_again(
    paceline: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    the_intent_comes_after_the_effect(monkeypatch)
    words = ("simulate", "--seeds", "1", "--from", "3", "--world", "campaign", "--faults", "none")
    answer = paceline(*words, "--json")
    assert answer.code == 1
    violations = json.loads(answer.out)["violations"]
    assert {violation["seed"] for violation in violations} == {3}
    assert {"seed", "invariant", "detail"} == set(violations[0])
    assert "never unrecorded" in {violation["invariant"] for violation in violations}
    assert "seed 3: never unrecorded: process-" in answer.err
    assert "calls        delivery 1 part 0 on line-0" in answer.err
    replay = "replay: paceline simulate --seeds 1 --from 3 --faults none --world campaign"
    assert answer.err.splitlines()[-1] == replay


def test_the_command_tells_it_and_how_to_see_it_again(
    paceline: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def amiss(seed: int, **how: Any) -> Verdict:
        if seed == 1:
            raise AssertionError
        return simulate(seed, **how)

    monkeypatch.setattr(many, "simulate", amiss)
    answer = paceline("simulate", "--world", "campaign", "--workers", "1", "--seeds", "3", "--json")
    assert answer.code == 1
    report = json.loads(answer.out)
    assert (report["seeds"], len(report["violations"])) == (3, 1)
    assert report["events"] > 0
    assert "Traceback" not in answer.err
    first, *_, last = answer.err.strip().splitlines()
    assert first.startswith("seed 1: never a defect: the world broke off: AssertionError (")
    assert last == "replay: paceline simulate --seeds 1 --from 1 --faults heavy --world campaign"


# ---------------------------------------------------------------------- a campaign of one's own


def instant(text: str) -> Instant:
    return parse_instant(text)


def test_a_hundred_at_forty_a_minute_take_two_minutes_and_a_half(paceline: CommandLine) -> None:
    paceline.ok("account", "add", "shop", "--provider", "sandbox", "--set", "rate=40/min")
    people(paceline, 100)
    answer = paceline.ok("simulate", "-f", campaign(paceline, '"shop"'), "--seeds", "2", "--json")
    told = answer.json
    assert (told["campaign"], told["total"], told["sent"]) == ("opening", 100, 100)
    took_us = instant(told["done_at"]["latest"]) - NOW
    assert 148.5 * SECOND <= took_us <= 155 * SECOND
    assert told["violations"] == []
    (account,) = told["accounts"]
    assert (account["name"], account["total"], account["sent"]) == ("shop", 100, 100)
    assert account["limits"] == ["rate 40/min"]


def test_fifty_at_twenty_a_day_are_done_on_the_third_day(paceline: CommandLine) -> None:
    words = ("account", "add", "sales", "--provider", "sandbox", "--set", "rate=6/min")
    paceline.ok(*words, "--set", "daily.message=20", "--set", "zone=UTC")
    people(paceline, 50)
    told = paceline.ok(
        "simulate", "-f", campaign(paceline, '"sales"'), "--seeds", "1", "--json"
    ).json
    done = to_datetime(instant(told["done_at"]["latest"]))
    assert done.date() == to_datetime(NOW).date() + timedelta(days=2)
    assert told["accounts"][0]["most_per_day"] == 20


def test_an_account_that_dies_halfway_is_told(paceline: CommandLine) -> None:
    for name in ("shop", "team"):
        paceline.ok("account", "add", name, "--provider", "sandbox", "--set", "rate=40/min")
    people(paceline, 40)
    file = campaign(paceline, '"shop", "team"')
    death = paceline.ok("simulate", "-f", file, "--seeds", "1", "--json").json["if_an_account_dies"]
    assert (death["account"], death["after"]) == ("shop", 10)
    assert (death["sent"], death["left"]) == (30, 10)
    answer = paceline.ok("simulate", "-f", file, "--seeds", "1")
    assert "if shop dies halfway (banned after 10 messages):" in answer.out
    assert "30 of 40 are sent, 10 wait for it to come back" in answer.out


def test_a_forecast_is_the_same_however_many_play_it(
    paceline: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecasts, "WORTH_IT", 1)
    paceline.ok("account", "add", "shop", "--provider", "sandbox", "--set", "spacing=1m..3m")
    people(paceline, 10)
    words = ("simulate", "-f", campaign(paceline, '"shop"'), "--seeds", "3", "--json")
    alone = paceline.ok(*words, "--workers", "1").json
    assert alone == paceline.ok(*words, "--workers", "2").json
    assert alone["done_at"]["earliest"] < alone["done_at"]["latest"], "three were played"


def test_an_account_that_does_not_exist(paceline: CommandLine) -> None:
    people(paceline, 3)
    paceline.ok("account", "add", "shops", "--provider", "sandbox")
    said = paceline.refused("simulate", "-f", campaign(paceline, '"shop"'))
    assert said.endswith(".toml: no account named 'shop', did you mean 'shops'?")


def test_a_forecast_changes_nothing(paceline: CommandLine) -> None:
    paceline.ok("account", "add", "shop", "--provider", "sandbox", "--set", "rate=40/min")
    people(paceline, 3)
    before = paceline.counts()
    paceline.ok("simulate", "-f", campaign(paceline, '"shop"'), "--seeds", "1")
    assert paceline.counts() == before


STEPS = """
[[steps]]
parts = [{ text = "Hello" }]

[[steps]]
after = "3d"
parts = [{ text = "Still there?" }]
"""


def written(paceline: CommandLine, top: str, rest: str = STEPS) -> str:
    text = f'name = "opening"\naudience = "people.csv"\n{top}\n{rest}'
    return str(paceline.write("opening.toml", text))


def planned(paceline: CommandLine, file: str) -> int:
    messages: int = paceline.ok("plan", file, "--json").json["messages"]
    return messages


def test_steps_are_messages_and_come_days_later(paceline: CommandLine) -> None:
    paceline.ok("account", "add", "shop", "--provider", "sandbox", "--set", "rate=40/min")
    people(paceline, 10)
    file = written(paceline, 'accounts = ["shop"]')
    told = paceline.ok("simulate", "-f", file, "--seeds", "1", "--json").json
    assert (told["total"], told["sent"]) == (20, 20)
    assert told["total"] == planned(paceline, file)
    assert instant(told["done_at"]["latest"]) >= NOW + 3 * DAY
    assert told["if_an_account_dies"]["after"] == 10


def test_a_pool_is_shared_by_whoever_can(paceline: CommandLine) -> None:
    paceline.ok("account", "add", "quick", "--provider", "sandbox", "--set", "rate=60/min")
    paceline.ok("account", "add", "slow", "--provider", "sandbox", "--set", "rate=1/min")
    people(paceline, 60)
    file = written(paceline, 'pool = ["quick", "slow"]', '[[parts]]\ntext = "Hello"\n')
    told = paceline.ok("simulate", "-f", file, "--seeds", "1", "--json").json
    assert told["sent"] == 60
    assert instant(told["done_at"]["latest"]) < NOW + 2 * 60 * SECOND


def test_what_is_spread_over_days_takes_as_many(paceline: CommandLine) -> None:
    paceline.ok("account", "add", "shop", "--provider", "sandbox", "--set", "rate=40/min")
    people(paceline, 9)
    file = campaign(paceline, '"shop"', 'spread = "3d"')
    told = paceline.ok("simulate", "-f", file, "--seeds", "1", "--json").json
    assert told["accounts"][0]["most_per_day"] == 3


def test_recipients_keep_their_own_hours(paceline: CommandLine) -> None:
    paceline.ok("account", "add", "shop", "--provider", "sandbox", "--set", "rate=40/min")
    paceline.write("people.csv", "address,zone\np1,Asia/Tokyo\n")
    file = campaign(paceline, '"shop"', 'recipient_hours = "09:00-10:00"')
    told = paceline.ok("simulate", "-f", file, "--seeds", "1", "--json").json
    done = to_datetime(instant(told["done_at"]["latest"]))
    assert done.hour == 0, "nine in the morning of Tokyo"
    paceline.write("people.csv", "address,zone\np1,\n")
    assert "p1 has no zone" in paceline.refused("simulate", "-f", file)


def test_what_expires_is_not_sent(paceline: CommandLine) -> None:
    words = ("account", "add", "shop", "--provider", "sandbox", "--set", "daily.message=2")
    paceline.ok(*words, "--set", "zone=UTC")
    people(paceline, 9)
    file = campaign(paceline, '"shop"', 'expire_after = "30h"')
    told = paceline.ok("simulate", "-f", file, "--seeds", "1", "--json").json
    assert (told["total"], told["sent"]) == (9, 4)


def test_who_is_suppressed_is_no_message_and_what_is_left_out_is_said(
    paceline: CommandLine,
) -> None:
    paceline.ok("account", "add", "shop", "--provider", "sandbox", "--set", "rate=40/min")
    people(paceline, 5)
    file = campaign(paceline, '"shop"')
    paceline.ok("suppress", "add", "person-3", "--kind", "other")
    answer = paceline.ok("simulate", "-f", file, "--seeds", "1")
    assert "opening: 4 messages from one account" in answer.out
    assert planned(paceline, file) == 4
    assert "left out: what these accounts have sent already" in answer.err
    for number in range(5):
        paceline("suppress", "add", f"person-{number}", "--kind", "other")
    assert "everybody in it is suppressed" in paceline.refused("simulate", "-f", file)
