"""Whether a letter whose answer was lost went out, by the folder in which its server keeps those.

Nobody but the server can have put a letter there under the name that we gave it: we never do, and
no mail program knows of it. So what lies there was taken. What does not lie there proves nothing,
unless whoever runs the server says that every letter is put there: many servers keep none, some
only what their own web page sends, and some give letters other names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Literal, TypeVar

from paceline.core.errors import ProviderError
from paceline.engine.ports import Clock
from paceline.providers.mail.imap import Connection, Timing
from paceline.providers.mail.mailbox import Threads
from paceline.providers.mail.settings import Access

MOST_SEARCHES = 2
"""Threads for all accounts of a provider, beside those that read mailboxes: they may be waited in
for minutes."""
SEARCH_S = 25.0
"""What a search may take, however slowly the server answers: less than policies wait."""
MOST_FOLDERS = 3

Kept = Literal["there", "not there", "nowhere"]
"""``nowhere``: the server says of no folder that it is for what was sent."""

T = TypeVar("T")


class SentFolder:
    """Where the letters of one account are looked for."""

    def __init__(
        self,
        access: Access,
        folder: str,
        clock: Clock,
        threads: Threads,
        *,
        within_s: float = SEARCH_S,
    ) -> None:
        """``folder`` is its name; empty for what the server says is for that."""
        self._access = access
        self._folder = folder
        self._clock = clock
        self._threads = threads
        self._within_s = within_s

    async def look_for(self, message_id: str) -> Kept:
        """Whether it holds a letter; ``ProviderError`` where nobody can tell."""
        return await self._ask(partial(_kept, named=self._folder, message_id=message_id))

    async def told(self) -> str:
        """Whether letters can be looked for, in one line for whoever set the account up."""
        try:
            names = await self._ask(partial(_opened, named=self._folder))
        except ProviderError as error:
            return f"sent: letters cannot be looked for: {error}"
        if not names:
            return "sent: the server marks no folder for what was sent; sent_folder can name it"
        return f"sent: a letter in doubt is looked for in {', '.join(names)}"

    async def _ask(self, work: Callable[[Connection], T]) -> T:
        """In a thread, over a connection that ends with it: nobody has a doubt every day."""
        timing = Timing(answer_s=self._within_s)
        connection = Connection(self._access, self._clock.monotonic_us, timing)
        try:
            async with asyncio.timeout(self._within_s):
                return await self._threads.run(partial(work, connection))
        except TimeoutError:
            raise ProviderError(f"{self._access.host} took too long") from None
        finally:
            connection.cut()


def _kept(connection: Connection, named: str, message_id: str) -> Kept:
    folders = _folders(connection, named)
    if any(connection.holds(folder, message_id) for folder in folders):
        return "there"
    return "not there" if folders else "nowhere"


def _opened(connection: Connection, named: str) -> list[str]:
    folders = _folders(connection, named)
    for folder in folders:
        connection.end_of(folder)
    return folders


def _folders(connection: Connection, named: str) -> list[str]:
    return [named] if named else connection.sent_folders()[:MOST_FOLDERS]
