"""One connection to a mailbox over IMAP, as a thread uses it: every call waits for its answer.

Nothing in the mailbox is changed: folders are opened for reading only, and letters are read without
being marked as seen. Whatever goes wrong is told as a ``ProviderError``, and where the server does
not let us in as a ``ProviderRefused``; a connection that failed once is of no use any more.

Two things may be done by another thread: ``wake`` ends a wait, ``cut`` ends the connection, in the
middle of whatever it is doing.
"""

from __future__ import annotations

import contextlib
import imaplib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from imap_tools.errors import (
    MailboxFolderSelectError,
    MailboxLoginError,
    UnexpectedCommandStatusError,
)
from imap_tools.folder import FolderInfo

from paceline.core.errors import InputError, ProviderError, ProviderRefused
from paceline.core.instants import Instant, from_datetime
from paceline.providers.answers import one_line, shortened
from paceline.providers.mail.imap_client import Box
from paceline.providers.mail.incoming import MOST_BYTES
from paceline.providers.mail.secrets import masking
from paceline.providers.mail.settings import Access

SENT = "\\sent"
"""What a folder for letters that were sent is marked with."""

_NOT_NOW = re.compile(
    r"\[(?:unavailable|inuse|limit|serverbug|alreadyexists)\]|too many|temporar|try again|later"
    r"|rate limit|throttl|busy|server error|not connected",
    re.IGNORECASE,
)
_NEVER = re.compile(r"\[(?:authenticationfailed|authorizationfailed|expired)\]", re.IGNORECASE)
_QUOTED = re.compile(rb'BODY\[\](?:<0>)? "((?:[^"\\]|\\.)*)"', re.IGNORECASE)
"""A letter of one line, which need not be sent by its length."""
_CAME_AT = re.compile(rb'INTERNALDATE "([^"]{1,60})"')


@dataclass(frozen=True, slots=True)
class Timing:
    """How long the server may take."""

    answer_s: float = 30.0
    """For a piece of an answer, and to get a connection."""


class Place(NamedTuple):
    """A place in a folder: behind the letter with this number, as long as the numbers hold."""

    validity: int
    uid: int


class Fetched(NamedTuple):
    """A letter as it lies in its folder."""

    uid: int
    raw: bytes
    """The beginning of it, where it is large."""
    at: Instant
    """When the server got it; 0 where it does not say."""


class Refused(NamedTuple):
    """A letter that the server has and does not hand over."""

    reason: str
    """The server's own words."""


class Connection:
    """Gets in with the first thing that is asked of it."""

    def __init__(
        self, access: Access, monotonic_us: Callable[[], int], timing: Timing | None = None
    ) -> None:
        self._access = access
        self._monotonic_us = monotonic_us
        self._timing = timing or Timing()
        self._mask = masking(access.username, access.password)
        self._box: Box | None = None
        self._lock = threading.Lock()
        self._in_use = False
        self._cut = threading.Event()
        self._ear, self._bell = socket.socketpair()
        self._ear.setblocking(False)
        self._bell.setblocking(False)
        self.idles: bool | None = None
        """Whether the server tells by itself what comes; None as long as it was not asked."""
        self._knows_uses = False
        """Whether it can be asked what folders are for."""

    # ------------------------------------------------------------------ what a thread asks

    def end_of(self, folder: str) -> Place:
        """Where the next letter of a folder will be."""
        with self._used() as box:
            place, next_uid = self._examined(box, folder)
            if next_uid is not None:
                return Place(place, next_uid - 1)
            return Place(place, max(map(int, box.uids("ALL", charset=None)), default=0))

    def news_of(self, folder: str, uid: int) -> tuple[int, list[int]]:
        """The numbers of what came behind a letter, and what makes such numbers hold."""
        with self._used() as box:
            validity, next_uid = self._examined(box, folder)
            if next_uid is not None and next_uid <= uid + 1:
                return validity, []
            # A range always has the last letter in it, even if that comes before its beginning.
            found = map(int, box.uids(f"UID {uid + 1}:*", charset=None))
            return validity, sorted(each for each in found if each > uid)

    def fetch(self, uid: int) -> Fetched | Refused | None:
        """A letter of the folder that was asked for last; None if it is gone. One that is refused
        leaves the connection as good as it was."""
        with self._used() as box:
            wanted = f"(UID INTERNALDATE BODY.PEEK[]<0.{MOST_BYTES}>)"
            try:
                typ, parts = box.client.uid("FETCH", str(uid), wanted)
            except imaplib.IMAP4.abort:
                raise
            except imaplib.IMAP4.error as error:
                # The library's word for BAD, which some say of a letter that they cannot read.
                typ, parts = "BAD", [str(error).encode()]
            if typ != "OK":
                # What it had begun to say of this letter would be taken for the next one.
                box.client.response("FETCH")
                told = _words(UnexpectedCommandStatusError((typ, parts), "OK"))
                return Refused(shortened(self._masked(told)))
            for part in parts:
                if isinstance(part, tuple) and len(part) == 2:
                    return Fetched(uid, part[1], _came_at(part[0]))
                if isinstance(part, bytes) and (short := _QUOTED.search(part)):
                    raw = re.sub(rb"\\(.)", rb"\1", short[1])
                    return Fetched(uid, raw, _came_at(part))
            return None

    def sent_folders(self) -> list[str]:
        """The folders in which the server says that it keeps what was sent (RFC 6154)."""
        with self._used() as box:
            found = _marked(box.folder.list())
            if not found and self._knows_uses:
                # Some servers tell what a folder is for only those who ask for it.
                found = _marked(box.folder.list(b'(SPECIAL-USE) ""'))
            return found

    def holds(self, folder: str, message_id: str) -> bool:
        """Whether a letter with this name lies in a folder."""
        with self._used() as box:
            self._examined(box, folder)
            bare = message_id.strip("<>")
            return bool(box.uids(f'HEADER Message-ID "{bare}"', charset=None))

    def wait(self, within_us: int) -> None:
        """Until something comes into the folder that was asked for last, or somebody wakes us."""
        with self._used() as box:
            if not box.has_grown() and not self._rang():
                self.idles = box.idle_until(self._ear, within_us, self._monotonic_us)
            self._rang()

    # ------------------------------------------------------------------ what others may do

    def wake(self) -> None:
        with contextlib.suppress(OSError):
            # Full, or closed: whoever was to be woken has been, or is not there any more.
            self._bell.send(b"!")

    def cut(self) -> None:
        with self._lock:
            self._cut.set()
            if not self._in_use:
                self._close()
            elif self._box is not None:
                self._box.hang_up()
        self.wake()

    # ------------------------------------------------------------------ inside

    @contextmanager
    def _used(self) -> Iterator[Box]:
        with self._lock:
            if self._cut.is_set():
                raise ProviderError("the mailbox was closed")
            self._in_use = True
        try:
            with self._told():
                yield self._box or self._opened()
        finally:
            with self._lock:
                self._in_use = False
                if self._cut.is_set():
                    self._close()

    def _opened(self) -> Box:
        box = Box(self._access, self._timing.answer_s)
        with self._lock:
            self._box = box
            if self._cut.is_set():
                raise ProviderError("the mailbox was closed")
        self._log_in(box)
        # Some servers tell only those they know what they can do.
        typ, told = box.client.capability()
        known = (told[-1] or b"").upper().split() if typ == "OK" else []
        self.idles, self._knows_uses = b"IDLE" in known, b"SPECIAL-USE" in known
        return box

    def _log_in(self, box: Box) -> None:
        access = self._access
        if "LOGINDISABLED" in box.client.capabilities and access.security == "plain":
            raise ProviderRefused(f"{access.host} lets nobody in without encryption")
        enter = box.login
        if not f"{access.username}{access.password}".isascii():
            enter = box.login_utf8
        try:
            enter(access.username, access.password, initial_folder=None)
        except imaplib.IMAP4.abort:
            raise
        except (MailboxLoginError, imaplib.IMAP4.error) as error:
            words = _words(error)
            if _NOT_NOW.search(words) and not _NEVER.search(words):
                raise
            raise ProviderRefused(self._masked(words or "the login is refused")) from None

    def _examined(self, box: Box, folder: str) -> tuple[int, int | None]:
        """Opens a folder for reading; what makes its numbers hold, and the next of them."""
        try:
            box.folder.set(folder, readonly=True)
        except MailboxFolderSelectError as error:
            told = f"{self._access.host}: folder {folder!r}: {_words(error)}"
            raise ProviderError(self._masked(told)) from None
        validity, next_uid = (
            box.client.response(name)[1][-1] for name in ("UIDVALIDITY", "UIDNEXT")
        )
        return int(validity or 0), None if next_uid is None else int(next_uid)

    def _rang(self) -> bool:
        """Whether somebody woke us; they need not do it twice to be heard once."""
        rang = False
        with contextlib.suppress(BlockingIOError):
            while self._ear.recv(100):
                rang = True
        return rang

    def _close(self) -> None:
        """For good: nobody uses it, and nobody will."""
        if self._box is not None:
            with contextlib.suppress(OSError, imaplib.IMAP4.error):
                self._box.client.shutdown()
        self._ear.close()
        self._bell.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Whatever goes wrong, in words that may be shown."""
        try:
            yield
        except ProviderError:
            raise
        except (
            OSError, imaplib.IMAP4.error, UnexpectedCommandStatusError,
            # What a server says that does not keep to the protocol.
            ValueError, LookupError, TypeError, AttributeError,
        ) as error:  # fmt: skip
            reason = "the mailbox was closed" if self._cut.is_set() else _words(error)
            raise ProviderError(self._masked(f"{self._access.host}: {reason}")) from None

    def _masked(self, text: str) -> str:
        return self._mask(one_line(text))


def _marked(folders: list[FolderInfo]) -> list[str]:
    """Those that are there for what was sent."""
    return [one.name for one in folders if SENT in (flag.lower() for flag in one.flags)]


def _words(error: Exception) -> str:
    """What a server said, or what went wrong with it, in one line."""
    if isinstance(error, UnexpectedCommandStatusError):
        said = error.command_result[1]
        parts = said if isinstance(said, list | tuple) else [said]
        told = [each.decode("utf-8", "replace") for each in parts if isinstance(each, bytes)]
        return one_line(" ".join(told) or str(error.command_result[0]))
    return one_line(str(error) or type(error).__name__)


def _came_at(told: bytes) -> Instant:
    found = _CAME_AT.search(told)
    try:
        return from_datetime(parsedate_to_datetime(found[1].decode())) if found else 0
    except (ValueError, TypeError, OverflowError, InputError):
        return 0
