"""Accounts at Unipile from the command line: the key is typed once and never shown again."""

import pytest

from paceline.app import open_app
from paceline.cli.shapes import MASK, options
from paceline.config import load
from tests.cli.conftest import CommandLine

KEY = "kEy+Of/tests=="
ADD = ("account", "add", "sales", "--provider", "unipile", "--policy", "linkedin")
GIVEN = (
    "--option", "dsn=api1.unipile.com:13111", "--option", "account_id=Yk08c", "--option",
    "kind=linkedin",
)  # fmt: skip


@pytest.fixture
def sales(paceline: CommandLine) -> CommandLine:
    answer = paceline.ok(*ADD, *GIVEN, "--option", f"api_key={KEY}")
    assert answer.out == "account sales added (unipile, policy linkedin)\n"
    return paceline


def test_the_key_is_never_shown(sales: CommandLine) -> None:
    shown = sales.ok("account", "show", "sales", "--json")
    assert shown.json["options"]["api_key"] == MASK
    assert shown.json["options"]["dsn"] == "https://api1.unipile.com:13111"
    answers = [
        shown,
        sales.ok("account", "show", "sales"),
        sales.ok("account", "list"),
        sales.ok("account", "list", "--json"),
        sales.ok("account", "set", "sales", "--option", "track_opens=true"),
        sales("account", "set", "sales", "--option", "kind=fax"),
        sales("account", "set", "sales", "--option", "api_key=a b"),
        sales.ok("why", "sales"),
    ]
    for answer in answers:
        assert KEY not in answer.out + answer.err
        assert "a b" not in answer.out + answer.err


def test_the_key_stays_when_something_else_is_changed(sales: CommandLine) -> None:
    """A masked value is for the eyes only: what is stored is the key itself, sealed."""
    sales.ok("account", "set", "sales", "--option", "linkedin_api=recruiter")
    options_now = sales.ok("account", "show", "sales", "--json").json["options"]
    assert (options_now["api_key"], options_now["linkedin_api"]) == (MASK, "recruiter")
    with open_app(load(database=str(sales.folder / "paceline.db"))) as house:
        with house.store.read() as tx:
            account = tx.accounts.find("sales")
        assert account is not None and account.settings["api_key"].startswith("sealed:")
        assert house.providers.unsealed(account).settings["api_key"] == KEY


def test_only_what_was_given_is_masked() -> None:
    given = {"api_key": KEY, "token": "", "kind": "email"}
    assert options(given, {"api_key", "token"}) == given | {"api_key": MASK}


def test_what_is_missing_is_asked_for(paceline: CommandLine) -> None:
    complaint = paceline.refused(*ADD, *GIVEN)
    assert "api_key: unipile needs this setting. Give it with --option api_key=…" in complaint


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--action", "email", "--text", "x"), "unipile cannot send action 'email' from sales"),
        (("--action", "connection_request", "--text", "x" * 301), "301 characters"),
    ],
)
def test_what_the_account_cannot_send_is_refused(
    sales: CommandLine, words: tuple[str, ...], complaint: str
) -> None:
    assert complaint in sales.refused("send", "sales", "ACoAA-anna", *words)


# ---------------------------------------------------------------------- to whom


def campaign(line: CommandLine, accounts: str, people: str, action: str = "message") -> str:
    line.write("people.csv", people)
    head = f'name = "spring"\naccounts = ["{accounts}"]\naction = "{action}"\n'
    return str(line.write("c.toml", f'{head}{WHOM}\n[[parts]]\ntext = "hi {{{{ name }}}}"\n'))


WHOM = 'audience = "people.csv"'


def test_who_cannot_be_reached_over_linkedin_is_told_before_the_launch(
    sales: CommandLine,
) -> None:
    people = "address,name\nanna@example.com,Anna\nbob-builder,Bob\n+4915112345678,Cleo\n"
    file = campaign(sales, "sales", people)
    plan = sales.ok("plan", file, "--json").json
    assert (plan["messages"], plan["unreachable"]) == (
        1,
        [
            {
                "target": "anna@example.com",
                "gate": "address",
                "why": "is an e-mail address, not a LinkedIn profile",
            },
            {
                "target": "+4915112345678",
                "gate": "address",
                "why": "is a phone number, not a LinkedIn profile",
            },
        ],
    )
    assert sales.ok("campaign", "create", "-f", file).out.splitlines()[:4] == [
        "campaign spring created: 1 delivery on sales",
        "2 people of the audience cannot be reached:",
        "  anna@example.com is an e-mail address, not a LinkedIn profile",
        "  +4915112345678 is a phone number, not a LinkedIn profile",
    ]


def test_a_file_with_nobody_to_reach_is_refused(sales: CommandLine) -> None:
    file = campaign(sales, "sales", "email,name\nanna@example.com,Anna\n,Bob\n")
    for words in (("plan", file), ("campaign", "create", "-f", file)):
        assert sales.refused(*words).endswith(
            "c.toml: audience: nobody in it can be reached: Anna has no LinkedIn profile, "
            "and 1 more"
        )
    assert sales.ok("campaign", "list", "--json").json == []


def test_each_channel_takes_its_own_column(sales: CommandLine) -> None:
    mail = ("--option", "dsn=api1.unipile.com:13111", "--option", "account_id=7a", "--option")
    sales.ok("account", "add", "mail", "--provider", "unipile", *mail, "kind=email", "--option",
             "api_key=k")  # fmt: skip
    people = "linkedin,email,name\nlinkedin.com/in/Anna,anna@example.com,Anna\n,b@example,Bob\n"
    for account, action, target, why in (
        ("sales", "connection_request", "anna", "has no LinkedIn profile"),
        ("mail", "email", "anna@example.com", "is not an e-mail address: the part after"),
    ):
        file = campaign(sales, account, people, action)
        plan = sales.ok("plan", file, "--json").json
        (lost,) = plan["unreachable"]
        assert (plan["messages"], lost["why"].startswith(why)) == (1, True), lost
        sales.write("c.toml", (sales.folder / "c.toml").read_text().replace("spring", account))
        sales.ok("campaign", "create", "-f", "c.toml")
        sent = sales.ok("campaign", "export", account, "--json").json
        assert sent["target"] == target


def test_a_single_message_goes_where_its_channel_leads(sales: CommandLine) -> None:
    said = sales.refused("send", "sales", "anna@example.com", "--text", "hi")
    assert said == (
        "paceline: target: anna@example.com is an e-mail address, not a LinkedIn profile"
    )
    sales.ok("send", "sales", "anna-muster", "--text", "hi")


def test_accounts_on_different_channels_share_no_campaign(sales: CommandLine) -> None:
    sales.ok("account", "add", "team", "--provider", "sandbox")
    file = campaign(sales, 'team", "sales', "address,name\nanna-muster,Anna\na@x.de,Bob\n")
    assert [one["target"] for one in sales.ok("plan", file, "--json").json["unreachable"]] == [
        "a@x.de"
    ], "what suits only one of them would go to the other, too"
