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
        "audience news: took 3 rows of 8: 2 new people, 0 changed, "
        "1 row merged with an earlier one; 2 joined it",
        "it has 2 members now",
        "5 rows were not taken:",
        "  line 5: 'not an address' is not an e-mail address: an email address must have an @-sign",
        "  line 7: bob@example.com and +4915112345678 belong to different people",
        "  line 8: +4915112345678 belongs to somebody else, whose email is not cleo@example.com",
        "  line 9: '1' is not a phone number",
        "  line 10: has 3 columns, the header has 5",
        "  all of them are in bad.csv; mend it, and import it as it is",
    ]
    rejected = list(csv.DictReader(StringIO((paceline.folder / "bad.csv").read_text("utf-8"))))
    assert [row["rejected_line"] for row in rejected] == ["5", "7", "8", "9", "10"]
    assert rejected[2]["First Name"] == "Cleo", "a row can be mended and imported again"
    assert rejected[4]["E-Mail"] == "eve@example.com", "one of another width as well"
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
    assert said.startswith(
        "would take 3 rows of 8: 2 new people, 0 changed, 1 row merged with an earlier one; "
        "nothing was written"
    )
    assert "no audiences yet" in paceline.ok("audience", "list").out
    assert paceline("contact", "show", "anna@example.com").code == 2


def test_a_file_of_which_nothing_can_be_taken(paceline: CommandLine) -> None:
    paceline.write("people.csv", "email\nanna\n")
    answer = paceline("audience", "import", "people.csv")
    assert (answer.code, "1 row was not taken" in answer.out) == (1, True)
    assert "would" not in answer.out


def test_a_file_without_rows(paceline: CommandLine) -> None:
    paceline.write("people.csv", "email\n")
    answer = paceline("audience", "import", "people.csv")
    assert (answer.code, answer.err) == (1, "")
    assert answer.out == "people.csv has no rows below its first line: nothing was taken\n"
    assert paceline("audience", "import", "people.csv", "--json").json["rows"] == 0


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("who,town\na,b\n", (), "no column is an address; there are: who, town. Say which is what"),
        ("a@x.de,A\nb@x.de,B\n", (), "there are: a@x.de, A. The first line names the columns, as"),
        ("email,email\na,b\n", (), "people.csv: the first line names the column 'email' twice"),
        ("a b,a_b,email\n", (), "the columns 'a b' and 'a_b' would both be a_b"),
        ("", (), "people.csv: the file is empty. Its first line names the columns"),
        ("\nemail\n", (), "people.csv: the first line is empty; it names the columns"),
        ('email\n"a\n', (), "people.csv: line 2: a quote is opened here that is never closed"),
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


MISQUOTED = [
    ('email,note\na@x.de,ok\nb@x.de,"oops\nc@x.de,\n', 3, "never closed"),
    ('email,note\na@x.de,"two\nlines"\nb@x.de,"oops\nc@x.de,\n', 4, "never closed"),
    ('email,note,more\na@x.de,"two\nlines","oops\nc@x.de,,\n', 3, "never closed"),
    ('email,note\na@x.de,the "best"\nb@x.de,"the "best" one"\n', 3, "written twice"),
    ('email,note\r\na@x.de,"two\r\nlines"\r\nb@x.de,"oops\r\n', 4, "never closed"),
    ('email,note\na@x.de,"""two"" lines\nhere"\nb@x.de,"' + "x\n" * 99_000, 4, "never closed"),
    ("email,note\na@x.de,ok\nb@x.de," + "x" * 200_000 + "\n", 3, "more than 131072 char"),
]


@pytest.mark.parametrize(("text", "line", "said"), MISQUOTED)
def test_a_quote_is_told_where_it_opens(
    paceline: CommandLine, monkeypatch: pytest.MonkeyPatch, text: str, line: int, said: str
) -> None:
    monkeypatch.setattr(audiences, "CHUNK", 1)
    paceline.write("people.csv", text)
    complaint = paceline.refused("audience", "import", "people.csv")
    assert complaint.startswith(f"paceline: people.csv: line {line}: ")
    assert said in complaint
    assert paceline.ok("audience", "list", "--json").json == [], "not even its first rows are in"


def test_rejected_rows_are_mended_and_read_as_they_are(paceline: CommandLine) -> None:
    rows = "a@x.de,A\nb@x.de,B,7\nc@x.de\nd,D\n"
    paceline.write("people.csv", f"email,name\n{rows}")
    paceline.ok("audience", "import", "people.csv", "--rejects", "bad.csv")
    bad = (paceline.folder / "bad.csv").read_text()
    assert bad.splitlines() == [
        "rejected_line,rejected_because,email,name",
        '3,"has 3 columns, the header has 2",b@x.de,B,7',
        '4,"has 1 column, the header has 2",c@x.de',
        "5,'d' is not an e-mail address: an email address must have an @-sign,d,D",
    ]
    mended = bad.replace("B,7", "B").replace("c@x.de", "c@x.de,C").replace(",d,", ",d@x.de,")
    paceline.write("bad.csv", mended)
    said = paceline.ok("audience", "import", "bad.csv", "--name", "people", "--json").json
    assert (said["new"], said["members"], said["rejected"]) == (3, 4, 0)
    assert {*members(paceline, "people")[-1]} >= {"email", "name"}
    assert not {*members(paceline, "people")[-1]} & {"rejected_line", "rejected_because"}


def test_where_rejects_cannot_go(paceline: CommandLine) -> None:
    paceline.write("people.csv", "email\na@x.de\n")
    for path, said in (("-", "must be a file"), ("./people.csv", "is the file that is read")):
        complaint = paceline.refused("audience", "import", "people.csv", "--rejects", path)
        assert complaint.startswith(f"paceline: --rejects: {said}")
    assert (paceline.folder / "people.csv").read_text() == "email\na@x.de\n"


def test_one_is_not_called_many(paceline: CommandLine) -> None:
    paceline.write("people.csv", "email,name\na@x.de,A\n")
    told = paceline.ok("audience", "import", "people.csv").out
    assert told.startswith("audience people: took 1 row of 1: 1 new person, 0 changed; 1 joined it")


@pytest.mark.parametrize("trial", [(), ("--dry-run",)])
def test_rows_of_one_person_are_counted_across_chunks(
    paceline: CommandLine, monkeypatch: pytest.MonkeyPatch, trial: tuple[str, ...]
) -> None:
    monkeypatch.setattr(audiences, "CHUNK", 2)
    known = "email,town\nz@x.de,Z\ny@x.de,Y\n"
    paceline.write("known.csv", known)
    paceline.ok("audience", "import", "known.csv", "--name", "people")
    rows = "a@x.de,1\na@x.de,2\nA@x.de,3\nz@x.de,4\nz@x.de,5\ny@x.de,Y\nb@x.de,6\n"
    paceline.write("people.csv", f"email,town\n{rows}")
    said = paceline.ok("audience", "import", "people.csv", "--json", *trial).json
    assert (said["rows"], said["new"], said["changed"], said["merged"]) == (7, 2, 1, 3)


def test_what_a_spreadsheet_leaves_to_the_right(paceline: CommandLine) -> None:
    paceline.write("people.csv", "email;town;;\na@x.de;A;;\nb@x.de;B; ;\nc@x.de;C;x;\n")
    said = paceline.ok("audience", "import", "people.csv", "--json").json
    assert (said["new"], said["rejects"]) == (
        2,
        [{"line": 4, "reason": "has 3 columns, the header has 2"}],
    )


def test_bars_part_columns_as_well(paceline: CommandLine) -> None:
    paceline.write("people.csv", 'email|note\na@x.de|"a|b"\nb@x.de|"oops\n')
    said = paceline.refused("audience", "import", "people.csv")
    assert said.startswith("paceline: people.csv: line 3: a quote is opened")
    paceline.write("people.csv", 'email|note\na@x.de|"a|b"\n')
    paceline.ok("audience", "import", "people.csv")
    assert members(paceline, "people")[0]["note"] == "a|b"


def test_a_folder_is_no_table(paceline: CommandLine) -> None:
    said = "paceline: cannot read '.': Is a directory"
    assert paceline.refused("audience", "import", ".") == said
    assert paceline.refused("suppress", "import", ".") == said


def test_a_street_is_no_address(paceline: CommandLine) -> None:
    paceline.write("people.csv", "address,email\nMain Street 5,a@x.de\nroom-7,\n")
    said = paceline.ok("audience", "import", "people.csv", "--json").json
    assert said["rejects"] == [
        {"line": 2, "reason": "'Main Street 5' is no address: it has a space in it"}
    ]


def test_of_two_columns_the_one_that_is_called_so(paceline: CommandLine) -> None:
    paceline.write("people.csv", "Work E-Mail,E-Mail,email\nw@x.de,e@x.de,m@x.de\n")
    paceline.ok("audience", "import", "people.csv")
    (found,) = members(paceline, "people")
    assert (found["email"], found["E_Mail"], found["Work_E_Mail"]) == (
        "m@x.de",
        "e@x.de",
        "w@x.de",
    )


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


def test_the_first_line_may_name_what_parts_the_columns(paceline: CommandLine) -> None:
    text = "\ufeffsep=;\r\nE-Mail;Städte, Länder\r\nanna@example.com;a, b\r\nnobody;c\r\n"
    paceline.write("people.csv", text)
    out = paceline.ok("audience", "import", "people.csv", "--name", "news").out.splitlines()
    assert out[0].startswith("audience news: took 1 row of 2"), out
    assert out[-1].startswith("  line 4: "), "it counts among the lines"
    (anna,) = members(paceline)
    assert anna["Städte_Länder"] == "a, b"


def test_a_quote_below_such_a_line_is_told_where_it_opens(paceline: CommandLine) -> None:
    paceline.write("people.csv", 'sep=,\nemail,name\na@example.com,"Anna\n')
    said = paceline.refused("audience", "import", "people.csv", "--name", "news")
    assert "people.csv: line 3: a quote is opened here" in said


def test_what_is_no_text_is_not_printed_as_the_names_of_columns(paceline: CommandLine) -> None:
    paceline.write("people.csv", "email,\0\0\0\na@example.com,b\n")
    said = paceline.refused("audience", "import", "people.csv", "--name", "news")
    told = "people.csv: the name of column 2 has a control character (U+0000). Is it a table?"
    assert told in said
