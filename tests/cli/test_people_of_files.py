"""People from a campaign's own file: a row with several addresses says that they are one person."""

import pytest

from tests.cli.conftest import CommandLine
from tests.cli.test_contact_erase import everything, exported

PEOPLE = (
    "email,phone,first_name\n"
    "Anna@example.com,0151 12345678,Anna\n"
    "bob@example.com,not a number,Bob\n"
    "cleo@example.com,,Cleo\n"
)
CAMPAIGN = """name = "{name}"
accounts = ["{account}"]
action = "{action}"
audience = {{ file = "u.csv", region = "DE" }}
[[parts]]
text = "Hello {{{{ first_name }}}}"
"""


@pytest.fixture
def house(paceline: CommandLine) -> CommandLine:
    """Everybody at most once a day, by mail or by message."""
    paceline.write("paceline.toml", 'per_contact = "1/day"\n')
    paceline.write("u.csv", PEOPLE)
    for name, account, action in (("e", "em", "email"), ("w", "dm", "message")):
        paceline.ok("account", "add", account, "--provider", "sandbox")
        text = CAMPAIGN.format(name=name, account=account, action=action)
        paceline.write(f"{name}.toml", text)
    return paceline


def test_a_plan_sees_the_mail_that_the_same_people_get(house: CommandLine) -> None:
    house.write("u.csv", "email,phone,first_name\nanna@example.com,0151 12345678,Anna\n")
    assert house.ok("plan", "w.toml", "--json").json["finish"] == "2026-11-15T10:00:00Z"
    house.ok("campaign", "create", "-f", "e.toml", "--launch")
    plan = house.ok("plan", "w.toml", "--json").json
    assert plan["finish"] == "2026-11-16T10:00:00Z" and plan["binding"]["gate"] == "frequency"
    said = house.ok("campaign", "create", "-f", "w.toml", "--launch").out
    assert "by plan it is done 2026-11-16 10:00" in said
    (row,) = exported(house, "w")
    assert row["target"] == "+4915112345678"


def test_whoever_stands_in_one_row_is_known_by_all_of_it(house: CommandLine) -> None:
    house.ok("campaign", "create", "-f", "e.toml")
    shown = house.ok("contact", "show", "anna@example.com", "--json").json
    assert [entry["address"] for entry in shown["addresses"]] == [
        "anna@example.com",
        "+4915112345678",
    ]
    assert shown["fields"] == {}, "what a campaign says of somebody stays with it"
    for alone in ("bob@example.com", "cleo@example.com"):
        assert "nobody is known" in house.refused("contact", "show", alone)


def test_erasing_one_address_erases_the_other(house: CommandLine) -> None:
    house.ok("campaign", "create", "-f", "e.toml", "--launch")
    house.ok("campaign", "create", "-f", "w.toml", "--launch")
    said = house.ok("contact", "erase", "anna@example.com", "--yes").out
    assert said.startswith("erased: 2 deliveries made anonymous")
    left = everything(house)
    for trace in ("Anna", "anna@", "12345678"):
        assert trace not in left, f"{trace} is still known"
    assert "every invariant holds" in house.ok("verify").out
    house.write("w2.toml", CAMPAIGN.format(name="w2", account="dm", action="message"))
    house.ok("campaign", "create", "-f", "w2.toml")
    assert exported(house, "w2")[0]["target"].startswith("erased:"), (
        "an old list brings nobody back"
    )


def test_the_same_address_in_two_columns_is_one(paceline: CommandLine) -> None:
    paceline.write("twice.csv", "email,address,first_name\na@example.com,A@example.com,Anna\n")
    paceline.ok("audience", "import", "twice.csv")
    paceline.write("other.csv", "email,other,first_name\nb@example.com,b@example.com,Bob\n")
    assert "1 new person" in paceline.ok("audience", "import", "other.csv").out
    shown = paceline.ok("contact", "show", "b@example.com", "--json").json
    assert [entry["kind"] for entry in shown["addresses"]] == ["email"]
