"""Accounts of the Cloud API from the command line: their secrets, their standing, their limits."""

from pathlib import Path

import pytest

from paceline.cli.shapes import MASK
from tests.cli.conftest import CommandLine
from tests.providers.loopback import Scripted, running, said
from tests.providers.whatsapp_cloud.fake import KEY, NUMBER, FakeMeta, error, no_such

APP, VERIFY = "aPp+Of/tests==", "vErIfY+Of/tests"
CLOUD = (
    "--provider", "whatsapp_cloud", "--option", f"access_token={KEY}", "--option",
    f"phone_number_id={NUMBER}",
)  # fmt: skip

TEXT = """
name = "ready"
account = "shop"
targets = [{ phone = "+4915112345678", name = "Anna" }]
[[parts]]
text = "Your order is ready, {{ name }}"
"""
TEMPLATE = """
name = "ready"
accounts = "shop"
targets = [{ phone = "+4915112345678", name = "Anna" }]
[[parts]]
template = "order_ready"
language = "en_US"
values = ["{{ name }}"]
"""


def test_none_of_the_secrets_is_shown(paceline: CommandLine) -> None:
    answer = paceline.ok(
        "account", "add", "shop", *CLOUD, "--policy", "whatsapp-new",
        "--option", f"app_secret={APP}", "--option", f"verify_token={VERIFY}",
    )  # fmt: skip
    assert answer.out == "account shop added (whatsapp_cloud, policy whatsapp-new)\n"
    shown = paceline.ok("account", "show", "shop", "--json")
    options = shown.json["options"]
    assert {options[key] for key in ("access_token", "app_secret", "verify_token")} == {MASK}
    assert options["phone_number_id"] == NUMBER, "an id is a text, however it was typed"
    answers = [
        answer,
        shown,
        paceline.ok("account", "show", "shop"),
        paceline.ok("account", "list", "--json"),
        paceline.ok("account", "set", "shop", "--option", "api_version=v26.0"),
        paceline("account", "set", "shop", "--option", "phone_number_id=x"),
        paceline.ok("why", "shop"),
    ]
    for told in answers:
        for secret in (KEY, APP, VERIFY):
            assert secret not in told.out + told.err


@pytest.mark.parametrize(
    ("scripted", "told"),
    [
        (said(200, {"status": "CONNECTED", "quality_rating": "GREEN"}), "it can be opened\n"),
        (
            said(200, {"status": "CONNECTED", "quality_rating": "RED"}),
            "it can be opened; its quality is low (RED)\n",
        ),
        (
            said(200, {"status": "FLAGGED"}),
            "it can be opened; flagged: its quality is low, and its limit may be lowered\n",
        ),
        (said(200, {"status": "PENDING"}), "not registered: Meta says the number is 'PENDING'"),
        (said(200, {"status": "DISCONNECTED"}), "offline: Meta says the number is 'DISCONN"),
        (error(190, 401), "token refused: (#190) Told in words"),
        (no_such(NUMBER), "no such phone number id: Unsupported get request."),
        (Scripted(502, b"<html>"), "offline: answered 502 without a readable reason"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_check_says_in_one_line_how_it_stands(
    paceline: CommandLine, scripted: Scripted, told: str
) -> None:
    with running(FakeMeta()) as fake:
        fake.answers[f"/{NUMBER}"] = scripted
        paceline.ok("account", "add", "shop", *CLOUD, "--option", f"base_url={fake.url}")
        answer = paceline("account", "check", "shop")
    assert told in answer.out and answer.out.startswith("shop (whatsapp_cloud): ")
    assert answer.code == (0 if "can be opened" in told else 1)
    assert answer.out.count("\n") == 1 and KEY not in answer.out


def test_what_it_cannot_send_is_refused_before_anything_is_created(
    paceline: CommandLine, tmp_path: Path
) -> None:
    paceline.ok("account", "add", "shop", *CLOUD)
    campaign, reminder = tmp_path / "campaign.toml", tmp_path / "reminder.toml"
    campaign.write_text(TEXT.replace("account =", "accounts ="))
    reminder.write_text('cron = "0 9 * * *"\n' + TEXT)
    for command in (
        ("plan", str(campaign)),
        ("campaign", "create", "-f", str(campaign)),
        ("reminder", "create", "-f", str(reminder)),
    ):
        complaint = paceline.refused(*command)
        assert (
            "parts[1]: whatsapp_cloud lets shop write to people only with a template" in complaint
        )
        assert 'template = "order_ready", language = "en_US"' in complaint
    group = paceline.refused("send", "shop", "120363041234567890@g.us", "--text", "x")
    assert "is a group, not a phone number" in group
    paceline.ok("send", "shop", "+4915112345678", "--text", "an answer may be anything")
    assert paceline.refused("account", "groups", "shop") == "paceline: whatsapp_cloud has no groups"


def test_a_template_can_be_planned_and_created_and_only_here(
    paceline: CommandLine, tmp_path: Path
) -> None:
    paceline.ok("account", "add", "shop", *CLOUD)
    file = tmp_path / "ready.toml"
    file.write_text(TEMPLATE)
    assert paceline.ok("plan", str(file), "--json").json["messages"] == 1
    paceline.ok("campaign", "create", "-f", str(file))
    paceline.ok(
        "account", "add", "gate", "--provider", "wassenger", "--option", "api_key=x",
        "--option", f"device={'a' * 24}",
    )  # fmt: skip
    file.write_text(TEMPLATE.replace('"shop"', '"gate"').replace('"ready"', '"again"'))
    complaint = paceline.refused("campaign", "create", "-f", str(file))
    assert "parts[1].template: wassenger has no templates, so gate cannot send" in complaint
    assert "'order_ready'" in complaint
