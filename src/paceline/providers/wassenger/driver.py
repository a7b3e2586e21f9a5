"""The driver itself: one line per open account, every answer and every failure an outcome.

What goes over the wire is made and read in ``wire.py``, refusals with the table of ``errors.py``.
Some refusals leave open whose fault it was: the person's, the file's, or the device's. Then a
question is asked that changes nothing, under a short limit: the message itself was refused already,
and must not fall into doubt because of it.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import NoReturn

import httpx
import structlog

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.engine.ports import Capabilities, Clock, Found, Group, Media, Message, Uploaded
from paceline.providers.answers import Answer, refusal, segment
from paceline.providers.http import ASK_WITHIN_S, LOST, HttpDriver, Line, told
from paceline.providers.wassenger.errors import TABLE, as_told, read_refusal
from paceline.providers.wassenger.groups import MOST_PAGES, PAGE, read_groups
from paceline.providers.wassenger.settings import WassengerSettings
from paceline.providers.wassenger.status import standing_of_device
from paceline.providers.wassenger.wire import (
    LARGEST_FILE,
    able,
    file_in_the_way,
    read_file,
    read_found,
    read_sent,
    request_for,
    target_of,
)

log = structlog.get_logger("paceline.wassenger")

_K = OutcomeKind


def line_for(
    settings: WassengerSettings, key: str, trust: ssl.SSLContext, timeout: httpx.Timeout | None
) -> Line:
    return Line(
        "Wassenger",
        settings.base_url,
        {"Token": key},
        trust,
        secrets=[key],
        local=settings.is_local,
        timeout=timeout,
    )


class WassengerDriver(HttpDriver):
    """One open account."""

    def __init__(self, clock: Clock, name: str, settings: WassengerSettings, line: Line) -> None:
        super().__init__(clock, name, line)
        self._settings = settings
        self._phone = ""

    @property
    def capabilities(self) -> Capabilities:
        return able(self._settings)

    async def _send(self, message: Message) -> Outcome:
        body = request_for(message, self._settings)
        if isinstance(body, Outcome):
            return body
        answer = await self._line.deliver("/messages", json=body)
        if isinstance(answer, Outcome):
            return answer
        outcome = read_sent(answer, self._clock.now())
        status = as_told(answer).status
        if outcome.kind is not _K.REJECTED and status != 409:
            return outcome
        try:
            async with asyncio.timeout(ASK_WITHIN_S):
                return await self._whose_fault(message, outcome, status)
        except (ProviderError, TimeoutError):
            return transient(outcome.reason, outcome.code)

    async def _whose_fault(self, message: Message, refused: Outcome, status: int) -> Outcome:
        """A refusal once more, when it is known what was refused. What cannot be found out is
        raised, and then nobody is given up: the message is tried again."""
        if status == 409:
            return await self._already_there(message, refused)
        if message.handle is not None and await self._is_gone(message.handle):
            return refusal("media-unknown", "Wassenger no longer has the file")
        if status != 404:
            return refused
        try:
            # It says the same of a person it cannot reach and of a device it has no more. That must
            # not cost a whole campaign its people, one after the other.
            await self.check_standing()
        except ProviderRefused as error:
            return Outcome(_K.UNAUTHORISED, str(error), refused.code)
        target = target_of(message.target, self._settings)
        if (
            isinstance(target, dict)
            and "phone" in target
            and await self._is_nobody(target["phone"])
        ):
            return Outcome(_K.BOUNCED, "the number is not on WhatsApp", "not_on_whatsapp")
        return refused

    async def _already_there(self, message: Message, refused: Outcome) -> Outcome:
        """In conflict with what it has: perhaps with this very message, from an earlier attempt."""
        found = await self._look_for(message)
        if found.finding == "present":
            return Outcome(_K.ACCEPTED, code="duplicate", provider_id=found.provider_id)
        return refused

    async def _is_gone(self, handle: str) -> bool:
        answer = as_told(await self._line.ask(f"/files/{segment(handle)}"))
        if answer.status == 404 and answer.said() is not None:
            return True
        if not answer.succeeded:
            raise ProviderError(self._words(answer))
        _, expires_at = read_file(answer)
        return expires_at is not None and expires_at <= self._clock.now()

    async def _is_nobody(self, phone: str) -> bool:
        try:
            answer = await self._line.call("POST", "/numbers/exists", json={"phone": phone})
        except LOST as error:
            raise ProviderError(told(error)) from None
        said = answer.said()
        return said is not None and said.get("exists") is False

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        if len(content) > LARGEST_FILE:
            size, most = len(content) / 2**20, LARGEST_FILE // 2**20
            return refusal("media", f"{media.name} has {size:.1f} MiB, and WhatsApp takes {most}")
        answer = await self._line.deliver(
            "/files",
            params={"reference": media.id, "expiration": self._settings.keep_files},
            files=[("file", (media.name, content, media.mime))],
        )
        if isinstance(answer, Outcome):
            return answer
        answer = as_told(answer)
        now = self._clock.now()
        handle, expires_at = read_file(answer)
        if answer.succeeded and handle is not None:
            return Uploaded(handle, expires_at or now + self._settings.keep_files_us)
        kept = file_in_the_way(answer)
        if kept is not None:
            return await self._kept(kept)
        if answer.succeeded:
            return transient(f"answered {answer.status} without a file's id", "media")
        outcome = read_refusal(answer, now)
        return outcome._replace(reason=self._line.masked(outcome.reason))

    async def _kept(self, handle: str) -> Uploaded | Outcome:
        """A file that Wassenger has from before, perhaps kept for another time than ours."""
        try:
            answer = as_told(await self._line.ask(f"/files/{segment(handle)}"))
        except ProviderError:
            # It said itself that it has it; should that be over soon, the next send will tell.
            return Uploaded(handle)
        _, expires_at = read_file(answer)
        gone = answer.status == 404 and answer.said() is not None
        if gone or (expires_at is not None and expires_at <= self._clock.now()):
            return transient("Wassenger has the file and does not have it", "media")
        return Uploaded(handle, expires_at)

    async def find(self, message: Message, since_at: Instant) -> Found:
        try:
            return await self._look_for(message)
        except ProviderError as error:
            log.info("could not look a message up", account=self._name, reason=str(error))
            return Found("unclear")

    async def _look_for(self, message: Message) -> Found:
        answer = as_told(await self._line.ask("/messages", {"reference": message.key}))
        if not answer.succeeded:
            raise ProviderError(self._words(answer))
        return read_found(answer, message)

    async def groups(self) -> list[Group]:
        """Every group the number is in; ``ProviderError`` where Wassenger does not say.

        Read until a page is empty, or comes again: how many a page holds is not ours to decide.
        """
        found: dict[str, Group] = {}
        path = f"/devices/{self._settings.device}/groups"
        before: object = None
        for page in range(MOST_PAGES):
            parameters = {"kind": "group", "size": str(PAGE), "page": str(page)}
            answer = as_told(await self._line.ask(path, parameters))
            listed = answer.read() if answer.succeeded else None
            if not isinstance(listed, list):
                self._refuse(answer)
            if not listed or listed == before:
                return list(found.values())
            found |= {one.id: one for one in read_groups(listed, self._phone)}
            before = listed
        raise ProviderError(f"{self._name}: the list of groups does not end")

    async def check_standing(self) -> None:
        """Whether Wassenger has the device, and it can send."""
        try:
            answer = as_told(await self._line.ask(f"/devices/{self._settings.device}"))
        except ProviderError as error:
            raise ProviderError(f"{self._name}: offline: {error}") from None
        said = answer.said()
        if not answer.succeeded or said is None:
            self._refuse(answer)
        standing = standing_of_device(said)
        if standing.verdict == "stopped":
            raise ProviderRefused(f"{self._name}: {standing.reason}")
        if standing.verdict == "away":
            raise ProviderError(f"{self._name}: {standing.reason}")
        phone = said.get("phone")
        self._phone = phone if isinstance(phone, str) else ""

    def _refuse(self, answer: Answer) -> NoReturn:
        """Say in one line why nothing can be done with the device."""
        words, kind = self._words(answer), read_refusal(answer, self._clock.now()).kind
        if answer.status == 404 and answer.said() is not None:
            raise ProviderRefused(f"{self._name}: no such device: {words}")
        if kind is _K.UNAUTHORISED:
            what = "token refused" if answer.status in (401, 403) else "refused"
            raise ProviderRefused(f"{self._name}: {what}: {words}")
        raise ProviderError(f"{self._name}: offline: {words}")

    def _words(self, answer: Answer) -> str:
        return self._line.masked(TABLE.reason_of(answer, answer.said()))
