"""``paceline account hook``: the address that a provider is told, once made and kept."""

import re
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

WASSENGER = (
    "account", "add", "shop", "--provider", "wassenger", "--option", "api_key=env:KEY",
    "--option", "device=5f1a2b3c4d5e6f7a8b9c0d1e",
)  # fmt: skip
URL = re.compile(r"https://hooks\.example\.com/hooks/shop/([A-Za-z0-9_-]{32})")


@pytest.fixture
def shop(paceline: CommandLine) -> CommandLine:
    paceline.write("paceline.toml", 'base_url = "https://hooks.example.com/"\n')
    paceline.ok(*WASSENGER)
    return paceline


def secret_in(text: str) -> str:
    found = URL.fullmatch(text.strip())
    assert found, text
    return found[1]


def test_the_address_is_made_once_and_made_anew_when_asked_for(shop: CommandLine) -> None:
    first = shop.ok("account", "hook", "shop")
    assert first.err == ""
    secret = secret_in(first.out)
    assert shop.ok("account", "hook", "shop", "--json").json == {
        "account": "shop",
        "url": first.out.strip(),
    }
    other = secret_in(shop.ok("account", "hook", "shop", "--new").out)
    assert other != secret
    assert secret_in(shop.ok("account", "hook", "shop").out) == other


def test_the_secret_is_stored_sealed_and_told_nowhere_else(
    shop: CommandLine, tmp_path: Path
) -> None:
    secret = secret_in(shop.ok("account", "hook", "shop").out)
    told = [shop.ok("account", "show", "shop", *more).out for more in ((), ("--json",))]
    told += [shop.ok("events").out, shop.ok("account", "list").out]
    with sqlite3.connect(tmp_path / "paceline.db") as connection:
        stored = "\n".join(connection.iterdump())
    assert secret not in stored + "".join(told) and "sealed:" in stored
    shop.ok("key", "rotate")
    assert "every secret is sealed" in shop.ok("key", "status").out
    assert secret_in(shop.ok("account", "hook", "shop").out) == secret


def test_without_a_public_address_it_says_so(paceline: CommandLine) -> None:
    paceline.ok(*WASSENGER)
    answer = paceline.ok("account", "hook", "shop")
    assert answer.out.startswith("http://127.0.0.1:8470/hooks/shop/")
    assert "set base_url" in answer.err


def test_what_cannot_have_one(paceline: CommandLine) -> None:
    paceline.ok("account", "add", "team", "--provider", "sandbox")
    assert "sandbox reports nothing over HTTP" in paceline.refused("account", "hook", "team")
    assert "no account named 'tema'" in paceline.refused("account", "hook", "tema")
