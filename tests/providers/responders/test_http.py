"""Somebody's own service is asked: what it is sent, and what is made of whatever it answers."""

from __future__ import annotations

import json
import logging
import traceback
from typing import Any

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.engine.ports.answering import Answer, ResponderFailed, ResponderRefused, Said
from tests.providers.loopback import HTML, JSON, Scripted, said
from tests.providers.responders.fake import NOW, SECRET, FakeService, ask, burst, service_way

PAGE = b"<html><body>Bad gateway</body></html>"
TOKEN = "t0ken-in-the-path"
BEFORE = (
    Said("us", "Our new boots are here!", NOW - 90 * SECOND),
    Said("them", "", NOW - 60 * SECOND, "audio"),
)


def test_the_service_is_told_everything_signed_and_under_one_key(service: FakeService) -> None:
    asked = burst("How much?", "In size 43", before=BEFORE, fields={"name": "Ana", "orders": 3})
    asked = asked._replace(said=(*asked.said, Said("them", "these", NOW, "image")))
    assert ask(service_way(service, "/answer?x=1"), asked) == Answer("At your service.")
    (call,) = service.calls
    assert (call.method, call.path, call.query) == ("POST", "/answer", {"x": "1"})
    assert call.headers["content-type"] == "application/json"
    assert call.headers["idempotency-key"] == "turn-7"
    assert call.headers["paceline-event-id"] == "turn-7"
    assert call.headers["paceline-timestamp"] == "1772442000"
    assert call.json() == {
        "key": "turn-7",
        "account": "shop",
        "chat": "+4915112345678",
        "text": "How much?\nIn size 43\n[image] these",
        "messages": [
            {"by": "them", "text": "How much?", "kind": "text", "at": "2026-03-02T08:59:59Z"},
            {"by": "them", "text": "In size 43", "kind": "text", "at": "2026-03-02T08:59:59Z"},
            {"by": "them", "text": "these", "kind": "image", "at": "2026-03-02T09:00:00Z"},
        ],
        "history": [
            {
                "by": "us",
                "text": "Our new boots are here!",
                "kind": "text",
                "at": "2026-03-02T08:58:30Z",
            },
            {"by": "them", "text": "", "kind": "audio", "at": "2026-03-02T08:59:00Z"},
        ],
        "fields": {"name": "Ana", "orders": 3},
    }


def test_asked_again_it_is_sent_the_same(service: FakeService) -> None:
    asked = burst("Grüße \ud83d", fields={"since": 1.5})._replace(key="turn 7/ü")
    for _ in range(2):
        ask(service_way(service), asked)
    first, second = service.calls
    assert first.body == second.body
    assert (
        first.headers["idempotency-key"] == second.headers["idempotency-key"] == "turn%207/%C3%BC"
    )
    assert first.json()["text"] == "Grüße ?"


@pytest.mark.parametrize(("history", "told"), [(0, []), (1, [""]), (2, None), (20, None)])
def test_it_is_told_as_much_of_the_past_as_is_written(
    service: FakeService, history: int, told: list[str] | None
) -> None:
    ask(service_way(service, history=history), burst("hi", before=BEFORE))
    expected = [one.text for one in BEFORE] if told is None else told
    assert [one["text"] for one in service.calls[0].json()["history"]] == expected


@pytest.mark.parametrize("scripted", [Scripted(204), said(200, {"reply": None})])
def test_it_may_have_nothing_to_say(service: FakeService, scripted: Scripted) -> None:
    service.script.append(scripted)
    assert ask(service_way(service), burst("hi")).text == ""


@pytest.mark.parametrize(
    ("reply", "text"), [(" Ten.\r\n", "Ten."), ("T\x00en", "Ten"), ("x" * 9_000, "x" * 3_999 + "…")]
)
def test_a_reply_is_trimmed(service: FakeService, reply: str, text: str) -> None:
    service.script.append(said(201, {"reply": reply, "more": 1}))
    assert ask(service_way(service), burst("hi")).text == text


@pytest.mark.parametrize(
    ("scripted", "reason", "again_us"),
    [
        (Scripted(500, b"oops\n twice"), "the service answered 500: oops twice", None),
        (Scripted(503, b"", {"Retry-After": "60"}), "the service answered 503", MINUTE),
        (Scripted(429, b"", {"Retry-After": "2"}), "the service answered 429", 2 * SECOND),
        (Scripted(404, b"no route"), "the service answered 404: no route", None),
        (Scripted(502, PAGE, HTML), "answered 502: a page instead of an answer", None),
        (Scripted(403, PAGE, HTML), "answered 403: a page instead of an answer", None),
        (Scripted(200, PAGE, HTML), "answered 200: a page instead of an answer", None),
        (Scripted(200, b"", JSON), "answered 200: nothing that can be read", None),
        (Scripted(200, b'{"reply": "Te', JSON), "nothing that can be read", None),
        (Scripted(302, b"", {"Location": "/x"}), "302: redirects are not followed", None),
        (said(200, {"reply": " "}), "200 without a reply; to say nothing it answers 204", None),
        (said(200, {"answer": "Ten."}), "200 without a reply", None),
        (said(200, {"reply": ["Ten."]}), "200 without a reply", None),
        (Scripted(200, b'{"reply": "Ten."}', JSON, drops="midway"), "no answer from the", None),
        (Scripted(drops="read"), "no answer from the service: ", None),
        (Scripted(hangs=True), "no answer from the service within 1 s", None),
    ],
)
def test_what_may_be_asked_again(
    service: FakeService, scripted: Scripted, reason: str, again_us: int | None
) -> None:
    service.script.append(scripted)
    with pytest.raises(ResponderFailed) as caught:
        ask(service_way(service, timeout="1s"), burst("hi"))
    assert reason in str(caught.value)
    assert caught.value.again_us == again_us
    assert [call.path for call in service.calls] == ["/answer"], "once, and nowhere else"


@pytest.mark.parametrize(
    ("scripted", "everybody"),
    [
        (Scripted(401, b"bad signature"), True),
        (Scripted(401, PAGE, HTML), True),
        (Scripted(410, b"gone"), True),
        (Scripted(403, b"not this word"), False),
        (Scripted(400, b"what?"), False),
        (said(422, {"error": "ask a person"}), False),
    ],
)
def test_what_a_person_has_to_see_to(
    service: FakeService, scripted: Scripted, everybody: bool
) -> None:
    service.script.append(scripted)
    with pytest.raises(
        ResponderRefused, match=f"the service answered {scripted.status}: "
    ) as caught:
        ask(service_way(service), burst("hi"))
    assert caught.value.everybody is everybody
    assert len(service.calls) == 1


@pytest.mark.parametrize("status", [401, 500])
def test_no_secret_is_in_an_error_or_a_log(
    service: FakeService, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    words = f"{SECRET} does not open {service.url}/{TOKEN}?key=query-t0ken"
    service.script.append(Scripted(status, words.encode()))
    chosen = service_way(service, f"/{TOKEN}?key=query-t0ken")
    with caplog.at_level(logging.WARNING), pytest.raises(Exception) as caught:
        ask(chosen, burst("hi"))
    told = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(chosen)
    assert "(secret) does not open" in str(caught.value)
    assert not [hidden for hidden in (SECRET, TOKEN, "query-t0ken") if hidden in told]


def test_what_cannot_be_told_in_json_is_told_as_a_text(service: FakeService) -> None:
    known: dict[str, Any] = {"due": complex(1, 2)}
    ask(service_way(service), burst("hi", fields=known))
    assert json.loads(service.calls[0].body)["fields"] == {"due": "(1+2j)"}
