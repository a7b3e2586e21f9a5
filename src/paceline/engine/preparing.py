"""From a part of a delivery to a message that can be sent: rendered, with its media, addressed.

A template that fails or a file that is refused ends the matter before anything is intended. A
recipient who cannot be found does not: that took a call to the provider, so it is written down and
paced as the send that it stands in for, or a list of bad names would be looked up in one go.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import structlog

from paceline.core.errors import InputError
from paceline.core.model import Content, Part
from paceline.core.names import Names
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.core.template import render_part
from paceline.engine.context import LaneContext
from paceline.engine.drivers import LazyDriver, within_time
from paceline.engine.media import Handles
from paceline.engine.naming import ensure_names, names_of
from paceline.engine.ports import Account, Delivery, Lease, Message, Thread, Tx
from paceline.engine.settling import Flight

log = structlog.get_logger("paceline.lane")


class _Foreseen(NamedTuple):
    """A message that was made before it was asked for: the first that is still to be sent of its
    delivery."""

    delivery: Delivery
    content: Content
    message: Message

    def is_of(self, flight: Flight) -> bool:
        """Whether it says what the flight says: whatever was read anew since is another."""
        same = self.delivery is flight.delivery and self.content is flight.content
        return same and flight.part == self.delivery.parts_done


class Desk:
    """Where the messages of one account are made ready, for as long as its lane runs."""

    def __init__(
        self, account: Account, driver: LazyDriver, context: LaneContext, lease: Lease
    ) -> None:
        self._account = account
        self._driver = driver
        self._context = context
        self._names: Names | None = None
        self._foreseen: _Foreseen | None = None
        self.handles = Handles(
            account, driver, context.journal, context.clock, context.lease, lease
        )

    def foresee(self, delivery: Delivery, content: Content) -> None:
        """Make a message beforehand that most likely is asked for next: nobody waits for it now,
        and everybody will. Only where rendering is all that it takes."""
        if self._foreseen is not None and self._foreseen.delivery is delivery:
            return
        number = delivery.parts_done
        key = self._context.key(delivery.id, number)
        try:
            message = self._plain(delivery, content, number, key)
        except Exception as error:
            # It will be so again when its turn comes, and be told then.
            log.debug("not foreseen", account=self._account.name, key=key, error=repr(error))
            return
        if message is not None:
            self._foreseen = _Foreseen(delivery, content, message)

    def foreseen(self, flight: Flight) -> Message | None:
        """The flight's message, if that was made beforehand."""
        foreseen = self._foreseen
        if foreseen is None or not foreseen.is_of(flight):
            return None
        self._foreseen = None
        flight.handles = ()
        return foreseen.message

    def at_once(self, flight: Flight, key: str) -> Message | None:
        """The same as ``prepare`` where nobody has to be asked for anything, as is usual, and
        nothing is wrong; None where that is not so."""
        message = self._plain(flight.delivery, flight.content, flight.part, key)
        if message is not None:
            flight.handles = ()
        return message

    def _plain(self, delivery: Delivery, content: Content, number: int, key: str) -> Message | None:
        part = content.parts[number]
        able = self._driver.capabilities
        if part.media is not None or part.attachments or able.resolves:
            return None
        if able.threads and (delivery.step > 1 or part.answers):
            return None
        names = self._names
        if able.returns and names is None:
            return None
        link = self._link(delivery)
        try:
            rendered = render_part(part, delivery.target, delivery.fields, link)
        except InputError:
            return None
        return Message(
            key,
            delivery.target,
            delivery.action,
            rendered,
            unsubscribe=link if able.unsubscribes else "",
            signed_name=names.of(delivery.id, number) if able.returns and names else "",
        )

    async def prepare(self, flight: Flight, key: str, timeout_us: int) -> Message | Outcome:
        """The next part of a flight as a message; an outcome if it can never become one, or not
        now. Whom it is for may turn out to be ``flight.unreachable``."""
        delivery, part = flight.delivery, flight.content.parts[flight.part]
        try:
            rendered = render_part(part, delivery.target, delivery.fields, self._link(delivery))
        except InputError as error:
            return Outcome(OutcomeKind.REJECTED, str(error))
        message = Message(key, delivery.target, delivery.action, rendered)
        flight.handles = ()
        if part.media is not None or part.attachments:
            handles = await self._upload(flight, part, timeout_us)
            if isinstance(handles, Outcome):
                return handles
            flight.handles = tuple(handles)
            message = _with_files(message, flight.handles)
        able = self._driver.capabilities
        if able.unsubscribes:
            message = message._replace(unsubscribe=self._link(delivery))
        if able.returns:
            names = await self._names_here()
            message = message._replace(signed_name=names.of(delivery.id, flight.part))
        if able.threads and part.answers:
            message = message._replace(thread=self._answered(part))
        elif able.threads and delivery.step > 1:
            message = message._replace(thread=await self._thread(flight))
        if able.resolves:
            return await self._addressed(flight, message, timeout_us)
        return message

    def _link(self, delivery: Delivery) -> str:
        """Where the recipient can unsubscribe. Whoever is answered is on no list."""
        links = self._context.links
        if links is None or delivery.reply:
            return ""
        return links.of(delivery.id)

    async def _names_here(self) -> Names:
        if self._names is None:
            journal = self._context.journal
            found = await journal.read(names_of)
            if found is None:
                found = await journal.write(ensure_names, alone=True)
            self._names = found
        return self._names

    async def _thread(self, flight: Flight) -> Thread:
        """What the person got before, by the names that the provider was told for it."""
        delivery, context = flight.delivery, self._context
        ids, content = await context.journal.read(partial(_before, delivery=delivery))
        first = render_part(content.parts[0], delivery.target, delivery.fields)
        return Thread(tuple(context.key(one, 0) for one in ids), first.subject)

    def _answered(self, part: Part) -> Thread:
        """What an answer answers: theirs as they call it, ours by what the provider was told."""
        key = self._context.key
        return Thread(
            tuple(one if one.startswith("<") else key(int(one), 0) for one in part.answers), ""
        )

    async def _upload(self, flight: Flight, part: Part, timeout_us: int) -> list[str] | Outcome:
        """The handles of the part's files; an outcome where one of them cannot be had."""
        files, handles, made = part.files, list[str](), self.handles.made
        for media_id in files:
            answer = await self.handles.handle_of(media_id, timeout_us)
            if isinstance(answer, Outcome):
                return answer
            handles.append(answer)
        flight.fresh = self.handles.made - made == len(set(files))
        return handles

    async def _addressed(self, flight: Flight, message: Message, timeout_us: int) -> Message:
        """Looked up once per flight, however many parts it has."""
        if flight.address is None:
            answer = await self._look_up(message, timeout_us)
            if isinstance(answer, Outcome):
                flight.unreachable = answer
                return message
            flight.address = answer
        return message._replace(target=flight.address)

    async def _look_up(self, message: Message, timeout_us: int) -> str | Outcome:
        try:
            answer = await within_time(self._driver.resolve(message), timeout_us)
        except TimeoutError:
            return transient("looking the recipient up took too long")
        except Exception as error:
            # A driver must answer with an outcome; when it raises, nobody has received anything.
            log.exception("driver failed", account=self._account.name, key=message.key)
            return transient(f"driver failed: {type(error).__name__}: {error}")
        if isinstance(answer, Outcome) and not answer.refused:
            # Nothing was sent, so there is nothing to be in doubt of, and nothing was accepted.
            return transient(answer.reason, answer.code)
        return answer


def _before(tx: Tx, delivery: Delivery) -> tuple[list[int], Content]:
    campaign = tx.campaigns.get(tx.runs.get(delivery.run_id).campaign_id)
    return tx.steps.before(delivery.id), Content.from_list(campaign.content)


def _with_files(message: Message, handles: tuple[str, ...]) -> Message:
    if message.part.media is None:
        return message._replace(attached=handles)
    return message._replace(handle=handles[0], attached=handles[1:])
