"""The driver itself: one HTTP client per open account, every answer and every failure an outcome.

What goes over the wire is made in ``wire.py``, what comes back is read with the table of
``errors.py``. Connections are not kept: between two messages lie minutes, and one that the other
side has closed meanwhile would leave a message in doubt that was never sent.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import httpx
import structlog

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind, transient, unknown
from paceline.engine.ports import (
    Capabilities,
    Clock,
    Found,
    Media,
    Message,
    Uploaded,
)
from paceline.providers.unipile import finding
from paceline.providers.unipile.errors import Answer, error_type, kind_of, reason_of, shortened
from paceline.providers.unipile.files import LARGEST_FILE, Files
from paceline.providers.unipile.settings import UnipileSettings
from paceline.providers.unipile.status import standing_of_account
from paceline.providers.unipile.wire import (
    ABLE,
    Attachment,
    Request,
    read_sent,
    refusal,
    request_for,
    segment,
)

log = structlog.get_logger("paceline.unipile")

TIMEOUT = httpx.Timeout(connect=10, pool=10, write=60, read=120)
"""Longer than policies wait, which decide. It bounds what nobody else bounds."""

MOST_BODY = 8 * 1024 * 1024
"""No answer of Unipile's comes near; whoever sends more is not Unipile."""

NOTHING_WRITTEN = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
"""Failures before the first byte of a request. After any other the message may be out."""

MASK = "(secret)"


def client_for(
    settings: UnipileSettings, key: str, trust: ssl.SSLContext, timeout: httpx.Timeout = TIMEOUT
) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=settings.base_url,
        headers={"X-API-KEY": key, "Accept": "application/json", "User-Agent": "paceline"},
        timeout=timeout,
        limits=httpx.Limits(max_keepalive_connections=0),
        verify=trust,
        trust_env=not settings.is_local,
    )


def certificates() -> ssl.SSLContext:
    """Whom to trust. Reading all the certificates there are takes longer than many a call."""
    return httpx.create_ssl_context()


class UnipileDriver:
    """One open account."""

    def __init__(
        self,
        clock: Clock,
        name: str,
        settings: UnipileSettings,
        client: httpx.AsyncClient,
        files: Files,
    ) -> None:
        self._clock = clock
        self._name = name
        self._settings = settings
        self._client = client
        self._files = files
        self._secret = client.headers["X-API-KEY"]

    @property
    def capabilities(self) -> Capabilities:
        return ABLE[self._settings.kind]

    async def send(self, message: Message) -> Outcome:
        outcome = await self._send(message)
        # Some servers repeat what they were sent, and reasons are stored, shown and logged.
        return outcome._replace(reason=self._masked(outcome.reason))

    async def _send(self, message: Message) -> Outcome:
        attachment: Attachment | None = None
        if message.part.media is not None and self.capabilities.media:
            attachment = self._files.get(message.handle or "")
            if attachment is None:
                return refusal("media-unknown", "the file is not at hand any more")
        request = request_for(message, self._settings, attachment)
        if isinstance(request, Outcome):
            return request
        if self._client.is_closed:
            return transient("the account has been closed", "closed")
        try:
            answer = await self._post(request)
        except NOTHING_WRITTEN as error:
            return transient(f"no connection to Unipile: {_told(error)}", "connection")
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            return unknown(f"Unipile's answer was lost: {_told(error)}")
        return read_sent(answer, request, self._clock.now())

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        if not self.capabilities.media:
            return refusal("media", "files cannot be sent over LinkedIn")
        if len(content) > LARGEST_FILE:
            size, most = len(content) / 2**20, LARGEST_FILE // 2**20
            return refusal("media", f"{media.name} has {size:.1f} MiB, and e-mails take {most} MiB")
        self._files.put(media.id, Attachment(media.name, media.mime, content))
        return Uploaded(media.id)

    async def find(self, message: Message, since_at: Instant) -> Found:
        return await finding.find(self._fetch, self._settings, message, since_at)

    async def close(self) -> None:
        await self._client.aclose()

    async def check_standing(self) -> None:
        """Whether Unipile has the account, and lets it be used."""
        settings = self._settings
        try:
            answer = await self._call("GET", f"/accounts/{segment(settings.account_id)}")
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise ProviderError(f"{self._name}: no answer from Unipile: {_told(error)}") from None
        said = answer.said()
        if not answer.succeeded or said is None:
            self._refuse(answer, said)
            return
        type_ = said.get("type")
        if isinstance(type_, str) and (type_ == "LINKEDIN") != (settings.kind == "linkedin"):
            raise ProviderRefused(
                f"{self._name}: Unipile knows this account as {type_[:40]}, not as {settings.kind}"
            )
        standing = standing_of_account(said)
        if standing.verdict == "stopped":
            raise ProviderRefused(f"{self._name}: {standing.reason}")
        if standing.verdict == "away":
            raise ProviderError(f"{self._name}: {standing.reason}")

    def _refuse(self, answer: Answer, said: dict[str, Any] | None) -> None:
        reason = self._masked(f"{self._name}: {reason_of(answer, said)}")
        stops = (OutcomeKind.UNAUTHORISED, OutcomeKind.BANNED)
        # That there is no such account is final only if Unipile says so, and not some server else.
        gone = answer.status == 404 and error_type(said) != ""
        if gone or kind_of(answer.status, error_type(said)) in stops:
            raise ProviderRefused(reason)
        raise ProviderError(reason)

    async def _post(self, request: Request) -> Answer:
        if request.json is not None:
            return await self._call("POST", request.path, json=request.json)
        return await self._call("POST", request.path, files=request.form())

    async def _fetch(self, path: str, parameters: Mapping[str, str]) -> dict[str, Any] | None:
        try:
            answer = await self._call("GET", path, params=dict(parameters))
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            log.info("could not look something up", account=self._name, error=_told(error))
            return None
        said = answer.said()
        if answer.succeeded:
            return said
        reason = self._masked(reason_of(answer, said))
        log.info("could not look something up", account=self._name, reason=reason)
        return None

    async def _call(self, method: str, path: str, **what: Any) -> Answer:
        async with self._client.stream(method, path, **what) as response:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MOST_BODY:
                    break
        return Answer(response.status_code, dict(response.headers), bytes(body))

    def _masked(self, text: str) -> str:
        """Fit to be stored and shown: without the key, and only then shortened, or a piece of it
        might be left over."""
        return shortened(text.replace(self._secret, MASK))


def _told(error: Exception) -> str:
    """An error by its name, which libraries often leave out of its text."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
