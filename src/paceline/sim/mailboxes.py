"""Mailboxes as simulated processes reach them: over a wire that is cut now and then, at houses that
are away, say nothing, or let nobody in for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import SECOND
from paceline.engine.ports import Account, Mailbox, News
from paceline.sim.post import Answered
from paceline.sim.post_office import PostOffice
from paceline.sim.weather import Read
from paceline.sim.wire import Wire

if TYPE_CHECKING:
    from paceline.sim.process import Process

AWAY, REFUSED = "the mailbox is away", "the password is wrong"
SILENT_US = 50 * SECOND
"""Longer than anybody waits for a mailbox to open."""


class PostalWire(Wire):
    """The post office as one process reaches it."""

    def __init__(self, process: Process, office: PostOffice) -> None:
        super().__init__(process, office)
        self._office = office

    def has_mailbox(self, settings: Mapping[str, Any]) -> bool:
        return self._office.has_mailbox(settings)

    async def open_mailbox(self, account: Account) -> Mailbox:
        self._process.refuse_dead()
        mailbox = WireMailbox(self._process, self._office, account.name)
        await mailbox.look_for_trouble()
        return mailbox


class WireMailbox:
    """One open mailbox at the end of a wire. A cursor is the number of the last piece given."""

    def __init__(self, process: Process, office: PostOffice, account: str) -> None:
        self._process = process
        self._office = office
        self._account = account

    async def next(self, cursor: str, within_us: int) -> tuple[str, list[News]]:
        process, office = self._process, self._office
        process.refuse_dead()
        await self.look_for_trouble()
        box, clock = office.boxes[self._account], process.around.clock
        if not cursor:
            self._answer("")
            return str(len(box.mail)), []
        until_us = clock.monotonic_us() + within_us
        while len(box.mail) == int(cursor) and (left_us := until_us - clock.monotonic_us()) > 0:
            await office.wait_for_mail(left_us)
        await process.pass_gate()
        await self.look_for_trouble()
        mail = box.mail[int(cursor) : int(cursor) + office.post.at_once]
        if mail:
            await self._struck(process.around.weather.read())
        self._answer("")
        return str(int(cursor) + len(mail)), [one.news for one in mail]

    async def close(self) -> None:
        self._process.refuse_dead()
        if self._office.trouble(self._account) is not None:
            raise ProviderError(AWAY)

    async def look_for_trouble(self) -> None:
        trouble = self._office.trouble(self._account)
        if trouble is None or self._process.around.weather.clear:
            return
        reason = REFUSED if trouble.kind == "refused" else AWAY
        self._answer(reason)
        if trouble.kind == "silent":
            await asyncio.sleep(SILENT_US / SECOND)
        await self._process.pass_gate()
        self._process.around.trace.note(
            self._process.name, "mailbox", f"of {self._account} cannot be read: {reason}"
        )
        raise ProviderRefused(reason) if trouble.kind == "refused" else ProviderError(reason)

    async def _struck(self, fate: Read) -> None:
        """Mail is on its way to whoever reads: the moment in which it could be lost."""
        process, weather = self._process, self._process.around.weather
        if fate is Read.CRASH:
            process.crash("over a mailbox")
            raise asyncio.CancelledError
        if fate is Read.CUT:
            self._answer(AWAY)
            raise ProviderError(AWAY)
        if fate is Read.STANDSTILL:
            process.stand_still(weather.up_to(weather.climate.standstill_us))
            await process.pass_gate()

    def _answer(self, trouble: str) -> None:
        answered = Answered(self._process.around.clock.now(), self._process, trouble)
        self._office.boxes[self._account].answered.append(answered)


__all__ = ["AWAY", "REFUSED", "PostalWire"]
