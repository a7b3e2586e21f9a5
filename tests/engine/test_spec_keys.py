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


def test_how_often_messages_are_tried_again_is_kept_with_each_of_them() -> None:
    steps = [
        {"parts": [{"text": "one"}, {"media": "a.png"}]},
        {"after": "3d", "parts": [{"text": "two"}]},
        {"on": "reply", "parts": [{"text": "three"}]},
    ]
    for retries in (0, 1, 10):
        spec = _spec(parts="-", steps=steps, retries=retries).with_media({"a.png": "A"})
        assert [content.retries for content in spec.all_contents] == [retries] * 3
        assert spec.settings()["retries"] == retries
        back = CampaignSpec.stored("spring", spec.stored_content(), spec.settings())
        assert back == spec
        kept = [part.get("retries") for part in spec.stored_content()]
        assert kept == [retries, None, retries, retries]
    assert _spec(retries=2).content.retries == 2
    assert _spec().content.retries is None and "retries" not in _spec().settings()
    for bad in (-1, 11, True, "1", 1.0):
        assert "retries: must be a whole number from 0 to 10" in _refused(retries=bad)


def test_a_step_on_a_reply_is_kept_beside_the_others() -> None:
    steps = [
        {"parts": HELLO},
        {"after": "3d", "parts": [{"text": "two"}]},
        {"on": "reply", "parts": [{"media": "b.png"}]},
    ]
    spec = _spec(parts="-", steps=steps, stop_on_reply=True)
    assert spec.follow_up is not None and spec.stop_on_reply
    assert (spec.follow_up.on, spec.follow_up.within_us) == ("reply", DAY)
    assert (len(spec.steps), len(spec.contents), len(spec.all_contents)) == (1, 2, 3)
    stored = spec.with_media({"b.png": "B"})
    assert stored.media == ["B"]
    assert [part.get("step", 1) for part in stored.stored_content()] == [1, 2, 3]
    assert CampaignSpec.stored("spring", stored.stored_content(), stored.settings()) == stored


def test_an_invitation_is_followed_by_a_message_when_it_is_accepted() -> None:
    accepted = {"on": "accepted", "action": "message", "parts": HELLO}
    spec = _spec(parts="-", action="connection_request", steps=[{"parts": HELLO}, accepted])
    assert spec.follow_up is not None
    assert (spec.follow_up.within_us, spec.follow_up.action) == (30 * DAY, "message")
    assert [said.action for said in spec.messages] == ["connection_request", "message"]


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        (
            {"parts": "-", "steps": [{"on": "reply", "parts": HELLO}]},
            "steps[1]: on: nobody can answer before the first step",
        ),
        (
            {
                "parts": "-",
                "steps": [
                    {"parts": HELLO},
                    {"on": "reply", "parts": HELLO},
                    {"after": "1d", "parts": HELLO},
                ],
            },
            "steps[2]: on: a step that is sent on a reply is the last one",
        ),
        (
            {"parts": "-", "steps": [{"parts": HELLO}, {"on": "love", "parts": HELLO}]},
            "steps[2]: on: must be one of reply, accepted, not 'love'",
        ),
        (
            {
                "parts": "-",
                "steps": [{"parts": HELLO}, {"on": "reply", "after": "1d", "parts": HELLO}],
            },
            "steps[2]: after: a step waits so long, or for what they do, not for both",
        ),
        (
            {"parts": "-", "steps": [{"parts": HELLO}, {"within": "1d", "parts": HELLO}]},
            "steps[2]: within: only a step that is sent on what they do has this",
        ),
        (
            {"parts": "-", "steps": [{"parts": HELLO}, {"on": "accepted", "parts": HELLO}]},
            "steps[2].on: only an invitation can be accepted",
        ),
        (
            {
                "parts": "-",
                "action": "connection_request",
                "steps": [{"parts": HELLO}, {"on": "accepted", "parts": HELLO}],
            },
            "steps[2].action: nobody is invited twice",
        ),
        ({"stop_on_reply": "yes"}, "stop_on_reply: must be true or false"),
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
