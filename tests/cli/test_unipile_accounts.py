"""Accounts at Unipile from the command line: the key is typed once and never shown again."""

import pytest

from paceline.cli.shapes import MASK, options
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
    """A masked value is for the eyes only: what is stored is the key itself."""
    sales.ok("account", "set", "sales", "--option", "linkedin_api=recruiter")
    options_now = sales.ok("account", "show", "sales", "--json").json["options"]
    assert (options_now["api_key"], options_now["linkedin_api"]) == (MASK, "recruiter")
    assert KEY.encode() in (sales.folder / "paceline.db").read_bytes() or KEY.encode() in (
        (sales.folder / "paceline.db-wal").read_bytes()
    )


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
