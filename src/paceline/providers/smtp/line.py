"""One connection to a mail server: how it is opened, and how a letter goes over it.

A letter is in nobody's hands until its first byte was written, so whatever is lost before that may
be tried again; whatever is lost after it may be out. So it is known at all times how far a letter
has got. What an answer means is read in ``../mail/replies.py``.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, cast

import aiosmtplib
from aiosmtplib import SMTPAuthenticationError, SMTPException, SMTPResponseException

from paceline.core.outcome import Outcome, OutcomeKind, transient, unknown
from paceline.providers.mail.letters import Letter
from paceline.providers.mail.replies import Command, Reply, outcome_of
from paceline.providers.smtp.settings import SmtpSettings

LOST = (SMTPException, OSError, TimeoutError)
"""All that a connection can fail with that is no answer."""

CLOSING = 421
GO_ON = 354
NOT_THAT_WAY = frozenset({500, 502, 504, 534})
"""What is answered to a way to log in that a server does not know, or does not trust."""

_MAIL: Command = "mail"


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
    utf8: bool = False


class Trouble(Exception):
    """A connection that could not be opened: what that means for whatever was to go over it."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


class Line:
    """An open connection. It carries one letter at a time."""

    def __init__(self, client: aiosmtplib.SMTP, timing: Timing) -> None:
        self._client = client
        self._timing = timing
        self._refused = False
        """Whether the server was left in the middle of a letter that it would not have."""
        self.ended_early = False
        """Whether the server ended the conversation before it had heard of a letter: it may have
        been open for too long, or carried too much."""
        self.offers = _offers(client)

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
            raise Trouble(_read(error, step)) from None
        except LOST as error:
            _hang_up(client)
            raise Trouble(transient(f"no connection: {_told(error)}", "connection")) from None
        except BaseException:
            _hang_up(client)
            raise
        return cls(client, timing)

    @property
    def is_open(self) -> bool:
        return self._client.is_connected

    async def is_well(self, *, idle: bool) -> bool:
        """Whether a letter can go over it now. One that was refused is put aside first, and a
        connection that was idle is tried: a server may have gone without a word."""
        if not self.is_open:
            return False
        if not (self._refused or idle):
            return True
        try:
            async with asyncio.timeout(self._timing.check_s):
                await self._client.rset()
        except LOST:
            self.drop()
            return False
        self._refused = False
        return self.is_open

    async def deliver(self, letter: Letter, within_s: float) -> Outcome:
        """What became of a letter. Whoever calls it off leaves no connection behind."""
        try:
            refused = await self._announce(letter, within_s)
            return refused or await self._hand_over(letter)
        except BaseException:
            self.drop()
            raise

    async def _announce(self, letter: Letter, within_s: float) -> Outcome | None:
        """All before the letter itself; None if the server will have it."""
        client, step = self._client, _MAIL
        encoding = "utf-8" if letter.needs_utf8 else "ascii"
        options = [f"SIZE={letter.size}"] if client.supports_extension("size") else []
        options += ["SMTPUTF8"] if letter.needs_utf8 else []
        try:
            async with asyncio.timeout(within_s):
                await client.mail(letter.sender, options=options, encoding=encoding)
                step = "rcpt"
                await client.rcpt(letter.recipient, encoding=encoding)
                step = "data"
                answer = await client.execute_command(b"DATA")
                if answer.code == GO_ON:
                    return None
                raise SMTPResponseException(answer.code, answer.message)
        except SMTPResponseException as error:
            self._refused = True
            self.ended_early = step == "mail" and error.code == CLOSING
            if not _is_no(error.code):
                self.drop()
            return _read(error, step)
        except LOST as error:
            self.ended_early = step == "mail" and not isinstance(error, TimeoutError)
            self.drop()
            return transient(
                f"the connection was lost before the letter was sent: {_told(error)}", "connection"
            )

    async def _hand_over(self, letter: Letter) -> Outcome:
        """The letter itself. From here on a connection that is lost leaves it in doubt."""
        protocol = self._client.protocol
        if protocol is None or not protocol.is_connected:
            return transient("the connection was lost before the letter was sent", "connection")
        try:
            protocol.write(_stuffed(letter.raw))
            answer = await protocol.read_response(self._timing.content_s)
        except LOST as error:
            self.drop()
            return unknown(f"the connection was lost while the letter was sent: {_told(error)}")
        if 200 <= answer.code < 300:
            return Outcome(OutcomeKind.ACCEPTED, provider_id=letter.message_id)
        # It may have answered before it had all of it: whatever it still says belongs to this one.
        self._refused = True
        if answer.code == CLOSING or not _is_no(answer.code):
            self.drop()
        if not _is_no(answer.code):
            return unknown(f"answered {answer.code} to the letter, which is neither yes nor no")
        return outcome_of(Reply(answer.code, answer.message, "content"))

    async def quit(self) -> None:
        """Say goodbye, and hang up whether or not it is heard."""
        transport = self._client.transport
        try:
            with suppress(*LOST):
                async with asyncio.timeout(self._timing.quit_s):
                    await self._client.quit()
        finally:
            # All is said; a server that is slow to hang up is not waited for.
            self.drop()
            _abort(transport)

    def leave(self) -> None:
        """Say goodbye without waiting for an answer."""
        protocol = self._client.protocol
        if protocol is not None and protocol.is_connected:
            protocol.write(b"QUIT\r\n")
        self._client.close()

    def drop(self) -> None:
        """Hang up at once."""
        _hang_up(self._client)


def _offers(client: aiosmtplib.SMTP) -> Offers:
    size = client.esmtp_extensions.get("size", "").strip()
    # Without a number, or with 0, there is no limit that it would tell.
    most = int(size) if size.isascii() and size.isdecimal() and len(size) < 16 else 0
    return Offers(most or None, client.supports_extension("smtputf8"))


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


def _read(error: SMTPResponseException, step: Command) -> Outcome:
    if not _is_no(error.code):
        words = " ".join(error.message.split())
        return transient(f"answered {error.code} {words}, which makes no sense here", "answer")
    return outcome_of(Reply(error.code, error.message, step))


def _stuffed(raw: bytes) -> bytes:
    """The letter as it goes over the wire: a line with one dot would be its end."""
    whole = raw if raw.endswith(b"\r\n") else raw + b"\r\n"
    return whole.replace(b"\r\n.", b"\r\n..") + b".\r\n"


def _hang_up(client: aiosmtplib.SMTP) -> None:
    transport = client.transport
    client.close()
    # Not only closed: what is still waiting to be written must not go out any more.
    _abort(transport)


def _abort(transport: asyncio.BaseTransport | None) -> None:
    if transport is not None:
        cast("asyncio.WriteTransport", transport).abort()


def _told(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
