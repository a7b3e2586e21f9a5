"""Mailboxes that are watched over IMAP: what came in, in order, each letter once.

The library that speaks IMAP waits for every answer, so it works in threads: a bounded number of
them for all mailboxes of a provider. A mailbox has one only while it asks or waits for something.
As long as there are enough, each waits for its server to tell by itself (IDLE); when there are more
mailboxes than threads, they ask in turns instead.

A cursor is where a mailbox has been read to, folder by folder, as the server numbers its letters.
When a server numbers a folder anew, which is rare, nothing tells what of it was read before: dates
are those of the copy as often as those of the letter. So it goes on from there, and says so:
somebody who is answered twice is worse off than somebody whose answer an operator is told to look
for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

import structlog

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import MINUTE, SECOND
from paceline.engine.ports import Clock
from paceline.engine.ports.webhooks import News, Withheld
from paceline.providers.mail.imap import Connection, Fetched, Place, Refused, Timing
from paceline.providers.mail.pauses import rest
from paceline.providers.mail.reports import read_letter
from paceline.providers.mail.settings import Access

MOST_THREADS = 8
MOST_LETTERS = 50
"""Read in one go; whatever else there is comes with the next."""
IDLE_US = 9 * MINUTE
"""How long a server is waited for. It may hang up after half an hour; what lies between forgets
silent connections sooner."""
POLL_US = 30 * SECOND
"""How often is asked where the server does not tell by itself."""
LOOK_S = 180.0
"""What looking into all folders may take, however slowly the server answers."""
MOST_OPENED = 2
"""Connections that one call may make: the first, and another when that was dropped."""

log = structlog.get_logger("paceline.mailbox")

T = TypeVar("T")
Places = dict[str, Place]


class Look(NamedTuple):
    cursor: str
    news: list[News]
    found: bool
    """Whether it came further than it was."""


class Passage(NamedTuple):
    """How far letters of a folder could be read."""

    uid: int
    news: list[News]
    trouble: str = ""
    """Why no further, where it may be the server's trouble and not that of one letter."""


class Threads:
    """A bounded number of threads, for whoever needs one for a while, in turns.

    They end with the process, whatever they are waiting for: a server that never answers must not
    keep it from ending.
    """

    def __init__(self, most: int = MOST_THREADS) -> None:
        self.most = most
        self._room = asyncio.Semaphore(most)
        self._members: set[ImapMailbox] = set()

    @property
    def are_enough(self) -> bool:
        """Whether every mailbox may have one for as long as it likes."""
        return len(self._members) <= self.most

    def join(self, mailbox: ImapMailbox) -> None:
        had = self.are_enough
        self._members.add(mailbox)
        if had and not self.are_enough:
            for member in self._members:
                member.wake()

    def leave(self, mailbox: ImapMailbox) -> None:
        self._members.discard(mailbox)

    async def run(self, work: Callable[[], T]) -> T:
        """Do it in a thread. Whoever is cancelled leaves it to end by itself."""
        await self._room.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def finish(result: T | None, error: BaseException | None) -> None:
            self._room.release()
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]

        def body() -> None:
            result: T | None = None
            failed: BaseException | None = None
            try:
                result = work()
            except BaseException as error:
                failed = error
            with contextlib.suppress(RuntimeError):
                # The loop may have ended before the server answered; then nobody waits for it.
                loop.call_soon_threadsafe(finish, result, failed)

        thread = threading.Thread(target=body, name="paceline-imap", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._room.release()
            raise ProviderError("this machine has no thread left to read mail with") from None
        return await done


class ImapMailbox:
    """The mailbox of one account. One ``next`` at a time."""

    def __init__(
        self, name: str, access: Access, ours: Collection[str], clock: Clock, threads: Threads,
        timing: Timing | None = None,
    ) -> None:  # fmt: skip
        self._name = name
        self._access = access
        self._ours = tuple(ours)
        self._clock = clock
        self._threads = threads
        self._timing = timing
        self._connection: Connection | None = None
        self._opened = 0
        """Connections that were made since ``next`` was called."""
        self._worked = False
        """Whether the last of them did what it was asked for, at least once."""
        self._closing = asyncio.Event()
        self._refused: set[tuple[str, Place]] = set()
        """The letters that the server did not hand over when they were asked for."""

    async def open(self) -> None:
        """See whether we are let in, and whether its folders are there."""
        self._threads.join(self)
        self._opened = 0
        try:
            await self._ask(partial(_ends, folders=self._access.folders))
        except BaseException:
            await self.close()
            raise

    async def next(self, cursor: str, within_us: int) -> tuple[str, list[News]]:
        until_us = self._clock.monotonic_us() + within_us
        self._opened = 0
        begins = _places(cursor) is None
        while True:
            look = await self._ask(partial(self._look, cursor))
            cursor = look.cursor
            left_us = until_us - self._clock.monotonic_us()
            # Where it begins is told at once: what comes from now on is lost with nobody.
            if look.news or begins or left_us <= 0:
                return cursor, look.news
            if not look.found:
                await self._wait(left_us)

    async def close(self) -> None:
        self._closing.set()
        self._threads.leave(self)
        self._drop()

    def wake(self) -> None:
        if self._connection is not None:
            self._connection.wake()

    # ------------------------------------------------------------------ inside

    async def _ask(self, work: Callable[[Connection], T]) -> T:
        """Ask the server; once more on a new connection, if an old one was dropped."""
        while True:
            try:
                return await self._use(work, LOOK_S)
            except ProviderRefused:
                raise
            except ProviderError:
                if not self._may_go_on():
                    raise

    async def _use(self, work: Callable[[Connection], T], within_s: float) -> T:
        if self._closing.is_set():
            raise ProviderError("the mailbox was closed")
        connection = self._connection
        if connection is None:
            connection = Connection(self._access, self._clock.monotonic_us, self._timing)
            self._connection = connection
            self._opened += 1
            self._worked = False
        try:
            async with asyncio.timeout(within_s):
                result = await self._threads.run(partial(work, connection))
        except TimeoutError:
            self._drop()
            raise ProviderError(f"{self._access.host} took too long") from None
        except BaseException:
            self._drop()
            raise
        self._worked = True
        return result

    def _may_go_on(self) -> bool:
        """Whether what was dropped had worked, so that another connection may work as well."""
        return self._worked and self._opened < MOST_OPENED and not self._closing.is_set()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.cut()
            self._connection = None

    async def _wait(self, left_us: int) -> None:
        """Until something comes, or it is time to ask again."""
        connection = self._connection
        if connection is None or not connection.idles or not self._threads.are_enough:
            await rest(self._clock, min(left_us, POLL_US), self._closing)
            return
        longest_us = IDLE_US if len(self._access.folders) == 1 else POLL_US
        wait_us = min(left_us, longest_us)
        try:
            await self._use(lambda connection: connection.wait(wait_us), LOOK_S + wait_us / SECOND)
        except ProviderError as error:
            # Servers hang up on whoever waits; whether they are still there is seen by asking.
            if not self._may_go_on():
                raise
            log.info("mailbox dropped", account=self._name, reason=str(error))

    def _look(self, cursor: str, connection: Connection) -> Look:
        """What came into all folders behind the cursor; in a thread."""
        known = _places(cursor)
        if known is None:
            if cursor:
                log.warning("mailbox read from now on", account=self._name, reason="bad cursor")
            return Look(_text(_ends(connection, self._access.folders)), [], False)
        places: Places = {}
        news: list[News] = []
        left, found, trouble = MOST_LETTERS, False, ""
        # The first folder last: what is open then is what the server tells of by itself.
        for folder in reversed(self._access.folders):
            place = known.get(folder)
            if place is None:
                places[folder] = connection.end_of(folder)
                continue
            validity, uids = connection.news_of(folder, place.uid)
            if validity != place.validity:
                places[folder] = connection.end_of(folder)
                log.warning(
                    "mailbox read from now on",
                    account=self._name,
                    folder=folder,
                    reason="the server numbers its letters anew; look for answers and bounces "
                    "that came while it did",
                )
                continue
            taken = uids[:left]
            left -= len(taken)
            passed = self._read_on(connection, folder, place, taken)
            news += passed.news
            places[folder] = place._replace(uid=passed.uid)
            found, trouble = found or passed.uid > place.uid, trouble or passed.trouble
        if trouble and not found:
            raise ProviderError(f"{self._access.host}: {trouble}")
        return Look(_text(places), news, found)

    def _read_on(
        self, connection: Connection, folder: str, place: Place, uids: list[int]
    ) -> Passage:
        """Read letters in their order, up to one that is refused, which is asked for once more by
        the next look. If it is refused again it is passed over, where the server does hand over
        another: then it is the letter's trouble, and not one that will be over for all of them."""
        news: list[News] = []
        reached = place.uid
        for uid in uids:
            fetched = connection.fetch(uid)
            if isinstance(fetched, Refused):
                about = {"folder": folder, "uid": uid, "reason": fetched.reason}
                log.warning("letter not handed over", account=self._name, **about)
                letter = (folder, place._replace(uid=uid))
                if letter not in self._refused:
                    self._refused.add(letter)
                    return Passage(reached, news)
                others = [each for each in (*uids, reached) if each not in (uid, 0)]
                if not any(isinstance(connection.fetch(each), Fetched) for each in others):
                    what = f"folder {folder!r}: the letter with UID {uid} is not handed over"
                    return Passage(reached, news, f"{what}: {fetched.reason}")
                news.append(Withheld(folder, str(uid), fetched.reason))
            elif fetched is not None:
                news += self._understood(fetched, folder)
            reached = uid
        return Passage(reached, news)

    def _understood(self, fetched: Fetched, folder: str) -> list[News]:
        try:
            return read_letter(fetched.raw, ours=self._ours, at=fetched.at)
        except Exception:
            # It never fails; but if it did, one letter would keep all others from being read.
            about = {"folder": folder, "uid": fetched.uid}
            log.exception("letter not understood", account=self._name, **about)
            return []


class ImapMailboxes:
    """The mailboxes of one provider's accounts."""

    def __init__(
        self, clock: Clock, *, threads: int = MOST_THREADS, timing: Timing | None = None
    ) -> None:
        self._clock = clock
        self._threads = Threads(threads)
        self._timing = timing

    async def open(self, name: str, access: Access, ours: Collection[str]) -> ImapMailbox:
        """The mailbox of the account with this name, which writes from these addresses."""
        mailbox = ImapMailbox(name, access, ours, self._clock, self._threads, self._timing)
        await mailbox.open()
        return mailbox


def _ends(connection: Connection, folders: Collection[str]) -> Places:
    return {folder: connection.end_of(folder) for folder in folders}


def _text(places: Mapping[str, Place]) -> str:
    told = {name: f"{place.validity}:{place.uid}" for name, place in sorted(places.items())}
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False)


def _places(cursor: str) -> Places | None:
    """Where each folder was read to; None for no cursor, and for what is none of ours."""
    try:
        told = json.loads(cursor)
        pairs = {str(name): place.split(":") for name, place in told.items()}
        return {name: Place(int(validity), int(uid)) for name, (validity, uid) in pairs.items()}
    except (ValueError, AttributeError, RecursionError):
        return None
