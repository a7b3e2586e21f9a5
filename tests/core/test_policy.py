"""Whole policies: they print back, hold together, and say what is wrong with them."""

import dataclasses
import json
import random
import tomllib
from datetime import date, datetime, timedelta
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.core.durations import Span
from paceline.core.errors import InputError
from paceline.core.grammar import Frequency, Ladder, Percent, Rate
from paceline.core.hours import Hours
from paceline.core.instants import DAY, MINUTE, SECOND
from paceline.core.policy import _MAY_BE_OFF, KEYS, Policy, merge
from paceline.core.tables import Throttle
from tests.core.values import instant_of, lasting_us, policies, spans


@settings(max_examples=150)
@given(policies())
def test_a_printed_policy_reads_back(policy: Policy) -> None:
    written = policy.to_mapping()
    assert Policy.from_mapping(written) == policy
    assert hash(Policy.from_mapping(written)) == hash(policy)
    assert Policy.from_mapping(json.loads(json.dumps(written))) == policy
    section = tomllib.loads(policy.to_toml("of mine"))["policy"]["of mine"]
    assert section == written
    assert Policy.from_mapping(section) == policy


def test_a_policy_prints_as_written() -> None:
    text = """\
[policy.cold-email]
rate = "40/min burst 3"
concurrency = 3
part_gap = "200ms..500ms"
hours = "Mon-Fri 09:00-18:00 America/New_York"
blackout = ["2026-12-25", "2027-01-01"]
zone = "UTC"
spacing = "3s"
min_gap = "2s"
batch = "75 then 30s"
daily = { email = 20, reply = 100 }
weekly = { email = 80 }
adaptive = { above = "5%", slow_by = 1.5, between = "2s..10s" }
breaker = { above = "20%" }
bounce_pause = "off"
warmup = "20 +10%/day to 200"
retry = "3s doubling"
throttle = { to = "20/min", recover = "30m" }
on_unknown = "resend"
timeout = "10s"
per_recipient = "1/day"
"""
    mapping = tomllib.loads(text)["policy"]["cold-email"]
    assert Policy.from_mapping(mapping).to_toml("cold-email") == text
    assert list(mapping) == list(KEYS)


def test_the_defaults() -> None:
    policy = Policy.from_mapping({})
    assert policy == Policy()
    assert policy.to_mapping() == {}
    assert policy.to_toml("plain") == "[policy.plain]\n"
    assert policy.concurrency == 1
    assert policy.part_gap == Span(0, 0)
    assert policy.bounce_pause == Percent.parse("5%")
    assert policy.retry == Ladder.parse("1m,5m,15m")
    assert policy.throttle == Throttle.parse('{ slow_by = 1.5, recover = "30m" }')
    assert policy.on_unknown == "hold"
    assert policy.timeout_us == 30 * SECOND
    assert policy.day_zone == "UTC"
    assert policy.daily == {}


def test_every_field_has_a_key_and_every_optional_one_can_be_turned_off() -> None:
    fields = {field.name for field in dataclasses.fields(Policy)}
    assert {entry.field for entry in KEYS.values()} == fields
    hints = get_type_hints(Policy)
    optional = {
        key
        for key, entry in KEYS.items()
        if type(None) in getattr(hints[entry.field], "__args__", ())
    }
    assert optional == _MAY_BE_OFF
    assert Policy.from_mapping(dict.fromkeys(optional, "off")) == Policy(bounce_pause=None)


@pytest.mark.parametrize(
    ("mapping", "paced"),
    [
        ({"rate": "60/min"}, True),
        ({"spacing": "1s..3s"}, True),
        ({"min_gap": "1ms"}, True),
        ({}, False),
        ({"concurrency": 2}, False),
    ],
)
def test_whether_two_sends_are_ever_kept_apart(mapping: dict[str, Any], paced: bool) -> None:
    assert Policy.from_mapping(mapping).paced is paced


def test_a_policy_cannot_be_changed() -> None:
    policy = Policy.from_mapping({"daily": {"email": 20}})
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.concurrency = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        policy.daily["email"] = 21  # type: ignore[index]


def test_plain_mappings_of_caps_are_taken_and_copied() -> None:
    counts = {"email": 20}
    policy = Policy(daily=counts)
    counts["email"] = 99
    assert policy.daily["email"] == 20
    assert policy == Policy.from_mapping({"daily": {"email": 20}})
    hash(policy)


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({}, "UTC"),
        ({"zone": "Asia/Tokyo"}, "Asia/Tokyo"),
        ({"hours": "09:00-18:00 Europe/Paris"}, "Europe/Paris"),
        ({"hours": "09:00-18:00 Europe/Paris", "zone": "UTC"}, "UTC"),
        ({"hours": "09:00-18:00", "zone": "Asia/Tokyo"}, "Asia/Tokyo"),
        ({"blackout": ["2026-12-25"], "zone": "Asia/Tokyo"}, "Asia/Tokyo"),
    ],
)
def test_the_zone_whose_midnight_counts(mapping: dict[str, Any], expected: str) -> None:
    assert Policy.from_mapping(mapping).day_zone == expected


def test_hours_know_the_blackout_dates() -> None:
    policy = Policy.from_mapping(
        {"hours": "Mon-Fri 09:00-18:00 UTC", "blackout": [date(2026, 12, 25), "2026-01-01"]}
    )
    assert policy.blackout == (date(2026, 1, 1), date(2026, 12, 25))
    assert policy.hours is not None
    assert policy.hours.blackout == {date(2026, 1, 1), date(2026, 12, 25)}
    assert not policy.hours.is_open(instant_of(date(2026, 12, 25), hour=12))
    assert policy.hours.is_open(instant_of(date(2026, 12, 24), hour=12))


def test_blackout_dates_need_no_hours() -> None:
    policy = Policy.from_mapping({"blackout": ["2026-12-25"], "zone": "Asia/Tokyo"})
    assert policy.hours == Hours.always("Asia/Tokyo", [date(2026, 12, 25)])
    assert policy.hours.next_open(instant_of(date(2026, 12, 25))) == instant_of(
        date(2026, 12, 25), hour=15
    )


def test_blackout_dates_of_the_hours_are_the_policys_too() -> None:
    day = date(2026, 12, 25)
    policy = Policy(hours=Hours.always("UTC", [day]))
    assert policy.blackout == (day,)
    assert policy == Policy(hours=Hours.always("UTC"), blackout=(day,))


@given(spans, lasting_us, st.integers())
def test_drawn_gaps_keep_to_spacing_and_least_gap(span: Span, least_us: int, seed: int) -> None:
    policy = Policy(spacing=span, min_gap_us=least_us)
    rng = random.Random(seed)
    for _ in range(5):
        gap_us = policy.draw_gap_us(rng)
        assert gap_us >= least_us
        assert span.low_us <= gap_us <= max(span.high_us, least_us)


def test_without_spacing_the_least_gap_is_the_gap() -> None:
    rng = random.Random(1)
    assert Policy(min_gap_us=MINUTE).draw_gap_us(rng) == MINUTE
    assert Policy().draw_gap_us(rng) == 0


@pytest.mark.parametrize(
    ("mapping", "key", "reason"),
    [
        ({"spacng": "3s"}, None, "unknown key 'spacng', did you mean 'spacing'?"),
        ({"min_gap_us": 5}, None, "unknown key 'min_gap_us', did you mean 'min_gap'?"),
        ({"zzz": 1}, None, "unknown key 'zzz'"),
        ({"rate": 40}, "rate", "expected a text in quotes, not 40"),
        ({"rate": "0/min"}, "rate", "above zero"),
        ({"concurrency": 0}, "concurrency", "0 is not between 1 and 64"),
        ({"concurrency": 65}, "concurrency", "65 is not between 1 and 64"),
        ({"concurrency": "3"}, "concurrency", "expected a whole number, not '3'"),
        ({"concurrency": True}, "concurrency", "expected a whole number"),
        ({"part_gap": "500ms..200ms"}, "part_gap", "wrong way round"),
        ({"part_gap": "off"}, "part_gap", "not a duration"),
        ({"hours": "Mon-Fri 09:00-18:00"}, "hours", "no time zone"),
        ({"hours": "Mon-Fri 09:00-18:00", "zone": "off"}, "hours", "no time zone"),
        ({"hours": "Mon-Fri 22:00-06:00 UTC"}, "hours", "crosses midnight"),
        ({"hours": 9}, "hours", "expected a text"),
        ({"blackout": "2026-12-25"}, "blackout", "expected a list of dates"),
        ({"blackout": ["25.12.2026"]}, "blackout", "'25.12.2026' is not a date"),
        ({"blackout": [datetime(2026, 12, 25)]}, "blackout", "expected a text"),
        ({"zone": "Mars/Olympus"}, "zone", "unknown time zone 'Mars/Olympus'"),
        ({"zone": 1}, "zone", "expected a text"),
        ({"spacing": "20m..5m"}, "spacing", "wrong way round"),
        ({"min_gap": "-6m"}, "min_gap", "negative"),
        ({"batch": "75"}, "batch", "not a batch"),
        ({"daily": 20}, "daily", "expected a table"),
        ({"daily": {"email": -1}}, "daily.email", "cap -1 is not between 0"),
        ({"weekly": {"email": "80"}}, "weekly.email", "expected a whole number"),
        ({"weekly": {"Email": 80}}, "weekly", "no action type, did you mean 'email'"),
        ({"adaptive": {"abov": "5%"}}, "adaptive", "did you mean 'above'?"),
        ({"adaptive": {"above": "5"}}, "adaptive.above", "not a percentage"),
        ({"adaptive": "5%"}, "adaptive", "expected a table"),
        ({"adaptive": {}}, "adaptive", "there is no spacing to adapt"),
        (
            {"adaptive": {"between": "2s..10s"}, "spacing": "1s"},
            "spacing",
            "spacing 1s is outside adaptive bounds 2s..10s",
        ),
        (
            {"adaptive": {"between": "2s..10s"}, "spacing": "3s..11s"},
            "spacing",
            "spacing 3s..11s is outside adaptive bounds 2s..10s",
        ),
        (
            {"adaptive": {"between": "2s..10s"}, "spacing": "1s..3s"},
            "spacing",
            "spacing 1s..3s is outside adaptive bounds 2s..10s",
        ),
        (
            {"adaptive": {"between": "2s..10s"}, "spacing": "3s", "min_gap": "6m"},
            "min_gap",
            "min_gap 6m is above adaptive bounds 2s..10s",
        ),
        ({"breaker": {"samples": 500}}, "breaker.samples", "500 is not between 1 and window"),
        ({"bounce_pause": "200%"}, "bounce_pause", "200% is more than all"),
        ({"warmup": "20 +10%/day to 10"}, "warmup", "below its start"),
        ({"retry": "1m;5m"}, "retry", "not a duration"),
        ({"retry": "off"}, "retry", "not a duration"),
        ({"throttle": {"to": "20"}}, "throttle.to", "not a rate"),
        ({"throttle": "off"}, "throttle", "expected a table"),
        ({"on_unknown": "ask"}, "on_unknown", "'ask' is neither 'hold' nor 'resend'"),
        ({"timeout": "0s"}, "timeout", "above zero"),
        ({"timeout": "2h"}, "timeout", "at most 1h"),
        ({"timeout": 30}, "timeout", "expected a text"),
        ({"per_recipient": "daily"}, "per_recipient", "not a frequency"),
    ],
)
def test_what_is_wrong_is_named(mapping: dict[str, Any], key: str | None, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        Policy.from_mapping(mapping, where="paceline.toml: policy.mine")
    assert caught.value.key == key
    assert reason in caught.value.reason
    assert str(caught.value).startswith("paceline.toml: policy.mine: ")
    assert "\n" not in str(caught.value)


def test_the_place_is_the_policy_unless_told_otherwise() -> None:
    with pytest.raises(InputError, match=r"^policy: rate: '40' is not a rate\. Write it like"):
        Policy.from_mapping({"rate": "40"})


def test_a_cap_of_zero_means_never_and_is_allowed() -> None:
    assert Policy.from_mapping({"daily": {"inmail": 0}}).daily["inmail"] == 0


def test_hours_that_never_open_are_refused() -> None:
    first = date(2026, 11, 15)
    closed = [first + timedelta(days=n) for n in range(400)]
    with pytest.raises(InputError, match="nothing is open for 400 days from 2026-11-15"):
        Policy.from_mapping({"hours": "09:00-18:00 UTC", "blackout": closed})
    sundays = [first + timedelta(days=7 * n) for n in range(60)]
    with pytest.raises(InputError, match="nothing is open"):
        Policy.from_mapping({"hours": "Sun 09:00-18:00 UTC", "blackout": sundays})
    Policy.from_mapping({"hours": "Sun 09:00-18:00 UTC", "blackout": sundays[:50]})


def test_policies_made_in_code_are_checked_too() -> None:
    with pytest.raises(InputError, match="concurrency"):
        Policy(concurrency=0)
    with pytest.raises(InputError, match=r"daily\.email"):
        Policy(daily={"email": -1})
    with pytest.raises(InputError, match="zone"):
        Policy(zone="Nowhere")
    with pytest.raises(InputError, match="min_gap"):
        Policy(min_gap_us=-1)


def test_later_layers_win_key_by_key() -> None:
    preset = {"rate": "40/min", "daily": {"email": 20, "reply": 5}, "spacing": "3s"}
    own = {"rate": "10/min", "daily": {"email": 7}, "weekly": {"email": 30}}
    assert merge({}, preset, own) == {
        "rate": "10/min",
        "daily": {"email": 7, "reply": 5},
        "weekly": {"email": 30},
        "spacing": "3s",
    }
    assert merge() == {}


def test_merging_leaves_its_layers_alone() -> None:
    preset = {"daily": {"email": 20}}
    merged = merge(preset)
    merged["daily"]["email"] = 99
    assert preset == {"daily": {"email": 20}}


def test_merging_leaves_nonsense_to_be_refused() -> None:
    merged = merge({"daily": {"email": 20}}, {"daily": 5})
    with pytest.raises(InputError, match="daily"):
        Policy.from_mapping(merged)
    assert merge({"daily": 5}, {"daily": {"email": 1}}) == {"daily": {"email": 1}}


def test_an_account_can_turn_off_what_its_preset_has() -> None:
    merged = merge({"rate": "40/min", "per_recipient": "1/day"}, {"rate": "off"})
    policy = Policy.from_mapping(merged)
    assert policy.rate is None
    assert policy.per_recipient == Frequency(1, DAY)
    assert Policy.from_mapping({"rate": "40/min"}).rate == Rate(40, MINUTE)
