"""Accounts from the command line: added, listed, shown, changed, paused, resumed, removed."""

import pytest

from tests.cli.conftest import CommandLine

ACCOUNT_KEYS = {
    "name", "provider", "address", "state", "reason", "until_at", "policy", "own", "created_at",
    "stopped",
}  # fmt: skip


def test_an_account_is_added_with_limits_of_its_own(paceline: CommandLine) -> None:
    words = ("--provider", "sandbox", "--policy", "cold-email", "--address", "me@example.com")
    more = ("--set", "daily.email=30", "--set", "spacing=7m", "--option", "seed=7")
    answer = paceline.ok("account", "add", "sales", *words, *more)
    assert answer.out == (
        "account sales added (sandbox, policy cold-email and its own daily, spacing)\n"
    )
    shown = paceline.ok("account", "show", "sales", "--json").json
    assert shown["address"] == "me@example.com"
    assert shown["own"] == {"daily": {"email": 30}, "spacing": "7m"}
    assert shown["limits"]["daily"] == {"email": 30}
    assert shown["limits"]["hours"] == "Mon-Fri 09:00-18:00 America/New_York"
    assert shown["options"]["seed"] == 7


def test_an_account_without_limits_is_told_so(paceline: CommandLine) -> None:
    answer = paceline.ok("account", "add", "free", "--provider", "sandbox")
    assert answer.out == "account free added (sandbox, no limits at all)\n"


def test_a_cap_of_nothing_is_taken_at_its_word(paceline: CommandLine) -> None:
    words = ("--set", "daily={message=0}", "--set", "weekly.email=0")
    answer = paceline.ok("account", "add", "mute", "--provider", "sandbox", *words)
    assert answer.err == "a cap of 0 means never: mute sends no email, message\n"
    answer = paceline.ok("account", "set", "mute", "--set", "daily.message=5")
    assert answer.err == "a cap of 0 means never: mute sends no email\n"
    assert paceline.ok("account", "set", "mute", "--unset", "weekly").err == ""


def test_the_list_says_what_to_do_when_it_is_empty(paceline: CommandLine) -> None:
    paceline.ok("account", "add", "x", "--provider", "sandbox")
    paceline.ok("account", "remove", "x", "--yes")
    assert "paceline account add" in paceline.ok("account", "list").out
    assert paceline.ok("account", "list", "--json").json == []


def test_the_list(accounts: CommandLine) -> None:
    lines = [line.split() for line in accounts.ok("account", "list").out.splitlines()]
    assert lines == [
        ["NAME", "PROVIDER", "POLICY", "STATE", "REASON"],
        ["sales", "sandbox", "cold-email", "active"],
        ["team", "sandbox", "-", "active"],
    ]
    listed = accounts.ok("account", "list", "--json").json
    assert [set(account) for account in listed] == [ACCOUNT_KEYS, ACCOUNT_KEYS]
    assert listed[0]["created_at"] == "2026-11-15T10:00:00Z"


def test_one_account_in_full(accounts: CommandLine) -> None:
    out = accounts.ok("account", "show", "sales").out
    assert "[policy.sales]" in out
    assert "used today  0 of 20 email" in out
    assert "today       0 sent, 0 bounced, 0 failed" in out and "last sent   never" in out
    assert "2026-11-15 05:00 America/New_York" in out
    assert "sales added" in out
    keys = set(accounts.ok("account", "show", "sales", "--json").json)
    assert keys == ACCOUNT_KEYS | {
        "options", "limits", "zone", "used", "today", "last_sent_at", "deliveries", "lane",
        "events",
    }  # fmt: skip


def test_a_change_keeps_what_it_does_not_name(accounts: CommandLine) -> None:
    accounts.ok("account", "set", "sales", "--set", "daily.email=30", "--set", "min_gap=8m")
    accounts.ok("account", "set", "sales", "--set", "daily.message=5")
    shown = accounts.ok("account", "show", "sales", "--json").json
    assert shown["own"] == {"daily": {"email": 30, "message": 5}, "min_gap": "8m"}
    accounts.ok("account", "set", "sales", "--unset", "daily.email", "--unset", "min_gap")
    shown = accounts.ok("account", "show", "sales", "--json").json
    assert shown["own"] == {"daily": {"message": 5}}
    assert shown["limits"]["daily"] == {"email": 20, "message": 5}


def test_a_change_of_policy_address_and_option(accounts: CommandLine) -> None:
    accounts.ok(
        *("account", "set", "team", "--policy", "smtp", "--address", "t@example.com"),
        *("--unset", "rate", "--option", "latency=1s"),
    )
    shown = accounts.ok("account", "show", "team", "--json").json
    assert (shown["policy"], shown["address"]) == ("smtp", "t@example.com")
    assert shown["limits"]["rate"] == "5/s"
    assert shown["options"]["latency"] == "1s"


def test_a_change_of_nothing_is_refused(accounts: CommandLine) -> None:
    assert "nothing to change" in accounts.refused("account", "set", "sales")
    complaint = accounts.refused("account", "set", "sales", "--unset", "rate")
    assert "no 'rate' of its own (it has: none)" in complaint


def test_pause_and_resume(accounts: CommandLine) -> None:
    accounts.ok("account", "pause", "team", "--reason", "holidays")
    listed = accounts.ok("account", "list", "--json").json
    assert (listed[1]["state"], listed[1]["reason"]) == ("paused", "holidays")
    assert "holidays" in accounts.ok("account", "show", "team").out
    complaint = accounts.refused("account", "pause", "team")
    assert complaint == ("paceline: account team is paused: cannot pause. Possible now: resume")
    accounts.ok("account", "resume", "team")
    assert accounts.ok("account", "list", "--json").json[1]["state"] == "active"


def test_a_removed_account_is_gone_but_not_forgotten(accounts: CommandLine) -> None:
    accounts.ok("account", "remove", "team", "--yes")
    assert [a["name"] for a in accounts.ok("account", "list", "--json").json] == ["sales"]
    assert accounts.counts()["accounts"] == 2
    assert "no account named 'team'" in accounts.refused("account", "show", "team")


def test_what_waits_on_an_account_keeps_it(accounts: CommandLine) -> None:
    accounts.ok("send", "team", "anna@example.com", "--text", "hi")
    assert "--cancel" in accounts.refused("account", "remove", "team", "--yes")
    accounts.ok("account", "remove", "team", "--cancel", "--yes")


def test_a_person_is_asked_before_an_account_is_removed(
    accounts: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", _abort)
    answer = accounts("account", "remove", "team")
    assert (answer.code, answer.complaint) == (1, "paceline: nothing was done")
    accounts.ok("account", "remove", "team", "--yes")


def _abort(*_: object, **__: object) -> None:
    import typer

    raise typer.Abort


SMTP = ("--provider", "smtp", "--option", "host=smtp.example.com")
GMAIL = ("--provider", "gmail", "--option", "service_account=env:GMAIL_KEY")
LONG = f"{'x' * 60}@example.com"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*SMTP, "--address", "no address"), "address: 'no address' is no e-mail address: "),
        (SMTP, "address: 's2' is no e-mail address: "),
        ((*SMTP, "--address", "jürgen@example.com"), "letters that not every server takes"),
        ((*SMTP, "--address", LONG, "--option", "verp=true"), "; set return_path"),
        ((*GMAIL, "--address", "no address"), "address: 'no address' is no e-mail address: "),
        (GMAIL, "address: 's2' is no e-mail address: "),
    ],
)
def test_an_address_that_letters_cannot_be_from_is_refused(
    paceline: CommandLine, words: tuple[str, ...], said: str
) -> None:
    assert said in paceline.refused("account", "add", "s2", *words)
    assert paceline.ok("account", "list", "--json").json == []


@pytest.mark.parametrize(
    ("account", "own"),
    [(SMTP, "from_address=anna@example.com"), (GMAIL, "subject=anna@example.com")],
)
def test_what_letters_are_from_may_be_said_otherwise(
    paceline: CommandLine, account: tuple[str, ...], own: str
) -> None:
    paceline.ok("account", "add", "s2", *account, "--option", own)
    paceline.ok("account", "set", "s2", "--address", "the second")
    # Without it the account's own address would count again.
    key = own.partition("=")[0]
    said = paceline.refused("account", "set", "s2", "--option", f'{key}=""')
    assert "address: 'the second' is no e-mail address: " in said
    paceline.ok("account", "set", "s2", "--address", "a@example.com", "--option", f'{key}=""')
    said = paceline.refused("account", "set", "s2", "--address", "no address")
    assert "address: 'no address' is no e-mail address: " in said
    assert paceline.ok("account", "show", "s2", "--json").json["address"] == "a@example.com"
    paceline.ok("account", "set", "s2", "--set", "rate=1/min")
