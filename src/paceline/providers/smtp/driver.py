"""The driver itself: the connections an open account keeps, every answer and failure an outcome.

A connection is kept for the next letter. As many letters as are sent at once have one each: the
policy's ``concurrency`` decides, and as a rule that is one. One that was idle is tried before a
letter goes over it, so that a server which has hung up meanwhile leaves nobody in doubt.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import structlog

from paceline.core.errors import ProviderError
from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.outcome import Outcome, transient
from paceline.engine.ports import Capabilities, Clock, Found, Media, Message, Uploaded
from paceline.providers.answers import refusal
from paceline.providers.mail.addresses import domain_of, wire_address
from paceline.providers.mail.enclosing import files_of
from paceline.providers.mail.letters import File, Letter, Sender, compose, message_id, too_large
from paceline.providers.mail.secrets import masking
from paceline.providers.shelf import Shelf
from paceline.providers.smtp.line import Access, Line, Offers, Timing, Trouble
from paceline.providers.smtp.settings import ABLE, KEY, able

if TYPE_CHECKING:
    from paceline.providers.mail.sent import SentFolder

IDLE_US = 2 * SECOND
"""After so long a connection is tried before it is used."""
KEPT_US = 60 * SECOND
"""After so long it is not even tried: many servers have hung up by then."""

SHORT = 100_000
"""Characters of a letter that is made in no time."""

ANSWERED_WITHIN_US = 10 * MINUTE
"""So long a server may take to answer for a letter (RFC 5321, 4.5.3.2.6), and with that to put it
among what was sent. Before, its absence proves nothing."""

UNCLEAR, ABSENT = Found("unclear"), Found("absent")

log = structlog.get_logger("paceline.smtp")


class _Made(NamedTuple):
    """A letter, or why there can be none, as it is in one second."""

    message: Message
    at_s: int
    letter: Letter | Outcome


class SmtpDriver:
    """One open account."""

    def __init__(
        self,
        clock: Clock,
        name: str,
        sender: Sender,
        access: Access,
        files: Shelf[File],
        timing: Timing,
        *,
        sent: SentFolder | None = None,
    ) -> None:
        """``sent`` is where its server keeps what was sent, where that can be seen."""
        self._clock = clock
        self._name = name
        self._sender = sender
        self._access = access
        self._files = files
        self._timing = timing
        self._sent = sent
        self._able = able(access.settings)
        self._path = access.settings.comes_back_to(sender)
        self.masked = masking(access.settings.username, access.password)
        """Fit to be stored and shown."""
        self._idle: list[tuple[Line, int]] = []
        """Connections that nobody uses now, each with when it was used last."""
        self._busy: set[Line] = set()
        self._offers = Offers()
        self._made: _Made | None = None
        """A letter that was made ready, and has not been asked for yet."""
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        return self._able

    async def open(self) -> None:
        """Log in, which shows whether anything can be sent; ``Trouble`` if nothing can."""
        self._put_back(await self._connect(self._timing.open_s))

    async def send(self, message: Message) -> Outcome:
        return self._fit(await self._send(message))

    def make_ready(self, message: Message) -> None:
        """The letter, unless it is long or has files. Those are made when they are called for: who
        takes a long time over one is to be known by the name of his lane."""
        part = message.part
        if part.media is None and not part.attachments and len(part.text) + len(part.html) <= SHORT:
            now = self._clock.now()
            self._made = _Made(message, now // SECOND, self._written(message, now))

    def begin(self, message: Message) -> asyncio.Future[Outcome | None] | None:
        """Over a connection that was used a moment ago, if there is one. Such a letter waits for
        nothing but what its server answers."""
        if self._closed or not self._idle or message.action not in ABLE.actions:
            return None
        line, used_us = self._idle[-1]
        if not line.is_in_step or self._clock.monotonic_us() - used_us > IDLE_US:
            return None
        letter = self._letter(message)
        if isinstance(letter, Outcome):
            return None
        self._idle.pop()
        return line.follow(self._answer_over(line, letter))

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        if len(content) > self._largest:
            return too_large(len(content), self._largest)
        self._files.put(media.id, File(media.name, media.mime, content))
        return Uploaded(media.id)

    async def find(self, message: Message, since_at: Instant) -> Found:
        """By its own Message-ID, which no other letter bears, among what was sent."""
        if self._sent is None:
            return UNCLEAR
        own_id = message_id(message.key, self._sender)
        # Looked at before the folder is: how long it takes to answer is no time that has passed.
        since_us = self._clock.now() - since_at
        try:
            kept = await self._sent.look_for(own_id)
        except ProviderError as error:
            log.info("could not look for a letter", account=self._name, reason=str(error))
            return UNCLEAR
        if kept == "there":
            return Found("present", own_id)
        late = since_us >= ANSWERED_WITHIN_US
        return ABSENT if kept == "not there" and late and self._able.proves_absence else UNCLEAR

    async def advise(self) -> list[str]:
        # Loaded only where somebody asks: nothing is sent by it.
        from paceline.providers.mail.dns import advice

        domain = domain_of(wire_address(self._sender.address))
        looking = advice(domain, self._access.settings.dkim_selector, domain_of(self._path))
        if self._sent is None:
            return await looking
        # Each has a limit of its own, and says so when it is over.
        told, sent = await asyncio.gather(looking, self._sent.told())
        return [*told, sent]

    async def close(self) -> None:
        self._closed = True
        # Whoever follows one of them hears of its end at once, and leaves it.
        for line in tuple(self._busy):
            line.drop()
        while self._idle:
            line, _ = self._idle.pop()
            await line.quit()

    def _fit(self, outcome: Outcome) -> Outcome:
        # Most say nothing but yes.
        return outcome._replace(reason=self.masked(outcome.reason)) if outcome.reason else outcome

    # ---------------------------------------------------------------------- sending

    async def _send(self, message: Message) -> Outcome:
        if message.action not in ABLE.actions:
            return refusal("action", f"this account cannot send '{message.action}'")
        letter = self._letter(message)
        if isinstance(letter, Outcome):
            return letter
        # Everything before the letter's first byte has one limit, however often it is begun.
        until_us = self._clock.monotonic_us() + int(self._timing.envelope_s * SECOND)
        outcome, again = await self._try(letter, until_us)
        if again:
            # The server has ended the conversation, and not begun to take this letter.
            outcome, _ = await self._try(letter, until_us, anew=True)
        return outcome

    def _letter(self, message: Message) -> Letter | Outcome:
        """The letter, with the second in which it is sent."""
        now, made, self._made = self._clock.now(), self._made, None
        if made is not None and made.message is message and made.at_s == now // SECOND:
            return made.letter
        return self._written(message, now)

    def _written(self, message: Message, now: Instant) -> Letter | Outcome:
        files = files_of(message, self._files)
        if isinstance(files, Outcome):
            return files
        letter = compose(
            self._sender,
            message,
            files,
            now,
            utf8=self._offers.utf8,
            largest=self._largest,
        )
        if isinstance(letter, Outcome) or self._path == letter.sender:
            return letter
        if KEY not in self._path:
            return letter._replace(sender=self._path)
        named = message.signed_name
        return letter._replace(sender=self._path.replace(KEY, named)) if named else letter

    @property
    def _largest(self) -> int:
        most, server = self._access.settings.largest, self._offers.size
        return most if server is None else min(most, server)

    async def _try(
        self, letter: Letter, until_us: int, *, anew: bool = False
    ) -> tuple[Outcome, bool]:
        """What became of it, and whether another connection may do better."""
        if self._closed:
            return transient("the account has been closed", "closed"), False
        kept = None if anew else await self._kept()
        try:
            line = kept or await self._connect(self._left_s(until_us))
        except Trouble as trouble:
            return trouble.outcome, False
        outcome = await self._over(line, letter, self._left_s(until_us))
        return outcome, kept is not None and line.ended_early

    async def _answer_over(self, line: Line, letter: Letter) -> Outcome | None:
        """What became of a letter over a connection that was kept; None where the server has ended
        the conversation, and not begun to take it."""
        outcome = await self._over(line, letter, self._timing.envelope_s)
        return None if line.ended_early else self._fit(outcome)

    async def _over(self, line: Line, letter: Letter, within_s: float) -> Outcome:
        self._busy.add(line)
        try:
            outcome = await line.deliver(letter, within_s)
        finally:
            self._busy.discard(line)
        if line.is_open:
            self._put_back(line)
        return outcome

    def _left_s(self, until_us: int) -> float:
        return max((until_us - self._clock.monotonic_us()) / SECOND, 0.01)

    async def _kept(self) -> Line | None:
        """A connection that is there and works."""
        while self._idle:
            line, used_us = self._idle.pop()
            idle_us = self._clock.monotonic_us() - used_us
            if idle_us > KEPT_US:
                line.leave()
            elif await line.is_well(idle=idle_us > IDLE_US):
                return line
        return None

    async def _connect(self, within_s: float) -> Line:
        line = await Line.open(self._access, self._timing, min(within_s, self._timing.open_s))
        self._offers, self._made = line.offers, None
        return line

    def _put_back(self, line: Line) -> None:
        if self._closed:
            line.leave()
        else:
            self._idle.append((line, self._clock.monotonic_us()))
