"""What a command loads: only what it needs, because loading is nearly all that most of them do."""

import json
import subprocess
import sys

import pytest

from tests.cli.conftest import CommandLine

LOADED = """
import json, sys
from paceline.__main__ import run
code = run()
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""
NEVER = (
    "aiosmtplib",
    "alembic",
    "apprise",
    "cryptography",
    "email_validator",
    "fastapi",
    "httpx",
    "jinja2",
    "phonenumbers",
    "prometheus_client",
    "psycopg",
    "sqlalchemy.dialects.postgresql",
    "starlette",
    "uvicorn",
    "paceline.api",
    "paceline.engine.supervisor",
    "paceline.providers.sandbox",
    "paceline.providers.unipile",
    "paceline.sim",
    "paceline.store.postgresql",
)


def loaded_by(*words: str) -> set[str]:
    command = [sys.executable, "-c", LOADED, *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (("account", "list"), "paceline.cli.accounts"),
        (("campaign", "list"), "paceline.cli.campaigns"),
        (("alerts", "list"), "paceline.cli.alerts"),
    ],
    ids=["accounts", "campaigns", "alerts"],
)
def test_a_simple_command_on_sqlite_loads_what_it_needs(
    accounts: CommandLine, words: tuple[str, ...], needed: str
) -> None:
    loaded = loaded_by(*words)
    assert {needed, "sqlalchemy.dialects.sqlite", "paceline.store.sqlite"} <= loaded
    assert loaded.isdisjoint(NEVER)
    assert loaded.isdisjoint({"paceline.cli.plan", "paceline.cli.reminders"})


def test_the_version_takes_neither_a_database_nor_a_table(paceline: CommandLine) -> None:
    for words in (("--version",), ("version",)):
        loaded = loaded_by(*words)
        assert "paceline.cli.main" in loaded
        assert loaded.isdisjoint((*NEVER, "rich", "sqlalchemy", "structlog"))


def test_the_help_of_everything_takes_no_database(paceline: CommandLine) -> None:
    loaded = loaded_by("--help")
    assert {"paceline.cli.plan", "paceline.cli.accounts"} <= loaded
    assert loaded.isdisjoint({"alembic", "fastapi", "httpx", "psycopg", "sqlalchemy", "uvicorn"})
