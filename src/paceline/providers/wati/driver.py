"""The driver itself: one line per open account, every answer and every failure an outcome.

What goes over the wire is made and read in ``wire.py``, refusals with the table of ``errors.py``. A
404 leaves open whether it is about the person or about the whole account. Then the account is asked
for, under a short limit: the message itself was refused already, and must not fall into doubt
because of it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import NoReturn

import httpx
import structlog

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.engine.ports import Capabilities, Clock, Found, Media, Message, Uploaded
from paceline.providers.answers import Answer, refusal
from paceline.providers.http import ASK_WITHIN_S, HttpDriver, Line
from paceline.providers.wati import finding
from paceline.providers.wati.errors import TABLE, is_refused, is_wati_s, read_refusal, says_yes
from paceline.providers.wati.files import LARGEST_FILE, File, Files
from paceline.providers.wati.settings import WatiSettings
from paceline.providers.wati.wire import ABLE, read_sent, request_for
from paceline.providers.whatsapp_cloud.handles import LARGEST, MIB, kind_of

log = structlog.get_logger("paceline.wati")

_K = OutcomeKind
_REFUSALS = frozenset({_K.UNAUTHORISED, _K.REJECTED, _K.BANNED})


def line_for(
    settings: WatiSettings, token: str, trust: ssl.SSLContext, timeout: httpx.Timeout | None
) -> Line:
    return Line(
        "WATI",
        settings.origin,
        {"Authorization": f"Bearer {token}"},
        trust,
        secrets=[token],
        local=settings.is_local,
        timeout=timeout,
    )


class WatiDriver(HttpDriver):
    """One open account."""

    def __init__(
        self, clock: Clock, name: str, settings: WatiSettings, line: Line, files: Files
    ) -> None:
        super().__init__(clock, name, line)
        self._settings = settings
        self._files = files

    @property
    def capabilities(self) -> Capabilities:
        return ABLE

    # ------------------------------------------------------------------ sending

    async def _send(self, message: Message) -> Outcome:
        file = None if message.part.media is None else self._files.get(message.handle or "")
        request = request_for(message, self._settings, file)
        if isinstance(request, Outcome):
            return request
        answer = await self._line.deliver(request.path, **request.what)
        if isinstance(answer, Outcome):
            return answer
        outcome = read_sent(answer, request, self._clock.now())
        if answer.status == 404 and outcome.kind is _K.REJECTED:
            return await self._whose_fault(outcome)
        return outcome

    async def _whose_fault(self, refused: Outcome) -> Outcome:
        """WATI says the same of a person it has no conversation with and of a tenant it has no
        more. That must not cost a whole campaign its people, one after the other."""
        try:
            async with asyncio.timeout(ASK_WITHIN_S):
                await self.check_standing()
        except ProviderRefused as error:
            return Outcome(_K.UNAUTHORISED, str(error), refused.code)
        except (ProviderError, TimeoutError):
            return transient(refused.reason, refused.code)
        return refused

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        """Keep a file at hand: WATI takes it with every message, and keeps none."""
        kind = kind_of(media.mime)
        most = min(LARGEST[kind], LARGEST_FILE)
        if len(content) > most:
            size = len(content) / MIB
            reason = f"{media.name} has {size:.1f} MiB, and {most // MIB} can be sent as {kind}"
            return refusal("media", reason)
        self._files.put(media.id, File(media.name, media.mime, content))
        return Uploaded(media.id)

    # ------------------------------------------------------------------ asking

    async def find(self, message: Message, since_at: Instant) -> Found:
        return await finding.find(self._fetch, self._settings, message, since_at)

    async def _fetch(self, path: str, parameters: Mapping[str, str]) -> object:
        try:
            answer = await self._line.ask(path, parameters)
        except ProviderError as error:
            log.info("could not look a message up", account=self._name, reason=str(error))
            return None
        said = answer.said()
        if answer.succeeded and said is not None and not is_refused(said):
            return said
        log.info("could not look a message up", account=self._name, reason=self._words(answer))
        return None

    async def check_standing(self) -> None:
        """Whether WATI has the tenant, and lets the token in."""
        path = f"{self._settings.tenant}/api/v1/getMessageTemplates"
        try:
            answer = await self._line.ask(path, {"pageSize": "1", "pageNumber": "1"})
        except ProviderError as error:
            raise ProviderError(f"{self._name}: offline: {error}") from None
        said = answer.said()
        listed = said is not None and isinstance(said.get("messageTemplates"), list)
        if not answer.succeeded or said is None or is_refused(said):
            self._refuse(answer)
        if not listed and not says_yes(said):
            raise ProviderError(f"{self._name}: offline: {self._words(answer)}")

    def _refuse(self, answer: Answer) -> NoReturn:
        """Say in one line why nothing can be done with the account."""
        words, kind = self._words(answer), read_refusal(answer, self._clock.now()).kind
        if answer.status == 404 and is_wati_s(answer):
            raise ProviderRefused(f"{self._name}: no such tenant: {words}")
        if answer.status in (401, 403) and kind is _K.UNAUTHORISED:
            raise ProviderRefused(f"{self._name}: token refused: {words}")
        if kind in _REFUSALS:
            raise ProviderRefused(f"{self._name}: refused: {words}")
        raise ProviderError(f"{self._name}: offline: {words}")

    def _words(self, answer: Answer) -> str:
        return self._line.masked(TABLE.reason_of(answer, answer.said()))
