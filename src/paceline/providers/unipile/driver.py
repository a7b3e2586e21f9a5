"""The driver itself: one line per open account, every answer and every failure an outcome.

What goes over the wire is made in ``wire.py``, what comes back is read with the table of
``errors.py``. How a call is made, and what one leaves behind that fails, is in ``../http.py`` for
all drivers alike.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import httpx
import structlog

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.engine.ports import (
    Capabilities,
    Clock,
    Found,
    Media,
    Message,
    Uploaded,
)
from paceline.providers.answers import Answer, refusal, segment
from paceline.providers.http import LOST, HttpDriver, Line, told
from paceline.providers.unipile import finding
from paceline.providers.unipile.errors import TABLE
from paceline.providers.unipile.files import LARGEST_FILE, Files
from paceline.providers.unipile.recipients import (
    Recipients,
    is_id,
    product_for,
    profile_request,
    public_name,
    read_profile,
)
from paceline.providers.unipile.settings import UnipileSettings
from paceline.providers.unipile.status import standing_of_account
from paceline.providers.unipile.wire import ABLE, Attachment, Request, read_sent, request_for

log = structlog.get_logger("paceline.unipile")


def line_for(
    settings: UnipileSettings, key: str, trust: ssl.SSLContext, timeout: httpx.Timeout | None
) -> Line:
    return Line(
        "Unipile",
        settings.base_url,
        {"X-API-KEY": key},
        trust,
        secrets=[key],
        local=settings.is_local,
        timeout=timeout,
    )


class UnipileDriver(HttpDriver):
    """One open account."""

    def __init__(
        self,
        clock: Clock,
        name: str,
        settings: UnipileSettings,
        line: Line,
        files: Files,
    ) -> None:
        super().__init__(clock, name, line)
        self._settings = settings
        self._files = files
        self._recipients = Recipients()

    @property
    def capabilities(self) -> Capabilities:
        return ABLE[self._settings.kind]

    async def _send(self, message: Message) -> Outcome:
        attachment: Attachment | None = None
        if message.part.media is not None and self.capabilities.media:
            attachment = self._files.get(message.handle or "")
            if attachment is None:
                return refusal("media-unknown", "the file is not at hand any more")
        request = request_for(message, self._settings, attachment)
        if isinstance(request, Outcome):
            return request
        answer = await self._deliver(request)
        if isinstance(answer, Outcome):
            return answer
        return read_sent(answer, request, self._clock.now())

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        if not self.capabilities.media:
            return refusal("media", "files cannot be sent over LinkedIn")
        if len(content) > LARGEST_FILE:
            size, most = len(content) / 2**20, LARGEST_FILE // 2**20
            return refusal("media", f"{media.name} has {size:.1f} MiB, and e-mails take {most} MiB")
        self._files.put(media.id, Attachment(media.name, media.mime, content))
        return Uploaded(media.id)

    async def resolve(self, message: Message) -> str | Outcome:
        target = message.target.strip()
        # What cannot be a target at all is refused where every message is looked through.
        if not self.capabilities.resolves or not target or is_id(target):
            return target
        found = await self._resolve(target, product_for(message, self._settings))
        if isinstance(found, Outcome):
            return found._replace(reason=self._line.masked(found.reason))
        return found

    async def _resolve(self, target: str, product: str) -> str | Outcome:
        name = public_name(target)
        if isinstance(name, Outcome) or is_id(name):
            return name
        known = self._recipients.get(name, product)
        if known is not None:
            return known
        path, parameters = profile_request(name, product, self._settings)
        try:
            answer = await self._line.call("GET", path, params=parameters)
        except LOST as error:
            return transient(f"the profile could not be looked up: {told(error)}", "profile")
        found = read_profile(answer, self._clock.now())
        if isinstance(found, str):
            self._recipients.put(name, product, found)
        elif answer.status == 404 and found.kind is OutcomeKind.REJECTED:
            return await self._whose_fault(found)
        return found

    async def _whose_fault(self, not_found: Outcome) -> Outcome:
        """Unipile says the same of a person it does not know and of an account it has no more. That
        must not cost a whole campaign its people, one after the other."""
        try:
            await self.check_standing()
        except ProviderRefused as error:
            return Outcome(OutcomeKind.UNAUTHORISED, str(error), not_found.code)
        except ProviderError as error:
            return transient(str(error), "profile")
        return not_found

    async def find(self, message: Message, since_at: Instant) -> Found:
        resolved = await self.resolve(message)
        target = None if isinstance(resolved, Outcome) else resolved
        return await finding.find(self._fetch, self._settings, message, since_at, target)

    async def check_standing(self) -> None:
        """Whether Unipile has the account, and lets it be used."""
        settings = self._settings
        try:
            answer = await self._line.ask(f"/accounts/{segment(settings.account_id)}")
        except ProviderError as error:
            raise ProviderError(f"{self._name}: {error}") from None
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
        reason = self._line.masked(f"{self._name}: {TABLE.reason_of(answer, said)}")
        type_ = TABLE.code_of(said)
        stops = (OutcomeKind.UNAUTHORISED, OutcomeKind.BANNED)
        # That there is no such account is final only if Unipile says so, and not some server else.
        gone = answer.status == 404 and type_ != ""
        if gone or TABLE.kind_of(answer.status, type_) in stops:
            raise ProviderRefused(reason)
        raise ProviderError(reason)

    async def _deliver(self, request: Request) -> Answer | Outcome:
        if request.json is not None:
            return await self._line.deliver(request.path, json=request.json)
        return await self._line.deliver(request.path, files=request.form())

    async def _fetch(self, path: str, parameters: Mapping[str, str]) -> dict[str, Any] | None:
        try:
            answer = await self._line.ask(path, parameters)
        except ProviderError as error:
            log.info("could not look something up", account=self._name, error=str(error))
            return None
        said = answer.said()
        if answer.succeeded:
            return said
        reason = self._line.masked(TABLE.reason_of(answer, said))
        log.info("could not look something up", account=self._name, reason=reason)
        return None
