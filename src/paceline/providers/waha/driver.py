"""The driver itself: one line per open account, every answer and every failure an outcome.

What goes over the wire is made and read in ``wire.py``, refusals with the table of ``errors.py``. A
404 leaves open whether the session is gone, or only stopped. Then it is asked for, under a short
limit: the message itself was refused already, and must not fall into doubt because of it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from typing import NoReturn

import httpx
import structlog

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.engine.ports import Capabilities, Clock, Found, Group, Media, Message, Uploaded
from paceline.providers.answers import Answer, refusal, segment
from paceline.providers.http import ASK_WITHIN_S, HttpDriver, Line
from paceline.providers.waha.errors import TABLE, read_refusal
from paceline.providers.waha.files import Files
from paceline.providers.waha.groups import MOST_PAGES, PAGE, listed_in, own_ids, read_groups
from paceline.providers.waha.settings import WahaSettings
from paceline.providers.waha.status import TAKES_IDS, Standing, engine_of, standing_of_session
from paceline.providers.waha.wire import (
    LARGEST_FILE,
    PERSON,
    able,
    chat_of,
    own_id,
    read_found,
    read_person,
    read_sent,
    request_for,
)

log = structlog.get_logger("paceline.waha")

MOST_PEOPLE = 10_000
"""How many people are remembered while the account is open."""

_K = OutcomeKind


def line_for(
    settings: WahaSettings, key: str, trust: ssl.SSLContext, timeout: httpx.Timeout | None
) -> Line:
    return Line(
        "WAHA",
        settings.base_url,
        {"X-Api-Key": key},
        trust,
        secrets=[key],
        local=settings.is_local,
        timeout=timeout,
    )


class WahaDriver(HttpDriver):
    """One open account."""

    def __init__(
        self, clock: Clock, name: str, settings: WahaSettings, line: Line, files: Files
    ) -> None:
        super().__init__(clock, name, line)
        self._settings = settings
        self._files = files
        self._session = segment(settings.session)
        self._engine = ""
        self._own: frozenset[str] = frozenset()
        self._people: OrderedDict[str, str] = OrderedDict()

    @property
    def capabilities(self) -> Capabilities:
        return able(self._settings)

    # ------------------------------------------------------------------ sending

    async def _send(self, message: Message) -> Outcome:
        file = None if message.part.media is None else self._files.get(message.handle or "")
        request = request_for(message, self._settings, file)
        if isinstance(request, Outcome):
            return request
        answer = await self._line.deliver(request.path, json=request.body)
        if isinstance(answer, Outcome):
            return answer
        outcome = read_sent(answer, self._clock.now(), self._engine)
        if answer.status == 404 and answer.said() is not None:
            return await self._whose_fault(outcome)
        return outcome

    async def _whose_fault(self, refused: Outcome) -> Outcome:
        """WAHA says the same of a session that is gone and of one that is stopped. Neither must
        cost a whole campaign its people, one after the other."""
        try:
            async with asyncio.timeout(ASK_WITHIN_S):
                standing = await self._standing()
        except ProviderRefused as error:
            return Outcome(_K.UNAUTHORISED, str(error), refused.code)
        except (ProviderError, TimeoutError):
            return refused
        match standing.verdict:
            case "stopped":
                return Outcome(_K.UNAUTHORISED, f"{self._name}: {standing.reason}", refused.code)
            case "away":
                return Outcome(_K.UNAVAILABLE, f"{self._name}: {standing.reason}", refused.code)
            case _:
                return refused

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        """Keep a file at hand: WAHA takes it with every message, and keeps none."""
        if len(content) > LARGEST_FILE:
            size, most = len(content) / 2**20, LARGEST_FILE // 2**20
            return refusal("media", f"{media.name} has {size:.1f} MiB, and WAHA takes {most}")
        return Uploaded(self._files.take(media, content))

    # ------------------------------------------------------------------ asking

    async def resolve(self, message: Message) -> str | Outcome:
        """A number as WhatsApp knows it. In some countries that is another than is dialled."""
        chat = chat_of(message.target)
        # What can be no target at all is refused where every message is looked through.
        if isinstance(chat, Outcome) or not chat.endswith(PERSON) or not self._settings.look_up:
            return message.target
        known = self._people.get(chat)
        if known is not None:
            return known
        try:
            parameters = {"session": self._settings.session, "phone": chat.removesuffix(PERSON)}
            answer = await self._line.ask("/api/contacts/check-exists", parameters)
        except ProviderError as error:
            return transient(str(error), "look-up")
        found = read_person(answer, chat, self._clock.now(), self._engine)
        if isinstance(found, Outcome):
            # Nothing was sent by it, so there is nothing to be in doubt of.
            kind = _K.TRANSIENT if found.kind is _K.UNKNOWN else found.kind
            return found._replace(kind=kind, reason=self._line.masked(found.reason))
        self._people[chat] = found
        if len(self._people) > MOST_PEOPLE:
            self._people.popitem(last=False)
        return found

    async def find(self, message: Message, since_at: Instant) -> Found:
        """What was sent before that instant under our id is this very message all the same."""
        if not self._settings.own_ids:
            return Found("unclear")
        try:
            return await self._look_for(message)
        except ProviderError as error:
            log.info("could not look a message up", account=self._name, reason=str(error))
            return Found("unclear")

    async def _look_for(self, message: Message) -> Found:
        resolved = await self.resolve(message)
        chat = chat_of(message.target if isinstance(resolved, Outcome) else resolved)
        if isinstance(chat, Outcome):
            return Found("unclear")
        name = f"true_{chat}_{own_id(message.key)}"
        path = f"/api/{self._session}/chats/{segment(chat)}/messages/{segment(name)}"
        # Or it would fetch the file, too.
        answer = await self._line.ask(path, {"downloadMedia": "false"})
        if not answer.succeeded:
            raise ProviderError(self._words(answer))
        return read_found(answer, message)

    async def groups(self) -> list[Group]:
        """Every group the number is in; ``ProviderError`` where WAHA does not say.

        Read until a page is empty, or comes again: an older WAHA knows no pages.
        """
        found: dict[str, Group] = {}
        before: object = None
        for page in range(MOST_PAGES):
            parameters = {"limit": str(PAGE), "offset": str(page * PAGE)}
            answer = await self._line.ask(f"/api/{self._session}/groups", parameters)
            listed = listed_in(answer.read()) if answer.succeeded else None
            if listed is None:
                self._refuse(answer)
            if not listed or listed == before:
                return list(found.values())
            found |= {one.id: one for one in read_groups(listed, self._own)}
            before = listed
        raise ProviderError(f"{self._name}: the list of groups does not end")

    # ------------------------------------------------------------------ how it stands

    async def check_standing(self) -> None:
        """Whether WAHA has the session, and it can send, as the settings say."""
        standing = await self._standing()
        if standing.verdict == "stopped":
            raise ProviderRefused(f"{self._name}: {standing.reason}")
        if standing.verdict == "away":
            raise ProviderError(f"{self._name}: {standing.reason}")
        if self._settings.own_ids and self._engine and self._engine not in TAKES_IDS:
            raise ProviderRefused(
                f"{self._name}: the session's engine is {self._engine[:20]}, which takes no ids of"
                " ours; say so with --option own_ids=false"
            )

    async def _standing(self) -> Standing:
        """How the session stands. ``ProviderError`` where nobody says."""
        try:
            answer = await self._line.ask(f"/api/sessions/{self._session}")
        except ProviderError as error:
            raise ProviderError(f"{self._name}: offline: {error}") from None
        said = answer.said()
        if answer.status == 404 and said is not None:
            raise ProviderRefused(f"{self._name}: no such session: {self._words(answer)}")
        if not answer.succeeded or said is None:
            self._refuse(answer)
        self._engine = engine_of(said)
        self._own = own_ids(said.get("me"))
        return standing_of_session(said)

    def _refuse(self, answer: Answer) -> NoReturn:
        """Say in one line why nothing can be done with the session."""
        outcome = read_refusal(answer, self._clock.now(), self._engine)
        words = self._words(answer)
        if outcome.kind is _K.UNAUTHORISED:
            what = "token refused: " if answer.status in (401, 403) else ""
            raise ProviderRefused(f"{self._name}: {what}{words}")
        # How a session stands is told in the same words already.
        what = "" if words.startswith("offline: ") else "offline: "
        raise ProviderError(f"{self._name}: {what}{words}")

    def _words(self, answer: Answer) -> str:
        return self._line.masked(TABLE.reason_of(answer, answer.said()))
