"""How drivers speak HTTP: one client per open account, and what a call that fails leaves behind.

A call that fails before its first byte was written has sent nothing and may be made again; after
any other failure the message may be out. Connections are not kept: between two messages lie seconds
or minutes, and one that the other side has closed meanwhile would leave a message in doubt that was
never sent. What an answer means is read elsewhere (``answers.py``, and each driver's own table).
"""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

import httpx

from paceline.core.errors import ProviderError
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, transient, unknown, unreachable
from paceline.engine.ports import Capabilities, Clock, Found, Media, Message, Uploaded
from paceline.providers.answers import Answer, shortened

TIMEOUT = httpx.Timeout(connect=10, pool=10, write=60, read=120)
"""Longer than policies wait, which decide. It bounds what nobody else bounds."""

MOST_BODY = 8 * 1024 * 1024
"""No answer of a provider's comes near; whoever sends more is somebody else."""

NOTHING_WRITTEN = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
"""Failures before the first byte of a request. After any other the message may be out."""

LOST = (httpx.HTTPError, httpx.StreamError, OSError)
"""All that a call can fail with."""

ASK_WITHIN_S = 5.0
"""How long a driver may ask about a message that was refused: it must not fall into doubt by it."""

MASK = "(secret)"


def certificates() -> ssl.SSLContext:
    """Whom to trust. Reading all the certificates there are takes longer than many a call, so a
    provider does it once for all its accounts."""
    return httpx.create_ssl_context()


class Line:
    """An account's connection to its provider.

    ``whom`` is what the provider is called in reasons. The ``secrets`` are taken out of whatever is
    said through ``masked``: some servers repeat what they were sent, and reasons are stored, shown
    and logged.
    """

    def __init__(
        self,
        whom: str,
        base_url: str,
        headers: Mapping[str, str],
        trust: ssl.SSLContext,
        *,
        secrets: Iterable[str],
        local: bool = False,
        timeout: httpx.Timeout | None = None,
    ) -> None:
        self.whom = whom
        self._secrets = tuple(
            spelled for secret in secrets for spelled in (secret, quote(secret, safe=""))
        )
        self._client = httpx.AsyncClient(
            base_url=base_url,
            headers={"Accept": "application/json", "User-Agent": "paceline", **headers},
            timeout=timeout or TIMEOUT,
            limits=httpx.Limits(max_keepalive_connections=0),
            verify=trust,
            # No proxy belongs between us and this very machine.
            trust_env=not local,
        )

    @property
    def closed(self) -> bool:
        return self._client.is_closed

    async def close(self) -> None:
        await self._client.aclose()

    async def deliver(self, path: str, **what: Any) -> Answer | Outcome:
        """Post something that cannot be taken back: the answer, or what its failure leaves."""
        if self.closed:
            return transient("the account has been closed", "closed")
        try:
            return await self.call("POST", path, **what)
        except NOTHING_WRITTEN as error:
            return unreachable(self.masked(f"no connection to {self.whom}: {told(error)}"))
        except LOST as error:
            return unknown(self.masked(f"{self.whom}'s answer was lost: {told(error)}"))

    async def ask(self, path: str, parameters: Mapping[str, str] | None = None) -> Answer:
        """Ask for something, which changes nothing; ``ProviderError`` where no answer comes."""
        if self.closed:
            raise ProviderError("the account has been closed")
        try:
            return await self.call("GET", path, params=dict(parameters or {}))
        except LOST as error:
            reason = self.masked(f"no answer from {self.whom}: {told(error)}")
            # The library's own error holds the request, and with it the key.
            raise ProviderError(reason) from None

    async def call(self, method: str, path: str, *, most: int | None = None, **what: Any) -> Answer:
        """One request, and as much of its answer as anybody can need."""
        async with self._client.stream(method, path, **what) as response:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > (most or MOST_BODY):
                    break
        return Answer(response.status_code, dict(response.headers), bytes(body))

    def masked(self, text: str) -> str:
        """Fit to be stored and shown: without the secrets, and only then shortened, or a piece of
        one might be left over."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return shortened(text)


class HttpDriver(ABC):
    """One open account: what those of all such providers have in common."""

    def __init__(self, clock: Clock, name: str, line: Line) -> None:
        self._clock = clock
        self._name = name
        self._line = line

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities: ...

    async def send(self, message: Message) -> Outcome:
        """What became of it, without anything in it that is secret, whoever has put it there."""
        outcome = await self._send(message)
        return outcome._replace(reason=self._line.masked(outcome.reason))

    @abstractmethod
    async def _send(self, message: Message) -> Outcome: ...

    @abstractmethod
    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome: ...

    @abstractmethod
    async def find(self, message: Message, since_at: Instant) -> Found: ...

    @abstractmethod
    async def check_standing(self) -> None:
        """Raise what is wrong with the account, if it cannot send."""

    async def close(self) -> None:
        await self._line.close()


def told(error: Exception) -> str:
    """An error by its name, which libraries often leave out of its text."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
