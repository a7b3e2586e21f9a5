"""Reminders as people write them: what is refused, with which words, and what is warned of."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import parse_instant
from paceline.engine.reminder_spec import ReminderSpec, edited

NOW = parse_instant("2026-03-02T00:00:00Z")


def written(**changes: Any) -> dict[str, Any]:
    raw: dict[str, Any] = {
        "name": "standup",
        "account": "ann",
        "cron": "0 9 * * *",
        "zone": "Asia/Kuala_Lumpur",
        "parts": [{"text": "hello"}],
    }
    raw.update(changes)
    return {key: value for key, value in raw.items() if value is not None}


def spec(**changes: Any) -> ReminderSpec:
    return ReminderSpec.from_mapping(written(**changes))


def test_its_window_is_six_to_six_and_ends_it_unless_written() -> None:
    plain = spec().campaign
    assert str(plain.window) == "06:00-18:00 Asia/Kuala_Lumpur"
    assert plain.at_close == "skip"
    assert plain.assignment == "fixed"


@pytest.mark.parametrize(
    ("window", "read"),
    [("0-24", "00:00-24:00"), ("8 - 12", "08:00-12:00"), ("6:30-17:45", "06:30-17:45")],
)
def test_windows(window: str, read: str) -> None:
    assert str(spec(window=window).campaign.window) == f"{read} Asia/Kuala_Lumpur"


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ("22-6", "crosses midnight"),
        ("22:30-6", "crosses midnight"),
        ("6-6", "is empty"),
        ("6-25", "between 0 and 24"),
        ("6:75-18", "more than 60 minutes"),
        ("mornings", "is no delivery window"),
        ("", "must not be empty"),
    ],
)
def test_windows_that_are_none(window: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        spec(window=window)
    assert "window" in str(refused.value)


def test_it_fires_either_once_or_by_a_rule() -> None:
    for wrong in ({"cron": None}, {"at": "2026-11-20"}):
        with pytest.raises(InputError, match="either at or cron"):
            spec(**wrong)
    assert not spec(cron=None, at="2026-11-20").rule.recurs


def test_several_accounts_split_it() -> None:
    assert spec(account=None, accounts=["ann", "bea"]).campaign.assignment == "round_robin"
    with pytest.raises(InputError, match="not both"):
        spec(accounts=["ann"])
    with pytest.raises(InputError, match="at least one account"):
        spec(account=None)


def test_what_is_unknown_is_refused_by_the_nearest_name() -> None:
    with pytest.raises(InputError, match="did you mean 'window'"):
        spec(windows="6-18")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cron": "0 20 * * *"}, "nothing would be sent"),
        ({"cron": "0 20 * * *", "at_close": "resume"}, "waits until the next day"),
        ({"cron": "0 5 * * *"}, "waits until the window opens"),
        ({"cron": "0 5 * * *", "before_open": "send"}, "sends all the same"),
        ({"cron": None, "at": "2025-01-01"}, "is over"),
        ({"cron": "0 9,19 * * *"}, "2026-03-02 19:00"),
    ],
)
def test_what_is_possible_and_hardly_meant_is_warned_of(
    changes: dict[str, Any], words: str
) -> None:
    (warning,) = spec(**changes).warnings(NOW)
    assert words in warning


def test_what_is_as_it_should_be_is_not_warned_of() -> None:
    assert spec().warnings(NOW) == []


def test_another_zone_moves_the_window_with_it() -> None:
    moved = edited(spec(), {"zone": "Europe/Paris"}, "standup")
    assert str(moved.campaign.window) == "06:00-18:00 Europe/Paris"
    assert moved.rule.zone == moved.campaign.zone == "Europe/Paris"
    assert moved.rule.cron == "0 9 * * *"


def test_an_edit_changes_only_what_is_said() -> None:
    changed = edited(spec(), {"cron": "30 7 * * MON"}, "standup")
    assert changed.rule.cron == "30 7 * * MON"
    assert changed.campaign == spec().campaign
