"""How mailboxes are got into, and what keeps us out."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import MINUTE
from paceline.engine.clock import SystemClock
from paceline.providers.mail.imap import Timing
from paceline.providers.mail.mailbox import ImapMailboxes
from tests.providers.mail.imap_server import (
    FOREIGN,
    FOREIGN_PASSWORD,
    PASSWORD,
    ImapServer,
    Step,
    running,
)
from tests.providers.mail.imap_stage import letter, opened, play, put, texts
from tests.providers.smtp.certificates import make as make_certificates


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_encrypted(security: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    made = make_certificates(tmp_path_factory.mktemp("imap"))
    server = ImapServer()
    server.trust = ssl.create_default_context(cafile=made.ca_file)

    async def scene() -> None:
        box = await opened(server)
        cursor, _ = await box.next("", 0)
        waiting = asyncio.create_task(box.next(cursor, 10 * MINUTE))
        await server.until("(waits)")
        await put(server, letter("hello"))
        cursor, news = await waiting
        assert texts(news) == ["hello"]
        waiting = asyncio.create_task(box.next(cursor, 10 * MINUTE))
        await server.until("(waits)", 2)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        with pytest.raises(ProviderError, match="certificate verify failed") as caught:
            await opened(server, trust=ssl.create_default_context())
        assert not isinstance(caught.value, ProviderRefused)
        await box.close()

    with running(server, security, made.server):
        play(scene())


def test_no_encryption_where_it_was_asked_for(imap: ImapServer) -> None:
    """Nobody in between can talk us out of it."""
    with pytest.raises(ProviderError, match="TLS"):
        play(opened(imap, security="starttls", trust=ssl.create_default_context()))
    assert imap.count("LOGIN") == 0


def test_a_wrong_password(imap: ImapServer) -> None:
    with pytest.raises(ProviderRefused) as caught:
        play(opened(imap, password="wrong-password"))
    assert "wrong-password" not in str(caught.value)


def test_a_password_in_any_script(imap: ImapServer) -> None:
    async def scene() -> None:
        box = await opened(imap, username=FOREIGN, password=FOREIGN_PASSWORD)
        await box.close()
        with pytest.raises(ProviderRefused):
            await opened(imap, username=FOREIGN, password="fälsch")

    play(scene())


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        ("NO [AUTHENTICATIONFAILED] Invalid credentials (Failure)", True),
        ("NO [ALERT] Application-specific password required", True),
        ("NO LOGIN failed.", True),
        ("NO [AUTHENTICATIONFAILED] Try again with the right password", True),
        ("NO [UNAVAILABLE] LOGIN Server error - Please try again later", False),
        ("NO [ALERT] Too many simultaneous connections. (Failure)", False),
        ("NO [LIMIT] LOGIN Rate limit hit.", False),
        ("BAD User is authenticated but not connected.", False),
        (f"NO what is this: {PASSWORD}?", True),
        ("NO what is this: {}?".format(PASSWORD.replace("\\", "\\\\").replace('"', '\\"')), True),
    ],
)
def test_what_servers_say_to_whoever_wants_in(imap: ImapServer, answer: str, refused: bool) -> None:
    imap.script.append(Step("LOGIN", answer))
    with pytest.raises(ProviderError) as caught:
        play(opened(imap))
    assert isinstance(caught.value, ProviderRefused) == refused
    assert PASSWORD[:4] not in str(caught.value)


def test_nobody_is_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = ImapServer()
        server.port = taken.getsockname()[1]
        with pytest.raises(ProviderError) as caught:
            play(opened(server))
    assert not isinstance(caught.value, ProviderRefused)


def test_somebody_is_there_who_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = ImapServer()
        server.port = listening.getsockname()[1]
        boxes = ImapMailboxes(SystemClock(), timing=Timing(answer_s=0.2))
        with pytest.raises(ProviderError, match="timed out"):
            play(opened(server, boxes))
