"""Making an account a linked device of a phone: codes to scan or to type, until one was taken.

Only what happens is told here; how it is shown is the command line's affair.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.providers.whatsapp import errors
from paceline.providers.whatsapp.connection import refused
from paceline.providers.whatsapp.wire import (
    MakeWire,
    PairingOver,
    QrCode,
    Standing,
    WhatsAppWire,
    WireError,
    WireEvent,
    WireRefused,
)

ROUNDS = 4
"""WhatsApp gives six codes, good for 160 seconds; then another connection has to be made."""

SILENCE_S = 75
"""Longer than any code lives. Whoever says nothing for so long has nothing to say any more."""

PAIRED_WITHIN_S = 60
"""Between the scan and the moment when the account can be used."""

_RESULTS = {
    "err-client-outdated": "neonize is too old for WhatsApp; install a newer one",
    "err-scanned-without-multidevice": "WhatsApp on the phone is too old; update it",
    "err-unexpected-state": "WhatsApp said something unexpected; try again",
    "error": "WhatsApp refused it",
}


class ScanCode(NamedTuple):
    """A code to be shown as a picture, which the phone scans."""

    code: str


class TypeCode(NamedTuple):
    """A code to be typed into the phone."""

    code: str


class Scanned(NamedTuple):
    """The phone has taken the code; what follows takes some seconds."""


class Paired(NamedTuple):
    """The account can be used."""

    own: str
    groups: int
    before: bool = False
    """Whether it had been paired already."""


PairingStep = ScanCode | TypeCode | Scanned | Paired


async def pair(
    name: str, session: Path, make_wire: MakeWire, phone: str | None
) -> AsyncGenerator[PairingStep, None]:
    """The steps of pairing, the last of which is ``Paired``.

    ``ProviderError`` says in one line why it did not come to that.
    """
    for _ in range(ROUNDS):
        attempt = _Attempt(name, session, make_wire, phone)
        async with aclosing(attempt.steps()) as steps:
            async for step in steps:
                yield step
        if attempt.paired:
            return
    raise ProviderError(f"{name}: no code was scanned; try again: paceline account pair {name}")


class _Attempt:
    """One connection's worth of codes."""

    def __init__(self, name: str, session: Path, make_wire: MakeWire, phone: str | None) -> None:
        self._name = name
        self._phone = phone
        self._told: asyncio.Queue[WireEvent] = asyncio.Queue()
        self._wire: WhatsAppWire = make_wire(session, self._told.put_nowait)
        self._asked = False
        self._scanned = False
        self.paired = False

    async def steps(self) -> AsyncGenerator[PairingStep, None]:
        try:
            await self._wire.connect()
            while (event := await self._next()) is not None:
                step = await self._step(event)
                if step is not None:
                    yield step
                if self.paired:
                    return
        except WireRefused as error:
            raise refused(self._name, error) from None
        except WireError as error:
            raise ProviderError(f"{self._name}: {error}") from None
        finally:
            await self._wire.close()

    async def _next(self) -> WireEvent | None:
        """What happens next; None when the codes have run out."""
        try:
            async with asyncio.timeout(PAIRED_WITHIN_S if self._scanned else SILENCE_S):
                event = await self._told.get()
        except TimeoutError:
            if not self._scanned:
                return None
            raise ProviderError(f"{self._name}: WhatsApp did not finish the pairing") from None
        over = isinstance(event, PairingOver) and event.result == "timeout"
        return None if over else event

    async def _step(self, event: WireEvent) -> PairingStep | None:
        match event:
            case QrCode(code):
                return await self._code(code)
            case PairingOver("success"):
                return self._scan()
            case PairingOver(result, reason):
                text = _RESULTS.get(result, f"WhatsApp says {result}")
                told = f"{text} ({reason})" if reason else text
                raise ProviderError(f"{self._name}: not paired: {told}")
            case Standing("ready", own=own):
                return await self._ready(own)
            case Standing():
                self._stands(event)
        return None

    async def _code(self, code: str) -> PairingStep | None:
        if self._phone is None:
            return ScanCode(code)
        if self._asked:
            # New codes to scan keep coming, but the one to type stays the same.
            return None
        self._asked = True
        return TypeCode(await self._wire.pair_by_phone(self._phone))

    def _scan(self) -> PairingStep | None:
        first, self._scanned = not self._scanned, True
        return Scanned() if first else None

    async def _ready(self, own: str) -> Paired:
        groups = await self._wire.groups()
        self.paired = True
        return Paired(own, len(groups), before=not self._scanned)

    def _stands(self, standing: Standing) -> None:
        """Right after the scan WhatsApp cuts the connection once; all else is the end."""
        row = errors.STANDINGS[standing.state]
        if standing.state == "offline":
            return
        kind = ProviderRefused if row.final else ProviderError
        raise kind(f"{self._name}: {errors.told(standing, self._name)}")
