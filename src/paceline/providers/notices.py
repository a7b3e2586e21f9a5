"""Telling operators, by way of apprise: mail, chat, push, or any of a hundred services.

Only the effect lives here. What is told, when and how often is the teller's affair. An address may
hold a password or a token, so nothing of it but its scheme is ever shown.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import warnings
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from paceline.core.errors import InputError
from paceline.engine.ports import Told

TIMEOUT_S = 20.0
"""How long one address may take. Apprise gives up after four seconds; what it asks may not."""

_APART = re.compile(r"[/:@?&=,\s]+")
_SHORTEST_SECRET = 4
_LONGEST_PROBLEM = 300
_UNTOLD = "it did not take the notice, and said nothing more"


def _place(apprise: Any, url: str) -> Any:
    with warnings.catch_warnings():
        # Asking for the first one loads all that apprise knows. Which parts of the standard
        # library those should no longer use is not for our operators to hear.
        warnings.simplefilter("ignore", DeprecationWarning)
        return apprise.Apprise.instantiate(url, suppress_exceptions=True)


def shown(url: str) -> str:
    """An address as it may be shown: tokens may be anywhere in it but in its scheme."""
    scheme, mark, _ = url.partition("://")
    return f"{scheme}://…" if mark else "…"


class AppriseNotifier:
    """Tells one address after the other, each in a thread that nobody has to wait for."""

    def __init__(self, urls: Sequence[str], *, timeout_s: float = TIMEOUT_S) -> None:
        """``InputError`` for an address that nobody could tell anything."""
        apprise = _apprise()
        self._timeout_s = timeout_s
        self._places = []
        for number, url in enumerate(urls, start=1):
            place = _place(apprise, url)
            if place is None:
                hint = "Write it as apprise takes it, like mailto://user:password@example.com"
                reason = f"number {number} ({shown(url)}) is no address apprise knows"
                raise InputError(reason, key="alerts.urls", hint=hint)
            self._places.append((url, place))
        self._hanging: set[str] = set()

    async def tell(self, title: str, text: str) -> list[Told]:
        return [await self._tell(url, place, title, text) for url, place in self._places]

    async def _tell(self, url: str, place: Any, title: str, text: str) -> Told:
        if url in self._hanging:
            return Told(shown(url), "an earlier notice is still under way")
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[str] = loop.create_future()

        def answer(problem: str) -> None:
            self._hanging.discard(url)
            if not answered.done():
                answered.set_result(problem)

        def work() -> None:
            problem = _notify(place, title, text)
            # The loop may be closed by the time a service answers that hung for long.
            if not loop.is_closed():
                loop.call_soon_threadsafe(answer, problem)

        self._hanging.add(url)
        # A daemon: a service that never answers must not keep the process from ending.
        threading.Thread(target=work, name="paceline-notice", daemon=True).start()
        try:
            problem = await asyncio.wait_for(asyncio.shield(answered), self._timeout_s)
        except TimeoutError:
            problem = f"no answer within {self._timeout_s:g} s"
        return Told(shown(url), scrubbed(problem, url))


def scrubbed(text: str, url: str) -> str:
    """A text about an address without anything that might be a secret of it."""
    rest = url.partition("://")[2]
    pieces = {piece for piece in _APART.split(rest) if len(piece) >= _SHORTEST_SECRET}
    pieces |= {unquote(piece) for piece in pieces} | {url}
    for piece in sorted(pieces, key=len, reverse=True):
        text = text.replace(piece, "…")
    return " ".join(text.split())[:_LONGEST_PROBLEM]


def _notify(place: Any, title: str, text: str) -> str:
    """What went wrong; nothing if it was taken."""
    apprise = _apprise()
    asked = apprise.Apprise()
    asked.add(place)
    try:
        with apprise.LogCapture(level=logging.WARNING, fmt="%(message)s") as said:
            taken = asked.notify(
                body=text,
                title=title,
                notify_type=apprise.NotifyType.WARNING,
                body_format=apprise.NotifyFormat.TEXT,
            )
            told = said.getvalue()
    except Exception as error:
        # A hundred services, each with code of its own: whatever one of them does, we go on.
        return f"{type(error).__name__}: {error}"
    return "" if taken else told.strip() or _UNTOLD


def _apprise() -> Any:
    """Loaded when there is something to tell: it knows a hundred services, and that takes time."""
    import apprise

    # What it logs may have a token in it. It is caught, scrubbed, and told by us instead.
    logger = logging.getLogger("apprise")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return apprise
