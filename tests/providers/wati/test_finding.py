"""What became of a message without an answer: found by our name of it, never said to be absent."""

import json
from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.engine.ports import Found, Message
from tests.providers.loopback import HTML, Scripted, said
from tests.providers.remote import CLOCK, patience
from tests.providers.wati.fake import CHANNEL, LISTED, FakeWati, error
from tests.providers.wati.stage import LONG, file, message, play, send, send_file, template

UNCLEAR = Found("unclear")


def find(fake: FakeWati, sent: Message, since_at: int | None = None, **settings: Any) -> Found:
    """By default of an attempt that began a minute ago."""
    at = CLOCK.now() - MINUTE if since_at is None else since_at
    return play(fake.settings(**settings), lambda driver: driver.find(sent, at), patience(fake))


def asked(fake: FakeWati) -> list[dict[str, str]]:
    return [call.query for call in fake.calls if call.path == LISTED]


def test_a_text_is_found_by_our_name(fake: FakeWati) -> None:
    accepted = send(fake, message())
    changed = message(text="changed since")
    assert find(fake, changed) == Found("present", accepted.provider_id)
    assert asked(fake) == [{"pageSize": "100", "pageNumber": "1"}]
    assert find(fake, message(key="home-8-0")) == UNCLEAR, "alike, and another one"
    assert find(fake, message("+4915112345679")) == UNCLEAR, "to somebody else"


def test_a_template_is_found_by_our_name(fake: FakeWati) -> None:
    fake.templates["order_ready"] = ()
    send(fake, template())
    assert find(fake, template()) == Found("present", "home-7-0")
    assert find(fake, template()._replace(key="home-8-0")) == UNCLEAR


def test_with_several_numbers_only_one_of_them_is_asked_for(fake: FakeWati) -> None:
    send(fake, message(), channel=CHANNEL)
    assert find(fake, message(), channel=CHANNEL).finding == "present"
    assert asked(fake) == [{"pageSize": "100", "pageNumber": "1", "channelPhoneNumber": CHANNEL}]


def test_where_names_are_not_listed_the_words_and_the_time_tell(fake: FakeWati) -> None:
    fake.nameless = True
    send(fake, message())
    (entry,) = fake.messages
    assert find(fake, message()) == Found("present", entry["id"])
    assert find(fake, message(text="Hello  Anna ")).finding == "present"
    assert find(fake, message(text="Hello Bob")) == UNCLEAR
    assert find(fake, message(), CLOCK.now() + HOUR) == UNCLEAR, "what was before is another"


def test_where_names_are_not_listed_a_template_is_known_by_its_own(fake: FakeWati) -> None:
    fake.nameless, fake.templates["order_ready"] = True, ()
    send(fake, template())
    assert find(fake, template()).finding == "present"
    assert find(fake, template("order")) == UNCLEAR, "only a part of its name"
    assert find(fake, template(), CLOCK.now() + HOUR) == UNCLEAR


def test_a_long_text_has_only_its_words(fake: FakeWati) -> None:
    accepted = send(fake, message(text=LONG))
    assert find(fake, message(text=LONG)) == Found("present", accepted.provider_id)
    assert find(fake, message(text=LONG[:-1])) == UNCLEAR


def test_of_a_file_nothing_is_left_to_know_it_by(fake: FakeWati) -> None:
    send_file(fake, "Look")
    assert find(fake, file(None, "Look")) == UNCLEAR
    assert not asked(fake), "so nobody is asked"


def test_what_people_wrote_is_not_ours(fake: FakeWati) -> None:
    now = CLOCK.now() // SECOND
    theirs = {"id": "a", "text": "Hello Anna", "owner": False, "timestamp": str(now)}
    fake.answers[LISTED] = said(200, {"result": "success", "messages": {"items": [theirs]}})
    assert find(fake, message()) == UNCLEAR
    ours = {**theirs, "owner": True}
    fake.answers[LISTED] = said(200, {"result": "success", "messages": {"items": [ours]}})
    assert find(fake, message()) == Found("present", "a")


def test_a_list_may_lag_behind(fake: FakeWati) -> None:
    send(fake, message())
    fake.unlisted = True
    assert find(fake, message()) == UNCLEAR


def test_one_that_failed_proves_nothing(fake: FakeWati) -> None:
    """It may be an earlier attempt at the same, whose name is the same."""
    send(fake, message())
    fake.messages[0]["statusString"] = "FAILED"
    assert find(fake, message()) == UNCLEAR
    send(fake, message())
    assert find(fake, message()).finding == "present"


def test_pages_are_turned_as_far_as_time_goes(fake: FakeWati) -> None:
    send(fake, message())
    first = fake.messages[0]
    fake.messages += [{**first, "localMessageId": f"other-{n}-0"} for n in range(150)]
    assert find(fake, message()).finding == "present"
    assert [one["pageNumber"] for one in asked(fake)] == ["1", "2"]
    fake.calls.clear()
    assert find(fake, message(), CLOCK.now() + HOUR) == UNCLEAR
    assert len(asked(fake)) == 1, "what is on the next page is older still"


def test_a_list_without_an_end_is_given_up(fake: FakeWati) -> None:
    send(fake, message(key="home-8-0"))
    entry = {"id": "a", "created": fake.messages[0]["created"], "localMessageId": "b"}
    fake.answers[LISTED] = said(200, {"messages": {"items": [entry]}})
    assert find(fake, message()) == UNCLEAR
    assert len(asked(fake)) == 3


@pytest.mark.parametrize(
    "scripted",
    [
        error(401),
        error(404),
        error(429),
        Scripted(502, b"<html>", HTML),
        Scripted(200, b"nonsense"),
        said(200, {"result": False, "info": "No", "messages": {"items": [{"id": "a"}]}}),
        said(200, {"messages": None}),
        said(200, {"messages": {"items": {"localMessageId": "home-7-0"}}}),
        said(200, {"messages": {"items": [None, 5, "home-7-0", {}, {"localMessageId": 7}]}}),
        Scripted(200, json.dumps([{"localMessageId": "home-7-0"}]).encode()),
        Scripted(hangs=True),
        Scripted(drops="read"),
        Scripted(204),
    ],
    ids=lambda value: str(value)[:60],
)
def test_not_being_told_is_unclear(fake: FakeWati, scripted: Scripted) -> None:
    send(fake, message())
    fake.answers[LISTED] = scripted
    assert find(fake, message()) == UNCLEAR


def test_nobody_can_be_asked_about_nobody(fake: FakeWati) -> None:
    assert find(fake, message("120363041234567890@g.us")) == UNCLEAR
