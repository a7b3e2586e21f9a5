"""Accounts at Wassenger from the command line: neither secret is ever shown again."""

from paceline.cli.shapes import MASK
from tests.cli.conftest import CommandLine

KEY, HOOK = "kEy+Of/tests==", "hOoK+Of/tests"
DEVICE = "5f4dcc3b5aa765d61d8327de"


def test_neither_secret_is_shown(paceline: CommandLine) -> None:
    answer = paceline.ok(
        "account", "add", "shop", "--provider", "wassenger", "--policy", "whatsapp-new",
        "--option", f"api_key={KEY}", "--option", f"device={DEVICE}",
        "--option", f"webhook_secret={HOOK}",
    )  # fmt: skip
    assert answer.out == "account shop added (wassenger, policy whatsapp-new)\n"
    shown = paceline.ok("account", "show", "shop", "--json")
    assert shown.json["options"]["api_key"] == shown.json["options"]["webhook_secret"] == MASK
    assert shown.json["options"]["device"] == DEVICE
    answers = [
        answer,
        shown,
        paceline.ok("account", "show", "shop"),
        paceline.ok("account", "list", "--json"),
        paceline.ok("account", "set", "shop", "--option", "groups=false"),
        paceline("account", "set", "shop", "--option", "device=5f4d"),
        paceline.ok("why", "shop"),
    ]
    for told in answers:
        assert KEY not in told.out + told.err and HOOK not in told.out + told.err


def test_a_number_without_groups_is_not_asked_to_write_to_one(paceline: CommandLine) -> None:
    paceline.ok(
        "account", "add", "shop", "--provider", "wassenger", "--option", f"api_key={KEY}",
        "--option", f"device={DEVICE}", "--option", "groups=false",
    )  # fmt: skip
    complaint = paceline.refused("send", "shop", "120363041234567890@g.us", "--text", "x")
    assert "is a group, not a phone number" in complaint
