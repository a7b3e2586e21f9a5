"""Whatever a model's server does instead of answering: asked once, and told without a secret."""

from __future__ import annotations

import json
import logging
import socket
import threading
import traceback
from typing import Any

import pytest

from paceline.core.instants import MILLISECOND, MINUTE, SECOND
from paceline.engine.ports.answering import ResponderFailed, ResponderRefused
from paceline.providers.responders.completions import NO_CREDIT, NOT_THIS
from tests.providers.loopback import HTML, JSON, Scripted, said
from tests.providers.responders.fake import (
    KEY,
    FakeModel,
    ask,
    burst,
    completion,
    fault,
    model_way,
    response,
)

PAGE = b"<html><body>Bad gateway</body></html>"
LIMIT = "Rate limit reached for small in organization org-1 on requests per min"


def failure(fake: FakeModel, scripted: Scripted, **written: Any) -> ResponderFailed:
    fake.script.append(scripted)
    with pytest.raises(ResponderFailed) as caught:
        ask(model_way(fake, **written), burst("How much?"))
    assert len(fake.calls) == 1, "it is the engine that asks again"
    return caught.value


def refusal(fake: FakeModel, scripted: Scripted, **written: Any) -> ResponderRefused:
    fake.script.append(scripted)
    with pytest.raises(ResponderRefused) as caught:
        ask(model_way(fake, **written), burst("How much?"))
    assert len(fake.calls) == 1
    return caught.value


@pytest.mark.parametrize(
    ("headers", "again_us"),
    [
        ({}, None),
        ({"Retry-After": "20"}, 20 * SECOND),
        ({"Retry-After": "Mon, 02 Mar 2026 09:01:00 GMT"}, MINUTE),
        ({"Retry-After": "1", "retry-after-ms": "350"}, 350 * MILLISECOND),
        ({"Retry-After": "3", "retry-after-ms": "soon"}, 3 * SECOND),
        ({"Retry-After": "soon"}, None),
    ],
)
def test_too_many_questions(
    model: FakeModel, headers: dict[str, str], again_us: int | None
) -> None:
    scripted = fault(429, "rate_limit_exceeded", LIMIT, kind="requests", headers=headers)
    failed = failure(model, scripted)
    assert str(failed) == f"127.0.0.1 answered 429: {LIMIT}"
    assert failed.again_us == again_us


@pytest.mark.parametrize(
    ("scripted", "reason"),
    [
        (fault(500, None, "The server had an error", kind="server_error"), "500: The server had"),
        (fault(503, "slow_down", "Slow down"), "answered 503: Slow down"),
        (Scripted(502, PAGE, HTML), "answered 502: a page instead of an answer"),
        (Scripted(200, PAGE, HTML), "answered 200: a page instead of an answer"),
        (Scripted(403, PAGE, HTML), "answered 403: a page instead of an answer"),
        (Scripted(404, PAGE, HTML), "answered 404: a page instead of an answer"),
        (Scripted(200, b"", JSON), "answered 200: nothing that can be read"),
        (Scripted(200, b'{"choices": [', JSON), "nothing that can be read"),
        (Scripted(200, b"data: {}\n\ndata: [DONE]\n\n", JSON), "nothing that can be read"),
        (Scripted(200, b"[" * 100_000, JSON), "nothing that can be read"),
        (Scripted(200, b'{"x": "' + b"y" * 2_000_000 + b'"}', JSON), "nothing that can be read"),
        (Scripted(302, b"", {"Location": "/elsewhere"}), "302: redirects are not followed"),
        (said(200, {"error": {"code": 502, "message": "upstream is down"}}), "502: upstream is"),
        (said(200, {"choices": [{"error": {"code": 429, "message": "later"}}]}), "429: later"),
        (said(200, {}), "answered with no text"),
        (said(200, []), "nothing that can be read"),
        (said(200, {"choices": "none"}), "answered with no text"),
        (said(200, completion("")), "answered with no text"),
        (said(200, completion(None)), "answered with no text"),
        (said(200, completion(" \n\t ")), "answered with no text"),
        (said(200, completion("<think>and on and on", "length")), "max_tokens were used up"),
        (said(200, completion("", "length")), "max_tokens were used up before anything was said"),
    ],
)
def test_what_may_be_asked_again(model: FakeModel, scripted: Scripted, reason: str) -> None:
    assert reason in str(failure(model, scripted))


def test_a_page_may_say_when_to_come_back(model: FakeModel) -> None:
    scripted = Scripted(503, PAGE, {**HTML, "Retry-After": "7"})
    assert failure(model, scripted).again_us == 7 * SECOND


@pytest.mark.parametrize("drops", ["unread", "read", "midway"])
def test_an_answer_that_is_cut_off(model: FakeModel, drops: str) -> None:
    body = json.dumps(completion("Ten euros.")).encode()
    model.script.append(Scripted(200, body, JSON, drops=drops))
    with pytest.raises(ResponderFailed, match=r"no answer from 127\.0\.0\.1: "):
        ask(model_way(model), burst("How much?"))
    assert len(model.calls) == (0 if drops == "unread" else 1)


def test_whoever_never_answers_is_not_waited_for(model: FakeModel) -> None:
    failed = failure(model, Scripted(hangs=True), timeout="1s")
    assert str(failed) == "no answer from 127.0.0.1 within 1 s"
    assert failed.again_us is None


def test_one_byte_now_and_then_does_not_pass_for_an_answer() -> None:
    """Each of them comes in time; all of them together never do."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                while not over.wait(0.05):
                    connection.send(b" ")

        fake = FakeModel()
        fake.url = f"http://127.0.0.1:{server.getsockname()[1]}"
        thread = threading.Thread(target=drip)
        thread.start()
        try:
            with pytest.raises(ResponderFailed, match=r"no answer from 127\.0\.0\.1 within 1 s"):
                ask(model_way(fake, timeout="1s"), burst("How much?"))
        finally:
            over.set()
            thread.join()


def test_nobody_is_there() -> None:
    fake = FakeModel()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        fake.url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ResponderFailed, match=r"no answer from 127\.0\.0\.1: ConnectError"):
            ask(model_way(fake), burst("How much?"))


@pytest.mark.parametrize("code", sorted(NO_CREDIT))
def test_no_credit_is_everybodys_affair(model: FakeModel, code: str) -> None:
    scripted = fault(429, code, "You exceeded your quota", headers={"Retry-After": "1"})
    refused = refusal(model, scripted)
    assert refused.everybody
    assert str(refused) == "no credit left at 127.0.0.1: You exceeded your quota"


@pytest.mark.parametrize(
    ("scripted", "reason"),
    [
        (fault(429, "x", "Pay", kind="insufficient_quota"), "no credit left"),
        (fault(402, 402, "Insufficient credits"), "no credit left"),
        (said(200, {"error": {"code": 402, "message": "Add more"}}), "no credit left"),
        (fault(404, "model_not_found", "no such"), "127.0.0.1 has no such model: no such"),
        (fault(404, 404, "The model `small` does not exist."), "no such model or address: The mo"),
        (fault(400, None, "invalid model ID", about="model"), "not take the setting model"),
        (said(404, {"object": "error", "message": "gone", "code": 404}), "or address: gone"),
        (said(404, {"error": "model 'small' not found"}), "or address: model 'small'"),
        (fault(403, None, "Country not supported"), "refuses access: Country not supported"),
        (fault(401, "invalid_api_key", "nope"), "127.0.0.1 does not take the API key"),
        (fault(401, None, "nope"), "does not take the API key"),
        (fault(403, "account_deactivated", "nope"), "does not take the API key"),
        (Scripted(401, PAGE, HTML), "does not take the API key"),
        (
            fault(400, "unsupported_value", "only 1", about="temperature"),
            "does not take the setting temperature: only 1",
        ),
        (
            fault(400, "unsupported_parameter", "Use another", about="max_tokens"),
            "does not take the setting max_tokens",
        ),
    ],
)
def test_what_nobody_will_be_answered_for(
    model: FakeModel, scripted: Scripted, reason: str
) -> None:
    refused = refusal(model, scripted)
    assert reason in str(refused)
    assert refused.everybody


@pytest.mark.parametrize("code", sorted(NOT_THIS))
@pytest.mark.parametrize("status", [200, 400, 403, 429])
def test_a_question_that_is_not_taken_is_nobody_elses_affair(
    model: FakeModel, code: str, status: int
) -> None:
    refused = refusal(model, fault(status, code, "It was flagged"))
    assert str(refused) == "127.0.0.1 does not take the question: It was flagged"
    assert not refused.everybody


@pytest.mark.parametrize(
    ("scripted", "reason"),
    [
        (fault(403, 403, "flagged", metadata={"reasons": ["hate"]}), "not take the question"),
        (said(403, {"message": "Forbidden"}), "refuses access: Forbidden"),
        (fault(400, None, "bad", about="messages.[0].content"), "does not take the question: bad"),
        (fault(400, 400, "too long", about="max_tokens"), "does not take the question: too long"),
        (said(422, {"detail": [{"loc": ["body"]}]}), "does not take the question (422)"),
        (fault(413, None, "Too large"), "does not take the question: Too large"),
        (said(200, completion("", "content_filter")), "its content was filtered"),
        (said(200, completion(None, refusal="I can't.")), "declines to answer: I can't."),
    ],
)
def test_what_only_this_question_is_refused_for(
    model: FakeModel, scripted: Scripted, reason: str
) -> None:
    refused = refusal(model, scripted)
    assert reason in str(refused)
    assert not refused.everybody


def test_what_responses_fail_with(model: FakeModel) -> None:
    broken = response("", "failed", error={"code": "server_error", "message": "Oops"}, output=[])
    assert "500: Oops" in str(failure(model, said(200, broken), api="responses"))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            response("", "incomplete", incomplete_details={"reason": "content_filter"}),
            "its content was filtered",
        ),
        (
            response("", output=[
                {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}
            ]),
            "declines to answer: No.",
        ),
        (
            response("", "failed", error={"code": "invalid_prompt", "message": "Flagged"}),
            "does not take the question: Flagged",
        ),
    ],
)  # fmt: skip
def test_what_responses_are_refused_for(
    model: FakeModel, body: dict[str, Any], reason: str
) -> None:
    refused = refusal(model, said(200, body), api="responses")
    assert reason in str(refused)
    assert not refused.everybody


@pytest.mark.parametrize(
    "scripted",
    [
        fault(500, None, f"Bearer {KEY} is known to have\nbroken {KEY}" + " again" * 200),
        fault(400, None, f"what is {KEY}?"),
        fault(403, None, f"no access with {KEY}"),
        fault(401, "invalid_api_key", f"Incorrect API key provided: {KEY[:5]}***{KEY[-4:]}."),
        Scripted(drops="midway"),
        Scripted(hangs=True),
    ],
)
def test_the_key_is_in_no_error_and_in_no_log(
    model: FakeModel, scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    model.script.append(scripted)
    with caplog.at_level(logging.DEBUG), pytest.raises(Exception) as caught:
        ask(model_way(model, timeout="1s"), burst("How much?"))
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + caplog.text
    assert isinstance(caught.value, ResponderFailed | ResponderRefused)
    assert not [piece for piece in (KEY, KEY[:5] + "*", KEY[-4:] + ".") if piece in told]
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)
