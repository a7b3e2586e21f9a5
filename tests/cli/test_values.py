"""Values given as key=value: TOML where it is TOML, else the bare text."""

from typing import Any

import pytest

from paceline.cli.values import parse_values
from paceline.core.errors import InputError


@pytest.mark.parametrize(
    ("pair", "values"),
    [
        ("rate=40/min", {"rate": "40/min"}),
        ("rate=40/min burst 3", {"rate": "40/min burst 3"}),
        ('rate="40/min"', {"rate": "40/min"}),
        ("concurrency=3", {"concurrency": 3}),
        ("daily.email=20", {"daily": {"email": 20}}),
        ("daily={ email = 20 }", {"daily": {"email": 20}}),
        ("finds=false", {"finds": False}),
        ("bounce_at=[1, 2]", {"bounce_at": [1, 2]}),
        ("blackout=[2026-12-25]", {"blackout": ["2026-12-25"]}),
        ("hours=Mon-Fri 09:00-18:00 UTC", {"hours": "Mon-Fri 09:00-18:00 UTC"}),
        ("spacing=5m..20m", {"spacing": "5m..20m"}),
        ("rate = off", {"rate": "off"}),
        ("note=a=b", {"note": "a=b"}),
        ("note=", {"note": ""}),
        ("note=1\nother=2", {"note": "1\nother=2"}),
    ],
)
def test_a_value(pair: str, values: dict[str, Any]) -> None:
    assert parse_values([pair], "--set") == values


def test_tables_are_put_together() -> None:
    pairs = ["daily.email=20", "rate=1/s", "daily.message=5"]
    assert parse_values(pairs, "--set") == {
        "daily": {"email": 20, "message": 5},
        "rate": "1/s",
    }


@pytest.mark.parametrize(
    "pairs",
    [["rate"], ["=5"], [".a=1"], ["a..b=1"], ["a=1", "a=2"], ["a=1", "a.b=2"], ["a.b=1", "a=2"]],
)
def test_what_is_no_value(pairs: list[str]) -> None:
    with pytest.raises(InputError, match=r"^--set: "):
        parse_values(pairs, "--set")
