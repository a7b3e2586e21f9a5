"""A mail server on a port of this machine that answers as it is told: aiosmtpd, with a script.

It speaks the whole protocol by itself. What the script says happens instead, at the step that it
names: another answer, none at all, or a connection that ends there and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import email
import email.policy
import logging
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import (
    SMTP,
    AuthResult,
    Envelope,
    LoginPassword,
    Session,
    TLSSetupException,
)

from tests.providers.loopback import abort

# Its library writes down what it hears, passwords and all.
logging.getLogger("mail.log").disabled = True

USER = "anna@shop.example"
PASSWORD = "pA55+word/with=odd signs"


@dataclass(frozen=True)
class Step:
    """What happens at one step instead of what usually does."""

    at: str
    """``connect``, ``login``, ``mail``, ``rcpt``, ``data``, ``content``, or another command."""
    answer: str = ""
    """What is answered, with its code; several lines where it has several."""
    drops: bool = False
    """Whether the server hangs up instead of answering, at once and for good."""
    cuts: bool = False
    """Whether it hangs up in the middle of the answer."""
    hangs: bool = False
    """Whether it does not answer before it ends."""
    takes: bool = False
    """Whether the letter is delivered all the same."""
    after: str = ""
    """Only once this recipient, or part of one, has been named."""


@dataclass(frozen=True)
class Received:
    """A letter as it arrived."""

    sender: str
    recipient: str
    raw: bytes
    options: tuple[str, ...]
    encrypted: bool

    @property
    def parsed(self) -> EmailMessage:
        found = email.message_from_bytes(self.raw, policy=email.policy.default)
        assert isinstance(found, EmailMessage)
        return found

    @property
    def message_id(self) -> str:
        return str(self.parsed["Message-ID"])

    @property
    def text(self) -> str:
        body = self.parsed.get_body(("plain",))
        return "" if body is None else body.get_content().rstrip("\r\n")

    @property
    def files(self) -> list[bytes]:
        return [part.get_content() for part in self.parsed.iter_attachments()]


class FakeServer:
    """What the server was told, and what it has seen."""

    def __init__(self) -> None:
        self.script: deque[Step] = deque()
        self.letters: list[Received] = []
        self.heard: list[tuple[int, str]] = []
        """Every command, by the number of its connection."""
        self.connections = 0
        self.size = 33_554_432
        self.utf8 = False
        self.pipelining = False
        """Whether it says that it can be asked several things at once; it always can."""
        self.port = 0
        self.security = "plain"
        self.passwords = {USER: PASSWORD}
        self.changed = threading.Condition()
        self.failures: list[BaseException] = []
        self.leave = lambda: None
        self.files: Callable[[bytes], None] = lambda raw: None
        """What it does with a letter that it takes, before it says so."""

    def settings(self, **more: Any) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "security": self.security,
            "username": USER,
            "password": PASSWORD,
            "from_address": USER,
            "from_name": "Anna from the shop",
        } | more

    def note(self, connection: int, command: str) -> None:
        with self.changed:
            self.heard.append((connection, command))
            self.changed.notify_all()

    def commands(self) -> list[str]:
        return [command for _, command in self.heard]

    def await_command(self, command: str, times: int = 1) -> bool:
        """Wait until the server has heard it so often; False if it never does."""
        with self.changed:
            return self.changed.wait_for(lambda: self.commands().count(command) >= times, 30)

    def next_step(self, at: str, recipient: str = "") -> Step | None:
        for step in self.script:
            if step.at == at and step.after in recipient:
                self.script.remove(step)
                return step
        return None

    def recipients(self) -> list[str]:
        return [letter.recipient for letter in self.letters]


class _Smtp(SMTP):
    """aiosmtpd's server, which looks into the script before every step."""

    def __init__(self, fake: FakeServer, **more: Any) -> None:
        self.fake = fake
        super().__init__(self, hostname="mx.shop.example", auth_require_tls=False, **more)

    async def played(self, at: str) -> bool:
        """Whether the script has had its way with this step."""
        fake = self.fake
        fake.note(self.number, at)
        named = self.envelope.rcpt_tos[-1] if self.envelope and self.envelope.rcpt_tos else ""
        step = fake.next_step(at, self.naming or named)
        if step is None:
            return False
        if step.takes:
            self.take()
        if step.hangs:
            await asyncio.Event().wait()
        if step.drops:
            assert self.transport is not None
            abort(self.transport)
            return True
        if step.cuts:
            assert isinstance(self.transport, asyncio.WriteTransport)
            self.transport.write(step.answer.encode())
            self.transport.close()
            return True
        await self.push(step.answer.replace("\n", "\r\n"))
        if step.answer.startswith("421"):
            assert self.transport is not None
            self.transport.close()
        return True

    number = 0
    naming = ""

    async def _handle_client(self) -> None:
        self.fake.connections += 1
        self.number = self.fake.connections
        if not await self.played("connect"):
            with contextlib.suppress(ConnectionError):
                await super()._handle_client()
        elif self.transport is not None:
            self.transport.close()

    async def handle_EHLO(
        self, server: SMTP, session: Session, envelope: Envelope, name: str, offers: list[str]
    ) -> list[str]:
        session.host_name = name
        # The first line is who it is.
        return [*offers[:1], *["250-PIPELINING"] * self.fake.pipelining, *offers[1:]]

    async def smtp_AUTH(self, arg: str) -> None:
        if not await self.played("login"):
            await super().smtp_AUTH(arg)

    async def smtp_MAIL(self, arg: str | None) -> None:
        if not await self.played("mail"):
            await super().smtp_MAIL(arg)

    async def smtp_RCPT(self, arg: str | None) -> None:
        self.naming = arg or ""
        if not await self.played("rcpt"):
            await super().smtp_RCPT(arg)
        self.naming = ""

    async def smtp_DATA(self, arg: str) -> None:
        if await self.played("data"):
            return
        if any(step.at == "midway" for step in self.fake.script):
            await self.push("354 Go on")
            await self._reader.readuntil(b"\r\n")
            await self.played("midway")
            return
        await super().smtp_DATA(arg)

    async def smtp_RSET(self, arg: str) -> None:
        if not await self.played("rset"):
            await super().smtp_RSET(arg)

    async def smtp_QUIT(self, arg: str) -> None:
        if not await self.played("quit"):
            await super().smtp_QUIT(arg)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> Any:
        if await self.played("content"):
            # It has been answered already.
            return _Answered("")
        self.take()
        return f"250 2.0.0 Ok: queued as {len(self.fake.letters):06X}"

    def take(self) -> None:
        assert self.envelope is not None and self.session is not None
        content = self.envelope.original_content
        assert isinstance(content, bytes) and self.envelope.mail_from is not None
        self.fake.letters.append(
            Received(
                self.envelope.mail_from,
                self.envelope.rcpt_tos[0],
                content,
                tuple(self.envelope.mail_options),
                self.session.ssl is not None or self.over_tls,
            )
        )
        self.fake.files(content)

    over_tls = False

    async def push(self, status: Any) -> None:
        if not isinstance(status, _Answered):
            await super().push(status)

    async def handle_exception(self, error: Exception) -> str:
        # Whoever does not trust us hangs up.
        if not isinstance(error, ConnectionError | TLSSetupException):
            self.fake.failures.append(error)
        return "451 4.3.0 the fake has failed"


class _Answered(str):
    """An answer that was given before."""


def _authenticator(fake: FakeServer) -> Any:
    def check(server: Any, session: Any, envelope: Any, mechanism: str, said: Any) -> AuthResult:
        assert isinstance(said, LoginPassword)
        known = fake.passwords.get(said.login.decode())
        good = known is not None and known == said.password.decode()
        return AuthResult(success=good, handled=False)

    return check


@contextmanager
def running(
    fake: FakeServer, security: str = "plain", certificate: ssl.SSLContext | None = None
) -> Iterator[FakeServer]:
    """A server on a free port; afterwards nothing of it is left, and nothing went wrong in it."""
    loop = asyncio.new_event_loop()
    opened: list[_Smtp] = []
    fake.security = security

    def make() -> _Smtp:
        made = _Smtp(
            fake,
            loop=loop,
            data_size_limit=fake.size,
            enable_SMTPUTF8=fake.utf8,
            authenticator=_authenticator(fake),
            tls_context=certificate if security == "starttls" else None,
        )
        made.over_tls = security == "tls"
        opened.append(made)
        return made

    implicit = certificate if security == "tls" else None
    server = loop.run_until_complete(loop.create_server(make, "127.0.0.1", 0, ssl=implicit))
    fake.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever, name="fake-mail-server")
    thread.start()

    async def end() -> None:
        server.close()
        for one in opened:
            if one.transport is not None:
                abort(one.transport)
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()

    def leave() -> None:
        if thread.is_alive():
            asyncio.run_coroutine_threadsafe(end(), loop).result()

    fake.leave = leave
    try:
        yield fake
    finally:
        leave()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
    assert not fake.failures, fake.failures
