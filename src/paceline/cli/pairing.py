"""``paceline account pair``: an account becomes a linked device of a phone.

Codes are shown as they come and replaced as they expire. How pairing goes is the provider's affair.
"""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from paceline.cli import output
from paceline.cli.options import AccountName
from paceline.cli.surroundings import existing
from paceline.core.address import normalise
from paceline.core.errors import InputError
from paceline.core.states import AccountState
from paceline.engine.commands import accounts

if TYPE_CHECKING:
    from paceline.providers.whatsapp.pairing import Paired, PairingStep

WHERE = "On the phone: WhatsApp, Linked devices, Link a device"
SCAN = f"{WHERE}. Then scan this; Ctrl-C stops."
TYPE = f"{WHERE}, Link with phone number instead. Then type this; Ctrl-C stops."
MARGIN = 2
"""How many blank squares a code has around it; phones need some."""
AROUND = 4
"""Lines above and below a code."""


def pair(
    ctx: typer.Context,
    name: AccountName,
    phone: Annotated[
        str | None,
        typer.Option("--phone", metavar="NUMBER", help="Show a code to type into that phone."),
    ] = None,
) -> None:
    """Pair an account with a phone.

    Shows a code for the phone to scan, and another when it has expired. The account is a linked
    device then, and can be removed on the phone at any time.

        paceline account pair team

        paceline account pair team --phone +4915112345678
    """
    from paceline.providers.whatsapp.provider import WhatsAppProvider

    with existing(ctx) as house:
        with house.store.read() as tx:
            account = accounts.find(tx, name)
        provider = house.providers.get(account.provider)
        if not isinstance(provider, WhatsAppProvider):
            raise InputError(
                f"accounts of {account.provider} are not paired, only those of whatsapp"
            )
        provider.check(account.settings)
        number = None if phone is None else _number(phone)
        paired = asyncio.run(_shown(provider.pair(account, number)))
        with house.store.write() as tx:
            # A running service listens to it from now on.
            tx.lanes.touch(account.id, house.clock.now())
    output.say(_told(name, paired))
    if account.state is AccountState.SUSPENDED:
        output.say(f"{name} is suspended; let it go on with: paceline account resume {name}")


def _number(phone: str) -> str:
    try:
        return normalise("phone", phone)
    except InputError as error:
        raise InputError(error.reason, key="--phone", hint=error.hint) from None


def _told(name: str, paired: Paired) -> str:
    groups = "1 group" if paired.groups == 1 else f"{paired.groups} groups"
    how = "was paired already" if paired.before else "is paired"
    return f"{name} {how} as {paired.own or 'a linked device'}, {groups} found"


async def _shown(steps: AsyncGenerator[PairingStep, None]) -> Paired:
    """Every step on the terminal, the last one as the answer."""
    from paceline.providers.whatsapp.pairing import Paired, ScanCode, TypeCode

    output.note("connecting to WhatsApp …")
    with _Display() as display:
        async with aclosing(steps):
            async for step in steps:
                match step:
                    case ScanCode(code):
                        display.show(SCAN, picture(code))
                    case TypeCode(code):
                        display.show(TYPE, code)
                    case Paired():
                        return step
                    case _:
                        display.show("The phone has taken it; this takes some seconds …")
    raise AssertionError("pairing ends in success or in an error")


class _Display:
    """One code at a time: on a terminal each takes the place of the one before."""

    def __init__(self) -> None:
        self._console = output.console()
        self._live = Live(console=self._console, auto_refresh=False, transient=True)

    def __enter__(self) -> _Display:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, text: str, code: str = "") -> None:
        # Whatever colours the terminal has, phones want it light on dark as it is drawn.
        drawn = Text(code, "bright_white on black", no_wrap=True)
        shown = Group(Text(text), Text(), drawn) if code else Text(text)
        if not self._console.is_terminal:
            self._console.print(shown)
            sys.stdout.flush()
            return
        problem = self._too_small(code)
        self._live.update(Text(problem) if problem else shown, refresh=True)

    def _too_small(self, code: str) -> str:
        """What to do if the code does not fit; half a code is none."""
        lines = code.splitlines()
        columns, rows = max(map(len, lines), default=0), len(lines) + AROUND
        if columns <= self._console.width and rows <= self._console.height:
            return ""
        return (
            f"The code needs a window of {columns} columns and {rows} lines. "
            "Make it larger, or stop with Ctrl-C and use --phone NUMBER."
        )


def picture(code: str) -> str:
    """A code as phones scan it, in half blocks."""
    try:
        import segno
    except ImportError:
        from paceline.providers.whatsapp.connection import INSTALL

        raise InputError(INSTALL) from None

    drawn = io.StringIO()
    segno.make_qr(code).terminal(drawn, border=MARGIN, compact=True)
    return drawn.getvalue().rstrip("\n")
