"""The driver: an open account whose every answer and every failure is an outcome.

Whatever can be known to be wrong is refused before anything is handed over, and what has to be
fetched (the group, the number) is fetched first, so that its failure leaves nothing in doubt. After
that a message cannot be called back: calling the call off only means that nobody waits for it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import structlog

from paceline.core.errors import ProviderError
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind, accepted
from paceline.engine.ports import (
    Capabilities,
    Clock,
    Found,
    Group,
    Heard,
    Media,
    Message,
    Uploaded,
)
from paceline.providers.answers import refusal
from paceline.providers.whatsapp import errors, handles
from paceline.providers.whatsapp.addresses import is_group, is_person, jid_of
from paceline.providers.whatsapp.connection import Connection, lost
from paceline.providers.whatsapp.news import Mailbox
from paceline.providers.whatsapp.settings import WhatsAppSettings
from paceline.providers.whatsapp.wire import (
    Acknowledged,
    Draft,
    GroupChanged,
    LibraryError,
    MakeWire,
    WhatsAppWire,
    WireError,
    WireEvent,
    WireGroup,
    WireLost,
)

log = structlog.get_logger("paceline.whatsapp")

V = TypeVar("V")

LONGEST_TEXT = 65_536
MOST_GROUPS = 5_000
MOST_PEOPLE = 10_000
MOST_SENT = 2_000
"""How much is remembered while the account is open: groups, people, and messages with a file."""

ABLE = Capabilities(
    channel="whatsapp",
    actions=frozenset({"message"}),
    media=True,
    groups=True,
    receipts=True,
    resolves=True,
    longest_text={"message": LONGEST_TEXT},
)


def able(settings: WhatsAppSettings) -> Capabilities:
    return replace(ABLE, resolves=settings.look_up)


class _Newest(OrderedDict[str, V]):
    """The newest so many of something."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: str, value: V) -> None:
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class WhatsAppDriver:
    """One open account."""

    def __init__(
        self,
        clock: Clock,
        name: str,
        settings: WhatsAppSettings,
        session: Path,
        make_wire: MakeWire,
    ) -> None:
        self._clock = clock
        self._name = name
        self._able = able(settings)
        self._connection = Connection(
            clock, name, session, make_wire, self._heard, online=settings.online
        )
        self._mailbox = Mailbox(clock, name)
        self._groups: _Newest[WireGroup] = _Newest(MOST_GROUPS)
        self._people: _Newest[str] = _Newest(MOST_PEOPLE)
        self._sent: _Newest[str] = _Newest(MOST_SENT)
        self._gone: _Newest[None] = _Newest(MOST_SENT)

    @property
    def capabilities(self) -> Capabilities:
        return self._able

    async def open(self) -> None:
        await self._connection.open()

    async def close(self) -> None:
        self._mailbox.close()
        await self._connection.close()

    async def listen(self) -> Heard:
        """What has come in since, for one listener; the connection is made anew if it has ended."""
        if not self._mailbox.waits:
            await self._connection.keep()
        return await self._mailbox.take()

    async def confirm(self, mark: str) -> None:
        wire = await self._connection.wire()
        if isinstance(wire, Outcome):
            return  # it is told again, and known by its name
        try:
            await wire.confirm(mark)
        except WireError as error:
            log.info("what was heard is told again", account=self._name, reason=str(error))

    async def find(self, message: Message, since_at: Instant) -> Found:
        """WhatsApp cannot be asked what was sent, and takes no names of ours."""
        return Found("unclear")

    # ------------------------------------------------------------------ sending

    async def send(self, message: Message) -> Outcome:
        prepared = self._draft(message)
        if isinstance(prepared, Outcome):
            return prepared
        jid, draft = prepared
        wire = await self._connection.wire()
        if isinstance(wire, Outcome):
            return wire
        if is_group(jid):
            group = await self._group(wire, jid)
            if isinstance(group, Outcome):
                return group
            if not group.may_send:
                return refusal("not-admin", f"only admins may write to {group.name or jid}")
        return await self._hand_over(wire, jid, draft, message.handle)

    def _draft(self, message: Message) -> tuple[str, Draft] | Outcome:
        """Where a message goes and what it says, or why it cannot be sent."""
        if message.action not in self._able.actions:
            known = ", ".join(sorted(self._able.actions))
            return refusal("action", f"WhatsApp cannot send '{message.action}' (it can: {known})")
        jid = jid_of(message.target)
        if jid is None:
            return refusal("target", f"{message.target!r} is neither a phone number nor a group")
        text = message.part.text
        if len(text) > LONGEST_TEXT:
            return refusal("text", f"{len(text)} characters, and WhatsApp takes {LONGEST_TEXT}")
        if not _is_text(text):
            return refusal("text", "the message has characters in it that no text has")
        if message.part.media is None:
            return (jid, Draft(text)) if text.strip() else refusal("text", "there is nothing in it")
        if message.handle is None or message.handle in self._gone:
            return refusal("media-expired", "the file is no longer at WhatsApp")
        draft = handles.unpack(message.handle, text, self._clock.now())
        return refusal("media-expired", "the upload has expired") if draft is None else (jid, draft)

    async def _group(self, wire: WhatsAppWire, jid: str) -> WireGroup | Outcome:
        """What is known about a group, asked once: it is kept as long as the account is open."""
        known = self._groups.get(jid)
        if known is not None:
            return known
        try:
            found = await wire.group(jid)
        except WireError as error:
            return _of_query(error)
        self._groups.keep(jid, found)
        return found

    async def _hand_over(
        self, wire: WhatsAppWire, jid: str, draft: Draft, handle: str | None
    ) -> Outcome:
        """Send. Whoever calls this off is answered all the same, as soon as there is an answer;
        called off twice, the connection is cut, for then nothing goes out any more."""
        call = asyncio.ensure_future(wire.send(jid, draft))
        called_off = 0
        while not call.done():
            try:
                await asyncio.wait({call})
            except asyncio.CancelledError:
                called_off += 1
                if called_off > 1:
                    wire.abort()
        try:
            provider_id = call.result()
        except LibraryError as error:
            return self._refused(errors.of_send(str(error)), jid)
        except WireLost as error:
            return lost(error)
        if handle is not None:
            self._sent.keep(provider_id, handle)
        return accepted(provider_id)

    def _refused(self, outcome: Outcome, jid: str) -> Outcome:
        if outcome.kind is OutcomeKind.REJECTED:
            # Something about the recipient has changed; ask again next time.
            self._groups.pop(jid, None)
        return outcome

    # ------------------------------------------------------------------ what is fetched

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        kind = handles.kind_of(media.mime)
        most = handles.LARGEST[kind]
        if len(content) > most:
            size = f"{len(content) / 2**20:.1f} MiB"
            return refusal("media", f"{media.name} has {size}, and WhatsApp takes {most >> 20} MiB")
        wire = await self._connection.wire()
        if isinstance(wire, Outcome):
            return wire
        try:
            file = await wire.upload(kind, content)
        except LibraryError as error:
            return errors.of_upload(str(error))
        except WireError as error:
            return _of_query(error)
        now = self._clock.now()
        return Uploaded(handles.pack(media, file, now), handles.expiry(file, now))

    async def resolve(self, message: Message) -> str | Outcome:
        """A number as WhatsApp knows it. In some countries that is another than is dialled."""
        jid = jid_of(message.target)
        # What can be no target at all is refused where every message is looked through.
        if jid is None or not is_person(jid) or not self._able.resolves:
            return message.target
        known = self._people.get(jid)
        if known is not None:
            return known
        wire = await self._connection.wire()
        if isinstance(wire, Outcome):
            return wire
        try:
            found = await wire.look_up(f"+{jid.partition('@')[0]}")
        except WireError as error:
            return _of_query(error)
        if found is None:
            return refusal("not-on-whatsapp", "nobody on WhatsApp has this number")
        self._people.keep(jid, found)
        return found

    async def groups(self) -> list[Group]:
        """All groups the account is a member of, by name."""
        wire = await self._connection.wire()
        if isinstance(wire, Outcome):
            raise ProviderError(f"{self._name}: {wire.reason}")
        try:
            listed = await wire.groups()
        except WireError as error:
            reason = _of_query(error).reason
            raise ProviderError(f"{self._name}: the groups could not be listed: {reason}") from None
        for group in listed:
            self._groups.keep(group.jid, group)
        return sorted(
            (Group(group.jid, group.name, group.size, group.may_send) for group in listed),
            key=lambda group: (group.name.casefold(), group.id),
        )

    # ------------------------------------------------------------------ what is told

    def _heard(self, event: WireEvent) -> None:
        if isinstance(event, GroupChanged):
            self._groups.pop(event.jid, None)
        elif isinstance(event, Acknowledged) and event.state == "failed":
            self._forget_files(event)
        self._mailbox.put(event, self._connection.until_at)

    def _forget_files(self, receipt: Acknowledged) -> None:
        """A phone could not fetch a file: whoever needs it next uploads it again."""
        for sent in receipt.ids:
            handle = self._sent.get(sent)
            if handle is not None:
                log.info("an upload is gone", account=self._name)
                self._gone.keep(handle, None)


def _of_query(error: WireError) -> Outcome:
    """What a message comes to for which something could not be fetched."""
    if isinstance(error, LibraryError):
        return errors.of_query(str(error))
    return Outcome(OutcomeKind.UNAVAILABLE, str(error), "lost")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
