"""Bringing one webhook what it is to be told, over HTTP.

Only the effect lives here: one POST, and what came of it. What is said, when, how often and in
which order is the courier's affair. Nobody is followed elsewhere, for a redirect would carry what
we say to somebody whom no operator has chosen; and of an answer only as much is read as a person
would read.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from urllib.parse import unquote, urlsplit

import httpx

from paceline.core.instants import SECOND, Instant
from paceline.core.webhooks import Webhook
from paceline.engine.ports.events import POST_WITHIN_US, Posted
from paceline.providers.answers import one_line, retry_after_us, shortened
from paceline.providers.http import LOST, MASK, certificates, told
from paceline.providers.options import is_local

MOST_READ = 4 * 1024
"""Of an answer: enough for a reason, and no more than anybody may put into our log."""

_APART = re.compile(r"[/:@?&=;,]+")
_SHORTEST_TOKEN = 8


class HttpPostman:
    """A line to one webhook. Connections are not kept: between two events lie minutes."""

    def __init__(
        self,
        webhook: Webhook,
        secret: str,
        now: Callable[[], Instant],
        *,
        within_us: int = POST_WITHIN_US,
    ) -> None:
        self._url = webhook.url
        self._now = now
        self._within_s = within_us / SECOND
        self._hidden = hidden_in(webhook.url) | {secret}
        self._client = httpx.AsyncClient(
            # Whoever packs its answer all the same is read as it comes: what is small on the wire
            # may be huge when it is unpacked.
            headers={"User-Agent": "paceline", "Accept-Encoding": "identity"},
            timeout=self._within_s,
            limits=httpx.Limits(max_keepalive_connections=0),
            verify=certificates(),
            follow_redirects=False,
            # No proxy belongs between us and this very machine.
            trust_env=not is_local(webhook.url),
        )

    async def post(self, headers: Mapping[str, str], body: bytes) -> Posted:
        try:
            # Each step has its own limit in the client; one byte now and then would pass them all.
            async with asyncio.timeout(self._within_s):
                return await self._post(headers, body)
        except TimeoutError:
            return Posted(None, f"no answer within {self._within_s:g} s")
        except (*LOST, httpx.InvalidURL) as error:
            return Posted(None, self._masked(f"no answer: {told(error)}"))

    async def _post(self, headers: Mapping[str, str], body: bytes) -> Posted:
        sent = self._client.stream("POST", self._url, headers=dict(headers), content=body)
        async with sent as response:
            status = response.status_code
            if 200 <= status < 300:
                return Posted(status)
            if 300 <= status < 400:
                return Posted(status, f"answered {status}: redirects are not followed")
            said = await _beginning(response)
        words = one_line(said.decode("utf-8", "replace"))
        problem = self._masked(f"answered {status}: {words}" if words else f"answered {status}")
        wait_us = retry_after_us(response.headers.get("retry-after"), self._now())
        return Posted(status, problem, wait_us if status in (429, 503) else None)

    def _masked(self, text: str) -> str:
        """Without the secret and without what may be a token in the address: some servers repeat
        what they were sent, and problems are stored, shown and logged."""
        for hidden in sorted(self._hidden, key=len, reverse=True):
            text = text.replace(hidden, MASK)
        return shortened(text)

    async def close(self) -> None:
        await self._client.aclose()


async def _beginning(response: httpx.Response) -> bytes:
    """As much of an answer as anybody will read; the rest is left where it is."""
    said = b""
    async for chunk in response.aiter_raw(MOST_READ):
        said += chunk
        if len(said) >= MOST_READ:
            break
    return said[:MOST_READ]


def hidden_in(url: str) -> set[str]:
    """Whatever of an address may be a secret: all of it but its host."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    pieces = {
        piece
        for text in (user, parts.path, parts.query)
        for piece in _APART.split(text)
        if len(piece) >= _SHORTEST_TOKEN
    }
    return {url, *pieces, *(unquote(piece) for piece in pieces)}
