"""What is written for a sandbox account is checked, completed and printed back."""

import json
from typing import Any

import pytest

from paceline.core.durations import Span
from paceline.core.errors import InputError
from paceline.core.instants import HOUR, MINUTE, SECOND, parse_instant
from paceline.providers.sandbox import SandboxSettings, read_settings
from paceline.providers.sandbox.fates import DRAWN_FATES
from tests.providers.stage import Stage


def test_nothing_written_is_a_well_behaved_account() -> None:
    settings = read_settings({})
    assert settings.latency == Span.parse("20ms..80ms")
    assert settings.rates == {}
    assert settings.numbered == {}


def test_every_fate_left_to_chance_has_a_rate_and_numbers() -> None:
    written: dict[str, Any] = {f"{fate}_rate": 0.01 for fate in DRAWN_FATES}
    written |= {f"{fate}_at": [place] for place, fate in enumerate(DRAWN_FATES, 1)}
    settings = read_settings(written)
    assert settings.rates == dict.fromkeys(DRAWN_FATES, 0.01)
    assert settings.numbered == dict(enumerate(DRAWN_FATES, 1))


WRITTEN = {
    "seed": 7,
    "latency": "1ms..2ms",
    "timeout_latency": "45s",
    "bounce_rate": 0.25,
    "transient_at": [1, 3],
    "retry_after": "90s",
    "ban_for": "1h",
    "unavailable": ["2026-11-15T09:00:00Z..2026-11-15T09:10:00Z"],
    "find_lag": "30s",
    "handle_expires": "2w",
    "finds": False,
}


def test_what_is_written_is_understood() -> None:
    settings = read_settings(WRITTEN)
    assert settings.timeout_latency == 45 * SECOND
    assert settings.retry_after == 90 * SECOND
    assert settings.ban_for == HOUR
    assert settings.transient_at == (1, 3)
    nine = parse_instant("2026-11-15T09:00:00Z")
    assert not settings.is_away(nine - 1)
    assert settings.is_away(nine)
    assert not settings.is_away(nine + 10 * MINUTE)


def test_checked_settings_are_complete_and_read_back_the_same() -> None:
    checked = Stage().provider.check(WRITTEN)
    assert set(checked) == set(SandboxSettings.model_fields)
    assert read_settings(json.loads(json.dumps(checked))) == read_settings(WRITTEN)
    plain = checked | {"retry_after": "1m30s"}
    assert {key: checked[key] for key in WRITTEN} == WRITTEN | {"retry_after": "1m30s"}
    assert Stage().provider.check(plain) == checked


@pytest.mark.parametrize(
    ("written", "rate"), [("5%", 0.05), ("2.5%", 0.025), (0.1, 0.1), (1, 1.0), ("0.5", 0.5)]
)
def test_a_rate_is_a_number_or_a_percentage(written: Any, rate: float) -> None:
    assert read_settings({"lost_rate": written}).lost_rate == rate


def test_no_time_to_wait_can_be_written_down() -> None:
    assert read_settings({"retry_after": "none"}).retry_after is None
    assert read_settings({"retry_after": None}).retry_after is None


def test_an_unknown_key_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        Stage().provider.check({"latencey": "1s"})
    assert str(caught.value) == (
        "latencey: the sandbox has no such setting, did you mean 'latency'?"
    )


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("latency", "fast", "'fast' is not a duration"),
        ("latency", "80ms..20ms", "the wrong way round"),
        ("latency", 20, "20 is not a text"),
        ("timeout_latency", "-1s", "negative"),
        ("bounce_rate", 1.5, "is to be at most 1"),
        ("bounce_rate", -0.1, "is to be at least 0"),
        ("bounce_rate", float("nan"), "is to be at least 0"),
        ("bounce_rate", "5.555%", "not a percentage"),
        ("throttle_at", [0], "is to be more than 0"),
        ("quota_per_day", 0, "is to be more than 0"),
        ("ban_after", "soon", "is to be a whole number"),
        ("unavailable", ["tomorrow"], "not a period"),
        ("unavailable", ["2026-11-15..noon"], "not a date and time"),
        ("unavailable", ["2026-11-16T00:00Z..2026-11-15T00:00Z"], "ends before it begins"),
        ("finds", "perhaps", "is to be true or false"),
    ],
)
def test_nonsense_is_refused_with_its_key(key: str, value: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        read_settings({key: value})
    assert caught.value.key == key
    assert "\n" not in str(caught.value)


def test_rates_share_one_whole() -> None:
    read_settings({"bounce_rate": 0.7, "lost_rate": 0.2, "timeout_rate": 0.1})
    with pytest.raises(InputError, match="add up to 110%"):
        read_settings({"bounce_rate": 0.7, "lost_rate": 0.4})
