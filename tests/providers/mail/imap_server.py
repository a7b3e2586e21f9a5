"""A mailbox on a port of this machine: pymap, with its letters in memory, and a script.

It speaks the whole protocol by itself. What the script says happens instead, at the command that it
names: another answer, none at all, or a connection that ends there and then.
"""

from __future__ import annotations

import asyncio
import imaplib
import ssl
import threading
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from proxyprotocol.reader import ProxyProtocolReader
from proxyprotocol.sock import SocketInfo
from pymap.backend.dict import Config, Identity, Login
from pymap.config import BackendCapability
from pymap.context import connection_exit
from pymap.imap import IMAPConnection
from pymap.imap.state import ConnectionState
from pymap.user import Passwords, UserMetadata
from pysasl.hashing import BuiltinHash

from paceline.providers.mail.settings import Access
from tests.providers.loopback import abort

USER = "anna@shop.example"
OTHER = "ben@shop.example"
FOREIGN = "dörte@shop.example"
FOREIGN_PASSWORD = "pässwört"
PASSWORD = 'pA55"word\\ with odd signs'

T = TypeVar("T")


@dataclass(frozen=True)
class Step:
    """What happens at a command instead of what usually does."""

    at: str
    answer: str = ""
    """What is answered, behind the command's tag."""
    before: str = ""
    """A line that comes before whatever is answered."""
    idling: str = ""
    """What is said at once to whoever wants to wait, in one piece."""
    drops: bool = False
    hangs: bool = False


class ImapServer:
    """What the server was told, and what it has seen."""

    def __init__(self, *, idles: bool = True) -> None:
        self.idles = idles
        self.security = "plain"
        self.script: deque[Step] = deque()
        self.heard: list[tuple[int, str]] = []
        """Every command, by the number of its connection."""
        self.connections: dict[int, asyncio.StreamWriter] = {}
        self.changed = threading.Condition()
        self.port = 0
        self.loop: asyncio.AbstractEventLoop
        self.config: Config
        self.failures: list[BaseException] = []
        self.trust: ssl.SSLContext | None = None

    def access(self, **more: Any) -> Access:
        known: dict[str, Any] = {
            "host": "127.0.0.1", "port": self.port, "security": self.security, "username": USER,
            "password": PASSWORD, "trust": self.trust,
        }  # fmt: skip
        return Access(**(known | more))

    def settings(self, **more: Any) -> dict[str, Any]:
        """What an account is told of its mailbox."""
        access = self.access()
        return {
            "imap_host": access.host,
            "imap_port": access.port,
            "imap_security": access.security,
            "imap_username": access.username,
            "imap_password": access.password,
        } | more

    # ------------------------------------------------------------------ what it has seen

    def note(self, number: int, command: str) -> None:
        with self.changed:
            self.heard.append((number, command))
            self.changed.notify_all()

    def commands(self) -> list[str]:
        return [command for _, command in self.heard]

    def count(self, word: str) -> int:
        return sum(command.split(" ")[0] == word for command in self.commands())

    def await_commands(self, word: str, times: int = 1) -> bool:
        """Wait until the server has heard it so often; False if it never does."""
        with self.changed:
            return self.changed.wait_for(lambda: self.count(word) >= times, 30)

    async def until(self, word: str, times: int = 1) -> None:
        """The same for whoever must not wait in the way of others."""
        assert await asyncio.to_thread(self.await_commands, word, times), self.heard

    # ------------------------------------------------------------------ what is done to it

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def append(self, raw: bytes, folder: str = "INBOX", user: str = USER) -> None:
        """Put a letter into a folder, as mail servers do: over IMAP."""
        with self.filing(folder, user) as file:
            file(raw)

    @contextmanager
    def filing(self, folder: str, user: str = USER) -> Iterator[Callable[[bytes], None]]:
        """The same for whoever has many."""
        client = self._client(user)

        def file(raw: bytes) -> None:
            typ, told = client.append(folder, "", '"16-Nov-2026 12:00:00 +0000"', raw)
            assert typ == "OK", told

        try:
            yield file
        finally:
            client.logout()

    def flags(self, folder: str = "INBOX", user: str = USER) -> list[Any]:
        client = self._client(user)
        try:
            client.select(folder, readonly=True)
            return client.fetch("1:*", "(FLAGS)")[1]
        finally:
            client.logout()

    def make(self, folder: str, user: str = USER) -> None:
        client = self._client(user)
        client.create(folder)
        client.logout()

    def _client(self, user: str) -> imaplib.IMAP4:
        if self.security == "tls":
            client: imaplib.IMAP4 = imaplib.IMAP4_SSL(
                "127.0.0.1", self.port, ssl_context=self.trust
            )
        else:
            client = imaplib.IMAP4("127.0.0.1", self.port)
        if self.security == "starttls":
            client.starttls(ssl_context=self.trust)
        client.login(user, PASSWORD)
        return client

    def drop_all(self) -> None:
        """Every connection ends, at once and for good."""

        async def drop() -> None:
            for writer in self.connections.values():
                abort(writer.transport)

        self.do(drop())

    def say(self, line: str) -> None:
        """Say something to everybody, unasked."""

        async def speak() -> None:
            for writer in self.connections.values():
                writer.write(f"{line}\r\n".encode())

        self.do(speak())

    def number_anew(self, user: str = USER) -> None:
        """As if the folder had been made again, with the same letters in it."""

        async def change() -> None:
            mailboxes, _ = self.config.set_cache[user]
            inbox = await mailboxes.get_mailbox("INBOX")
            inbox._uid_validity += 1

        self.do(change())


class _Connection(IMAPConnection):
    """pymap's connection, which looks into the script at every command."""

    __slots__ = ["fake", "number"]

    def __init__(self, fake: ImapServer, number: int, *more: Any) -> None:
        super().__init__(*more)
        self.fake = fake
        self.number = number

    async def readline(self) -> memoryview:
        while True:
            line = await super().readline()
            tag, _, command = bytes(line).decode("utf-8", "replace").strip().partition(" ")
            if not await self._played(tag, command or tag):
                return line

    async def _played(self, tag: str, command: str) -> bool:
        fake = self.fake
        step = next((step for step in fake.script if command.startswith(step.at)), None)
        if step is not None:
            fake.script.remove(step)
            if step.before:
                self.writer.write(f"{step.before}\r\n".encode())
        fake.note(self.number, command)
        if step is None or not (step.drops or step.hangs or step.answer or step.idling):
            return False
        if step.idling:
            self.writer.write(f"+ idling\r\n{step.idling}\r\n".encode())
            await super().readline()
            self.writer.write(f"{tag} OK done\r\n".encode())
        elif step.drops:
            abort(self.writer.transport)
        elif step.hangs:
            await self.reader.read()
        else:
            self.writer.write(f"{tag} {step.answer}\r\n".encode())
            await self.writer.drain()
        return True

    async def handle_updates(self, *more: Any) -> None:
        self.fake.note(self.number, "(waits)")
        await super().handle_updates(*more)


class _Silent(Config):
    """A server that does not tell by itself what comes."""

    @property
    def backend_capability(self) -> BackendCapability:
        return BackendCapability(idle=False, object_id=True, multi_append=True)


async def _serve(
    fake: ImapServer, ready: threading.Event, over: asyncio.Event, tls: ssl.SSLContext | None
) -> None:
    arguments = Namespace(
        host="127.0.0.1", port=0, debug=False, cert=None, key=None, tls=fake.security == "starttls",
        proxy_protocol=None, passlib_cfg=None, demo_data=False, demo_user=USER,
        demo_password=PASSWORD,
    )  # fmt: skip
    more: dict[str, Any] = {"ssl_context": tls} if tls else {}
    config = (Config if fake.idles else _Silent).from_args(
        arguments, secure_auth=False, invalid_user_sleep=0.0, hash_context=BuiltinHash(rounds=1),
        **more,
    )  # fmt: skip
    config.apply_context()
    login = Login(config)
    for user, password in ((USER, PASSWORD), (OTHER, PASSWORD), (FOREIGN, FOREIGN_PASSWORD)):
        hashed = await Passwords(config).hash_password(password)
        identity = Identity(user, login, None, frozenset({"admin"}))
        await identity.set(UserMetadata(config, user, password=hashed))

    async def connected(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, info: SocketInfo
    ) -> None:
        number = len(fake.connections) + 1
        fake.connections[number] = writer
        connection = _Connection(fake, number, config.commands, config, reader, writer, info)
        async with AsyncExitStack() as stack:
            connection_exit.set(stack)
            stack.enter_context(closing(connection))
            await connection.run(ConnectionState(login, config))

    callback = ProxyProtocolReader(config.proxy_protocol).get_callback(connected)
    direct = tls if fake.security == "tls" else None
    server = await asyncio.start_server(callback, "127.0.0.1", 0, ssl=direct)
    async with server:
        fake.config, fake.loop = config, asyncio.get_running_loop()
        fake.port = server.sockets[0].getsockname()[1]
        ready.set()
        await over.wait()
        for writer in fake.connections.values():
            abort(writer.transport)


@contextmanager
def running(
    fake: ImapServer, security: str = "plain", tls: ssl.SSLContext | None = None
) -> Iterator[ImapServer]:
    """A server on a free port; afterwards nothing of it is left."""
    fake.security = security
    ready, over = threading.Event(), asyncio.Event()

    def body() -> None:
        try:
            asyncio.run(_serve(fake, ready, over, tls))
        except BaseException as error:
            fake.failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=body, name="fake-imap")
    thread.start()
    assert ready.wait(30)
    try:
        if not fake.failures:
            yield fake
            fake.loop.call_soon_threadsafe(over.set)
    except BaseException:
        fake.loop.call_soon_threadsafe(over.set)
        raise
    finally:
        thread.join(30)
    assert not fake.failures, fake.failures
