"""A model behind OpenAI's API, or behind any server that speaks as it does.

Over the house's own HTTP and without OpenAI's library: one call of one shape is all there is to it,
and what the library is good for is what must not happen here. It tries again by itself, where a
turn may have been taken over meanwhile; it bounds every step of a call, and not the whole; and it
would bring further packages along. What the answers mean is in ``completions.py``.
"""

from __future__ import annotations

import ssl
from typing import Any
from urllib.parse import urlsplit

from paceline.core.answering import Model, Way
from paceline.engine.ports import Clock
from paceline.engine.ports.answering import Answer, Burst
from paceline.providers.responders.calls import Caller, encoded
from paceline.providers.responders.completions import Server, read_chat, read_response
from paceline.providers.responders.window import Told, conversation

_NEW_NAMES = ("api.openai.com", "openai.azure.com")
"""Whose newer models refuse ``max_tokens``; of the other servers many know nothing else."""


class OpenAIResponder:
    """Asks one model. What people have said is told as theirs, and the prompt stays as written."""

    def __init__(
        self,
        way: Way,
        how: Model,
        prompt: str,
        api_key: str,
        clock: Clock,
        trust: ssl.SSLContext,
    ) -> None:
        self._way, self._how, self._prompt, self._clock = way, how, prompt, clock
        host = urlsplit(how.base_url).hostname or ""
        self._caller = Caller(
            "OpenAI" if host == "api.openai.com" else host,
            how.base_url,
            {"Authorization": f"Bearer {api_key}"} if api_key else {},
            trust,
            secrets=[api_key] if api_key else [],
            within_us=way.timeout_us,
        )

    async def answer(self, burst: Burst) -> Answer:
        told = conversation(burst, self._prompt, history=self._way.history, budget=self._how.budget)
        chats = self._how.api == "chat"
        path, asked = (
            ("/chat/completions", self._chat(told)) if chats else ("/responses", self._asked(told))
        )
        caller = self._caller
        answer = await caller.post(path, encoded(asked), {"Content-Type": "application/json"})
        server = Server(caller.whom, self._how.model, self._clock.now(), caller.quoted)
        return read_chat(answer, server) if chats else read_response(answer, server)

    def _chat(self, told: list[Told]) -> dict[str, Any]:
        prompt = {"role": "system", "content": self._prompt}
        return {
            "model": self._how.model,
            "messages": [prompt, *_messages(told)],
            name_of_most(self._how.base_url): self._how.max_tokens,
            **self._warmth(),
        }

    def _asked(self, told: list[Told]) -> dict[str, Any]:
        return {
            "model": self._how.model,
            "instructions": self._prompt,
            "input": _messages(told),
            "max_output_tokens": self._how.max_tokens,
            # What people write to us is not to be kept elsewhere.
            "store": False,
            **self._warmth(),
        }

    def _warmth(self) -> dict[str, float]:
        given = self._how.temperature
        return {} if given is None else {"temperature": given}

    async def close(self) -> None:
        await self._caller.close()


def name_of_most(base_url: str) -> str:
    """What a server calls the longest answer that is wanted in a chat."""
    host = f".{urlsplit(base_url).hostname or ''}"
    new = any(host.endswith(f".{name}") for name in _NEW_NAMES)
    return "max_completion_tokens" if new else "max_tokens"


def _messages(told: list[Told]) -> list[dict[str, str]]:
    return [{"role": one.role, "content": one.text} for one in told]
