"""The driver itself: one line per open account, every answer and every failure an outcome.

What goes over the wire is made and read in ``wire.py``, refusals with the table of ``errors.py``.
Meta says of a file that is gone only that a parameter is wrong. Then it is asked for the file,
which changes nothing, under a short limit: the message itself was refused already, and must not
fall into doubt because of it.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import NoReturn

import httpx

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.engine.ports import Capabilities, Clock, Found, Media, Message, Uploaded
from paceline.providers.answers import Answer, name_of, refusal, segment
from paceline.providers.http import ASK_WITHIN_S, HttpDriver, Line
from paceline.providers.whatsapp_cloud.errors import (
    MISFIT,
    TABLE,
    TOO_OLD,
    error_in,
    is_nobody_s,
    read_refusal,
)
from paceline.providers.whatsapp_cloud.handles import KEPT_US, LARGEST, MIB, kind_of, pack, unpack
from paceline.providers.whatsapp_cloud.settings import WhatsAppCloudSettings
from paceline.providers.whatsapp_cloud.status import FIELDS, standing_of
from paceline.providers.whatsapp_cloud.wire import ABLE, PRODUCT, read_sent, request_for

TOKEN_CODES = frozenset({"0", "190"})

_K = OutcomeKind


def line_for(
    settings: WhatsAppCloudSettings,
    token: str,
    trust: ssl.SSLContext,
    timeout: httpx.Timeout | None,
) -> Line:
    return Line(
        "Meta",
        settings.versioned_url,
        {"Authorization": f"Bearer {token}"},
        trust,
        secrets=[token],
        local=settings.is_local,
        timeout=timeout,
    )


class WhatsAppCloudDriver(HttpDriver):
    """One open account."""

    def __init__(
        self, clock: Clock, name: str, settings: WhatsAppCloudSettings, line: Line
    ) -> None:
        super().__init__(clock, name, line)
        self._number = settings.phone_number_id
        self._remark = ""

    @property
    def capabilities(self) -> Capabilities:
        return ABLE

    @property
    def remark(self) -> str:
        """What Meta said of the number when it was opened that a person should know."""
        return self._remark

    async def _send(self, message: Message) -> Outcome:
        body = request_for(message)
        if isinstance(body, Outcome):
            return body
        answer = await self._line.deliver(f"/{self._number}/messages", json=body)
        if isinstance(answer, Outcome):
            return answer
        outcome = read_sent(answer, self._clock.now())
        if outcome.kind is not _K.REJECTED or message.handle is None:
            return outcome
        if outcome.code in TOO_OLD:
            return refusal("media-unknown", outcome.reason)
        if outcome.code not in MISFIT:
            return outcome
        try:
            async with asyncio.timeout(ASK_WITHIN_S):
                gone = await self._is_gone(message.handle)
        except (ProviderError, TimeoutError):
            return transient(outcome.reason, outcome.code)
        return refusal("media-unknown", "Meta no longer has the file") if gone else outcome

    async def _is_gone(self, handle: str) -> bool:
        kept = unpack(handle)
        if kept is None:
            return True
        asked = {"phone_number_id": self._number}
        answer = await self._line.ask(f"/{segment(kept.id)}", asked)
        if is_nobody_s(answer):
            return True
        if not answer.succeeded or answer.said() is None:
            raise ProviderError(self._words(answer))
        return False

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        kind = kind_of(media.mime)
        if len(content) > LARGEST[kind]:
            size, most = len(content) / MIB, LARGEST[kind] // MIB
            reason = f"{media.name} has {size:.1f} MiB, and WhatsApp takes {most} as {kind}"
            return refusal("media", reason)
        answer = await self._line.deliver(
            f"/{self._number}/media",
            data={"messaging_product": PRODUCT, "type": media.mime},
            files=[("file", (media.name, content, media.mime))],
        )
        if isinstance(answer, Outcome):
            return answer
        now = self._clock.now()
        if not answer.succeeded:
            outcome = read_refusal(answer, now)
            return outcome._replace(reason=self._line.masked(outcome.reason))
        said = answer.said()
        media_id = None if said is None else name_of(said.get("id"))
        if media_id is None:
            return transient(f"answered {answer.status} without a file's id", "media")
        return Uploaded(pack(media, media_id), now + KEPT_US)

    async def find(self, message: Message, since_at: Instant) -> Found:
        """Meta cannot be asked for a message: it reports what became of it, or says nothing."""
        return Found("unclear")

    async def check_standing(self) -> None:
        """Whether Meta has the number, and it can send."""
        try:
            answer = await self._line.ask(f"/{self._number}", {"fields": ",".join(FIELDS)})
        except ProviderError as error:
            raise ProviderError(f"{self._name}: offline: {error}") from None
        said = answer.said()
        if not answer.succeeded or said is None or error_in(said):
            self._refuse(answer)
        standing = standing_of(said)
        if standing.verdict == "stopped":
            raise ProviderRefused(f"{self._name}: {standing.reason}")
        if standing.verdict == "away":
            raise ProviderError(f"{self._name}: {standing.reason}")
        self._remark = standing.reason

    def _refuse(self, answer: Answer) -> NoReturn:
        """Say in one line why nothing can be done with the number."""
        words, outcome = self._words(answer), read_refusal(answer, self._clock.now())
        if is_nobody_s(answer) or outcome.code == "803":
            raise ProviderRefused(f"{self._name}: no such phone number id: {words}")
        if answer.status == 401 or outcome.code in TOKEN_CODES:
            raise ProviderRefused(f"{self._name}: token refused: {words}")
        if outcome.kind is _K.BANNED:
            raise ProviderRefused(f"{self._name}: banned: {words}")
        if outcome.kind in (_K.UNAUTHORISED, _K.REJECTED):
            raise ProviderRefused(f"{self._name}: refused: {words}")
        raise ProviderError(f"{self._name}: offline: {words}")

    def _words(self, answer: Answer) -> str:
        return self._line.masked(TABLE.reason_of(answer, answer.said()))
