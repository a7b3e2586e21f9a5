"""Accounts at WATI from the command line: their secrets, their standing, their limits."""

import pytest

from paceline.cli.shapes import MASK
from tests.cli.conftest import CommandLine
from tests.providers.loopback import Scripted, running, said
from tests.providers.wati.fake import KEY, STANDING, TENANT, FakeWati

HOOK = "hOoK+Of/tests"
ENDPOINT = f"https://live-mt-server.wati.io/{TENANT}"
TOKEN = ("--provider", "wati", "--option", f"access_token={KEY}")


def test_neither_secret_is_shown(paceline: CommandLine) -> None:
    answer = paceline.ok(
        "account", "add", "shop", *TOKEN, "--policy", "whatsapp-new",
        "--option", f"endpoint={ENDPOINT}", "--option", f"webhook_secret={HOOK}",
        "--option", "channel=85264318722",
    )  # fmt: skip
    assert answer.out == "account shop added (wati, policy whatsapp-new)\n"
    shown = paceline.ok("account", "show", "shop", "--json")
    options = shown.json["options"]
    assert {options[key] for key in ("access_token", "webhook_secret")} == {MASK}
    assert (options["endpoint"], options["channel"]) == (ENDPOINT, "85264318722")
    answers = [
        answer,
        shown,
        paceline.ok("account", "show", "shop"),
        paceline.ok("account", "list", "--json"),
        paceline.ok("account", "set", "shop", "--option", "webhook_auth=passkey"),
        paceline("account", "set", "shop", "--option", "endpoint=https://live-mt-server.wati.io"),
        paceline.ok("why", "shop"),
    ]
    for told in answers:
        assert KEY not in told.out + told.err and HOOK not in told.out + told.err


@pytest.mark.parametrize(
    ("scripted", "told"),
    [
        (None, "it can be opened\n"),
        (Scripted(401), "token refused: answered 401 without a readable reason\n"),
        (said(429, {"message": "Slow down"}), "offline: Slow down\n"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_check_says_in_one_line_how_it_stands(
    paceline: CommandLine, scripted: Scripted | None, told: str
) -> None:
    with running(FakeWati()) as fake:
        if scripted is not None:
            fake.answers[STANDING] = scripted
        endpoint = f"endpoint={fake.url}/{TENANT}"
        paceline.ok("account", "add", "shop", *TOKEN, "--option", endpoint)
        answer = paceline("account", "check", "shop")
    assert answer.out == f"shop (wati): {told}"
    assert answer.code == (0 if scripted is None else 1)


def test_groups_are_refused_and_answers_are_not(paceline: CommandLine) -> None:
    paceline.ok("account", "add", "shop", *TOKEN, "--option", f"endpoint={ENDPOINT}")
    group = paceline.refused("send", "shop", "120363041234567890@g.us", "--text", "x")
    assert "is a group, not a phone number" in group
    paceline.ok("send", "shop", "+4915112345678", "--text", "an answer may be anything")
    assert paceline.refused("account", "groups", "shop") == "paceline: wati has no groups"
