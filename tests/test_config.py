"""Settings: where they come from, who wins, and what is refused."""

import os
from pathlib import Path

import pytest

from paceline.config import Settings, load, override
from paceline.core.errors import InputError
from paceline.core.instants import MILLISECOND, SECOND
from paceline.core.sizes import GB, MB


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str, name: str = "paceline.toml") -> None:
    Path(name).write_text(text)


def refusal(text: str | None = None, **variables: str) -> str:
    if text is not None:
        write(text)
    with pytest.raises(InputError) as caught:
        load(environ=variables)
    return str(caught.value)


def test_the_defaults_need_nothing() -> None:
    settings = load(environ={})
    assert settings == Settings()
    assert settings.database == "sqlite:///paceline.db"
    assert settings.public_url == "http://127.0.0.1:8470"
    assert settings.effects_path == Path("paceline-sandbox.jsonl")
    assert settings.process_name.endswith(f"-{os.getpid()}")


def test_a_variable_wins_over_the_file_and_the_file_over_the_default() -> None:
    write('port = 9000\nhost = "localhost"\npoll = "2s"\n')
    settings = load(environ={"PACELINE_PORT": "9001", "PACELINE_POLL": "50ms", "OTHER": "x"})
    assert (settings.port, settings.host) == (9001, "localhost")
    assert (settings.poll_us, settings.grace_us) == (50 * MILLISECOND, 60 * SECOND)


def test_the_command_line_wins_over_everything() -> None:
    write('database = "file.db"\nport = 9000\n')
    settings = load(environ={"PACELINE_DATABASE": "variable.db"}, database="said.db")
    assert settings.database == "said.db"
    assert override(settings, port=0, host=None).port == 0
    with pytest.raises(InputError, match="--port: -1 is not a port"):
        override(settings, port=-1)


def test_every_setting_can_be_a_variable() -> None:
    variables = {
        "PACELINE_DATABASE": "other.db",
        "PACELINE_HOST": "::1",
        "PACELINE_PORT": "1",
        "PACELINE_BASE_URL": "https://pace.example.com/here/",
        "PACELINE_LOG_LEVEL": "DEBUG",
        "PACELINE_LOG_FORMAT": "json",
        "PACELINE_NAME": "one",
        "PACELINE_POLL": "3s",
        "PACELINE_PARK_AFTER": "4s",
        "PACELINE_GRACE": "5s",
        "PACELINE_SANDBOX_EFFECTS": "effects.jsonl",
        "PACELINE_ISOLATION": "Process",
        "PACELINE_ACCOUNTS_PER_PROCESS": "5",
        "PACELINE_MAX_WORKERS": "6",
        "PACELINE_WORKER_MEMORY": "1 GB",
    }
    settings = load(environ=variables)
    assert settings.public_url == "https://pace.example.com/here"
    assert (settings.log_level, settings.chosen_log_format) == ("debug", "json")
    assert (settings.process_name, settings.park_after_us) == ("one", 4 * SECOND)
    assert settings.effects_path == Path("effects.jsonl")
    assert (settings.isolation, settings.accounts_per_process) == ("process", 5)
    assert settings.max_workers == 6
    assert settings.worker_memory == settings.memory_limit == GB
    assert Settings(host="::1").public_url == "http://[::1]:8470"


def test_workers_have_a_limit_unless_somebody_lifts_it_and_the_service_has_none() -> None:
    assert Settings().memory_limit == 0
    assert Settings(isolation="process").memory_limit == 512 * MB
    for isolation in ("shared", "process"):
        write(f'isolation = "{isolation}"\nworker_memory = "200 MB"\n')
        assert load(environ={}).memory_limit == 200 * MB
        write(f'isolation = "{isolation}"\nworker_memory = 0\n')
        assert load(environ={}).memory_limit == 0


def test_variables_of_others_are_left_alone() -> None:
    load(environ={"PACELINE_TEST_POSTGRES_URL": "x", "PACELINE_PYTHON": "python3"})


def test_unknown_names_bring_up_the_nearest() -> None:
    assert refusal("prot = 1\n") == "paceline.toml: unknown key 'prot', did you mean 'port'?"
    said = refusal("", PACELINE_DATABSE="x")
    assert said == "unknown variable 'PACELINE_DATABSE', did you mean 'PACELINE_DATABASE'?"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('port = "high"', "port: expected a whole number"),
        ("port = 70000", "port: 70000 is not a port"),
        ("port = true", "port: expected a whole number"),
        ("host = 5", "host: expected a text"),
        ('host = ""', "host: must not be empty"),
        ('poll = "soon"', "poll: 'soon' is not a duration"),
        ('poll = "1us"', "poll: '1us' is too short"),
        ('grace = "2h"', "grace: '2h' is too long"),
        ('log_level = "loud"', "log_level: 'loud' is none of debug, info, warning, error"),
        ('isolation = "thread"', "isolation: 'thread' is none of shared, process"),
        ("accounts_per_process = 0", "accounts_per_process: must be a whole number from 1 to 1000"),
        ("max_workers = 0", "max_workers: must be a whole number from 1 to 10000"),
        ('worker_memory = "much"', "worker_memory: 'much' is not an amount of memory"),
        ('log_format = "xml"', "log_format: 'xml' is none of console, json"),
        ('base_url = "pace.example.com"', "base_url: 'pace.example.com' is not an http"),
        ('base_url = "ftp://pace.example.com"', "is not an http or https address"),
        ('base_url = "http://pace:example"', "is not an http or https address"),
        ('base_url = "http://"', "is not an http or https address"),
        ('base_url = "http://a b"', "is not an http or https address"),
        ('base_url = "http://a/?b=c"', "has more than a path"),
        ("policy = 5", "policy: must be a table of policies"),
        ("policy.slow = 5", "policy.slow: must be a table"),
        ("port = ", "is not valid TOML: Invalid value (at line 1, column 8)"),
    ],
)
def test_a_wrong_value_names_file_and_key(line: str, complaint: str) -> None:
    said = refusal(f"{line}\n")
    assert said.startswith("paceline.toml: ")
    assert complaint in said


def test_a_wrong_variable_is_named_as_it_is_written() -> None:
    assert refusal(PACELINE_PORT="x").startswith("PACELINE_PORT: expected a whole number")
    assert refusal(PACELINE_GRACE="").startswith("PACELINE_GRACE: must not be empty")
    assert refusal(PACELINE_POLICY="slow").startswith("PACELINE_POLICY: is not a table")


def test_the_file_can_be_elsewhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "etc"
    elsewhere.mkdir()
    path = elsewhere / "other.toml"
    path.write_text('database = "sqlite:///here.db"\nsandbox_effects = "here.jsonl"\n')
    for settings in (load(path, environ={}), load(environ={"PACELINE_CONFIG": str(path)})):
        # What is written in a file is meant from there, wherever the command was typed.
        assert settings.database == f"sqlite:///{elsewhere / 'here.db'}"
        assert settings.effects_path == elsewhere / "here.jsonl"
    with pytest.raises(InputError, match="there is no settings file"):
        load("none.toml", environ={})


def test_absolute_paths_and_servers_stay_as_they_are() -> None:
    for database in ("sqlite:////srv/pace.db", "/srv/pace.db", "postgresql://me@db/pace"):
        write(f'database = "{database}"\n')
        assert load(environ={}).database == database


@pytest.mark.parametrize(
    ("database", "effects"),
    [
        ("sqlite:////srv/pace.db", "/srv/pace-sandbox.jsonl"),
        ("data/pace.db", "data/pace-sandbox.jsonl"),
        ("postgresql://me@db/pace", "paceline-sandbox.jsonl"),
    ],
)
def test_the_sandbox_writes_beside_the_database(database: str, effects: str) -> None:
    assert Settings(database=database).effects_path == Path(effects)


def test_what_is_logged_of_a_database_is_no_secret() -> None:
    url = "postgresql://me:secret@db.internal:5432/pace?password=secret"
    assert Settings(database=url).shown_database == "postgresql://db.internal:5432/pace"
    assert Settings().shown_database == "sqlite:///paceline.db"


def test_policies_from_the_file_and_from_a_variable() -> None:
    write('[policy.slow]\nrate = "1/min"\n[policy.fast]\nrate = "9/s"\n')
    variable = '{ slow = { rate = "2/min" }, new = { spacing = "3s" } }'
    policies = load(environ={"PACELINE_POLICY": variable}).policies
    assert policies == {
        "slow": {"rate": "2/min"},
        "fast": {"rate": "9/s"},
        "new": {"spacing": "3s"},
    }


def test_a_file_that_is_no_text() -> None:
    Path("paceline.toml").write_bytes(b"\xff\xfe")
    assert refusal() == "paceline.toml: is not a text in UTF-8"


def test_whom_alerts_are_told_is_a_secret() -> None:
    write('[alerts]\nurls = ["mailto://ops:pa55word@example.com"]\nagain = "30m"\n')
    settings = load(environ={})
    assert settings.alerts_urls == ("mailto://ops:pa55word@example.com",)
    assert settings.alerts_again_us == 30 * 60 * SECOND
    assert "pa55word" not in repr(settings)
    said = {"PACELINE_ALERTS_URLS": "json://a/?to=b,c  json://d/", "PACELINE_ALERTS_AGAIN": "2h"}
    settings = load(environ=said)
    assert settings.alerts_urls == ("json://a/?to=b,c", "json://d/")
    assert settings.alerts_again_us == 2 * 3600 * SECOND


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("alerts = 3", "alerts: must be a table"),
        ("[alerts]\nurl = []", "alerts: unknown key 'url', did you mean 'urls'"),
        ("alerts_urls = []", "unknown key 'alerts_urls'"),
        ("[alerts]\nurls = 3", "alerts.urls: must be a list"),
        ('[alerts]\nurls = ["json://x/", "pa55word"]', "alerts.urls: number 2 is no address"),
        ('[alerts]\nurls = ["json://x/", 3]', "alerts.urls: number 2 is no address"),
        ('[alerts]\nagain = "1s"', "alerts.again: '1s' is too short"),
    ],
)
def test_what_is_wrong_about_alerts(text: str, complaint: str) -> None:
    told = refusal(text)
    assert complaint in told
    assert "pa55word" not in told


def test_a_variable_about_alerts_is_not_shown_either() -> None:
    told = refusal(PACELINE_ALERTS_URLS="pa55word")
    assert told.startswith("PACELINE_ALERTS_URLS: number 1 is no address")
    assert "pa55word" not in told
