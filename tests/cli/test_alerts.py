"""Alerts and signals on the command line: shown where they matter, tried out, changed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paceline.core.signals import DEFAULT_TABLE
from paceline.engine.ports import NewAlert
from paceline.store.database import open_store
from tests.cli.conftest import CAMPAIGN, NOW, CommandLine
from tests.providers import test_notices as notices
from tests.providers.test_notices import Inbox

Spring = Callable[..., Path]
LINE = (
    "alert 1 since 2026-11-15 10:00 UTC: campaign spring was paused by its breaker on team: "
    "error rate 5/20 is above 20% (see: paceline alerts)"
)

inbox: Callable[..., Iterator[Inbox]] = notices.inbox


@pytest.fixture
def alarmed(accounts: CommandLine, spring: Spring) -> CommandLine:
    """A campaign whose breaker has tripped on team."""
    accounts.ok("campaign", "create", "-f", str(spring()), "--launch")
    store = open_store(f"sqlite:///{accounts.folder / 'paceline.db'}", clock=lambda: NOW)
    text = "campaign spring was paused by its breaker on team: error rate 5/20 is above 20%"
    reasons = (("recipient does not exist", 12), ("timed out", 3))
    new = NewAlert("campaign.breaker:1", "campaign.breaker", text, reasons, 2, 1)
    with store.write() as tx:
        tx.alerts.put(new, NOW)
    store.close()
    return accounts


def test_alerts_are_listed_with_their_reasons_grouped(alarmed: CommandLine) -> None:
    shown = alarmed.ok("alerts").out
    assert "12 × recipient does not exist, 3 × timed out" in shown
    (told,) = alarmed.ok("alerts", "--json").json
    assert (told["account"], told["campaign"], told["count"]) == ("team", "spring", 1)
    assert told["reasons"][0] == {"reason": "recipient does not exist", "count": 12}
    assert told["first_at"] == "2026-11-15T10:00:00Z"
    assert told["cleared_at"] is None


def test_options_before_and_after_the_list_mean_the_same(alarmed: CommandLine) -> None:
    expected = alarmed.ok("alerts", "list", "--all", "--json").json
    assert len(expected) == 1
    assert alarmed.ok("alerts", "--all", "--json", "list").json == expected


@pytest.mark.parametrize(
    ("text", "run_id", "what", "why"),
    [
        ("account team is suspended: Too many crashes (last: x: y)", None,
         "account team is suspended", "Too many crashes (last: x: y)"),
        ("campaign a: b was paused by a signal of the provider on team: 368: no", 1,
         "campaign a: b was paused by a signal of the provider on team", "368: no"),
        ("account team is away", None, "account team is away", ""),
    ],
)  # fmt: skip
def test_an_alert_without_failures_has_its_reason_under_why(
    accounts: CommandLine, spring: Spring, text: str, run_id: int | None, what: str, why: str
) -> None:
    spring(CAMPAIGN.replace("spring", "a: b"))
    accounts.ok("campaign", "create", "-f", "spring.toml")
    store = open_store(f"sqlite:///{accounts.folder / 'paceline.db'}", clock=lambda: NOW)
    with store.write() as tx:
        tx.alerts.put(NewAlert("k", "account.suspended", text, (), 2, run_id), NOW)
    store.close()
    (row,) = accounts.ok("alerts").out.splitlines()[1:]
    assert [cell for cell in row.split("  ") if cell.strip()][3:] == [what, *filter(None, [why])]
    assert accounts.ok("alert", "list").out == accounts.ok("alerts").out


def test_an_open_alert_stands_on_top_of_what_it_concerns(alarmed: CommandLine) -> None:
    for words in (("campaign", "status", "spring"), ("account", "list"), ("why", "team")):
        assert alarmed.ok(*words).out.splitlines()[0] == LINE
    # Whoever waits in the same campaign is concerned; an account that has no part in it is not.
    assert alarmed.ok("why", "sales").out.splitlines()[0] == LINE
    alarmed.ok("account", "add", "other", "--provider", "sandbox")
    assert "alert" not in alarmed.ok("why", "other").out
    for words in (("campaign", "status", "spring"), ("why", "team")):
        (told,) = alarmed.ok(*words, "--json").json["alerts"]
        assert told["kind"] == "campaign.breaker"
    assert alarmed.ok("alert", "clear", "1").out.startswith("alert 1 is cleared")
    for words in (("campaign", "status", "spring"), ("account", "list"), ("why", "team")):
        assert LINE not in alarmed.ok(*words).out
    assert alarmed.ok("alerts").out == "no alerts: nothing needs a person\n"
    assert "2026-11-15 10:00" in alarmed.ok("alerts", "--all").out
    assert "cleared already" in alarmed.refused("alert", "clear", "1")
    assert "there is no alert 7" in alarmed.refused("alert", "clear", "7")


def test_resuming_ends_the_alert(alarmed: CommandLine) -> None:
    alarmed.ok("campaign", "pause", "spring")
    alarmed.ok("campaign", "resume", "spring")
    assert alarmed.ok("alerts", "--json").json == []


def test_a_test_notice_reaches_a_real_server(
    paceline: CommandLine, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "nobody is told of alerts" in paceline.refused("alert", "test")
    paceline.write("paceline.toml", f'[alerts]\nurls = ["{inbox.url}"]\n')
    assert paceline.ok("alert", "test").out == "1. json://…: told\n"
    assert inbox.taken[0]["title"] == "Paceline: test"
    inbox.status = 503
    monkeypatch.setenv("PACELINE_ALERTS_URLS", f"{inbox.url} json://127.0.0.1:1/")
    answer = paceline("alert", "test")
    assert answer.code == 1
    assert [line.partition(":")[0] for line in answer.out.splitlines()] == ["1. json", "2. json"]
    assert "2 of 2 could not be told" in answer.err
    assert notices.SECRET not in answer.out + answer.err


def test_an_address_that_nobody_knows(paceline: CommandLine) -> None:
    paceline.write("paceline.toml", '[alerts]\nurls = ["smoke://top-secret/"]\n')
    told = paceline.refused("alert", "test")
    assert told.startswith("paceline: paceline.toml: alerts.urls: number 1 (smoke://…) is no addr")
    assert "top-secret" not in told


# ---------------------------------------------------------------------- signals


def test_signals_are_listed_and_shown_as_they_are_written(accounts: CommandLine) -> None:
    listed = accounts.ok("signals", "list", "--json").json
    assert [entry["signal"] for entry in listed] == list(DEFAULT_TABLE)
    assert not any(entry["own"] for entry in listed)
    shown = accounts.ok("signals", "show", "* throttled").out
    assert shown == '"* throttled" = { scope = "account", for = "1m doubling", ramp = "policy" }\n'
    table = accounts.ok("signals", "list").out
    assert "new contacts" in table and "until resumed" in table


def test_signals_are_changed_and_put_back(accounts: CommandLine) -> None:
    accounts.ok("signals", "set", "* throttled", "for=2m doubling", "ramp=none")
    assert accounts.ok("signals", "show", "* throttled").out.splitlines() == [
        '"* throttled" = { scope = "account", for = "2m doubling" }',
        '# by default { scope = "account", for = "1m doubling", ramp = "policy" }',
    ]
    ramp = 'ramp={ slow_by = 3, recover = "2d" }'
    accounts.ok("signals", "set", "sandbox  rejected", "scope=new contacts", "for=6h", ramp)
    (own,) = [e for e in accounts.ok("signals", "list", "--json").json if e["signal"][0] == "s"]
    assert own == {
        "signal": "sandbox rejected",
        "scope": "new contacts",
        "for": "6h",
        "ramp": {"slow_by": 3, "recover": "2d"},
        "own": True,
    }
    assert accounts.ok("signals", "reset", "sandbox rejected").out.endswith("is forgotten\n")
    assert "1m doubling" in accounts.ok("signals", "reset", "--all").out
    assert "as by default" in accounts.ok("signals", "reset", "--all").out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("set", "* throtled", "for=1m"), "did you mean 'throttled'"),
        (("set", "sandbx throttled", "for=1m"), "did you mean 'sandbox'"),
        (("set", "nowhere throttled", "for=1m"), "Known are"),
        (("set", "* throttled", "fr=1m"), "did you mean 'for'"),
        (("set", "* throttled", "scope=acount"), "did you mean 'account'"),
        (("set", "* rejected", "for=1m"), "scope: is missing"),
        (("set", "* throttled", "for"), "not key=value"),
        (("show", "* rejected"), "there is no signal"),
        (("show", "unipile limit_exceded"), "mean 'unipile limit_exceeded'? See: paceline signals"),
        (("reset",), "name one signal, or say --all"),
    ],
)
def test_what_is_wrong_is_refused(
    accounts: CommandLine, words: tuple[str, ...], complaint: str
) -> None:
    before = accounts.counts()
    assert complaint in accounts.refused("signals", *words)
    assert accounts.counts() == before
