"""Campaign files as people really write them."""

from pathlib import Path

import pytest

from paceline.cli import campaign_file
from paceline.cli.campaign_file import read_campaign, read_media
from paceline.core.errors import InputError
from paceline.core.template import render_part

PLAIN = 'name = "n"\naccounts = "a"\n[[parts]]\ntext = "hi"\n'


def campaign(folder: Path, head: str, people: bytes = b"") -> Path:
    (folder / "people.csv").write_bytes(people)
    path = folder / "campaign.toml"
    path.write_text(head + PLAIN)
    return path


def addresses(path: Path) -> list[str]:
    return [target.address for target in read_campaign(path).targets]


@pytest.mark.parametrize(
    "people",
    [
        b"address,name\r\nanna,A\r\nbob,B\r\n",
        b"\xef\xbb\xbfaddress,name\nanna,A\nbob,B",
        b"name;address\nA;anna\nB;bob\n",
        b"name\taddress\nA\tanna\nB\tbob\n",
        b" address , name\n anna ,A\n\n,\nbob,B\nanna,Twice\n",
        b'address,name\nanna,"A, ""the"" first\nof two lines"\nbob,B\n',
    ],
)
def test_spreadsheets_write_many_dialects(tmp_path: Path, people: bytes) -> None:
    assert addresses(campaign(tmp_path, 'audience = "people.csv"\n', people)) == ["anna", "bob"]


def test_the_first_of_two_rows_with_one_address_counts(tmp_path: Path) -> None:
    path = campaign(tmp_path, 'audience = "people.csv"\n', b"address,n\na,1\na,2\n")
    read = read_campaign(path)
    assert (read.targets[0].fields, read.duplicates) == ({"n": "1"}, 1)


def test_targets_can_be_written_into_the_campaign(tmp_path: Path) -> None:
    path = campaign(tmp_path, 'targets = ["anna", { address = "bob", age = 7 }]\n')
    assert addresses(path) == ["anna", "bob"]
    assert read_campaign(path).targets[1].fields == {"age": "7"}


@pytest.mark.parametrize("targets", ['"anna"', "[1]", '["anna", ""]'])
def test_targets_that_are_none(tmp_path: Path, targets: str) -> None:
    path = campaign(tmp_path, f"targets = {targets}\n")
    with pytest.raises(InputError, match=r"campaign\.toml: targets: "):
        read_campaign(path)


def test_files_are_looked_for_beside_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = campaign(tmp_path, 'audience = "people.csv"\n', b"address\nanna\n")
    monkeypatch.chdir("/")
    assert addresses(path) == ["anna"]


def test_the_kind_of_a_media_file_follows_from_its_name(tmp_path: Path) -> None:
    for name, mime in (("a.png", "image/png"), ("a.unheard", "application/octet-stream")):
        (tmp_path / name).write_bytes(b"x")
        assert read_media(tmp_path / name, name).mime == mime


def test_media_have_a_size_between_nothing_and_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_file, "LARGEST_MEDIA", 1 << 20)
    path = tmp_path / "a.png"
    path.write_bytes(b"")
    with pytest.raises(InputError, match="is empty"):
        read_media(path, "a.png")
    path.write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(InputError, match="larger than 1 MiB"):
        read_media(path, "a.png")
    path.write_bytes(bytes(1 << 20))
    assert len(read_media(path, "a.png").content) == 1 << 20


GREETING = PLAIN.replace("hi", "Hi {{ name }}")
CAREFUL = PLAIN.replace("hi", "Hi {{ name | default('you') }}")


def test_an_empty_cell_is_no_value(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("address,name,town\nanna,Anna,\nanna,,\nbob,,\n")
    path = tmp_path / "campaign.toml"
    path.write_text('audience = "people.csv"\n' + GREETING)
    with pytest.raises(InputError, match=r"people\.csv: line 4: name is empty"):
        read_campaign(path)
    path.write_text('targets = ["anna", { address = "bob", name = " " }]\n' + GREETING)
    with pytest.raises(InputError, match="targets: row 2: name is empty"):
        read_campaign(path)


def test_a_default_stands_in_for_an_empty_cell(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("address,name\nanna,Anna\nbob,\n")
    path = tmp_path / "campaign.toml"
    path.write_text('audience = "people.csv"\n' + CAREFUL)
    read = read_campaign(path)
    (part,) = read.spec.content.parts
    texts = [render_part(part, to.address, to.fields).text for to in read.targets]
    assert texts == ["Hi Anna", "Hi you"]


def test_an_address_written_into_the_campaign_is_one_line(tmp_path: Path) -> None:
    path = campaign(tmp_path, r'targets = ["anna", "b\u0000b"]' + "\n")
    with pytest.raises(InputError, match=r"targets: row 2: the address has .* \(U\+0000\)"):
        read_campaign(path)


# ---------------------------------------------------------------------- whose columns are whose


def test_columns_are_recognised_as_in_an_audience(tmp_path: Path) -> None:
    people = "E-Mail;Vorname;Stadt\nAnna@Example.com;Anna;Köln\nbob@example.com;Bob;\n".encode()
    read = read_campaign(campaign(tmp_path, 'audience = "people.csv"\n', people))
    assert [target.address for target in read.targets] == ["anna@example.com", "bob@example.com"]
    anna, bob = (target.fields for target in read.targets)
    assert (anna["first_name"], anna["Vorname"], anna["Stadt"]) == ("Anna", "Anna", "Köln")
    assert anna["email"] == "Anna@Example.com", "as it was written, for a template to say"
    assert "Stadt" not in bob


def test_columns_can_be_named_in_the_campaign(tmp_path: Path) -> None:
    head = (
        'audience = { file = "people.csv", map = { phone = "Kontakt", name = "Wer" }, '
        'region = "de" }\n'
    )
    path = campaign(tmp_path, head, b"Wer,Kontakt\nAnna,0151 12345678\n")
    (anna,) = read_campaign(path).targets
    assert (anna.address, anna.fields["name"]) == ("+4915112345678", "Anna")


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ('{ file = "people.csv" }', "no column is an address; there are: who. Say which is what: "),
        ('{ file = "people.csv", map = { email = "Wo" } }', "there is no column 'Wo', did you mea"),
        ('{ file = "people.csv", map = "x" }', "audience.map: must be a table such as"),
        ('{ file = "people.csv", region = "Germany" }', "audience.region: 'Germany' is no country"),
        ('{ file = "people.csv", region = 7 }', "audience.region: must be a text"),
        ('{ name = "people", map = { email = "x" } }', "only a file has a map or a region"),
        ('{ file = "people.csv", mapp = {} }', "must say either { name = … } or { file = … }"),
        ('{ name = "a", file = "b" }', "must say either { name = … } or { file = … }"),
    ],
)
def test_what_cannot_be_said_of_an_audience(tmp_path: Path, head: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_campaign(campaign(tmp_path, f"audience = {head}\n", b"who\nanna\n"))
    assert said in str(caught.value)


def test_targets_name_their_addresses_as_columns_do(tmp_path: Path) -> None:
    path = campaign(tmp_path, 'targets = [{ email = "Anna@x.de", name = "Anna" }, "bob@x.de"]\n')
    assert addresses(path) == ["anna@x.de", "bob@x.de"]
    path = campaign(tmp_path, 'targets = ["anna", { mail_ = "b@x.de", nme = "Bob" }]\n')
    assert addresses(path) == ["anna", "b@x.de"]
    path = campaign(tmp_path, 'targets = ["anna", { nme = "Bob" }]\n')
    with pytest.raises(InputError, match="row 2: nothing in it is an address; there are: nme"):
        read_campaign(path)


def test_what_follows_is_read_as_carefully_as_the_first_step(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("address,name,town\nanna,Anna,\n")
    path = tmp_path / "campaign.toml"
    steps = (
        'name = "n"\naccounts = "a"\naudience = "people.csv"\n'
        '[[steps]]\n[[steps.parts]]\ntext = "Hi {{ name }}"\n[[steps]]\nafter = "1d"\n'
        '[[steps.parts]]\ntext = "again"\n[[steps.parts]]\nmedia = "a.png"\ncaption = "CAPTION"\n'
    )
    path.write_text(steps)
    with pytest.raises(InputError, match=r"steps\[2\]\.parts\[2\]\.media: no such file 'a\.png'"):
        read_campaign(path)
    (tmp_path / "a.png").write_bytes(b"x")
    assert [*read_campaign(path).media] == ["a.png"]
    path.write_text(steps.replace("CAPTION", "to {{ town }}"))
    with pytest.raises(InputError, match="line 2: town is empty"):
        read_campaign(path)
