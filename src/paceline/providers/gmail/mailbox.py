"""A mailbox that is read over Gmail's own API: what came in, in order, each letter once.

Gmail numbers what happens in a mailbox, and tells what was added after a number (``history.list``).
So a cursor is such a number, when it was asked for, and the letters that were found since and not
read yet. Numbers are forgotten after a week or so, sometimes sooner; then letters are looked for by
date instead, a little further back than needed: what is taken in twice changes nothing.

Only what lies in the inbox or was called spam is read, because that is where bounces and answers
come. Nothing is marked, moved or deleted: the token could not even be used for it.
"""

from __future__ import annotations

import asyncio
import binascii
import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import structlog

from paceline.core.errors import ProviderError
from paceline.core.instants import DAY, HOUR, MILLISECOND, SECOND, Instant
from paceline.core.outcome import OutcomeKind
from paceline.engine.ports import Clock
from paceline.engine.ports.webhooks import News
from paceline.providers.answers import Answer, name_of, segment
from paceline.providers.gmail.client import USER, Api
from paceline.providers.mail.incoming import MOST_BYTES
from paceline.providers.mail.pauses import rest
from paceline.providers.mail.reports import read_letter

LABELS = ("INBOX", "SPAM")
POLL_US = 30 * SECOND
"""How often is asked what came. It costs 2 of the 6 000 units that a mailbox has for a minute."""
MOST_LETTERS = 25
"""Read in one go; whatever else there is comes with the next."""
MOST_LISTED = 500
"""Entries of a page. Gmail gives no more."""
MOST_PAGES = 10
ASK_WITHIN_S = 20.0
"""How long one answer is waited for: several of them have to fit into a lease."""
THROTTLED_US = 10 * SECOND
"""How long is waited where Gmail wants it and does not say for how long."""
OVERLAP_US = HOUR
FURTHEST_US = 30 * DAY
"""How far back is looked by date at most, however long nobody has looked."""
MOST_READ = MOST_BYTES * 2
"""Bytes of an answer that has a letter in it: base64 takes a third more than what it stands for,
and no more of a letter is read anyway."""

EXPIRED = ((404, "notFound"), (400, "invalidArgument"))
"""What is answered about a number that Gmail does not know, or not any more."""
MISSED = "?"
"""Stands before a letter that was told of and was not there: it is asked for once more, because
Gmail has been seen to tell too early."""

_NUMBER = re.compile(r"[0-9]{1,20}")
_RAW = re.compile(rb'"raw"\s*:\s*"([A-Za-z0-9_-]*)')
_DATE = re.compile(rb'"internalDate"\s*:\s*"(\d{1,15})"')

log = structlog.get_logger("paceline.mailbox")

Said = Mapping[str, Any]


class Place(NamedTuple):
    """How far a mailbox was read."""

    history: str
    at: Instant
    """When that was asked for."""
    waiting: tuple[str, ...] = ()
    """Letters that were found and not read yet, the oldest first."""
    missed: tuple[str, ...] = ()
    """Those that were not there when they were asked for."""

    @property
    def text(self) -> str:
        return json.dumps(self._asdict(), separators=(",", ":"))


class Letter(NamedTuple):
    raw: bytes
    at: Instant
    """When Gmail took it; 0 where it does not say."""


class GmailMailbox:
    """The mailbox of one account. One ``next`` at a time."""

    def __init__(self, clock: Clock, api: Api, ours: Collection[str]) -> None:
        self._clock = clock
        self._api = api
        self._ours = tuple(ours)
        self._look_us = 0
        """When it may be asked again, by the monotonic clock."""
        self._until_us = 0
        """Until when this ``next`` may wait."""
        self._closing = asyncio.Event()

    async def open(self) -> None:
        """See whether we are let in."""
        self._until_us = self._clock.monotonic_us()
        await self._here()

    async def next(self, cursor: str, within_us: int) -> tuple[str, list[News]]:
        self._until_us = self._clock.monotonic_us() + within_us
        place = _place(cursor)
        if place is None:
            if cursor:
                log.warning("mailbox read from now on", account=self._api.name, reason="bad cursor")
            return (await self._here()).text, []
        while True:
            if place.waiting:
                place, news = await self._read(place)
                if news or self._left_us <= 0:
                    return place.text, news
                continue
            pause_us = self._look_us - self._clock.monotonic_us()
            if pause_us > 0:
                await rest(self._clock, min(pause_us, self._left_us), self._closing)
            if self._left_us <= 0 or self._closing.is_set():
                return place.text, []
            place = await self._look(place)

    async def close(self) -> None:
        self._closing.set()
        await self._api.close()

    @property
    def _left_us(self) -> int:
        return self._until_us - self._clock.monotonic_us()

    # ------------------------------------------------------------------ what came

    async def _here(self) -> Place:
        """Where the mailbox is now."""
        at = self._clock.now()
        answer = await self._asked(f"{USER}/profile", {})
        return Place(_number(self._said(answer).get("historyId")), at)

    async def _look(self, place: Place) -> Place:
        """What was added since, found and to be read."""
        self._look_us = self._clock.monotonic_us() + POLL_US
        at, history = self._clock.now(), place.history
        found = dict.fromkeys(place.missed)
        wanted = {
            "startHistoryId": history,
            "historyTypes": "messageAdded",
            "maxResults": str(MOST_LISTED),
        }
        for _ in range(MOST_PAGES):
            answer = await self._asked(f"{USER}/history", wanted, or_none=EXPIRED)
            if answer is None:
                return await self._look_by_date(place)
            said = self._said(answer)
            for record in _objects(said.get("history")):
                history = _number(record.get("id"))
                found |= dict.fromkeys(_added(record))
            page = name_of(said.get("nextPageToken"))
            if page is None:
                history = _number(said.get("historyId"))
                break
            wanted["pageToken"] = page
        return Place(history, at, tuple(found))

    async def _look_by_date(self, place: Place) -> Place:
        """Everything that came lately, because nobody can tell any more what of it is new."""
        log.warning(
            "mailbox read by date",
            account=self._api.name,
            reason="Gmail does not know any more how far it was read",
        )
        # First, because what comes meanwhile would be missed: so it is found twice instead.
        here = await self._here()
        since_at = max(place.at - OVERLAP_US, here.at - FURTHEST_US)
        found = dict.fromkeys(place.missed)
        for label in LABELS:
            newest_first = await self._listed(label, since_at)
            found |= dict.fromkeys(reversed(newest_first))
        return here._replace(waiting=tuple(found))

    async def _listed(self, label: str, since_at: Instant) -> list[str]:
        wanted = {
            "labelIds": label,
            "q": f"after:{max(since_at, 0) // SECOND}",
            "includeSpamTrash": "true",
            "maxResults": str(MOST_LISTED),
        }
        found: list[str] = []
        for _ in range(MOST_PAGES):
            answer = await self._asked(f"{USER}/messages", wanted)
            said = self._said(answer)
            found += _names(said.get("messages"))
            page = name_of(said.get("nextPageToken"))
            if page is None:
                return found
            wanted["pageToken"] = page
        log.warning("older letters are left out", account=self._api.name, label=label)
        return found

    # ------------------------------------------------------------------ letters

    async def _read(self, place: Place) -> tuple[Place, list[News]]:
        """The next letters that wait, as many as there is time for; one at least."""
        news: list[News] = []
        missed = list(place.missed)
        done = 0
        for name in place.waiting[:MOST_LETTERS]:
            if done and self._left_us <= 0:
                break
            path = f"{USER}/messages/{segment(name.removeprefix(MISSED))}"
            answer = await self._asked(path, {"format": "raw"}, MOST_READ, or_none=EXPIRED[:1])
            done += 1
            if answer is None:
                missed += [] if name.startswith(MISSED) else [f"{MISSED}{name}"]
                continue
            news += await self._understood(name, self._letter_in(answer))
        return place._replace(waiting=place.waiting[done:], missed=tuple(missed)), news

    def _letter_in(self, answer: Answer) -> Letter | None:
        """The letter in an answer, or as much of it as was read; None if there is none."""
        if len(answer.body) > MOST_READ:
            raw, date = _RAW.search(answer.body), _DATE.search(answer.body)
            return _letter(raw and raw[1].decode(), date and date[1].decode(), cut=True)
        said = self._said(answer)
        return _letter(said.get("raw"), said.get("internalDate"))

    async def _understood(self, name: str, letter: Letter | None) -> list[News]:
        if letter is None:
            log.warning("letter not readable", account=self._api.name, letter=name)
            return []
        try:
            # Some take a while to be understood, and the loop has messages to send meanwhile.
            return await asyncio.to_thread(read_letter, letter.raw, ours=self._ours, at=letter.at)
        except Exception:
            # It never fails; but if it did, one letter would keep all others from being read.
            log.exception("letter not understood", account=self._api.name, letter=name)
            return []

    # ------------------------------------------------------------------ asking

    async def _asked(
        self,
        path: str,
        parameters: Mapping[str, str],
        most: int | None = None,
        *,
        or_none: Collection[tuple[int, str]] = (),
    ) -> Answer | None:
        """What Gmail says; None for these of its errors, and whatever else is wrong is raised."""
        more = {} if most is None else {"most": most}
        while True:
            try:
                async with asyncio.timeout(ASK_WITHIN_S):
                    answer = await self._api.ask(path, parameters, **more)
            except TimeoutError:
                raise ProviderError(f"{self._api.name}: Gmail took too long") from None
            if isinstance(answer, Answer) and answer.succeeded:
                return answer
            outcome = self._api.reading(answer)
            if isinstance(answer, Answer) and (answer.status, outcome.code) in or_none:
                return None
            wait_us = outcome.retry_after_us or THROTTLED_US
            if outcome.kind is not OutcomeKind.THROTTLED or wait_us > self._left_us:
                raise self._api.trouble(outcome)
            await rest(self._clock, wait_us, self._closing)

    def _said(self, answer: Answer | None) -> Said:
        said = None if answer is None else answer.said()
        if said is None:
            # Somebody said yes, but it was not Gmail.
            raise ProviderError(f"{self._api.name}: answered with something that is not Gmail's")
        return said


def _place(cursor: str) -> Place | None:
    """Where a cursor says; None for no cursor, and for what is none of ours."""
    try:
        said = json.loads(cursor)
        history, at = _number(said["history"]), int(said["at"])
        waiting, missed = map(tuple, (said["waiting"], said["missed"]))
    except (ValueError, TypeError, KeyError, RecursionError, ProviderError):
        return None
    return Place(history, at, tuple(map(str, waiting)), tuple(map(str, missed)))


def _number(raw: object) -> str:
    """A number of Gmail's history, as the text that it is written as."""
    text = name_of(raw) or ""
    if not _NUMBER.fullmatch(text):
        raise ProviderError("Gmail does not say how far its history goes")
    return text


def _objects(raw: object) -> Iterator[Said]:
    for entry in raw if isinstance(raw, list) else ():
        if isinstance(entry, dict):
            yield entry


def _added(record: Said) -> Iterator[str]:
    """The letters that a record of the history says were added where we look."""
    for entry in _objects(record.get("messagesAdded")):
        message = entry.get("message")
        labels = message.get("labelIds") if isinstance(message, dict) else None
        if isinstance(labels, list) and any(label in labels for label in LABELS):
            yield from _names([message])


def _names(raw: object) -> list[str]:
    names = (name_of(entry.get("id")) for entry in _objects(raw))
    return [name for name in names if name is not None]


def _letter(raw: object, date: object, *, cut: bool = False) -> Letter | None:
    if not isinstance(raw, str):
        return None
    whole = raw[: len(raw) // 4 * 4] if cut else raw.rstrip("=")
    try:
        content = urlsafe_b64decode(whole + "=" * (-len(whole) % 4))
    except (binascii.Error, ValueError):
        return None
    text = name_of(date) or ""
    known = text.isascii() and text.isdecimal() and len(text) <= 15
    return Letter(content, int(text) * MILLISECOND if known else 0)
