"""Campaigns as people write them: what is read, and how everything else is refused."""

import tomllib
from datetime import UTC, date, datetime
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import MINUTE, parse_instant
from paceline.core.model import Part, Target
from paceline.engine.campaign_spec import CampaignSpec

WHOLE = """
name = "spring opening"
accounts = ["ann", "bob"]
assignment = "round_robin"
action = "email"
zone = "Europe/Paris"
window = "Mon-Fri 09:00-12:00"
at_close = "skip"
start_at = 2026-03-02T09:30:00
expire_after = "90m"
recipient_hours = "09:00-17:00"
priority = 3
audience = "people.csv"

[[parts]]
subject = "News for {{ name }}"
text = "Dear {{ name }}"
html = "<p>Dear {{ name }}</p>"

[[parts]]
media = "flyer.png"
caption = "For {{ target }}"
"""

LEAST: dict[str, Any] = {"name": "x", "accounts": ["ann"], "parts": [{"text": "hello"}]}


def spec(**changes: Any) -> CampaignSpec:
    raw = {**LEAST, **changes}
    return CampaignSpec.from_mapping({key: value for key, value in raw.items() if value is not ...})


def test_everything_that_can_be_written_is_read() -> None:
    found = CampaignSpec.from_mapping(tomllib.loads(WHOLE))
    assert found.name == "spring opening"
    assert found.accounts == ("ann", "bob")
    assert (found.assignment, found.action, found.priority) == ("round_robin", "email", 3)
    assert str(found.window) == "Mon-Fri 09:00-12:00 Europe/Paris"
    assert (found.at_close, found.recipient_hours) == ("skip", "09:00-17:00")
    assert found.start_at == parse_instant("2026-03-02T08:30:00Z")
    assert found.expire_after_us == 90 * MINUTE
    text, flyer = found.content.parts
    assert text == Part("text", "Dear {{ name }}", "News for {{ name }}", "<p>Dear {{ name }}</p>")
    assert flyer == Part("media", "For {{ target }}", media="flyer.png")
    assert found.media == ["flyer.png"]


def test_the_least_that_must_be_written_has_sensible_defaults() -> None:
    found = spec()
    assert (found.assignment, found.action, found.at_close) == (
        "round_robin",
        "message",
        "resume",
    )
    assert (found.window, found.start_at, found.expire_after_us, found.priority) == (
        None,
        None,
        None,
        0,
    )


def test_a_single_account_may_be_written_without_a_list() -> None:
    assert spec(accounts="ann").accounts == ("ann",)


def test_media_are_named_by_what_they_are_stored_as() -> None:
    found = spec(parts=[{"media": "a.png"}, {"text": "x"}, {"media": "a.png", "text": "again"}])
    assert found.media == ["a.png"]
    stored = found.with_media({"a.png": "f00d"})
    assert [part.media for part in stored.content.parts] == ["f00d", None, "f00d"]
    assert stored.content.parts[2].text == "again"


def test_an_attachment_keeps_the_subject_and_the_body_it_is_sent_with() -> None:
    found = spec(parts=[{"media": "a.pdf", "text": "see", "subject": "Hi", "html": "<p>see</p>"}])
    assert found.content.parts == (Part("media", "see", "Hi", "<p>see</p>", "a.pdf"),)


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        ("2026-03-02T09:30:00Z", "2026-03-02T09:30:00Z"),
        ("2026-03-02T09:30", "2026-03-02T14:30:00Z"),
        ("2026-03-02T09:30:00+02:00", "2026-03-02T07:30:00Z"),
        (datetime(2026, 3, 2, 9, 30, tzinfo=UTC), "2026-03-02T09:30:00Z"),
        (datetime(2026, 3, 2, 9, 30), "2026-03-02T14:30:00Z"),
        (date(2026, 3, 2), "2026-03-02T05:00:00Z"),
    ],
)
def test_a_start_without_an_offset_is_meant_in_the_campaigns_zone(
    value: object, instant: str
) -> None:
    assert spec(start_at=value, zone="America/New_York").start_at == parse_instant(instant)


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no name": ({"name": ...}, "name", "is missing"),
    "an empty name": ({"name": "  "}, "name", "must not be empty"),
    "a name that is none": ({"name": 5}, "name", "must be a text"),
    "a name in brackets": ({"name": "(direct)"}, "name", "bracket"),
    "a name of two lines": ({"name": "a\nb"}, "name", "one line"),
    "an endless name": ({"name": "a" * 201}, "name", "200"),
    "no accounts": ({"accounts": ...}, "accounts", "at least one account"),
    "an empty list": ({"accounts": []}, "accounts", "at least one account"),
    "accounts that are none": ({"accounts": [1]}, "accounts", "at least one account"),
    "an account twice": ({"accounts": ["a", "a"]}, "accounts", "twice"),
    "fixed to two": ({"accounts": ["a", "b"], "assignment": "fixed"}, "accounts", "single"),
    "unknown assignment": ({"assignment": "random"}, "assignment", "must be one of"),
    "unknown at_close": ({"at_close": "stop"}, "at_close", "must be one of"),
    "skip without a window": ({"at_close": "skip"}, "at_close", "needs a window"),
    "no parts": ({"parts": ...}, "parts", "at least one"),
    "empty parts": ({"parts": []}, "parts", "at least one"),
    "a part that is none": ({"parts": ["hello"]}, "parts[1]", "must be a table"),
    "an empty part": ({"parts": [{}]}, "parts[1]: text", "needs a text or a media"),
    "a second bad part": ({"parts": [{"text": "a"}, {}]}, "parts[2]: text", "needs a text"),
    "a text that is none": ({"parts": [{"text": 5}]}, "parts[1]: text", "must be a text"),
    "two captions": (
        {"parts": [{"media": "a", "text": "b", "caption": "c"}]},
        "parts[1]: caption",
        "not both",
    ),
    "a caption of nothing": (
        {"parts": [{"text": "a", "caption": "b"}]},
        "parts[1]: caption",
        "only a media part",
    ),
    "a template that does not end": ({"parts": [{"text": "{{ a"}]}, "parts[1]", "template"),
    "a filter nobody knows": ({"parts": [{"text": "{{ a|b }}"}]}, "parts[1]", "'b'"),
    "a window without times": ({"window": "Mon-Fri"}, "window", "09:00-18:00"),
    "a window inside out": ({"window": "18:00-09:00"}, "window", "18:00-09:00"),
    "a window that is none": ({"window": 5}, "window", "must be a text"),
    "an unknown zone": ({"zone": "Mars/Olympus"}, "zone", "Mars/Olympus"),
    "an unknown zone of a window": ({"window": "09:00-12:00 Mars/X"}, "window", "Mars/X"),
    "a start that is none": ({"start_at": "soon"}, "start_at", "not a date"),
    "an expiry that is none": ({"expire_after": "soon"}, "expire_after", "not a duration"),
    "an expiry at once": ({"expire_after": "0s"}, "expire_after", "above zero"),
    "recipients' hours that are none": ({"recipient_hours": "x"}, "recipient_hours", "x"),
    "recipients' hours with a zone": (
        {"recipient_hours": "09:00-17:00 Europe/Paris"},
        "recipient_hours",
        "their own zone",
    ),
    "a priority that is none": ({"priority": "high"}, "priority", "whole number"),
    "a priority that is true": ({"priority": True}, "priority", "whole number"),
    "a priority beyond bounds": ({"priority": 101}, "priority", "100"),
    "the action of replies": ({"action": "reply"}, "action", "reply"),
    "an empty action": ({"action": ""}, "action", "must not be empty"),
}


@pytest.mark.parametrize(("changes", "key", "reason"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused_with_its_key(changes: dict[str, Any], key: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        spec(**changes)
    assert str(caught.value).startswith(key), str(caught.value)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"acounts": ["ann"]}, "unknown key 'acounts', did you mean 'accounts'?"),
        ({"parts": [{"txt": "a"}]}, "unknown key 'parts[1].txt', did you mean 'text'?"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as caught:
        spec(**changes)
    assert str(caught.value).rstrip(".") == text.rstrip(".")


# ---------------------------------------------------------------------- the audience


def test_recipients_hours_need_a_zone_that_exists() -> None:
    found = spec(recipient_hours="09:00-17:00")
    assert found.recipient_hours_of(Target("eve", {"zone": "Asia/Tokyo"})) == (
        "09:00-17:00 Asia/Tokyo"
    )
    with pytest.raises(InputError, match=r"^audience: target eve has no zone"):
        found.recipient_hours_of(Target("eve"))
    with pytest.raises(InputError, match=r"^audience: target eve: .*Mars"):
        found.recipient_hours_of(Target("eve", {"zone": "Mars/Olympus"}))
    assert spec().recipient_hours_of(Target("eve")) is None
