"""An imaginary server that speaks as OpenAI does, and somebody's imaginary service, on a port of
this machine; and how the tests ask them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from paceline.core.answering import Way
from paceline.core.instants import SECOND
from paceline.engine.clock import SystemClock
from paceline.engine.ports.answering import Answer, Burst, Responder, Said
from paceline.providers import http
from paceline.providers.responders import responder_of
from tests.providers.loopback import JSON, Call, Fake, Scripted, said

KEY = "sk-a-key-that-nobody-may-see"
SECRET = "a-secret-of-some-length"
ENVIRON = {"THE_KEY": KEY, "THE_SECRET": SECRET}
NOW = 1_772_442_000 * SECOND
PROMPT = "You answer for a shop."
CLOCK = SystemClock(time_ns=lambda: NOW * 1_000)

R = TypeVar("R")

certificates = cache(http.certificates)


class FakeModel(Fake):
    """Takes the key, knows one model and says the same to everybody, until it is told otherwise."""

    prefix = "/v1"

    def __init__(self) -> None:
        super().__init__()
        self.reply = "With pleasure."
        self.takes_its_time = threading.Event()
        """Set when it may go on answering; it is, unless a test clears it."""
        self.takes_its_time.set()

    def answer(self, call: Call) -> Scripted:
        if not self.takes_its_time.wait(timeout=30):
            self.failures.append("nobody let it answer")
        if call.headers.get("authorization") != f"Bearer {KEY}":
            return fault(
                401, "invalid_api_key", f"Incorrect API key provided: {KEY[:5]}***{KEY[-4:]}."
            )
        if self.script:
            return self.script.popleft()
        if call.path == "/responses":
            return said(200, response(self.reply))
        return said(200, completion(self.reply))


class FakeService(Fake):
    """Answers what is signed, and only that."""

    def answer(self, call: Call) -> Scripted:
        signed = f"{call.headers['paceline-timestamp']}.".encode() + call.body
        expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(call.headers["paceline-signature"], f"v1={expected}"):
            return Scripted(401, b"bad signature")
        return self.script.popleft() if self.script else said(200, {"reply": "At your service."})


def completion(text: Any, ended: str = "stop", **message: Any) -> dict[str, Any]:
    whole = {"role": "assistant", "content": text, "refusal": None, **message}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "small",
        "choices": [{"index": 0, "message": whole, "finish_reason": ended}],
        "usage": {"prompt_tokens": 31, "completion_tokens": 7, "total_tokens": 38},
    }


def response(text: str, status: str = "completed", **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "error": None,
        "incomplete_details": None,
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": content},
        ],
        "usage": {"input_tokens": 31, "output_tokens": 7, "total_tokens": 38},
        **more,
    }


def fault(
    status: int,
    code: str | int | None,
    words: str,
    *,
    kind: str = "invalid_request_error",
    about: str | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Scripted:
    """An error as OpenAI writes it down."""
    error = {"message": words, "type": kind, "param": about, "code": code, **more}
    return Scripted(status, json.dumps({"error": error}).encode(), {**JSON, **(headers or {})})


def burst(*texts: str, before: tuple[Said, ...] = (), **more: Any) -> Burst:
    said = tuple(Said("them", text, NOW - SECOND) for text in texts)
    return Burst("turn-7", "shop", "+4915112345678", said, before, **more)


def way(**written: Any) -> Way:
    return Way.from_mapping("support", written)


def model_way(fake: FakeModel, **written: Any) -> Way:
    given = {
        "responder": "openai",
        "model": "small",
        "prompt": PROMPT,
        "base_url": f"{fake.url}/v1",
        "api_key": "env:THE_KEY",
        "timeout": "5s",
    }
    return way(**given | written)


def service_way(fake: Fake, path: str = "/answer", **written: Any) -> Way:
    given = {
        "responder": "http",
        "url": f"{fake.url}{path}",
        "secret": "env:THE_SECRET",
        "timeout": "5s",
    }
    return way(**given | written)


def with_responder(chosen: Way, act: Callable[[Responder], Awaitable[R]]) -> R:
    async def whole() -> R:
        responder = responder_of(chosen, ENVIRON, CLOCK, certificates())
        assert responder is not None
        try:
            return await act(responder)
        finally:
            await responder.close()

    return asyncio.run(whole())


def ask(chosen: Way, asked: Burst) -> Answer:
    return with_responder(chosen, lambda responder: responder.answer(asked))
