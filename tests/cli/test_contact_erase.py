"""``paceline contact``: what is known of a person, and forgetting it without forgetting limits."""

import csv
import sqlite3
from io import StringIO

import pytest

from tests.cli.conftest import CommandLine

PEOPLE = "email,phone,first_name\nAnna@example.com,+4915112345678,Anna\nbob@example.com,,Bob\n"
CAMPAIGN = (
    'name = "{name}"\naccounts = "team"\n{whom}\n[[parts]]\ntext = "Hi {{{{ first_name }}}}"\n'
)


@pytest.fixture
def known(accounts: CommandLine) -> CommandLine:
    """Anna and Bob, in an audience, with a campaign that waits for them."""
    accounts.write("people.csv", PEOPLE)
    accounts.ok("audience", "import", "people.csv", "--opt-in", "form")
    launched(accounts, "spring", 'audience = "people"')
    return accounts


def launched(paceline: CommandLine, name: str, whom: str) -> list[dict[str, str]]:
    paceline.write("c.toml", CAMPAIGN.format(name=name, whom=whom))
    paceline.ok("campaign", "create", "-f", "c.toml", "--launch")
    return exported(paceline, name)


def exported(paceline: CommandLine, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(paceline.ok("campaign", "export", name).out)))


def everything(paceline: CommandLine) -> str:
    """All that the database holds, as one text."""
    connection = sqlite3.connect(paceline.folder / "paceline.db")
    try:
        return "\n".join(connection.iterdump())
    finally:
        connection.close()


def test_what_is_known_of_a_person(known: CommandLine) -> None:
    shown = known.ok("contact", "show", "0049 151 12345678".replace("0049", "+49")).out
    assert "reached at anna@example.com, +4915112345678" in shown
    assert "opt-in: form on 2026-11-15T10:00:00Z" in shown and "audiences: people" in shown
    known.ok("suppress", "add", "anna@example.com", "--reason", "left")
    told = known.ok("contact", "show", "ANNA@example.com", "--json").json
    assert told["fields"] == {"first_name": "Anna"} and told["audiences"] == ["people"]
    assert [entry["reason"] for entry in told["suppressions"]] == ["left"]
    assert "nobody is known under 'cleo@example.com'" in known.refused(
        "contact", "show", "cleo@example.com"
    )


def test_erasing_leaves_no_name_behind(known: CommandLine) -> None:
    known.ok("send", "team", "Anna@Example.com", "--text", "Dear Annabel, welcome")
    assert "for good? There is no answer" in known.refused("contact", "erase", "anna@example.com")
    said = known.ok("contact", "erase", "Anna@example.com", "--yes").out
    assert said == ("erased: 2 deliveries made anonymous, 2 of them cancelled; left 1 audience\n")
    left = everything(known)
    for trace in ("anna@", "15112345678", "Anna", "Annabel"):
        assert trace not in left, f"{trace} is still known"
    assert "bob@example.com" in left
    first, second = exported(known, "spring")
    assert first["target"].startswith("erased:") and first["reason"] == "contact was erased"
    assert (first["state"], second["state"]) == ("cancelled", "ready")
    assert "every invariant holds" in known.ok("verify").out
    assert "was erased before" in known.ok("contact", "erase", "anna@example.com", "--yes").out
    assert "anna@example.com (erased)" in known.ok("contact", "show", "anna@example.com").out
    assert known.ok("contact", "show", "+4915112345678", "--json").json["erased"]
    assert "nobody is known" in known.refused("contact", "erase", "cleo@example.com", "--yes")


def test_nothing_of_them_is_left_in_the_file_while_somebody_else_has_it_open(
    known: CommandLine,
) -> None:
    """As a service does: then the log outlives the command."""
    file = known.folder / "paceline.db"
    service = sqlite3.connect(file)
    service.execute("SELECT count(*) FROM deliveries").fetchone()
    known.ok("contact", "erase", "anna@example.com", "--yes")
    assert (known.folder / "paceline.db-wal").exists()
    for path in known.folder.glob("paceline.db*"):
        content = path.read_bytes().lower()
        assert b"anna" not in content and b"15112345678" not in content, path
    service.execute("BEGIN")
    service.execute("SELECT count(*) FROM deliveries").fetchone()
    known.ok("suppress", "add", "bob@example.com")
    assert "somebody was reading" in known.ok("contact", "erase", "bob@example.com", "--yes").out
    service.close()


def test_a_list_that_still_names_them_does_not_bring_them_back(known: CommandLine) -> None:
    known.ok("contact", "erase", "anna@example.com", "--yes")
    whom = 'targets = [{ address = "Anna@example.com", first_name = "Anna" }]'
    (row,) = launched(known, "again", whom)
    assert row["target"].startswith("erased:"), "and she is not named anew"
    verdict = known.ok("why", row["id"], "--json").json["verdict"]
    assert (verdict["kind"], verdict["gate"]) == ("refuse", "suppression")
    known.ok("send", "team", "+49 151 12345678", "--text", "hi")
    assert "15112345678" not in everything(known)


def test_whoever_was_erased_stays_out_until_they_sign_up_again(known: CommandLine) -> None:
    known.ok("contact", "erase", "anna@example.com", "--yes")
    said = known.ok("audience", "import", "people.csv", "--opt-in", "form").out
    assert "line 2: was erased. If they signed up again, say so with --again" in said
    assert "line 2: was erased" in known.ok("audience", "import", "people.csv", "--again").out
    back = known.ok("audience", "import", "people.csv", "--again", "--opt-in", "new form", "--json")
    assert (back.json["new"], back.json["changed"], back.json["rejected"]) == (0, 1, 0)
    shown = known.ok("contact", "show", "anna@example.com").out
    assert "opt-in: new form" in shown and "never written to" not in shown
    (row,) = launched(
        known, "again", 'targets = [{ address = "anna@example.com", first_name = "A" }]'
    )
    assert known.ok("why", row["id"], "--json").json["verdict"]["kind"] != "refuse"


def test_an_opt_out_outlives_the_person(known: CommandLine) -> None:
    known.ok("suppress", "add", "anna@example.com", "--reason", "left for good")
    known.ok("contact", "erase", "anna@example.com", "--yes")
    reasons = {row["reason"] for row in known.ok("suppress", "list", "--json").json}
    assert reasons == {"left for good", "contact was erased"}
    said = known.ok("audience", "import", "people.csv", "--again", "--opt-in", "form").out
    assert "line 2: was erased, and had asked before not to be written to" in said
    assert "was erased. If they signed up again" in known.refused(
        "suppress", "remove", "anna@example.com"
    )
    assert "already suppressed" in known.ok("suppress", "add", "anna@example.com").out
    assert "anna@example.com" not in everything(known)


def test_somebody_who_was_only_ever_a_target_can_be_erased(accounts: CommandLine) -> None:
    launched(accounts, "once", 'targets = [{ address = "zoe@example.com", first_name = "Zoe" }]')
    accounts.ok("contact", "erase", "Zoe@example.com", "--yes")
    assert "zoe" not in everything(accounts).lower()
    assert "every invariant holds" in accounts.ok("verify").out


def test_an_audience_goes_out_to_whom_it_can_reach(accounts: CommandLine) -> None:
    accounts.write("people.csv", PEOPLE + ",+4915112345679,Cleo\n")
    accounts.ok("audience", "import", "people.csv")
    accounts.write(
        "c.toml",
        'action = "email"\n' + CAMPAIGN.format(name="c", whom='audience = { name = "people" }'),
    )
    created = accounts.ok("campaign", "create", "-f", "c.toml").out
    assert "2 deliveries on team" in created
    assert "1 person of the audience cannot be reached:\n" in created
    assert "  Cleo has no e-mail address\n" in created
    settings = accounts.ok("campaign", "status", "c", "--json").json["settings"]
    assert (settings["audience"], settings["audience_revision"]) == ("people", 1)
    assert [row["target"] for row in exported(accounts, "c")] == [
        "anna@example.com",
        "bob@example.com",
    ]
    plan = accounts("plan", "c.toml")
    assert plan.code == 0, plan.err


@pytest.mark.parametrize(
    ("audience", "said"),
    [
        ('"poeple"', "audience: there is neither a file 'poeple' nor an audience of that name"),
        ('{ name = "poeple" }', "nor an audience of that name"),
        ('{ file = "poeple" }', "audience: no such file 'poeple'"),
        ('{ name = "a", file = "b" }', "audience: must say either { name = … } or { file = … }"),
        ('"none.csv"', "audience: no such file 'none.csv'"),
        ("7", "audience: must name a CSV file or an audience"),
    ],
)
def test_an_audience_that_cannot_be(accounts: CommandLine, audience: str, said: str) -> None:
    accounts.write("c.toml", CAMPAIGN.format(name="c", whom=f"audience = {audience}"))
    assert said in accounts.refused("campaign", "create", "-f", "c.toml")
