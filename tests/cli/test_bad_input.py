"""Bad input: one line that names file, key and reason; exit code 2; nothing half-written."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import CAMPAIGN, CommandLine

Spring = Callable[..., Path]

BAD_LIMITS = [
    ("spacng=5m", "x: unknown key 'spacng', did you mean 'spacing'?"),
    ("hours=Mon-Fri 18:00-09:00 UTC", "x: hours: "),
    ("hours=Mon-Fri 09:00-25:00 UTC", "x: hours: "),
    ("hours=Mon-Fri 09:00-18:00 Europe/Pari", "did you mean 'Europe/Paris'"),
    ("zone=Mars", "x: zone: unknown time zone 'Mars'"),
    ("rate=0/min", "x: rate: "),
    ("rate=-5/min", "x: rate: "),
    ("spacing=20m..5m", "x: spacing: "),
    ("daily.email=-1", "x: daily.email: "),
    ("daily.email=many", "x: daily.email: "),
    ("concurrency=0", "x: concurrency: 0 is not between 1 and 64"),
    ("retry=never", "x: retry: "),
    ("blackout=2026-12-25", "x: blackout: expected a list of dates"),
    ("rate=5", "x: rate: '5' is not a rate"),
    ("spacing=5", "x: spacing: '5' is not a duration"),
    ("window=Mon-Fri 09:00-18:00 UTC", "--set: a window belongs to a campaign. Set hours="),
]


@pytest.mark.parametrize(("limit", "complaint"), BAD_LIMITS)
def test_a_limit_that_cannot_be(paceline: CommandLine, limit: str, complaint: str) -> None:
    said = paceline.refused("account", "add", "x", "--provider", "sandbox", "--set", limit)
    assert complaint in said
    assert set(paceline.counts().values()) == {0}


@pytest.mark.parametrize("spacing", ["1s", "1s..5s", "3s..11s"])
def test_a_spacing_outside_its_bounds(paceline: CommandLine, spacing: str) -> None:
    words = ("--provider", "sandbox", "--policy", "campaign-whatsapp")
    said = paceline.refused("account", "add", "x", *words, "--set", f"spacing={spacing}")
    assert f"x: spacing: spacing {spacing} is outside adaptive bounds 2s..10s" in said
    assert set(paceline.counts().values()) == {0}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("x", "--provider", "sandbx"), "provider: there is no provider 'sandbx', did you mean"),
        (("x", "--provider", "sandbox", "--policy", "cold-mail"), "did you mean 'cold-email'?"),
        (("x", "--provider", "sandbox", "--option", "sed=1"), "sed: the sandbox has no such"),
        (("x", "--provider", "sandbox", "--set", "rate"), "--set: 'rate' is not key=value"),
        (("x/y", "--provider", "sandbox"), "name: 'x/y' cannot be an account's name"),
    ],
)
def test_an_account_that_cannot_be(
    paceline: CommandLine, words: tuple[str, ...], complaint: str
) -> None:
    assert complaint in paceline.refused("account", "add", *words)
    assert set(paceline.counts().values()) == {0}


def test_a_name_in_use(accounts: CommandLine) -> None:
    before = accounts.counts()
    said = accounts.refused("account", "add", "sales", "--provider", "sandbox")
    assert said == "paceline: name: an account named 'sales' exists already"
    assert accounts.counts() == before


def test_a_bad_change_changes_nothing(accounts: CommandLine) -> None:
    before = accounts.ok("account", "show", "sales", "--json").json
    words = ("--policy", "smtp", "--address", "other", "--set", "rate=0/s")
    accounts.refused("account", "set", "sales", *words)
    assert accounts.ok("account", "show", "sales", "--json").json == before


BAD_CAMPAIGNS = [
    (CAMPAIGN.replace("spring", "("), "name: a name cannot start with a bracket"),
    (CAMPAIGN.replace("spring", ""), "name: must not be empty"),
    (CAMPAIGN.replace("spring", "a/../b"), "name: a name cannot have a / or a \\ in it"),
    (CAMPAIGN.replace("spring", "a\\\\b"), "name: a name cannot have a / or a \\ in it"),
    (CAMPAIGN.replace("audience", "audiense"), "unknown key 'audiense', did you mean 'audience'?"),
    (CAMPAIGN.replace("people.csv", "crowd.csv"), "audience: no such file 'crowd.csv'"),
    (CAMPAIGN.replace('audience = "people.csv"', ""), "audience: is missing"),
    (CAMPAIGN.replace("poster.png", "flyer.png"), "parts[2].media: no such file 'flyer.png'"),
    (CAMPAIGN.replace("first_name", "last_name"), "audience: target anna@example.com has no value"),
    (CAMPAIGN.replace("{{ first_name }}", "{{ first_name"), "parts[1]: template: "),
    (CAMPAIGN.replace("{{ first_name }}", "{{ 1 // 0 }}"), "parts[1]: for target anna@example.com"),
    (CAMPAIGN.replace('"team"', '"teem"'), "accounts: no account named 'teem', did you mean"),
    (CAMPAIGN.replace('"team"', '"sales"'), "accounts: names an account twice"),
    (CAMPAIGN.replace("spring", "spring\n"), "is not valid TOML: Illegal character '\\n' (at line"),
    (CAMPAIGN.replace("text =", "txt ="), "unknown key 'parts[1].txt', did you mean 'text'?"),
    ('window = "Mon 25:00-26:00"\n' + CAMPAIGN, "window: "),
    ('zone = "Mars"\nwindow = "Mon 09:00-10:00"\n' + CAMPAIGN, "unknown time zone 'Mars'"),
    ('action = "telegram"\n' + CAMPAIGN, "action: sandbox cannot send action 'telegram'"),
    ('at_close = "skip"\n' + CAMPAIGN, "at_close: 'skip' needs a window that closes"),
    ('recipient_hours = "Mon-Fri 09:00-18:00"\n' + CAMPAIGN, "audience: target anna@example.com"),
    ('targets = ["a"]\n' + CAMPAIGN, "audience: give either an audience file or targets"),
]


@pytest.mark.parametrize(("campaign", "complaint"), BAD_CAMPAIGNS)
def test_a_campaign_that_cannot_be(
    accounts: CommandLine, spring: Spring, campaign: str, complaint: str
) -> None:
    before = accounts.counts()
    said = accounts.refused("campaign", "create", "-f", str(spring(campaign)), "--launch")
    assert said.startswith(f"paceline: {accounts.folder / 'spring.toml'}: ")
    assert complaint in said
    assert accounts.counts() == before, "nothing is half-written, not even the media"


INLINE = CAMPAIGN.replace('audience = "people.csv"', "targets = [WHOM]")
BAD_TARGETS = [
    ("", "targets: the audience is empty"),
    ("'anna@x.de'", "targets: target anna@x.de has no value for first_name"),
    ("{ address = 'a', first_name = 'A' }", "targets: target a has no zone, which recipient_hours"),
    ("{ address = 'a', first_name = 'A', zone = 'Mars' }", "targets: target a: unknown time zone"),
    ("{ address = 'a', first_name = '' }", "targets: row 1: first_name is empty"),
    ("{ first_name = 'A' }", "targets: row 1: nothing in it is an address"),
    ("{ address = ' ', first_name = 'A' }", "targets: row 1 has no address"),
]


@pytest.mark.parametrize(("whom", "complaint"), BAD_TARGETS)
def test_targets_that_cannot_be(
    accounts: CommandLine, spring: Spring, whom: str, complaint: str
) -> None:
    campaign = INLINE.replace("WHOM", whom)
    file = str(spring(f'recipient_hours = "09:00-18:00"\n{campaign}'))
    for words in (("plan", file), ("campaign", "create", "-f", file)):
        said = accounts.refused(*words)
        assert f"spring.toml: {complaint}" in said
        assert "audience:" not in said, "there is no such key in it"


def test_a_campaign_name_in_use(accounts: CommandLine, spring: Spring) -> None:
    accounts.ok("campaign", "create", "-f", str(spring()))
    before = accounts.counts()
    said = accounts.refused("campaign", "create", "-f", str(spring()))
    assert said.endswith("spring.toml: name: a campaign named 'spring' exists already")
    assert accounts.counts() == before


BAD_AUDIENCES = [
    ("address,first_name\n", "audience: the audience is empty"),
    ("", "people.csv: the file is empty. Its first line names the columns"),
    ("who,first_name\na,b\n", "no column is an address; there are: who, first_name. Say which"),
    ("address,first_name\na,b\nc\n", "people.csv: line 3 has 1 column, the header has 2"),
    ("address,first_name\na,b,c\n", "people.csv: line 2 has 3 columns, the header has 2"),
    ("address,first_name\n ,b\n", "people.csv: line 2 has no address"),
    ("address,address\na,b\n", "names the column 'address' twice"),
    ("address,,first_name\na,b,c\n", "a column of the first line has no name"),
    ("address,\na,b\n", "people.csv: line 2 has 2 columns, the header has 1"),
    ('address,first_name\na,"b\n', "people.csv: line 2: a quote is opened here that is never"),
    ("address,first_name\na,b\nc\0d,e\n", "people.csv: line 3: the address has a control char"),
    ('address,first_name\na,b\n"c\nd",e\n', "people.csv: line 3: the address has a control char"),
    ("address,first_name\na\u2028b,b\n", "the address has a control character in it (U+2028)"),
    ("address,first_name\na,b\nc,\nd,e\n", "people.csv: line 3: first_name is empty. Fill it in"),
    ("address,first_name\na, \n", "people.csv: line 2: first_name is empty"),
    (b"address,first_name\na,b\nc,\xff\n", "people.csv: is not a text in UTF-8 (line 3)"),
]


@pytest.mark.parametrize(("people", "complaint"), BAD_AUDIENCES)
def test_an_audience_that_cannot_be(
    accounts: CommandLine, spring: Spring, people: str | bytes, complaint: str
) -> None:
    before = accounts.counts()
    said = accounts.refused("campaign", "create", "-f", str(spring(people=people)))
    assert "spring.toml: audience: " in said
    assert complaint in said
    assert accounts.counts() == before


def test_a_campaign_file_that_is_not_there(paceline: CommandLine) -> None:
    said = paceline.refused("campaign", "create", "-f", "none.toml")
    assert said == "paceline: none.toml: no such file 'none.toml'"
    assert "cannot read" in paceline.refused("campaign", "create", "-f", ".")


def test_a_bad_policy_of_the_file_names_the_file(paceline: CommandLine) -> None:
    paceline.write("paceline.toml", '[policy.slow]\nspacng = "5m"\n')
    said = paceline.refused("account", "list")
    assert said == (
        "paceline: paceline.toml: policy.slow: unknown key 'spacng', did you mean 'spacing'?"
    )
    paceline.write("paceline.toml", '[policy.smtp]\nrate = "5/s"\n')
    assert "policy.smtp: a preset has this name already" in paceline.refused("account", "list")


def test_a_number_no_delivery_can_have(paceline: CommandLine) -> None:
    for number in ("9" * 20, "0", "-1", "²", "1.5"):
        said = paceline.refused("unknown", "resolve", "--sent", "--", number)
        assert said == f"paceline: '{number}' is not a delivery's number"


@pytest.mark.parametrize("about", ["9" * 23, "²", "٣"])
def test_why_of_a_number_no_delivery_can_have(accounts: CommandLine, about: str) -> None:
    assert accounts.refused("why", about) == f"paceline: no account named '{about}'"


def test_a_file_where_the_demo_wants_a_folder(paceline: CommandLine) -> None:
    (paceline.folder / "taken").write_text("mine")
    said = paceline.refused("demo", "--keep", "taken")
    assert said.startswith("paceline: Invalid value for '--keep'")
    assert (paceline.folder / "taken").read_text() == "mine"
