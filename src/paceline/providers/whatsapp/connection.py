"""An account's connection over time: opened, lost, opened again, and how it stands meanwhile.

Nothing is sent here. What stands in the way is told as an outcome to whoever sends, and as an error
to whoever opens the account.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import structlog

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Clock
from paceline.providers.whatsapp import errors
from paceline.providers.whatsapp.wire import (
    MakeWire,
    QrCode,
    Standing,
    WhatsAppWire,
    WireError,
    WireEvent,
    WireLost,
    WireRefused,
)

log = structlog.get_logger("paceline.whatsapp")

CONNECT_WITHIN_S = 60
"""How long WhatsApp may take. Policies usually wait less, and they decide."""

INSTALL = (
    "WhatsApp needs the extra 'whatsapp', which is not installed here; "
    "install it with: scripts/install --whatsapp (or: pip install 'paceline[whatsapp]')"
)

_PASSING = ("offline",)
"""How a connection stands that the library makes again by itself."""


class Connection:
    """The one connection of an open account."""

    def __init__(
        self,
        clock: Clock,
        name: str,
        session: Path,
        make_wire: MakeWire,
        tell: Callable[[WireEvent], None],
        *,
        online: bool = False,
    ) -> None:
        self._clock = clock
        self._name = name
        self._session = session
        self._make_wire = make_wire
        self._tell = tell
        self._online = online
        self._wire: WhatsAppWire | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        self._decided = asyncio.Event()
        self.standing = Standing("ended")
        self.until_at: Instant | None = None
        """When a ban is over."""

    async def open(self) -> None:
        """Connect, or say in one line why that cannot be."""
        async with self._opening:
            await self._open()

    async def wire(self) -> WhatsAppWire | Outcome:
        """The connection to send through; an outcome if there is none and why."""
        if self._closed:
            return Outcome(OutcomeKind.TRANSIENT, "the account has been closed", "closed")
        if self.standing.state == "ended":
            answer = await self._again()
            if answer is not None:
                return answer
        if self.standing.state == "banned" and self._ban_is_over():
            # The library gave up when it was banned; whether it may again only WhatsApp knows.
            answer = await self._again()
            if answer is not None:
                return answer
        refused = errors.of_standing(self.standing, self._clock.now(), self.until_at, self._name)
        if refused is not None:
            return refused
        assert self._wire is not None, "what is ready is connected"
        return self._wire

    async def keep(self) -> None:
        """Make the connection anew if it has ended, for whoever only listens; or say why not."""
        found = await self.wire()
        if not isinstance(found, Outcome) or self.standing.state in _PASSING:
            return
        final = found.kind in (OutcomeKind.UNAUTHORISED, OutcomeKind.BANNED)
        raise (ProviderRefused if final else ProviderError)(f"{self._name}: {found.reason}")

    async def close(self) -> None:
        self._closed = True
        await self._let_go()

    def abort(self) -> None:
        """Make sure that nothing that is under way goes any further."""
        if self._wire is not None:
            self._wire.abort()

    # ------------------------------------------------------------------ opening

    async def _again(self) -> Outcome | None:
        """Connect anew. What stands in the way then is how it stands, or an outcome."""
        async with self._opening:
            if self.standing.state == "ready":
                return None
            try:
                await self._open()
            except ProviderRefused as error:
                if self.standing.state == "ended":
                    return Outcome(OutcomeKind.UNAUTHORISED, str(error), "refused")
            except ProviderError as error:
                return Outcome(OutcomeKind.UNAVAILABLE, str(error), "offline")
        return None

    async def _open(self) -> None:
        if not self._session.exists():
            self.standing = Standing("unpaired")
            raise ProviderRefused(self._told())
        await self._let_go()
        self.standing, self.until_at = Standing("ended"), None
        self._decided.clear()
        wire = self._wire = self._make_wire(self._session, self._heard)
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                await wire.connect()
                await self._decided.wait()
        except WireRefused as error:
            raise refused(self._name, error) from None
        except (WireError, TimeoutError) as error:
            reason = str(error) or f"no answer from WhatsApp within {CONNECT_WITHIN_S} s"
            await self._let_go()
            raise ProviderError(f"{self._name}: offline: {reason}") from None
        if self.standing.state != "ready":
            await self._let_go()
            row = errors.STANDINGS[self.standing.state]
            raise (ProviderRefused if row.final else ProviderError)(self._told())
        if self._online:
            await self._be_online(wire)

    async def _be_online(self, wire: WhatsAppWire) -> None:
        try:
            await wire.be_online()
        except WireError as error:
            # All that is lost is that somebody types.
            log.warning("the account is not shown as online", account=self._name, why=str(error))

    def _told(self) -> str:
        return f"{self._name}: {errors.told(self.standing, self._name, self.until_at)}"

    async def _let_go(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    # ------------------------------------------------------------------ how it stands

    def _heard(self, event: WireEvent) -> None:
        if isinstance(event, QrCode):
            # Whoever is shown a code to scan is not paired, whatever is in the file.
            event = Standing("unpaired")
        if isinstance(event, Standing):
            if not self._takes(event):
                return
            event = self._stands(event)
        self._tell(event)

    def _takes(self, standing: Standing) -> bool:
        """Whether this is news. Once somebody has to see to it, the end of the connection is not:
        it would hide the reason."""
        row = errors.STANDINGS.get(self.standing.state)
        return not (row is not None and row.final and standing.state in ("offline", "ended"))

    def _stands(self, standing: Standing) -> Standing:
        if standing.state != self.standing.state:
            log.info("account stands", account=self._name, state=standing.state)
        self.standing = standing
        lasts_us = standing.lasts_us
        self.until_at = None if lasts_us is None else self._clock.now() + lasts_us
        if standing.state not in _PASSING:
            self._decided.set()
        return standing

    def _ban_is_over(self) -> bool:
        return self.until_at is not None and self.until_at <= self._clock.now()


def refused(name: str, error: WireRefused) -> ProviderError:
    """Why no connection can be made, and what to do about it."""
    if error.code == "in-use":
        return ProviderError(f"{name}: in use: {error}")
    if "libmagic" in str(error):
        return ProviderRefused(
            f"{name}: the library libmagic is missing; install it, "
            "on Debian and Ubuntu with: apt-get install libmagic1"
        )
    return ProviderRefused(f"{name}: {INSTALL}")


def lost(error: WireLost) -> Outcome:
    """What a message comes to whose connection is gone."""
    kind = OutcomeKind.UNKNOWN if error.handed_over else OutcomeKind.UNAVAILABLE
    return Outcome(kind, str(error), "lost")
