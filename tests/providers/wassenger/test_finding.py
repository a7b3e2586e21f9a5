"""What became of a message without an answer: found by our name of it, never said to be absent."""

import json
from typing import Any

import pytest

from paceline.engine.ports import Found
from tests.providers.loopback import HTML, Scripted, said
from tests.providers.remote import patience
from tests.providers.wassenger.fake import FakeWassenger, error
from tests.providers.wassenger.stage import message, play, send

UNCLEAR = Found("unclear")


def find(fake: FakeWassenger, **about: Any) -> Found:
    return play(fake.settings(), lambda driver: driver.find(message(**about), 0), patience(fake))


def test_it_is_asked_for_by_our_name(fake: FakeWassenger) -> None:
    sent = send(fake, message())
    assert find(fake, text="changed since") == Found("present", sent.provider_id)
    assert fake.calls[-1].query == {"reference": "home-7-0"}
    assert find(fake, key="home-8-0") == UNCLEAR


def test_a_list_may_lag_behind(fake: FakeWassenger) -> None:
    send(fake, message())
    fake.unlisted = True
    assert find(fake) == UNCLEAR


@pytest.mark.parametrize("status", ["sent", "queued", "processing", "delivered", "read", None, 5])
def test_it_is_with_the_provider_however_far_it_got(fake: FakeWassenger, status: Any) -> None:
    send(fake, message())
    fake.messages[0]["status"] = status
    assert find(fake).finding == "present"


def test_one_that_failed_proves_nothing(fake: FakeWassenger) -> None:
    """It may be an earlier attempt at the same, whose name is the same."""
    send(fake, message())
    fake.messages[0]["status"] = "failed"
    assert find(fake) == UNCLEAR
    send(fake, message())
    assert find(fake) == Found("present", fake.messages[1]["id"])


def test_a_list_of_others_is_no_list_of_ours(fake: FakeWassenger) -> None:
    """A server that does not know the parameter lists whatever it has."""
    others: list[Any] = [{"id": "x", "reference": "home-70"}, {"id": "y"}, None, 5, "home-7-0"]
    fake.answers["/messages"] = said(200, others)
    assert find(fake) == UNCLEAR


@pytest.mark.parametrize(
    "scripted",
    [
        error(401),
        error(404),
        error(429),
        Scripted(502, b"<html>", HTML),
        Scripted(200, b"nonsense"),
        Scripted(200, json.dumps({"reference": "home-7-0", "id": "a"}).encode()),
        said(200, {"status": 401}),
        Scripted(hangs=True),
        Scripted(drops="read"),
        Scripted(204),
    ],
    ids=lambda value: str(value)[:50],
)
def test_not_being_told_is_unclear(fake: FakeWassenger, scripted: Scripted) -> None:
    send(fake, message())
    fake.answers["/messages"] = scripted
    assert find(fake) == UNCLEAR
