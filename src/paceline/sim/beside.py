"""What runs in a simulated process beside its lanes, as far as its world has a use for it: whoever
tells people, reads mailboxes, answers; and the doors at which others knock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paceline.engine.answering import Answerer
from paceline.engine.clock import SystemClock
from paceline.engine.looking import Looker
from paceline.engine.ports import Tx
from paceline.engine.reporting import ReportDesk
from paceline.engine.teller import Teller
from paceline.engine.unsubscribing import UnsubscribeDesk
from paceline.engine.watching import Watcher
from paceline.providers.registry import Registry
from paceline.sim.customers import Exchange
from paceline.sim.mailboxes import PostalWire
from paceline.sim.phone import Line
from paceline.sim.post_office import PostOffice
from paceline.sim.responding import HookedWire, ways_of
from paceline.sim.wire import Wire

if TYPE_CHECKING:
    from paceline.sim.process import Process

SECRET = "0" * 32
"""In the address of every account's hook: who may knock is not what is played here."""


def wire_of(process: Process) -> Wire:
    provider = process.around.provider
    if isinstance(provider, PostOffice):
        return PostalWire(process, provider)
    if isinstance(provider, Exchange):
        return HookedWire(process, provider)
    return Wire(process, provider)


def lookers(process: Process, clock: SystemClock, providers: Registry) -> list[Looker]:
    """What looks for something to do, beside the lanes."""
    around, journal, found = process.around, process.journal, list[Looker]()
    if around.phone is not None:
        found.append(Teller(journal, clock, Line(process, around.phone)))
    if isinstance(around.provider, PostOffice):
        post = around.provider.post
        found.append(
            Watcher(
                journal,
                clock,
                providers,
                look_every_us=post.look_every_us,
                wait_us=post.wait_us,
                lease_us=post.lease_us,
            )
        )
    if isinstance(around.provider, Exchange):
        talk = around.provider.talk
        found.append(
            Answerer(
                journal,
                clock,
                providers,
                ways_of(process, around.provider),
                name=process.name,
                at_once=talk.at_once,
                look_every_us=talk.look_every_us,
            )
        )
    return found


class Doors:
    """Where a process is called from outside."""

    def __init__(self, process: Process, clock: SystemClock, providers: Registry) -> None:
        links = process.around.links
        journal = process.journal
        self._leaving = None if links is None else UnsubscribeDesk(journal, clock, links)
        self._reports = ReportDesk(journal, clock, providers)

    async def unsubscribe(self, token: str) -> bool:
        return self._leaving is not None and await self._leaving.unsubscribe(token)

    async def report(self, account: str, body: bytes) -> bool:
        """Whether it was taken, as a provider is told."""
        admitted = await self._reports.admit(account, SECRET)
        assert admitted is not None, f"nobody knows {account}"
        return await self._reports.take(admitted, {}, body, {}) == "taken"


def let_knock(tx: Tx) -> None:
    """Give every account a hook whose secret is the same in every world."""
    for account in tx.accounts.list():
        tx.settings.put(f"hook.{account.id}", SECRET)


__all__ = ["Doors", "let_knock", "lookers", "wire_of"]
