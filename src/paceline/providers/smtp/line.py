"""One connection to a mail server: how it is opened, and how a letter goes over it.

A letter is in nobody's hands until its first byte was written, so whatever is lost before that may
be tried again; whatever is lost after it may be out. So it is known at all times how far a letter
has got. What an answer means is read in ``../mail/replies.py``.

Before that byte three things are asked: whether the server takes letters from there, to there, and
whether this one may come. Where it says that several things can be asked at once (PIPELINING, RFC
2920), these go out together. **That gives nothing away:** not a byte of the letter is written
before all three were answered with yes, each for itself (``conversation.py``); and the answers are
about this letter, because nothing is asked while one to something earlier is owed or unread. So a
connection that is lost meanwhile leaves nobody in doubt, as if they had been asked one by one.

The letter is refused with the first no. The answers to the rest are read all the same, or the
connection is given up, for the next letter would be told what this one was. A server that has
refused the recipient, and wants the letter nevertheless (354), gets one with nothing in it, which
goes to nobody (RFC 2920, 3.1). Had it refused the sender and then taken the recipient, somebody
would get that, so then the connection is given up.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar, cast

import aiosmtplib
from aiosmtplib import SMTPAuthenticationError, SMTPException, SMTPResponseException

from paceline.core.outcome import Outcome, OutcomeKind, transient, unknown, unreachable
from paceline.providers.answers import refusal
from paceline.providers.mail.letters import Letter
from paceline.providers.mail.replies import Command, Reply, outcome_of
from paceline.providers.smtp.conversation import Answer, Conversation, Lost
from paceline.providers.smtp.settings import SmtpSettings

T = TypeVar("T")

LOST = (SMTPException, OSError, TimeoutError)
"""All that opening a connection can fail with that is no answer."""
GONE = (Lost, TimeoutError)
"""All that one can fail with that is open."""

CLOSING = 421
GO_ON = 354
DONE = 250
NOT_THAT_WAY = frozenset({500, 502, 504, 534})
"""What is answered to a way to log in that a server does not know, or does not trust."""

Step = Literal["mail", "rcpt", "data"]
YES: Mapping[Step, frozenset[int]] = {
    "mail": frozenset({DONE}),
    "rcpt": frozenset({DONE, 251}),
    "data": frozenset({GO_ON}),
}
"""What is asked before a letter, in this order, and with what a server says yes to it."""

_FIRST: Step = "mail"
_STEERS = re.compile(r"[\x00-\x20\x7f<>]")
"""What would end an address, or the command that it stands in."""


class Timing(NamedTuple):
    """How long each step may take, in seconds.

    All before a letter's first byte has one limit together, shorter than policies wait: so a
    server that keeps silent leaves nobody in doubt. After it the policy decides, and this only
    bounds what nobody else bounds."""

    open_s: float = 15
    envelope_s: float = 20
    content_s: float = 300
    check_s: float = 5
    quit_s: float = 2


@dataclass(frozen=True, slots=True)
class Access:
    """What is needed to open a connection."""

    settings: SmtpSettings
    password: str
    greeting: str
    trust: ssl.SSLContext | None


@dataclass(frozen=True, slots=True)
class Offers:
    """What a server says it can do."""

    size: int | None = None
    """How many bytes a letter may have; None where it does not say."""
    sized: bool = False
    """Whether it wants to be told how many bytes a letter has."""
    utf8: bool = False
    pipelining: bool = False
    """Whether it can be asked several things at once."""


class Trouble(Exception):
    """A connection that could not be opened: what that means for whatever was to go over it."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class Line:
    """An open connection. It carries one letter at a time."""

    def __init__(self, conversation: Conversation, offers: Offers, timing: Timing) -> None:
        self._conversation = conversation
        self._timing = timing
        self._refused = False
        """Whether the server was left in the middle of a letter that it would not have."""
        self.ended_early = False
        """Whether the server ended the conversation before it had heard of a letter: it may have
        been open for too long, or carried too much."""
        self.offers = offers

    @classmethod
    async def open(cls, access: Access, timing: Timing, within_s: float) -> Line:
        """A connection that is logged in; ``Trouble`` where there is none to be had."""
        settings = access.settings
        client = aiosmtplib.SMTP(
            hostname=settings.host,
            port=settings.at_port,
            local_hostname=access.greeting,
            timeout=None,
            use_tls=settings.security == "tls",
            start_tls=False,
            tls_context=access.trust,
        )
        step: Command = "connect"
        try:
            async with asyncio.timeout(within_s):
                await client.connect()
                if settings.security == "starttls":
                    await _start_tls(client)
                await client.ehlo()
                step = "login"
                if settings.username:
                    await _log_in(client, settings.username, access.password)
        except SMTPResponseException as error:
            _hang_up(client)
            raise Trouble(_let_in(Answer(error.code, error.message), step)) from None
        except LOST as error:
            _hang_up(client)
            raise Trouble(unreachable(f"no connection: {_told(error)}")) from None
        except ValueError as error:  # a name that cannot be looked up, or said
            _hang_up(client)
            raise Trouble(_unfit(f"the settings are of no use: {_told(error)}")) from None
        except BaseException:
            _hang_up(client)
            raise
        transport = client.transport
        if transport is None:
            raise Trouble(unreachable("no connection: the server hung up"))
        return cls(Conversation(cast("asyncio.Transport", transport)), _offers(client), timing)

    @property
    def is_open(self) -> bool:
        return self._conversation.is_open

    @property
    def is_in_step(self) -> bool:
        """Whether a letter can go over it without anything being asked before."""
        return self.is_open and not self._refused

    def follow(self, steps: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Something begun that waits for nothing but what this connection brings."""
        return self._conversation.follow(steps)

    async def is_well(self, *, idle: bool) -> bool:
        """Whether a letter can go over it now. One that was refused is put aside first, and a
        connection that was idle is tried: a server may have gone without a word."""
        if not self.is_open:
            return False
        if self.is_in_step and not idle:
            return True
        try:
            self._conversation.allow(self._timing.check_s)
            self._conversation.say(b"RSET\r\n")
            answer = await self._conversation.answer()
        except GONE:
            self.drop()
            return False
        if answer.code != DONE:
            self.drop()
        self._refused = False
        return self.is_open

    async def deliver(self, letter: Letter, within_s: float) -> Outcome:
        """What became of a letter. Whoever calls it off leaves no connection behind."""
        if _STEERS.search(letter.sender) or _STEERS.search(letter.recipient):
            return refusal("address", "an address has something in it that would steer the server")
        try:
            refused = await self._announce(letter, within_s)
            return refused or await self._hand_over(letter)
        except BaseException:
            self.drop()
            raise

    async def _announce(self, letter: Letter, within_s: float) -> Outcome | None:
        """All before the letter itself; None if the server will have it."""
        conversation, step = self._conversation, _FIRST
        at_once, commands = self.offers.pipelining, _envelope(letter, self.offers)
        conversation.allow(within_s)
        try:
            if at_once:
                conversation.say(b"".join(commands.values()), len(commands))
            for step, answers in YES.items():
                if not at_once:
                    conversation.say(commands[step])
                answer = conversation.heard() or await conversation.answer()
                if answer.code not in answers:
                    break
            else:
                return None
        except GONE as error:
            self.drop()
            if isinstance(error, Lost) and error.garbled:
                return transient(f"{error}", "answer")
            self.ended_early = step == "mail" and isinstance(error, Lost)
            return transient(
                f"the connection was lost before the letter was sent: {_told(error)}", "connection"
            )
        self._refused = True
        self.ended_early = step == "mail" and answer.code == CLOSING
        if not _goes_on(answer):
            self.drop()
        elif at_once:
            await self._catch_up(step)
        return _read(answer, step)

    async def _catch_up(self, refused: Step) -> None:
        """Hear what else was asked together with what was refused, in the time that is left for
        all of it, or hang up. Only another no is in order, or the wish for a letter that has a
        recipient no more."""
        conversation, rest = self._conversation, list(YES)[list(YES).index(refused) + 1 :]
        try:
            for step in rest:
                answer = await conversation.answer()
                if step == "data" and answer.code == GO_ON:
                    conversation.say(b".\r\n")
                    answer = await conversation.answer()
                    in_order = 200 <= answer.code < 300 or _goes_on(answer)
                else:
                    in_order = _goes_on(answer)
                if not in_order:
                    self.drop()
                    return
        except GONE:
            self.drop()

    async def _hand_over(self, letter: Letter) -> Outcome:
        """The letter itself. From here on a connection that is lost leaves it in doubt."""
        try:
            self._conversation.say(_stuffed(letter.raw))
        except Lost as error:
            return transient(
                f"the connection was lost before the letter was sent: {error}", "connection"
            )
        try:
            self._conversation.allow(self._timing.content_s)
            answer = await self._conversation.answer()
        except GONE as error:
            self.drop()
            return unknown(f"the connection was lost while the letter was sent: {_told(error)}")
        if 200 <= answer.code < 300:
            return Outcome(OutcomeKind.ACCEPTED, provider_id=letter.message_id)
        # It may have answered before it had all of it: whatever it still says belongs to this one.
        self._refused = True
        if not _goes_on(answer):
            self.drop()
        if not _is_no(answer.code):
            return unknown(f"answered {answer.code} to the letter, which is neither yes nor no")
        return outcome_of(Reply(answer.code, answer.text, "content"))

    async def quit(self) -> None:
        """Say goodbye, and hang up whether or not it is heard."""
        try:
            with suppress(*GONE):
                self._conversation.allow(self._timing.quit_s)
                self._conversation.say(b"QUIT\r\n")
                await self._conversation.answer()
        finally:
            # All is said; a server that is slow to hang up is not waited for.
            self._conversation.leave()
            self.drop()

    def leave(self) -> None:
        """Say goodbye without waiting for an answer."""
        self._conversation.leave(b"QUIT\r\n")

    def drop(self) -> None:
        """Hang up at once."""
        self._conversation.end("hung up")


def _offers(client: aiosmtplib.SMTP) -> Offers:
    size = client.esmtp_extensions.get("size", "").strip()
    # Without a number, or with 0, there is no limit that it would tell.
    most = int(size) if size.isascii() and size.isdecimal() and len(size) < 16 else 0
    return Offers(
        most or None,
        sized=client.supports_extension("size"),
        utf8=client.supports_extension("smtputf8"),
        pipelining=client.supports_extension("pipelining"),
    )


def _envelope(letter: Letter, offers: Offers) -> Mapping[Step, bytes]:
    """What is asked before a letter, in the order of ``YES``."""
    size = f" SIZE={letter.size}" if offers.sized else ""
    utf8 = " SMTPUTF8" if letter.needs_utf8 else ""
    return {
        "mail": f"MAIL FROM:<{letter.sender}>{size}{utf8}\r\n".encode(),
        "rcpt": f"RCPT TO:<{letter.recipient}>\r\n".encode(),
        "data": b"DATA\r\n",
    }


async def _start_tls(client: aiosmtplib.SMTP) -> None:
    await client.ehlo()
    if not client.supports_extension("starttls"):
        raise Trouble(_unfit("the server does not offer STARTTLS; it may want security=tls"))
    await client.starttls()


async def _log_in(client: aiosmtplib.SMTP, username: str, password: str) -> None:
    """The library would try every way to log in there is, and too many are a reason to be locked
    out; so the next is tried only where a server does not know the one before."""
    ways = {"plain": client.auth_plain, "login": client.auth_login, "cram-md5": client.auth_crammd5}
    known = [way for name, way in ways.items() if name in client.server_auth_methods]
    if not known:
        raise Trouble(_unfit("the server offers no way to log in that is known here"))
    for way in known:
        try:
            await way(username, password)
        except SMTPAuthenticationError as error:
            if error.code not in NOT_THAT_WAY or way is known[-1]:
                raise
        else:
            return


def _unfit(reason: str) -> Outcome:
    """The account's settings and the server do not fit each other: only a person can help."""
    return Outcome(OutcomeKind.UNAUTHORISED, reason, "settings")


def _is_no(code: int) -> bool:
    return 400 <= code < 600


def _goes_on(answer: Answer) -> bool:
    """Whether a server that said no can be asked again."""
    return _is_no(answer.code) and answer.code != CLOSING


def _let_in(answer: Answer, step: Command) -> Outcome:
    """What it means that a server does not let us in: nonsense costs no letter a retry."""
    if _is_no(answer.code):
        return _read(answer, step)
    words = " ".join(answer.text.split())
    return unreachable(f"no connection: the server said {words!r}, which makes no sense here")


def _read(answer: Answer, step: Command) -> Outcome:
    if not _is_no(answer.code):
        words = " ".join(answer.text.split())
        return transient(f"answered {answer.code} {words}, which makes no sense here", "answer")
    return outcome_of(Reply(answer.code, answer.text, step))


def _stuffed(raw: bytes) -> bytes:
    """The letter as it goes over the wire: a line with one dot would be its end."""
    whole = raw if raw.endswith(b"\r\n") else raw + b"\r\n"
    return whole.replace(b"\r\n.", b"\r\n..") + b".\r\n"


def _hang_up(client: aiosmtplib.SMTP) -> None:
    transport = client.transport
    client.close()
    # Not only closed: what is still waiting to be written must not go out any more.
    if transport is not None:
        cast("asyncio.WriteTransport", transport).abort()


def _told(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    words = " ".join(str(error).split())
    return words if isinstance(error, Lost) else f"{type(error).__name__}: {words}".rstrip(": ")
