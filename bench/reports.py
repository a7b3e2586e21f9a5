"""What a provider reports about customers who write, as WATI does, and the accounts it reports to.

Pure but for the making of the accounts. Every message is a different one, and customers write in
turn, so that each of them has written several times.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence

from bench import scenes
from paceline.app import ensure_instance
from paceline.core.instants import HOUR
from paceline.engine.catalogue import Catalogue
from paceline.engine.clock import SystemClock
from paceline.engine.commands import accounts, hooking
from paceline.engine.commands.accounts import House, NewAccount
from paceline.engine.ports import Store
from paceline.providers.registry import Registry
from paceline.providers.wati import WatiProvider
from paceline.vault import VARIABLE, KeyVault, new_key

PASSKEY = "passed-on-by-the-shop"
BARE_PATH = "/bare"
WAY = "shop"
LISTENS_US = HOUR
"""Longer than any measurement: what comes in is kept for a turn, and no turn begins meanwhile."""


def house() -> House:
    """With a key of its own: secrets are sealed as they are anywhere."""
    vault = KeyVault(None, {VARIABLE: new_key()})
    return House(Registry([WatiProvider(SystemClock())], vault=vault), Catalogue())


def add_accounts(store: Store, ours: House, count: int) -> list[str]:
    """Accounts that are answered, and the paths that their provider reports to."""
    ensure_instance(store)
    now, paths = SystemClock().now(), []
    settings = {
        "endpoint": "http://127.0.0.1:9/12345",
        "access_token": secrets.token_urlsafe(24),
        "webhook_auth": "passkey",
        "webhook_secret": PASSKEY,
    }
    listens = {"way": WAY, "quiet_us": LISTENS_US, "max_wait_us": LISTENS_US}
    with store.write() as tx:
        for number in range(count):
            new = NewAccount(f"shop-{number:03}", "wati", scenes.SENDER, settings)
            account = accounts.add(tx, new, ours, now)
            tx.accounts.update(account.id, answering=listens)
            secret = hooking.ensure_secret(tx, ours.providers, account)
            paths.append(hooking.url_of("", account, secret))
    return paths


def body(number: int, customers: int) -> bytes:
    """One message of one customer."""
    return json.dumps(
        {
            "id": f"69282478274a880f{number:08x}",
            "created": "2026-11-16T09:00:01.6268572Z",
            "whatsappMessageId": f"wamid.HBgNODYxODcxOTE0OTIxNBUCABIYFDNCRkJFNDFC{number:08}",
            "conversationId": "68c8d56157578adb12ada249",
            "ticketId": "69280a6d6244a6d9b9b486e9",
            "text": f"Good morning, is order {number} on its way already? Thank you!",
            "type": "text",
            "data": None,
            "timestamp": "1794819600",
            "owner": False,
            "eventType": "message",
            "statusString": "SENT",
            "waId": f"4915{number % customers:09}",
            "senderName": "A customer",
            "listReply": None,
            "replyContextId": "",
            "passkey": PASSKEY,
        }
    ).encode()


def requests(paths: Sequence[str], first: int, count: int, customers: int) -> Iterator[bytes]:
    """Whole requests. A customer always writes to the same account."""
    for number in range(first, first + count):
        said = body(number, customers)
        path = paths[number % customers % len(paths)]
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(said)}\r\n\r\n"
        )
        yield head.encode() + said
