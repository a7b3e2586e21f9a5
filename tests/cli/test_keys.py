"""``paceline key`` and ``--secret``: secrets that are typed unseen, and stored sealed."""

import io
import sqlite3
import stat
from pathlib import Path

import pytest

from paceline.vault import new_key
from tests.cli.conftest import CommandLine

SECRET = "sk-very-secret-123"
UNIPILE = (
    "account", "add", "link", "--provider", "unipile", "--option", "dsn=https://api1.unipile.com",
    "--option", "account_id=abc", "--option", "kind=linkedin",
)  # fmt: skip


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody pipes in: one line."""
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{SECRET}\nnot asked for\n"))


def stored(folder: Path) -> bytes:
    """Everything in the database, whatever table it is in."""
    with sqlite3.connect(folder / "paceline.db") as connection:
        return "\n".join(connection.iterdump()).encode()


@pytest.mark.usefixtures("typed")
def test_a_secret_is_asked_for_and_sealed(paceline: CommandLine, tmp_path: Path) -> None:
    added = paceline.ok(*UNIPILE, "--secret", "api_key")
    shown = paceline.ok("account", "show", "link", "--json")
    assert shown.json["options"]["api_key"] == "(secret)"
    texts = added.out + added.err + shown.out + paceline.ok("events").out
    assert SECRET not in texts and SECRET.encode() not in stored(tmp_path)
    assert b"sealed:" in stored(tmp_path)
    assert stat.S_IMODE((tmp_path / "paceline.key").stat().st_mode) == 0o600
    assert "every secret is sealed" in paceline.ok("key", "status").out


@pytest.mark.usefixtures("typed")
def test_what_else_is_changed_leaves_the_secret_as_it_was(
    paceline: CommandLine, tmp_path: Path
) -> None:
    from paceline.app import open_app
    from paceline.config import load

    paceline.ok(*UNIPILE, "--secret", "api_key")
    paceline.ok("account", "set", "link", "--option", "track_opens=true")
    paceline.ok("key", "rotate")
    with open_app(load(database=str(tmp_path / "paceline.db"))) as house:
        with house.store.read() as tx:
            account = tx.accounts.find("link")
        assert account is not None and account.settings["api_key"].startswith("sealed:")
        opened = house.providers.unsealed(account)
    assert opened.settings["api_key"] == SECRET and opened.settings["track_opens"] is True


@pytest.mark.usefixtures("typed")
def test_a_key_is_replaced_and_the_old_one_leaves_the_file(
    paceline: CommandLine, tmp_path: Path
) -> None:
    paceline.ok(*UNIPILE, "--secret", "api_key")
    before, sealed = (tmp_path / "paceline.key").read_text(), stored(tmp_path)
    said = paceline.ok("key", "rotate").out
    assert "is in force: the secrets of 1 account are sealed with it" in said
    after = (tmp_path / "paceline.key").read_text()
    assert before not in after and len(after.splitlines()) == 1
    assert stored(tmp_path) != sealed
    assert paceline.ok("key", "status", "--json").json["unsealed"] == []


@pytest.mark.usefixtures("typed")
def test_with_keys_in_the_environment_the_first_one_seals(
    paceline: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, fresh = new_key(), new_key()
    monkeypatch.setenv("PACELINE_KEY", old)
    paceline.ok(*UNIPILE, "--secret", "api_key")
    assert not (tmp_path / "paceline.key").exists()
    monkeypatch.setenv("PACELINE_KEY", f"{fresh},{old}")
    status = paceline.ok("key", "status").out
    assert "not sealed with it: link; run: paceline key rotate" in status
    assert "need not hold the other keys any more" in paceline.ok("key", "rotate").out
    monkeypatch.setenv("PACELINE_KEY", fresh)
    assert "every secret is sealed" in paceline.ok("key", "status").out
    monkeypatch.setenv("PACELINE_KEY", old)
    refused = paceline("account", "check", "link")
    assert refused.code == 1 and "that secrets were sealed with is not here" in refused.out


@pytest.mark.usefixtures("typed")
def test_without_the_key_of_its_secrets_no_other_takes_its_place(
    paceline: CommandLine, tmp_path: Path
) -> None:
    paceline.ok(*UNIPILE, "--secret", "api_key")
    key, away = tmp_path / "paceline.key", tmp_path / "away.key"
    name = paceline.ok("key", "status", "--json").json["keys"][0]
    key.rename(away)
    status = paceline.ok("key", "status").out
    assert "no key yet in" in status and "key rotate" not in status
    assert f"sealed with another key ({name}) that is not here: link" in status
    assert "paceline account set link --secret" in status
    shown = paceline.ok("key", "status", "--json").json
    assert (shown["unsealed"], shown["missing"]) == (["link"], {"link": [name]})
    refused = paceline("key", "rotate")
    assert refused.code and f"the key {name}" in refused.err and not key.exists()
    key.write_text(f"{new_key()}\n")
    key.chmod(0o600)
    before = key.read_text()
    assert paceline("key", "rotate").code and key.read_text() == before
    away.rename(key)
    paceline.ok("key", "rotate")
    shown = paceline.ok("key", "status", "--json").json
    assert (shown["unsealed"], shown["missing"]) == ([], {})


def test_a_secret_on_the_command_line_is_warned_of(paceline: CommandLine) -> None:
    said = paceline.ok(*UNIPILE, "--option", f"api_key={SECRET}")
    assert "api_key was on the command line" in said.err and SECRET not in said.err
    quiet = paceline.ok("account", "set", "link", "--option", "api_key=env:UNIPILE_KEY")
    assert "command line" not in quiet.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--secret", "api_key", "--secret", "api_key"), "api_key is given twice"),
        (("--option", "api_key=x", "--secret", "api_key"), "api_key is given twice"),
        (("--secret", "api_key", "--secret", "x", "--secret", "y"), "nothing was given for y"),
    ],
)
@pytest.mark.usefixtures("typed")
def test_what_is_asked_for_wrongly(
    paceline: CommandLine, words: tuple[str, ...], told: str
) -> None:
    refused = paceline(*UNIPILE, *words)
    assert refused.code == 2 and told in refused.err and SECRET not in refused.err


def test_new_keys(paceline: CommandLine) -> None:
    one, two = paceline.ok("key", "new").out, paceline.ok("key", "new").out
    assert one != two and len(one.strip()) == 44
