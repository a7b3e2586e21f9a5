"""Bars in a terminal: their lengths, what they count, and where there are no block characters."""

import io

from rich.console import Console

from paceline.cli.chart import chart


def bars(days: dict[str, int], width: int = 40, encoding: str = "utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return list(chart(days, Console(width=width, file=file)))


def test_a_bar_is_as_long_as_its_share_of_the_longest() -> None:
    lines = bars({"2026-11-16": 8, "2026-11-17": 4, "2026-11-19": 1})
    assert lines == [
        "Mon 2026-11-16  ██████████████████████ 8",
        "Tue 2026-11-17  ███████████ 4",
        "Wed 2026-11-18",
        "Thu 2026-11-19  ██▊ 1",
    ]
    assert max(map(len, lines)) == 40


def test_whatever_is_not_nothing_can_be_seen() -> None:
    assert bars({"2026-11-16": 10_000, "2026-11-17": 1})[1] == "Tue 2026-11-17  ▏ 1"


def test_without_block_characters_there_are_others() -> None:
    lines = bars({"2026-11-16": 8, "2026-11-17": 4}, encoding="ascii")
    assert lines == [f"Mon 2026-11-16  {'#' * 22} 8", f"Tue 2026-11-17  {'#' * 11} 4"]


def test_a_very_narrow_screen_keeps_a_bar() -> None:
    assert bars({"2026-11-16": 8}, width=12) == ["Mon 2026-11-16  ████████ 8"]


def test_no_days_no_lines() -> None:
    assert bars({}) == [] and bars({"2026-11-16": 0}) == []


def test_weeks_begin_on_monday_and_add_up() -> None:
    lines = bars({"2026-11-18": 3, "2026-11-22": 4, "2027-01-31": 2})
    assert lines[0].startswith("week of 2026-11-16  ") and lines[0].endswith(" 7")
    assert lines[-1].startswith("week of 2027-01-25  ") and len(lines) == 11


def test_years_are_counted_by_the_month() -> None:
    lines = bars({"2026-11-18": 3, "2026-12-01": 4, "2028-02-29": 2})
    assert [line.split()[0] for line in lines[:2]] == ["2026-11", "2026-12"]
    assert lines[-1].startswith("2028-02 ") and len(lines) == 16
