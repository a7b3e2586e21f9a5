"""``paceline audience``: people as they are exported from a hundred programs."""

import csv
import os
import subprocess
import sys
from io import StringIO

import pytest

from paceline.engine.commands import audiences
from tests.cli.conftest import CommandLine

EXPORTED = (
    "\ufeffE-Mail;Handy;First Name;Stadt;Consent\r\n"
    "Anna@Example.com;0151 12345678;Anna;Köln;fair\r\n"
    "bob@example.com;;Bob;;\r\n"
    ";;;;\r\n"
    "not an address;;Nobody;;\r\n"
    "anna@example.com;;Anne;;\r\n"
    "bob@example.com;+49 151 12345678;;;\r\n"
    "cleo@example.com;0151 12345678;Cleo;;\r\n"
    "dora@example.com;1;Dora;;\r\n"
    "eve@example.com;;Eve\r\n"
)
OPTIONS = ("--name", "news", "--region", "de", "--opt-in", "form")


def members(paceline: CommandLine, name: str = "news") -> list[dict[str, str]]:
    text = paceline.ok("audience", "show", name, "--csv").out
    return list(csv.DictReader(StringIO(text)))


def test_an_export_is_taken_in(paceline: CommandLine) -> None:
    paceline.write("people.csv", EXPORTED)
    answer = paceline.ok("audience", "import", "people.csv", *OPTIONS, "--rejects", "bad.csv")
    assert answer.out.splitlines() == [
        "audience news: took 3 rows of 8: 2 new people, 0 changed, 2 joined it",
        "it has 2 members now",
        "5 rows were not taken:",
        "  line 5: 'not an address' is not an e-mail address: an email address must have an @-sign",
        "  line 7: bob@example.com and +4915112345678 belong to different people",
        "  line 8: +4915112345678 belongs to somebody else, whose email is not cleo@example.com",
        "  line 9: '1' is not a phone number",
        "  line 10: has 3 columns, the header has 5",
        "  all of them are in bad.csv",
    ]
    rejected = list(csv.DictReader(StringIO((paceline.folder / "bad.csv").read_text("utf-8"))))
    assert [row["line"] for row in rejected] == ["5", "7", "8", "9", "10"]
    assert rejected[2]["First Name"] == "Cleo", "a row can be mended and imported again"
    anna, bob = members(paceline)
    assert (anna["email"], anna["phone"]) == ("anna@example.com", "+4915112345678")
    assert (anna["first_name"], anna["Stadt"]) == ("Anne", "Köln"), "the later row counts"
    assert (anna["opt_in_source"], anna["opt_in_at"]) == ("fair", "2026-11-15T10:00:00Z")
    assert (bob["first_name"], bob["opt_in_source"], bob["phone"]) == ("Bob", "form", "")


def test_the_same_again_changes_nothing(paceline: CommandLine) -> None:
    paceline.write("people.csv", EXPORTED)
    first = paceline.ok("audience", "import", "people.csv", *OPTIONS, "--json").json
    before = members(paceline)
    paceline.clock.now_at += 1_000_000
    again = paceline.ok("audience", "import", "people.csv", *OPTIONS, "--json").json
    assert (again["new"], again["changed"], again["joined"]) == (0, 0, 0)
    assert (again["revision"], again["members"]) == (first["revision"], 2) == (1, 2)
    assert (again["rows"], again["rejected"], len(again["rejects"])) == (8, 5, 5)
    assert members(paceline) == before
    paceline.write("more.csv", "email,town\nbob@example.com,Bonn\n")
    more = paceline.ok("audience", "import", "more.csv", "--name", "news", "--json").json
    assert (more["changed"], more["revision"]) == (1, 2), "that is news of somebody in it"
    assert [row["town"] for row in members(paceline)] == ["", "Bonn"]
    assert members(paceline)[1]["first_name"] == "Bob", "what a file does not say stays"


def test_what_is_printed_can_be_imported(paceline: CommandLine) -> None:
    paceline.write("people.csv", EXPORTED)
    paceline.ok("audience", "import", "people.csv", *OPTIONS)
    printed = paceline.ok("audience", "show", "news", "--csv", "-o", "out.csv")
    assert printed.out == ""
    copied = paceline.ok("audience", "import", "out.csv", "--json").json
    assert (copied["audience"], copied["new"], copied["changed"]) == ("out", 0, 0)
    assert members(paceline, "out") == members(paceline)


def test_a_trial_writes_nothing(paceline: CommandLine) -> None:
    paceline.write("people.csv", EXPORTED)
    said = paceline.ok("audience", "import", "people.csv", *OPTIONS, "--dry-run").out
    assert said.startswith("would take 3 rows of 8: 2 new people, 0 changed; nothing was written")
    assert "no audiences yet" in paceline.ok("audience", "list").out
    assert paceline("contact", "show", "anna@example.com").code == 2


def test_a_file_of_which_nothing_can_be_taken(paceline: CommandLine) -> None:
    paceline.write("people.csv", "email\nanna\n")
    answer = paceline("audience", "import", "people.csv")
    assert (answer.code, "1 row was not taken" in answer.out) == (1, True)
    paceline.write("people.csv", "email\n")
    assert paceline("audience", "import", "people.csv").code == 1


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("who,town\na,b\n", (), "no column is an address; there are: who, town. Say which is what"),
        ("email,email\na,b\n", (), "people.csv: the first line names the column 'email' twice"),
        ("a b,a_b,email\n", (), "the columns 'a b' and 'a_b' would both be a_b"),
        ('email\n"a\n', (), "people.csv: line 2: unexpected end of data"),
        (b"email\na@b.de\n\xff\n", (), "people.csv: is not a text in UTF-8 (line 3)"),
        ("email\n", ("--map", "email"), "--map: 'email' does not say which column is what"),
        ("Mail\n", ("--map", "email=Mall"), "there is no column 'Mall', did you mean 'Mail'?"),
        ("email\n", ("--map", "x=email", "--map", "x=y"), "--map: x is said twice"),
        ("email\n", ("--region", "Germany"), "--region: 'Germany' is no country"),
        ("email\n", ("--name", "a/b"), "--name: a name cannot start with a bracket"),
        ("email\n", ("--name", " "), "--name: a name is one line"),
    ],
)
def test_what_cannot_be_is_told_at_once(
    paceline: CommandLine, text: str | bytes, options: tuple[str, ...], said: str
) -> None:
    paceline.write("people.csv", text)
    assert said in paceline.refused("audience", "import", "people.csv", *options)


def test_columns_can_be_named(paceline: CommandLine) -> None:
    paceline.write("people.csv", "Kontakt,Second Mail,Zone,Nr\n+4915112345678,x@y.de,UTC,7\n")
    mapped = ("--map", "phone=Kontakt", "--map", "customer=Nr")
    paceline.ok("audience", "import", "people.csv", *mapped)
    (found,) = members(paceline, "people")
    assert (found["phone"], found["customer"], found["zone"]) == ("+4915112345678", "7", "UTC")
    assert found["Second_Mail"] == "x@y.de", "a variable that a template can name"


def test_audiences_are_listed_shown_and_removed(paceline: CommandLine) -> None:
    paceline.write("people.csv", EXPORTED)
    paceline.ok("audience", "import", "people.csv", *OPTIONS)
    (listed,) = paceline.ok("audience", "list", "--json").json
    assert (listed["name"], listed["members"], listed["revision"]) == ("news", 2, 1)
    shown = paceline.ok("audience", "show", "news").out
    assert "reached by email 2, phone 1" in shown
    assert "anna@example.com, +4915112345678" in shown
    assert paceline.ok("audience", "show", "news", "--json").json["fields"] == [
        "first_name",
        "Stadt",
    ]
    assert "no audience named 'new', did you mean 'news'?" in paceline.refused(
        "audience", "show", "new"
    )
    assert "Add --yes" in paceline.refused("audience", "remove", "news")
    paceline.ok("audience", "remove", "news", "--yes")
    assert "no audiences yet" in paceline.ok("audience", "list").out
    assert "audiences: none" in paceline.ok("contact", "show", "ANNA@example.com").out


def test_an_interrupted_import_keeps_whole_chunks(
    paceline: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audiences, "CHUNK", 10)
    rows = "".join(f"p{n}@example.com,T{n}\n" for n in range(35))
    paceline.write("people.csv", f"email,town\n{rows}")
    real, chunks = audiences.take_in, iter([True, True, False])

    def interrupted(*args: object, **options: object) -> object:
        done = real(*args, **options)  # type: ignore[arg-type]
        if not next(chunks):
            raise KeyboardInterrupt
        return done

    with monkeypatch.context() as patch:
        patch.setattr(audiences, "take_in", interrupted)
        assert paceline("audience", "import", "people.csv").code == 130
    assert len(members(paceline, "people")) == 20
    said = paceline.ok("audience", "import", "people.csv", "--json").json
    assert (said["new"], said["joined"], said["members"]) == (15, 15, 35)


def most_memory(paceline: CommandLine, file: str) -> int:
    """Bytes that importing a file takes at most, in a process of its own."""
    command = [sys.executable, "-m", "paceline", "audience", "import", file]
    with subprocess.Popen(command, cwd=paceline.folder, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss << 10


def test_a_hundred_thousand_rows_take_no_more_memory_than_a_few(paceline: CommandLine) -> None:
    rows = [f"person{n}@example.com,Town {n}\n" for n in range(100_000)]
    paceline.write("few.csv", f"email,town\n{''.join(rows[:1_000])}")
    paceline.write("many.csv", f"email,town\n{''.join(rows)}")
    few = most_memory(paceline, "few.csv")
    many = most_memory(paceline, "many.csv")
    (found,) = (a for a in paceline.ok("audience", "list", "--json").json if a["name"] == "many")
    assert found["members"] == 100_000
    assert many - few < 24 << 20, f"{many - few >> 20} MiB more"
