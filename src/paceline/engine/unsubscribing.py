"""Links with which whoever gets a message can unsubscribe, and what following one does.

A link names the delivery and is signed, so nobody can unsubscribe others by counting. It leads to
the address at which the outside reaches this service, which is known once somebody has set it.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

import structlog

from paceline.core.errors import NotFoundError
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.engine.calling_off import call_off
from paceline.engine.ports import Clock, Delivery, Journal, Tx

log = structlog.get_logger("paceline.unsubscribe")

BASE_URL = "base_url"
"""The setting under which every process of an installation finds it."""
KEY = "unsubscribe.key"
PATH = "/unsubscribe"
REASON = "unsubscribed by the link in a message"
SOURCE = "unsubscribe"
"""The source of a suppression that its owner has asked for."""

Confirm = Callable[[Tx, Delivery, Instant], object]
"""Told, in the same transaction, of the delivery whose link was followed."""

_SIGNED_BYTES = 16


@dataclass(frozen=True, slots=True)
class Links:
    base_url: str
    key: bytes = field(repr=False)

    def of(self, delivery_id: int) -> str:
        return f"{self.base_url}{PATH}/{delivery_id}.{self._signature(delivery_id)}"

    def delivery_of(self, token: str) -> int | None:
        """The delivery whose link ends with this; None for any that was never made here."""
        number, _, signature = token.partition(".")
        if not (number.isascii() and number.isdecimal() and len(number) <= 19):
            return None
        expected = self._signature(int(number))
        # As bytes: a signature may be anything that somebody has typed.
        same = hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))
        return int(number) if same and number == str(int(number)) else None

    def _signature(self, delivery_id: int) -> str:
        digest = hmac.digest(self.key, f"unsubscribe {delivery_id}".encode(), sha256)
        return urlsafe_b64encode(digest[:_SIGNED_BYTES]).rstrip(b"=").decode()


def set_base_url(tx: Tx, base_url: str) -> None:
    """From now on links lead there; an empty one makes none."""
    tx.settings.put(BASE_URL, base_url or None)


def base_url_of(tx: Tx) -> str:
    return tx.settings.get(BASE_URL) or ""


def ensure_links(tx: Tx) -> Links | None:
    """How links are made here, with a key of the installation's own, which is made when it is first
    needed; None as long as nobody has said where they lead."""
    return links_of(tx) if base_url_of(tx) else None


def links_of(tx: Tx) -> Links:
    """The same for whoever follows links: those that are out lead here whatever the settings say
    by now, and one process may make them before another has heard where they lead."""
    stored = tx.settings.get(KEY)
    if stored is None:
        # Behind the fence the second of two processes finds what the first has written.
        tx.settings.fence()
        stored = tx.settings.get(KEY)
    if stored is None:
        stored = secrets.token_hex(32)
        tx.settings.put(KEY, stored)
    return Links(base_url_of(tx), bytes.fromhex(stored))


class UnsubscribeDesk:
    """Where links are followed."""

    def __init__(
        self, journal: Journal, clock: Clock, links: Links, confirm: Confirm | None = None
    ) -> None:
        """``confirm`` is for whoever tells people that they were heard, besides the page."""
        self._journal = journal
        self._confirm = confirm
        self._clock = clock
        self._links = links

    def is_ours(self, token: str) -> bool:
        return self._links.delivery_of(token) is not None

    async def unsubscribe(self, token: str) -> bool:
        delivery_id = self._links.delivery_of(token)
        if delivery_id is None:
            return False
        now = self._clock.now()
        # Whoever needs the fence needs a transaction of its own.
        done = await self._journal.write(
            lambda tx: unsubscribe(tx, delivery_id, now, self._confirm), alone=True
        )
        if done is None:
            return False
        if done.new:
            called_off = await self._call_off(done.address, now)
            log.info("unsubscribed", delivery=delivery_id, called_off=called_off)
        return True

    async def _call_off(self, address: str, now: Instant) -> int:
        """Nothing more goes out to them from here on; so that nobody has to look whether it would,
        what waits is cancelled. It is looked for outside of any transaction that writes: that
        takes a while where much waits, and lanes would have to wait for it."""
        waiting = await self._journal.read(lambda tx: tx.waiting.of_target(address))

        def work(tx: Tx) -> int:
            entry = tx.suppressions.find(address)
            if entry is None or entry.source != SOURCE:
                return 0
            confirmation_id = tx.suppressions.confirmation_of(address)
            return call_off(tx, [row for row in waiting if row.id != confirmation_id], now, REASON)

        return await self._journal.write(work, alone=True) if waiting else 0


class Unsubscribed(NamedTuple):
    address: str
    new: bool
    """False where that address was not written to any more already."""


def unsubscribe(
    tx: Tx, delivery_id: int, at: Instant, confirm: Confirm | None = None
) -> Unsubscribed | None:
    """Never write again to whoever got this delivery; None if there is no such delivery.

    In force before the next message: the fence comes first, and the guard of every intent asks.
    """
    tx.contacts.hold(alone=False)
    tx.settings.fence()
    try:
        delivery = tx.deliveries.get(delivery_id)
    except NotFoundError:
        return None
    new = tx.suppressions.add(delivery.target, REASON, SOURCE, at)
    if new:
        # Without the address: events are read by many, and kept when a person is erased.
        tx.events.add(
            EventKind.RECIPIENT_UNSUBSCRIBED,
            f"the recipient of delivery {delivery_id} unsubscribed",
            at=at,
            account_id=delivery.account_id,
            run_id=delivery.run_id,
            delivery_id=delivery_id,
            data={"delivery": delivery_id},
        )
        if confirm is not None:
            confirm(tx, delivery, at)
    return Unsubscribed(delivery.target, new)
