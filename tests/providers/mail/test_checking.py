"""``account check`` of accounts with a mailbox: whether it can send, and whether it can be read."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from paceline.core.instants import MILLISECOND, SECOND
from paceline.engine import visiting
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Provider
from paceline.engine.visiting import Visited, check
from paceline.providers.gmail import GmailProvider
from paceline.providers.mail import dns
from paceline.providers.mail.sent import SEARCH_S, SentFolder
from paceline.providers.registry import Registry
from paceline.providers.smtp import SmtpProvider
from tests.providers import loopback, stage
from tests.providers.gmail.bodies import BODIES
from tests.providers.gmail.fake import MAILBOX, READ_SCOPE, USER, FakeGmail
from tests.providers.mail import imap_server
from tests.providers.mail.imap_server import ImapServer
from tests.providers.smtp import fake as smtp
from tests.providers.smtp.fake import FakeServer

UNWATCHED = "mailbox: not watched; bounces and answers that come to it are not noticed"


@pytest.fixture(autouse=True)
def no_dns(monkeypatch: pytest.MonkeyPatch) -> None:
    async def advice(*_: str) -> list[str]:
        return ["SPF: looked up"]

    monkeypatch.setattr(dns, "advice", advice)


@pytest.fixture
def gmail() -> Iterator[FakeGmail]:
    with loopback.running(FakeGmail()) as server:
        yield server


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with smtp.running(FakeServer()) as server:
        yield server


@pytest.fixture
def imap() -> Iterator[ImapServer]:
    with imap_server.running(ImapServer()) as server:
        yield server


def checked(provider: Provider, settings: dict[str, Any]) -> Visited:
    account = replace(stage.account("anna", **settings), provider=provider.name)
    return asyncio.run(check(account, Registry([provider])))


def test_a_gmail_account(gmail: FakeGmail) -> None:
    provider = GmailProvider(SystemClock())
    found = checked(provider, gmail.settings())
    assert found == (True, "it can be opened", ("SPF: looked up", UNWATCHED))
    found = checked(provider, gmail.settings(watch=True))
    assert found.advice[-1] == "mailbox: it can be read"
    # The first who asks is whoever sends, the second whoever reads.
    fine = loopback.said(200, {"emailAddress": MAILBOX, "historyId": "7"})
    gmail.soon[f"{USER}/profile"] = [fine, BODIES["scopes"].answer]
    found = checked(provider, gmail.settings(watch=True))
    assert found.ok and found.advice[-1].startswith("mailbox: it cannot be read: Insufficient ")
    assert found.advice[-1].endswith(READ_SCOPE)


def test_an_smtp_account(server: FakeServer, imap: ImapServer) -> None:
    provider = SmtpProvider(SystemClock())
    assert checked(provider, server.settings()).advice == ("SPF: looked up", UNWATCHED)
    access = imap.access()
    mailbox = {
        "imap_host": access.host,
        "imap_port": access.port,
        "imap_security": access.security,
        "imap_username": access.username,
        "imap_password": access.password,
    }
    found = checked(provider, server.settings(**mailbox))
    assert found.ok and found.advice[-1] == "mailbox: it can be read"
    found = checked(provider, server.settings(**{**mailbox, "imap_password": "wr0ng"}))
    assert found.ok, "it can send all the same"
    assert found.advice[-1].startswith("mailbox: it cannot be read: ")
    assert "wr0ng" not in found.advice[-1]


def access_to(port: int) -> dict[str, Any]:
    return {"imap_host": "127.0.0.1", "imap_port": port, "imap_security": "plain"}


def test_a_mailbox_that_says_nothing_takes_no_other_line_with_it(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS and the folder are asked at once, each within a limit of its own."""
    monkeypatch.setitem(SentFolder.__init__.__kwdefaults__, "within_s", 0.2)
    asked = asyncio.Event()
    sent = SentFolder.told

    async def told(folder: SentFolder) -> str:
        asked.set()
        return await sent(folder)

    async def advice(*_: str) -> list[str]:
        # Here the folder's turn comes only if nobody waits for these lines first.
        await asked.wait()
        return ["SPF: looked up"]

    monkeypatch.setattr(SentFolder, "told", told)
    monkeypatch.setattr(dns, "advice", advice)
    monkeypatch.setattr(visiting, "ADVISE_WITHIN_US", 5 * SECOND)
    monkeypatch.setattr(visiting, "_mailbox", _unread)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        access = access_to(silent.getsockname()[1])
        found = checked(SmtpProvider(SystemClock()), server.settings(**access))
    assert found.advice == (
        "SPF: looked up",
        "sent: letters cannot be looked for: 127.0.0.1 took too long",
    )


async def _unread(*_: object) -> list[str]:
    return []


def test_advice_is_waited_for_longer_than_anything_in_it_takes() -> None:
    assert max(SEARCH_S, dns.LINE_WITHIN_S) * SECOND < visiting.ADVISE_WITHIN_US


def test_advice_that_never_comes_is_told_of(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def advice(*_: str) -> list[str]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(dns, "advice", advice)
    monkeypatch.setattr(visiting, "ADVISE_WITHIN_US", 200 * MILLISECOND)
    found = checked(SmtpProvider(SystemClock()), server.settings())
    assert found.ok and found.advice == ("advice: none within 0.2 seconds", UNWATCHED)
