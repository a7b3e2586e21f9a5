"""Pools, steps, spreading and windows in campaign files: what they mean, and what is refused."""

from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import DAY, HOUR, Instant, parse_instant
from paceline.engine.campaign_spec import CampaignSpec, Timing

HELLO = [{"text": "hello"}]


def _spec(**keys: Any) -> CampaignSpec:
    raw = {"name": "spring", "accounts": ["ann"], "parts": HELLO, **keys}
    return CampaignSpec.from_mapping({key: value for key, value in raw.items() if value != "-"})


def _refused(**keys: Any) -> str:
    with pytest.raises(InputError) as refused:
        _spec(**keys)
    return str(refused.value)


def test_a_pool_is_accounts_that_share_everything() -> None:
    spec = _spec(accounts="-", pool=["ann", "bob"])
    assert (spec.accounts, spec.assignment) == (("ann", "bob"), "pooled")
    assert _spec(accounts=["ann", "bob"], assignment="pooled") == spec
    assert "either accounts or a pool" in _refused(pool=["bob"])
    assert "always assigned as 'pooled'" in _refused(
        accounts="-", pool=["bob"], assignment="round_robin"
    )


def test_steps_are_read_in_order() -> None:
    steps = [
        {"parts": [{"text": "one"}, {"media": "a.png"}]},
        {"after": "3d", "parts": [{"text": "two"}]},
        {"after": "12h", "parts": [{"media": "b.png", "caption": "three"}]},
    ]
    spec = _spec(parts="-", steps=steps)
    assert [part.text for part in spec.content.parts] == ["one", ""]
    assert [step.after_us for step in spec.steps] == [3 * DAY, 12 * HOUR]
    assert spec.media == ["a.png", "b.png"]
    stored = spec.with_media({"a.png": "A", "b.png": "B"})
    assert stored.media == ["A", "B"]
    assert [part.get("step", 1) for part in stored.stored_content()] == [1, 1, 2, 3]
    back = CampaignSpec.stored("spring", stored.stored_content(), stored.settings())
    assert back == stored


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"steps": [{"parts": HELLO}]}, "parts: a campaign with steps has its parts in them"),
        ({"parts": "-", "steps": []}, "steps: a campaign needs at least one [[steps]]"),
        ({"parts": "-", "steps": ["hello"]}, "steps[1]: must be a table"),
        ({"parts": "-", "steps": [{}]}, "at least one [[steps.parts]]"),
        (
            {"parts": "-", "steps": [{"after": "1d", "parts": HELLO}]},
            "steps[1].after: nothing comes before the first step",
        ),
        (
            {"parts": "-", "steps": [{"parts": HELLO}, {"parts": HELLO}]},
            "steps[2].after: says how long after",
        ),
        (
            {"parts": "-", "steps": [{"parts": HELLO}, {"after": "soon", "parts": HELLO}]},
            "steps[2]: after:",
        ),
        (
            {"parts": "-", "steps": [{"parts": HELLO}, {"afer": "1d", "parts": HELLO}]},
            "did you mean 'after'",
        ),
        (
            {"parts": "-", "steps": [{"parts": HELLO}, {"after": "1d", "parts": [{"txt": "x"}]}]},
            "unknown key 'steps[2].parts[1].txt'",
        ),
        ({"spread": "36h"}, "spread: must be whole days"),
        ({"spread": "400d"}, "spread: must be whole days"),
        ({"before_open": "send"}, "before_open: 'send' is for what ends with its window"),
        ({"before_open": "now"}, "must be one of hold, send"),
        (
            {"window": "09:00-17:00", "at_close": "skip", "spread": "2d"},
            "spread: what ends with its window",
        ),
        (
            {
                "parts": "-",
                "window": "09:00-17:00",
                "at_close": "skip",
                "steps": [{"parts": HELLO}, {"after": "1d", "parts": HELLO}],
            },
            "at_close: 'skip' ends everything with the day",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_key(keys: dict[str, Any], complaint: str) -> None:
    assert complaint in _refused(**keys)


def _starts(spec: CampaignSpec, at: Instant, count: int) -> list[Instant]:
    return list(Timing.stored(spec.settings()).starts(at, count))


def test_a_spread_campaign_begins_a_share_on_every_day() -> None:
    friday = parse_instant("2026-03-06T10:00:00Z")
    assert _starts(_spec(), friday, 3) == [friday] * 3
    plain = _starts(_spec(spread="3d"), friday, 7)
    midnight = parse_instant("2026-03-07T00:00:00Z")
    assert plain == [friday] * 3 + [midnight] * 2 + [midnight + DAY] * 2


def test_days_on_which_the_window_is_shut_do_not_count() -> None:
    friday = parse_instant("2026-03-06T10:00:00Z")
    spec = _spec(spread="3d", window="Mon-Fri 09:00-17:00", zone="Europe/Paris")
    monday = parse_instant("2026-03-09T08:00:00Z")
    assert _starts(spec, friday, 3) == [friday, monday, monday + DAY]


def test_a_day_whose_window_is_over_is_none_of_them() -> None:
    spec = _spec(spread="2d", window="Mon-Fri 09:00-17:00")
    evening, saturday = (parse_instant(f"2026-03-0{day}T20:00:00Z") for day in (5, 7))
    friday, monday = (parse_instant(f"2026-03-0{day}T09:00:00Z") for day in (6, 9))
    assert _starts(spec, evening, 2) == [friday, monday]
    assert _starts(spec, saturday, 2) == [monday, monday + DAY]


def test_days_are_those_of_the_zone_also_when_the_clocks_change() -> None:
    # In Paris the 29th has 23 hours, so from the second midnight on everything is an hour earlier.
    start = parse_instant("2026-03-28T11:00:00Z")
    starts = _starts(_spec(spread="3d", zone="Europe/Paris"), start, 3)
    assert starts == [
        start,
        parse_instant("2026-03-28T23:00:00Z"),
        parse_instant("2026-03-29T22:00:00Z"),
    ]


def test_before_its_window_opens_a_campaign_waits_or_goes() -> None:
    at = parse_instant("2026-03-06T05:00:00Z")
    held = _spec(window="06:00-18:00", at_close="skip")
    sent = _spec(window="06:00-18:00", at_close="skip", before_open="send")
    opens_at, closes_at = Timing.stored(held.settings()).window_on(at)
    assert (opens_at, closes_at) == (at + HOUR, at + 13 * HOUR)
    assert Timing.stored(sent.settings()).window_on(at) == (None, closes_at)


def test_one_of_many_starts_when_all_of_them_together_say() -> None:
    timing = Timing.stored(_spec(spread="4d").settings())
    at = parse_instant("2026-03-06T10:00:00Z")
    assert [timing.start_of(at, n, 10) for n in range(10)] == list(timing.starts(at, 10))
