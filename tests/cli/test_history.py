"""``paceline history import``: today's caps are right from the first day."""

import pytest

from tests.cli.conftest import CommandLine

PAST = (
    "at,target\n"
    "2026-11-15T09:00:00Z,Anna@example.com\n"
    "2026-11-15T10:30:00+01:00,\n"
    "2026-11-15T10:30:00+01:00,\n"
    "2026-11-15T10:00:01Z,\n"
    "2026-11-15T09:00,\n"
    "yesterday,\n"
    ",bob@example.com\n"
    "2026-11-14T09:00:00Z,anna@example.com\n"
)


def used_today(paceline: CommandLine) -> dict[str, int]:
    used: dict[str, int] = paceline.ok("account", "show", "sales", "--json").json["used"]["day"]
    return used


def test_what_was_sent_before_counts_today(accounts: CommandLine) -> None:
    accounts.write("sent.csv", PAST)
    words = ("history", "import", "sent.csv", "--account", "sales", "--action", "email")
    assert accounts.ok(*words).out.splitlines() == [
        "4 messages counted",
        "4 rows were not taken:",
        "  line 5: 2026-11-15T10:00:01Z is in the future",
        "  line 6: '2026-11-15T09:00' has no zone. Write it like 2026-11-15T09:00:00+01:00",
        "  line 7: 'yesterday' is not a date and time. Write it like 2026-11-15T09:00:00Z",
        "  line 8: has no instant in the column 'at'",
    ]
    assert used_today(accounts) == {"email": 3}, "one of the four was yesterday"
    assert "0 messages counted, 4 were known already" in accounts.ok(*words).out
    assert used_today(accounts) == {"email": 3}
    assert "every invariant holds" in accounts.ok("verify").out
    assert accounts.ok("campaign", "list", "--json").json == [], "it is nobody's campaign"


def test_the_last_one_keeps_its_distance(accounts: CommandLine) -> None:
    """Noon of a working day; the last message left two minutes ago, by another program."""
    accounts.clock.now_at += 27 * 3_600_000_000 + 20 * 60_000_000
    accounts.write("sent.csv", "at\n2026-11-16T13:18:00Z\n")
    accounts.ok("account", "set", "sales", "--set", 'hours="Mon-Fri 08:00-18:00 America/New_York"')
    accounts.ok("send", "sales", "anna@example.com", "--action", "email", "--text", "hi")
    assert accounts.ok("why", "sales", "--json").json["verdict"]["kind"] == "go"
    accounts.ok("history", "import", "sent.csv", "--account", "sales", "--action", "email")
    verdict = accounts.ok("why", "sales", "--json").json["verdict"]
    assert (verdict["kind"], verdict["gate"]) == ("wait", "spacing")


def test_a_person_who_was_written_to_elsewhere_waits(accounts: CommandLine) -> None:
    accounts.ok("account", "set", "team", "--set", "per_recipient=1/day")
    accounts.write(
        "sent.csv", "at,target,account,action\n2026-11-15T09:00:00Z,ANNA@example.com,team,email\n"
    )
    accounts.ok("history", "import", "sent.csv")
    accounts.ok("send", "team", "Anna@example.com", "--text", "hi")
    verdict = accounts.ok("why", "team", "--json").json["verdict"]
    assert (verdict["gate"], verdict["until_at"]) == ("frequency", "2026-11-16T09:00:00Z")


@pytest.mark.parametrize(
    ("text", "words", "code", "said"),
    [
        ("when\n1\n", (), 2, "sent.csv: no column 'at' (it has: when; it can have: at,"),
        ("at\n2026-11-15T09:00:00Z\n", (), 1, "line 2: names no account"),
        ("at\n2026-11-15T09:00:00Z\n", ("--account", "sale"), 1, "line 2: no account named 'sale'"),
        (
            "at,account,action\n2026-11-15T09:00:00Z,team,smoke\n",
            (),
            1,
            "line 2: team sends no 'smoke' (it can:",
        ),
        ("at\n", ("--account", "team"), 1, "sent.csv has no rows below its first line"),
    ],
)
def test_what_cannot_have_been(
    accounts: CommandLine, text: str, words: tuple[str, ...], code: int, said: str
) -> None:
    accounts.write("sent.csv", text)
    answer = accounts("history", "import", "sent.csv", *words)
    assert (answer.code, said in answer.out + answer.err) == (code, True), answer


def test_many_in_chunks(accounts: CommandLine) -> None:
    rows = "".join(f"2026-10-{1 + n % 28:02}T09:00:00Z,p{n}@example.com\n" for n in range(2_500))
    accounts.write("sent.csv", f"at,target\n{rows}")
    words = ("history", "import", "sent.csv", "--account", "team", "--json")
    assert accounts.ok(*words).json["new"] == 2_500
    assert accounts.ok(*words).json["new"] == 0
    assert "every invariant holds" in accounts.ok("verify").out


def test_a_row_that_no_database_can_keep_is_left_out_and_the_others_count(
    accounts: CommandLine,
) -> None:
    at = "2026-11-15T09:00:00Z"
    rows = f"{at},team,email,a@example.com\n{at},team,email,b\0@example.com\n"
    rows += f"{at},te\0am,email,c@example.com\n{at},team,e\0mail,d@example.com\n"
    accounts.write("sent.csv", f"at,account,action,target,note\n{rows}".replace("com\n", "com,x\n"))
    assert accounts.ok("history", "import", "sent.csv").out.splitlines() == [
        "1 message counted",
        "3 rows were not taken:",
        "  line 3: the target has a control character in it (U+0000)",
        "  line 4: the account has a control character in it (U+0000)",
        "  line 5: the action has a control character in it (U+0000)",
    ]
