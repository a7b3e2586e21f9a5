"""``paceline plan``: the answer for people and programs, what if, and that nothing is written."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from paceline.config import load
from paceline.core.instants import parse_instant
from paceline.store.database import open_store
from tests.cli.conftest import NOW, CommandLine

Write = Callable[..., str]

KEYS = {
    "campaign", "start", "finish", "messages", "accounts", "binding", "gates", "unreachable",
    "unreachable_by", "others", "assumes",
}  # fmt: skip
FIVE = tuple(f"mail-{number}" for number in range(1, 6))


@pytest.fixture
def write(paceline: CommandLine) -> Write:
    """Writes a campaign of one text to so many people."""

    def written(people: int, *accounts: str, name: str = "spring", more: str = "") -> str:
        rows = "\n".join(f"person-{number}@example.com,P{number}" for number in range(people))
        paceline.write("people.csv", f"address,first\n{rows}\n")
        named = ", ".join(f'"{account}"' for account in accounts)
        head = f'name = "{name}"\naccounts = [{named}]\naudience = "people.csv"\n{more}\n'
        return str(
            paceline.write(f"{name}.toml", f'{head}[[parts]]\ntext = "Hello {{{{ first }}}}"\n')
        )

    return written


@pytest.fixture
def five(paceline: CommandLine) -> CommandLine:
    for name in FIVE:
        paceline.ok("account", "add", name, "--provider", "sandbox", "--policy", "cold-email")
    return paceline


def add(paceline: CommandLine, name: str, *limits: str) -> None:
    options = [word for limit in limits for word in ("--set", limit)]
    paceline.ok("account", "add", name, "--provider", "sandbox", *options)


def digest(folder: Path) -> dict[str, str]:
    """Every file of the folder but what SQLite keeps beside its database, and their bytes."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if not path.name.endswith(("-wal", "-shm"))
    }


# ---------------------------------------------------------------------- the answer


def test_the_plan_as_json(five: CommandLine, write: Write) -> None:
    file = write(1_400, *FIVE, more='action = "email"')
    plan = five.ok("plan", file, "--json").json
    assert set(plan) == KEYS
    assert plan["messages"] == 1_400 and plan["unreachable"] == [] and plan["others"] == []
    assert plan["start"] == "2026-11-15T10:00:00Z"
    assert plan["finish"].startswith("2026-12-03T1") and plan["finish"].endswith("Z")
    assert [account["account"] for account in plan["accounts"]] == list(FIVE)
    first = plan["accounts"][0]
    assert set(first) == {"account", "zone", "first", "last", "messages", "per_day"}
    assert first["first"] == "2026-11-16T14:00:00Z", "nine o'clock in New York, on Monday"
    assert list(first["per_day"])[:6] == [f"2026-11-{day}" for day in (16, 17, 18, 19, 20, 23)]
    assert set(first["per_day"].values()) == {20} and sum(first["per_day"].values()) == 280
    assert plan["finish"] == max(account["last"] for account in plan["accounts"])
    words = "daily cap binds 93 % of messages: 20 a day on each of 5 accounts"
    assert plan["binding"] == {"gate": "daily", "share": 0.9286, "words": words}


def test_the_plan_for_people(five: CommandLine, write: Write) -> None:
    out = five.ok("plan", write(300, *FIVE, more='action = "email"')).out.splitlines()
    assert out[0] == "spring: 300 messages from 5 accounts"
    assert out[1].startswith("done 2026-11-18 1") and "America/New_York, 3 days from now" in out[1]
    assert out[2] == "daily cap binds 67 % of messages: 20 a day on each of 5 accounts"
    assert out[4].split() == ["ACCOUNT", "MESSAGES", "FIRST", "LAST", "MOST", "A", "DAY"]
    assert out[5].split()[:4] == ["mail-1", "60", "2026-11-16", "09:00"]
    days = [line for line in out if line.startswith(("Mon ", "Tue ", "Wed "))]
    assert [line.split()[1] for line in days] == ["2026-11-16", "2026-11-17", "2026-11-18"]
    assert all(line.endswith("█ 100") for line in days)
    assert out[-1] == "assuming that every call takes no time and none fails; nothing was written"


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_the_chart_fits_the_screen_and_keeps_the_weekends(
    columns: int, five: CommandLine, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = five.ok("plan", write(1_000, *FIVE, more='action = "email"')).out.splitlines()
    days = [line for line in out if line[4:8] == "2026"]
    assert len(days) == 12 and max(map(len, days)) <= columns
    assert [line.split()[0] for line in days if not line.endswith("100")] == ["Sat", "Sun"]


@pytest.mark.parametrize(
    ("people", "first", "rows", "last"),
    [
        (800, "Mon 2026-11-16", 54, "Fri 2027-01-08"),
        (1_300, "week of 2026-11-16", 13, "week of 2027-02-08"),
        (6_300, "2026-11", 15, "2028-01"),
    ],
)
def test_a_long_chart_counts_weeks_and_a_longer_one_months(
    people: int, first: str, rows: int, last: str, five: CommandLine, write: Write
) -> None:
    out = five.ok("plan", write(people, "mail-1", more='action = "email"')).out.splitlines()
    begin = next(number for number, line in enumerate(out) if line.startswith(first))
    assert out[begin + rows - 1].startswith(last) and out[begin + rows] == ""


def test_a_single_day_needs_no_chart_and_an_unlimited_account_is_told_so(
    paceline: CommandLine, write: Write
) -> None:
    add(paceline, "shop")
    out = paceline.ok("plan", write(10, "shop")).out
    assert "nothing binds: all may go at once" in out
    assert "█" not in out and "done 2026-11-15 10:00 UTC, 0s from now" in out


@pytest.mark.parametrize(
    ("limits", "name", "lasts"),
    [
        (("spacing=5s", "batch=50 then 60s"), "d-conservative", "1h42m"),
        (("spacing=3s", "batch=75 then 30s"), "d-optimised", "56m"),
    ],
)
def test_the_examples_of_document_d(
    limits: tuple[str, ...], name: str, lasts: str, paceline: CommandLine
) -> None:
    add(paceline, "careful" if name == "d-conservative" else "swift", *limits)
    examples = Path(__file__).parents[2] / "examples"
    out = paceline.ok("plan", str(examples / f"{name}.toml")).out
    assert f"{name}: 1000 messages from 1 account" in out
    assert f", {lasts} from now" in out


def test_an_assumed_latency_is_told(paceline: CommandLine, write: Write) -> None:
    add(paceline, "shop")
    out = paceline.ok("plan", write(10, "shop"), "--latency", "2s").out
    assert "18s from now" in out and "every call takes 2s" in out


# ---------------------------------------------------------------------- what is in the way


def test_who_cannot_be_reached_is_named_with_the_reason(
    paceline: CommandLine, write: Write
) -> None:
    add(paceline, "shop", "spacing=10m")
    store = open_store(load().database, clock=paceline.clock.now)
    with store.write() as tx:
        tx.suppressions.add("person-1@example.com", "asked for it", "test", NOW)
    store.close()
    plan = paceline.ok("plan", write(9, "shop", more='expire_after = "1h"'), "--json").json
    assert plan["messages"] == 6
    found = {one["target"]: one["why"] for one in plan["unreachable"]}
    assert found["person-1@example.com"] == "recipient is suppressed"
    assert found["person-7@example.com"] == found["person-8@example.com"]
    assert plan["unreachable_by"]["recipient is suppressed"] == 1
    out = paceline.ok("plan", write(9, "shop", more='expire_after = "1h"')).out
    assert "3 targets not reachable:" in out
    assert "  1: recipient is suppressed (person-1@example.com)" in out


def test_people_of_an_audience_without_an_address_are_named(paceline: CommandLine) -> None:
    add(paceline, "shop", "spacing=10m")
    rows = "email,name\nanna@example.com,Anna\nbob@example.com,Bob\n"
    paceline.write("people.csv", rows)
    paceline.ok("audience", "import", "people.csv", "--name", "news")
    paceline.write("phones.csv", "phone,name\n+33612345678,Cleo\n")
    paceline.ok("audience", "import", "phones.csv", "--name", "news")
    head = 'name = "spring"\naccounts = ["shop"]\naudience = "news"\naction = "email"\n'
    file = paceline.write("spring.toml", f'{head}[[parts]]\ntext = "Hello {{{{ name }}}}"\n')
    plan = paceline.ok("plan", str(file), "--json").json
    assert plan["messages"] == 2
    assert [(one["target"], one["gate"]) for one in plan["unreachable"]] == [("Cleo", "address")]
    assert "1 target not reachable:" in paceline.ok("plan", str(file)).out


def test_an_account_out_of_service_makes_a_plan_of_nothing(
    paceline: CommandLine, write: Write
) -> None:
    add(paceline, "shop")
    paceline.ok("account", "pause", "shop")
    plan = paceline.ok("plan", write(3, "shop"), "--json").json
    assert plan["finish"] is None and plan["messages"] == 0 and plan["binding"] is None
    out = paceline.ok("plan", write(3, "shop")).out
    assert out.startswith("spring: nothing can be sent from 1 account\n")
    assert "3: account is paused: paused by an operator" in out


def test_other_campaigns_count_and_are_told_of_when_they_move(
    paceline: CommandLine, write: Write
) -> None:
    add(paceline, "shop", "spacing=1m")
    paceline.ok("campaign", "create", "-f", write(60, "shop", name="autumn"), "--launch")
    plan = paceline.ok("plan", write(60, "shop"), "--json").json
    assert plan["finish"] == "2026-11-15T11:59:00Z", "in turns with the other"
    (moved,) = plan["others"]
    assert moved == {
        "campaign": "autumn",
        "from": "2026-11-15T10:59:00Z",
        "to": "2026-11-15T11:58:00Z",
    }
    out = paceline.ok("plan", write(60, "shop")).out
    assert "campaign autumn is done 2026-11-15 11:58 UTC on these accounts, instead of" in out
    high = paceline.ok("plan", write(60, "shop", more="priority = 5"), "--json").json
    assert high["finish"] == "2026-11-15T10:59:00Z"


# ---------------------------------------------------------------------- what if


def test_what_if_there_were_more_accounts(five: CommandLine, write: Write) -> None:
    file = write(200, "mail-1", more='action = "email"')
    alone = five.ok("plan", file, "--json").json
    more = ("--add-account", "mail-2", "--add-account", "new=cold-email")
    three = five.ok("plan", file, *more, "--json").json
    assert [account["account"] for account in three["accounts"]] == ["mail-1", "mail-2", "new"]
    assert [account["messages"] for account in three["accounts"]] == [67, 67, 66]
    assert alone["finish"][:10] == "2026-11-27" and three["finish"][:10] == "2026-11-19"


def test_what_if_the_rate_or_the_hours_were_others(paceline: CommandLine, write: Write) -> None:
    add(paceline, "shop", "rate=20/min", "hours=Mon-Sun 09:00-12:00 Europe/Paris")
    file = write(60, "shop")

    def finish(*words: str) -> str:
        return str(paceline.ok("plan", file, *words, "--json").json["finish"])

    assert finish() == "2026-11-15T10:02:57Z"
    assert finish("--rate", "60/min") == "2026-11-15T10:00:59Z"
    assert finish("--hours", "Mon-Fri 09:00-12:00") == "2026-11-16T08:02:57Z", "still in Paris"
    assert finish("--hours", "Mon-Fri 09:00-12:00 UTC") == "2026-11-16T09:02:57Z"
    assert finish("--rate", "off") == "2026-11-15T10:00:00Z"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--rate", "fast"), "--rate: "),
        (("--hours", "always"), "--hours: "),
        (("--latency", "soon"), "--latency: "),
        (("--add-account", "=x"), "--add-account: '=x' is not NAME or NAME=POLICY"),
        (("--add-account", "a", "--add-account", "a"), "--add-account: a is named twice"),
        (("--add-account", "shop=smtp"), "--add-account: account shop exists, with limits"),
        (("--add-account", "new=smpt"), ": --add-account: unknown policy 'smpt', did you mean"),
        (("--add-account", "shpo"), ": --add-account: no account named 'shpo', did you mean"),
        (("--add-account", "other"), "named 'other'. One that does not exist yet needs a policy:"),
        (("--add-account", "mail"), "--add-account: unipile cannot send action 'message' from mai"),
        (("--hours", "Mon-Fri 09:00-17:00 Mars"), ": --hours: unknown time zone 'Mars'"),
        (("--hours", "09:00-17:00 Europe/Pari"), "--hours: unknown time zone 'Europe/Pari', did"),
    ],
)
def test_what_cannot_be_tried_is_refused(
    words: tuple[str, ...], complaint: str, paceline: CommandLine, write: Write
) -> None:
    add(paceline, "shop")
    paceline.ok("account", "add", "mail", "--provider", "unipile", "--option", "kind=email",
                "--option", "dsn=api1.unipile.com:13111", "--option", "account_id=a", "--option",
                "api_key=k")  # fmt: skip
    said = paceline.refused("plan", write(3, "shop"), *words)
    assert complaint in said
    assert "spring.toml" not in said, "it is not the file that is wrong"


def test_a_fixed_campaign_takes_no_second_account(five: CommandLine, write: Write) -> None:
    file = write(3, "mail-1", more='assignment = "fixed"\naction = "email"')
    complaint = five.refused("plan", file, "--add-account", "mail-2")
    assert "assignment: 'fixed' takes a single account" in complaint


# ---------------------------------------------------------------------- before anything else


def test_a_missing_variable_is_told_with_the_contact_before_anything_else(
    paceline: CommandLine,
) -> None:
    """Neither the account nor a database exists, and still this is what is wrong first."""
    paceline.write("people.csv", "address\nanna@example.com\n")
    text = 'name = "spring"\naccounts = ["nobody"]\naudience = "people.csv"\n'
    file = paceline.write("spring.toml", f'{text}[[parts]]\ntext = "Hello {{{{ first }}}}"\n')
    complaint = paceline.refused("plan", str(file))
    assert "target anna@example.com has no value for first" in complaint
    assert not (paceline.folder / "paceline.db").exists()


def test_without_a_database_the_missing_account_is_named_with_two_ways_out(
    paceline: CommandLine, write: Write
) -> None:
    file = write(3, "shop")
    complaint = paceline.refused("plan", file)
    assert "accounts: no account named 'shop'" in complaint
    assert "paceline account add shop --provider" in complaint
    assert "--add-account shop=POLICY" in complaint
    plan = paceline.ok("plan", file, "--add-account", "shop=campaign-whatsapp", "--json").json
    assert plan["messages"] == 3 and plan["finish"] == "2026-11-15T10:00:06Z"
    assert not (paceline.folder / "paceline.db").exists()


def test_a_campaign_that_runs_already_would_be_counted_twice(
    paceline: CommandLine, write: Write
) -> None:
    add(paceline, "shop", "spacing=1m")
    file = write(3, "shop")
    paceline.ok("campaign", "create", "-f", file)
    paceline.ok("plan", file)
    paceline.ok("campaign", "launch", "spring")
    complaint = paceline.refused("plan", file)
    assert "campaign spring is running already" in complaint
    assert "paceline campaign status spring" in complaint


def test_nothing_is_written(five: CommandLine, write: Write) -> None:
    file = write(300, *FIVE, more='action = "email"')
    before, rows = digest(five.folder), five.counts()
    five.ok("plan", file, "--add-account", "new=cold-email")
    assert digest(five.folder) == before and five.counts() == rows


def test_the_same_plan_twice_is_the_same(five: CommandLine, write: Write) -> None:
    file = write(300, *FIVE, more='action = "email"')
    assert five.ok("plan", file, "--json").json == five.ok("plan", file, "--json").json


def test_a_window_that_ends_with_its_day_leaves_out_the_rest(
    paceline: CommandLine, write: Write
) -> None:
    add(paceline, "shop", "spacing=10m")
    more = 'window = "09:00-12:00 UTC"\nat_close = "skip"'
    plan = paceline.ok("plan", write(20, "shop", more=more), "--json").json
    assert plan["messages"] == 12 and plan["finish"] == "2026-11-15T11:50:00Z"
    assert plan["unreachable_by"] == {"delivery window closed": 8}
    assert parse_instant(plan["finish"]) < parse_instant("2026-11-15T12:00:00Z")
