"""``paceline suppress``: whoever asked not to be written to is found however they are spelled."""

import csv
from io import StringIO

import pytest

from tests.cli.conftest import CommandLine


def listed(paceline: CommandLine) -> dict[str, str]:
    return {row["address"]: row["reason"] for row in paceline.ok("suppress", "list", "--json").json}


def test_adding_and_removing(accounts: CommandLine) -> None:
    assert accounts.ok("suppress", "list").out == "nobody is suppressed\n"
    said = accounts.ok("suppress", "add", "Anna@Example.COM", "--reason", "unsubscribed").out
    assert said == "anna@example.com is suppressed\n"
    again = accounts.ok("suppress", "add", "anna@example.com", "--reason", "again").out
    assert again == "anna@example.com is already suppressed\n"
    accounts.ok("suppress", "add", "+49 151 12345678")
    assert listed(accounts) == {
        "anna@example.com": "unsubscribed",
        "+4915112345678": "asked not to be written to",
    }
    table = accounts.ok("suppress", "list").out
    assert "anna@example.com  unsubscribed" in table and "operator" in table
    assert "may be written to again" in accounts.ok("suppress", "remove", "ANNA@example.com").out
    assert "was not suppressed" in accounts.ok("suppress", "remove", "ANNA@example.com").out
    assert list(listed(accounts)) == ["+4915112345678"]


def test_a_whole_domain(accounts: CommandLine) -> None:
    assert accounts.ok("suppress", "add", "@Example.COM").out == "@example.com is suppressed\n"
    assert list(listed(accounts)) == ["@example.com"]
    assert "@example.com" in accounts.ok("contact", "show", "anna@example.com").out
    assert "may be written to again" in accounts.ok("suppress", "remove", "@EXAMPLE.com").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "@example"), "'@example' is no domain. Write it like @example.com"),
        (("add", "anna", "--kind", "email"), "'anna' is not an e-mail address"),
        (("add", "anna", "--kind", "mail"), "'mail' is no kind of address"),
        (("add", "a\nb"), "the address has a control character in it"),
        (("add", " "), "the address is empty"),
        (("add", "anna@example"), "'anna@example' is not an e-mail address"),
        (("add", "Anna Smith"), "'Anna Smith' is no address: it has a space in it. If a provider"),
        (("add", "+49 151"), "'+49 151' is a phone number that nobody can have"),
        (
            ("add", "anna.example.com"),
            "'anna.example.com' is no address: neither an e-mail address",
        ),
        (("add", "annaexample"), "add --kind other; --kind linkedin is for their name at LinkedIn"),
        (("add", "not-an-address"), "'not-an-address' is no address"),
        (("add", "12345678"), "'12345678' is no address"),
        (("add", "*@Example.com"), "'*@example.com' is nobody's address: a * stands for nothing"),
        (("add", "*@example.com"), "Write @example.com, which stands for everybody there"),
        (("add", "anna*@example.com", "--kind", "email"), "Write @example.com, which stands"),
        (("import", "none.csv"), "no such file 'none.csv'"),
    ],
)
def test_what_cannot_be(accounts: CommandLine, words: tuple[str, ...], said: str) -> None:
    assert said in accounts.refused("suppress", *words)


@pytest.mark.parametrize(
    ("words", "spelled"),
    [
        (("4915112345678@s.whatsapp.net",), "+4915112345678"),
        (("4915112345678",), "+4915112345678"),
        (("12345-6789@g.us",), "12345-6789@g.us"),
        (("120363000000000000@newsletter",), "120363000000000000@newsletter"),
        (("123456789@lid",), "123456789@lid"),
        (("DE.1234567890",), "DE.1234567890"),
        (("https://www.linkedin.com/in/Anna-Example/",), "anna-example"),
        (("ACoAAABCDEFGHIJKLMNOPQRSTUV",), "ACoAAABCDEFGHIJKLMNOPQRSTUV"),
        (("annaexample", "--kind", "linkedin"), "annaexample"),
        (("annaexample", "--kind", "other"), "annaexample"),
        (("*@example.com", "--kind", "other"), "*@example.com"),
    ],
)
def test_whatever_somebody_can_be_reached_at(
    accounts: CommandLine, words: tuple[str, ...], spelled: str
) -> None:
    assert accounts.ok("suppress", "add", *words).out == f"{spelled} is suppressed\n"
    # What is printed can be imported, whatever had to be said of it.
    accounts.ok("suppress", "export", "out.csv")
    assert accounts.ok("suppress", "remove", spelled).out.endswith("may be written to again\n")
    assert accounts.ok("suppress", "import", "out.csv", "--json").json["new"] == 1
    assert [*listed(accounts)] == [spelled]


@pytest.mark.parametrize("heading", ["address", "email"])
@pytest.mark.parametrize("cell", ["anna.example.com", "annaexample", "*@example.com"])
def test_what_protects_nobody_is_refused_in_files_too(
    accounts: CommandLine, heading: str, cell: str
) -> None:
    accounts.write("no.csv", f"{heading},kind\n{cell},of our own\n")
    answer = accounts("suppress", "import", "no.csv")
    assert answer.code == 1 and "1 row was not taken" in answer.out
    assert listed(accounts) == {}


def test_the_spelling_of_a_campaign_does_not_matter(accounts: CommandLine) -> None:
    accounts.ok("suppress", "add", "anna@example.com")
    accounts.ok("suppress", "add", "+4915112345678")
    accounts.write(
        "c.toml",
        'name = "c"\naccounts = "team"\n'
        'targets = ["Anna@EXAMPLE.com", "4915112345678@s.whatsapp.net", '
        '"anna@example.com", "Bob"]\n'
        '[[parts]]\ntext = "hi"\n',
    )
    created = accounts.ok("campaign", "create", "-f", "c.toml", "--launch").out
    assert "3 deliveries on team (1 named twice)" in created
    exported = list(csv.DictReader(StringIO(accounts.ok("campaign", "export", "c").out)))
    assert [row["target"] for row in exported] == ["anna@example.com", "+4915112345678", "Bob"]
    for row in exported[:2]:
        verdict = accounts.ok("why", row["id"], "--json").json["verdict"]
        assert (verdict["kind"], verdict["gate"]) == ("refuse", "suppression")
    assert accounts.ok("why", exported[2]["id"], "--json").json["verdict"]["kind"] == "go"


def test_lists_go_out_and_come_in(accounts: CommandLine) -> None:
    accounts.write(
        "no.csv",
        "Email;Mobile;reason\nAnna@example.com;;left\nbob@example.com;0151 12345678;\n;;\nx;;\n",
    )
    answer = accounts.ok("suppress", "import", "no.csv", "--region", "DE", "--reason", "listed")
    assert answer.out.splitlines() == [
        "3 addresses newly suppressed",
        "1 row was not taken:",
        "  line 5: 'x' is not an e-mail address: an email address must have an @-sign",
    ]
    before = listed(accounts)
    assert before == {
        "+4915112345678": "listed",
        "anna@example.com": "left",
        "bob@example.com": "listed",
    }
    accounts.ok("suppress", "export", "out.csv")
    assert accounts.ok("suppress", "import", "out.csv", "--json").json["new"] == 0
    for address in before:
        accounts.ok("suppress", "remove", address)
    assert accounts.ok("suppress", "import", "out.csv", "--json").json["new"] == 3
    assert listed(accounts) == before, "what is printed can be imported"
    assert accounts.ok("suppress", "export").out.startswith("address,reason,source,at,kind\n+4915")


def test_what_is_no_address_is_told_by_line(accounts: CommandLine) -> None:
    rows = "anna@example\nMain Street 5\n+49 151\nBob\nerased:0123\nAnna@x.de\n"
    accounts.write("no.csv", f"address\n{rows}")
    answer = accounts.ok("suppress", "import", "no.csv", "--rejects", "bad.csv")
    assert answer.out.splitlines()[:2] == [
        "2 addresses newly suppressed",
        "4 rows were not taken:",
    ]
    assert "line 2: 'anna@example' is not an e-mail address" in answer.out
    assert "line 3: 'Main Street 5' is no address: it has a space in it" in answer.out
    assert "line 4: '+49 151' is a phone number that nobody can have" in answer.out
    assert "line 5: 'Bob' is no address" in answer.out
    assert [*listed(accounts)] == ["anna@x.de", "erased:0123"]
    taken = accounts.ok("suppress", "import", "bad.csv", "--map", "other=address").out
    assert taken == "4 addresses newly suppressed\n", "what a provider calls somebody so"
    assert accounts.ok("suppress", "add", "a@b", "--kind", "other").out == "a@b is suppressed\n"
    assert "may be written to again" in accounts.ok("suppress", "remove", "a@b").out


def test_columns_can_be_named(accounts: CommandLine) -> None:
    accounts.write("no.csv", "Kontakt;Grund\n0151 12345678;left\n")
    said = accounts.refused("suppress", "import", "no.csv")
    assert "no column is an address; there are: Kontakt, Grund. Say which is what" in said
    words = ("--map", "phone=Kontakt", "--map", "reason=Grund", "--region", "DE")
    accounts.ok("suppress", "import", "no.csv", *words)
    assert listed(accounts) == {"+4915112345678": "left"}
    again = accounts.ok("suppress", "import", "no.csv", *words).out
    assert again == "0 addresses newly suppressed, 1 had been already\n"
    said = accounts.refused("suppress", "import", "no.csv", "--region", "Germany")
    assert said.startswith("paceline: --region: 'Germany' is no country")


def test_a_long_list(accounts: CommandLine) -> None:
    rows = "".join(f"p{n}@example.com\n" for n in range(5_000))
    accounts.write("no.csv", f"address\n{rows}")
    assert accounts.ok("suppress", "import", "no.csv").out == "5000 addresses newly suppressed\n"
    assert "and 4900 more; paceline suppress export" in accounts.ok("suppress", "list").out
    assert len(accounts.ok("suppress", "export").out.splitlines()) == 5_001
