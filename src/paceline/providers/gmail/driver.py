"""The driver itself: one line to Gmail per open account, every answer and every failure an outcome.

Letters are made in ``../mail``; how Gmail is called is in ``client.py``, and its answers are read
with the tables of ``errors.py``.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

import structlog

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind, unknown
from paceline.engine.ports import Capabilities, Clock, Found, Media, Message, Uploaded
from paceline.providers.answers import Answer, name_of, refusal, segment
from paceline.providers.gmail.client import USER, Api, Headers
from paceline.providers.gmail.errors import outcome_of
from paceline.providers.gmail.settings import ABLE
from paceline.providers.http import HttpDriver
from paceline.providers.mail.addresses import domain_of, wire_address
from paceline.providers.mail.enclosing import files_of
from paceline.providers.mail.letters import File, Letter, Sender, compose, message_id, too_large
from paceline.providers.shelf import Shelf

SEND = f"{USER}/messages/send"
UPLOAD = f"/upload{SEND}"

LARGEST_LETTER = 36_700_160
"""Bytes of a letter as it is handed over, files in base64 and all. Gmail takes no more."""
LARGEST_FILE = 25 * 2**20
LARGEST_INLINE = 2**20
"""Letters up to this size go within JSON; larger ones as they are, which is a third less."""

UNCLEAR = Found("unclear")

log = structlog.get_logger("paceline.gmail")

SELECTOR = "google"
"""Under which name Google signs, unless somebody has chosen another."""


class GmailDriver(HttpDriver):
    """One open account."""

    def __init__(
        self,
        clock: Clock,
        name: str,
        api: Api,
        *,
        mailbox: str,
        sender: Sender,
        files: Shelf[File],
    ) -> None:
        super().__init__(clock, name, api.line)
        self._api = api
        self._mailbox = mailbox
        self._sender = sender
        self._files = files

    @property
    def capabilities(self) -> Capabilities:
        return ABLE

    async def advise(self) -> list[str]:
        # Loaded only where somebody asks: nothing is sent by it.
        from paceline.providers.mail.dns import advice

        return await advice(domain_of(wire_address(self._sender.address)), SELECTOR)

    async def close(self) -> None:
        await self._api.close()

    # ---------------------------------------------------------------------- sending

    async def _send(self, message: Message) -> Outcome:
        if message.action not in ABLE.actions:
            return refusal("action", f"this account cannot send '{message.action}'")
        letter = self._letter(message)
        if isinstance(letter, Outcome):
            return letter
        answer = await self._api.with_token(lambda headers: self._hand_over(letter, headers))
        if isinstance(answer, Outcome):
            return answer
        if not answer.succeeded:
            return outcome_of(answer, self._clock.now())
        said = answer.said()
        found = name_of(said.get("id")) if said is not None and "error" not in said else None
        if found is None:
            # Somebody said yes, but it was not Gmail, or only half of what it said has arrived.
            return unknown(f"answered {answer.status} with something that is not Gmail's")
        return Outcome(OutcomeKind.ACCEPTED, provider_id=found)

    def _letter(self, message: Message) -> Letter | Outcome:
        files = files_of(message, self._files)
        if isinstance(files, Outcome):
            return files
        now = self._clock.now()
        return compose(self._sender, message, files, now, largest=LARGEST_LETTER)

    async def _hand_over(self, letter: Letter, headers: Headers) -> Answer | Outcome:
        if letter.size <= LARGEST_INLINE:
            raw = urlsafe_b64encode(letter.raw).decode()
            return await self._line.deliver(SEND, json={"raw": raw}, headers=headers)
        return await self._line.deliver(
            UPLOAD,
            params={"uploadType": "media"},
            content=letter.raw,
            headers={**headers, "Content-Type": "message/rfc822"},
        )

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        if len(content) > LARGEST_FILE:
            return too_large(len(content), LARGEST_FILE)
        self._files.put(media.id, File(media.name, media.mime, content))
        return Uploaded(media.id)

    # ---------------------------------------------------------------------- asking

    async def find(self, message: Message, since_at: Instant) -> Found:
        """By its own Message-ID, which no other letter bears."""
        own_id = message_id(message.key, self._sender).strip("<>")
        wanted = {"q": f"rfc822msgid:{own_id}", "includeSpamTrash": "true", "maxResults": "5"}
        answer = await self._api.ask(f"{USER}/messages", wanted)
        if isinstance(answer, Answer) and answer.succeeded:
            return _found_in(answer)
        outcome = self._api.reading(answer)
        log.info("could not look for a letter", account=self._name, reason=outcome.reason)
        return UNCLEAR

    async def check_standing(self) -> None:
        """Whether there is such a mailbox, and whether it may send as it is to."""
        said = await self._seen(f"{USER}/profile")
        if not isinstance(said.get("emailAddress"), str):
            raise ProviderError(f"{self._name}: answered without the mailbox's address")
        own = self._sender.address
        if own.casefold() == self._mailbox.casefold():
            return
        # Gmail sends all the same where it may not, under the mailbox's own address.
        said = await self._seen(
            f"{USER}/settings/sendAs/{segment(own)}", missing=f"may not send as {own}"
        )
        if said.get("verificationStatus") not in (None, "accepted"):
            raise ProviderRefused(f"{self._name}: {own} is not verified as an address to send as")

    async def _seen(self, path: str, missing: str = "") -> Mapping[str, Any]:
        """What Gmail says; raise what is wrong where it says nothing."""
        answer = await self._api.ask(path)
        said = answer.said() if isinstance(answer, Answer) and answer.succeeded else None
        if said is not None:
            return said
        outcome = self._api.reading(answer)
        if isinstance(answer, Answer) and answer.status == 404 and answer.said() and missing:
            raise ProviderRefused(f"{self._name}: {self._mailbox} {missing}: {outcome.reason}")
        raise self._api.trouble(outcome)


def _found_in(answer: Answer) -> Found:
    said = answer.said()
    listed = said.get("messages") if said is not None else None
    for entry in listed if isinstance(listed, list) else ():
        found = name_of(entry.get("id")) if isinstance(entry, dict) else None
        if found is not None:
            return Found("present", found)
    return UNCLEAR
