"""One call to a responder over HTTP, bounded in time from its beginning to the last byte.

Whatever keeps an answer from coming is a ``ResponderFailed``; what an answer means is read by
whoever asked. Nothing is tried again and nobody is followed elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterable, Mapping
from typing import Any

import httpx

from paceline.core.instants import SECOND, Instant
from paceline.engine.ports.answering import ResponderFailed
from paceline.providers.answers import Answer, one_line, retry_after_us
from paceline.providers.http import LOST, Line, told
from paceline.providers.options import is_local

MOST_ANSWER = 1024 * 1024
"""Bytes: no answer that anybody would read comes near."""


class Caller:
    """A line to one responder. ``whom`` is what it is called in reasons."""

    def __init__(
        self,
        whom: str,
        url: str,
        headers: Mapping[str, str],
        trust: ssl.SSLContext,
        *,
        secrets: Iterable[str],
        within_us: int,
    ) -> None:
        self.whom = whom
        self._within_s = within_us / SECOND
        self._line = Line(
            whom,
            url,
            # Packed answers would be unpacked before anybody could find them too large.
            {"Accept-Encoding": "identity", **headers},
            trust,
            secrets=sorted(secrets, key=len, reverse=True),
            local=is_local(url),
            # The whole of a call is bounded, so that no step of it need be.
            timeout=httpx.Timeout(None),
        )

    async def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Whatever was answered, also if it is a refusal; ``ResponderFailed`` if nothing was."""
        if self._line.closed:
            raise ResponderFailed(f"{self.whom} is not asked any more")
        try:
            async with asyncio.timeout(self._within_s):
                return await self._line.call(
                    "POST", path, most=MOST_ANSWER, content=body, headers=dict(headers)
                )
        except TimeoutError:
            reason = f"no answer from {self.whom} within {self._within_s:g} s"
            raise ResponderFailed(reason) from None
        except (*LOST, httpx.InvalidURL) as error:
            # The library's own error holds the request, and with it the key.
            reason = self.quoted(f"no answer from {self.whom}: {told(error)}")
            raise ResponderFailed(reason) from None

    def quoted(self, words: str) -> str:
        """What somebody else said, fit to be shown and logged: in one line, without our secrets."""
        return self._line.masked(one_line(words))

    async def close(self) -> None:
        await self._line.close()


def encoded(told: Mapping[str, Any]) -> bytes:
    """As it is sent. What somebody wrote may hold halves of letters, which no encoding has."""
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "replace")


def asked_wait_us(answer: Answer, now: Instant) -> int | None:
    """How long whoever answered wants to be left alone; OpenAI says it in milliseconds, too."""
    exact = answer.headers.get("retry-after-ms", "").strip()
    if exact.isascii() and exact.isdecimal() and len(exact) <= 12:
        return int(exact) * 1_000
    return retry_after_us(answer.headers.get("retry-after"), now)


def unreadable(whom: str, answer: Answer, now: Instant) -> ResponderFailed:
    """An answer that is none of theirs: a page of somebody in between, or half a text."""
    if 300 <= answer.status < 400:
        what = "redirects are not followed"
    elif is_page(answer):
        what = "a page instead of an answer"
    else:
        what = "nothing that can be read"
    reason = f"{whom} answered {answer.status}: {what}"
    return ResponderFailed(reason, asked_wait_us(answer, now))


def is_page(answer: Answer) -> bool:
    """Whether it was made for people's eyes, by somebody in between."""
    return answer.body.lstrip()[:1] == b"<"
