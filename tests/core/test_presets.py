"""The presets carry the numbers of the documents, and each makes a sound policy."""

import random

import pytest

from paceline.core.durations import Span
from paceline.core.errors import InputError
from paceline.core.grammar import Batch, Ladder, Percent, Rate
from paceline.core.instants import MILLISECOND, MINUTE, SECOND
from paceline.core.policy import Policy, merge
from paceline.core.presets import PRESETS, preset


def policy_of(name: str) -> Policy:
    return Policy.from_mapping(preset(name), where=name)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_print_as_they_are_written_here(name: str) -> None:
    assert policy_of(name).to_mapping() == preset(name)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_says_in_one_line_whom_it_suits(name: str) -> None:
    assert 10 < len(PRESETS[name].description) < 90
    assert "\n" not in PRESETS[name].description


def test_all_presets_of_the_design_are_here() -> None:
    assert sorted(PRESETS) == [
        "campaign-whatsapp",
        "cold-email",
        "gmail",
        "gmail-free",
        "gmail-legacy-quota",
        "linkedin",
        "smtp",
        "whatsapp-established",
        "whatsapp-new",
    ]


def test_whatsapp() -> None:
    established, new = policy_of("whatsapp-established"), policy_of("whatsapp-new")
    assert established.rate == Rate(40, MINUTE)
    assert established.throttle.to == new.rate == Rate(20, MINUTE)
    for policy in (established, new):
        assert policy.concurrency == 3
        assert policy.part_gap == Span(200 * MILLISECOND, 500 * MILLISECOND)


def test_a_whatsapp_campaign() -> None:
    policy = policy_of("campaign-whatsapp")
    assert policy.spacing == Span(3 * SECOND, 3 * SECOND)
    assert policy.batch == Batch(75, 30 * SECOND)
    assert policy.adaptive is not None
    assert policy.adaptive.above == Percent.parse("5%")
    assert float(policy.adaptive.slow_by) == 1.5
    assert policy.adaptive.between == Span(2 * SECOND, 10 * SECOND)
    assert policy.breaker is not None
    assert policy.breaker.above == Percent.parse("20%")
    assert (policy.breaker.samples, policy.breaker.window) == (20, 100)
    assert policy.retry == Ladder.doubled(3 * SECOND)


def test_cold_email() -> None:
    policy = policy_of("cold-email")
    assert policy.daily == {"email": 20}
    assert policy.spacing == Span(5 * MINUTE, 20 * MINUTE)
    assert str(policy.hours) == "Mon-Fri 09:00-18:00 America/New_York"
    assert policy.day_zone == "America/New_York"
    rng = random.Random(7)
    gaps = [policy.draw_gap_us(rng) for _ in range(500)]
    assert min(gaps) == 6 * MINUTE
    assert 19 * MINUTE < max(gaps) <= 20 * MINUTE


def test_linkedin() -> None:
    policy = policy_of("linkedin")
    assert policy.daily == {"message": 50, "connection_request": 20}
    assert policy.weekly == {"connection_request": 150}
    assert policy.hours is None


@pytest.mark.parametrize(
    ("name", "rate", "daily"),
    [
        ("gmail", "60/min", {"email": 2000}),
        ("gmail-free", "60/min", {"email": 500}),
        ("gmail-legacy-quota", "2.5/s", {"email": 2000}),
        ("smtp", "5/s", {}),
    ],
)
def test_email_providers(name: str, rate: str, daily: dict[str, int]) -> None:
    policy = policy_of(name)
    assert str(policy.rate) == rate
    assert policy.daily == daily
    assert policy.zone == "UTC"


def test_an_accounts_own_value_goes_before_the_preset() -> None:
    own = {"daily": {"email": 7}, "hours": "Mon-Sun 08:00-20:00 Europe/Paris"}
    policy = Policy.from_mapping(merge(preset("cold-email"), own))
    assert policy.daily == {"email": 7}
    assert policy.day_zone == "Europe/Paris"
    assert policy.min_gap_us == 6 * MINUTE


def test_a_preset_is_a_copy() -> None:
    preset("cold-email")["daily"]["email"] = 10_000
    assert preset("cold-email")["daily"]["email"] == 20


def test_unknown_presets_are_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="unknown preset 'cold-mail', did you mean 'cold-email'"):
        preset("cold-mail")
    with pytest.raises(InputError, match="Known presets are whatsapp-established, "):
        preset("fax")
