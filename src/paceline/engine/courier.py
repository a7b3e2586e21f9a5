"""The courier: brings the events there are to one webhook, in order, from one process of the fleet.

Every event arrives at least once. A process sends an event, and only when the other side has taken
it writes down that it has; one that is killed in between leaves an event that the next one sends
again, under the same id. Events are never sent side by side: while one is not taken, those after it
wait.

What is not taken is tried again after pauses that grow. After a day it is given up, and the next
one has its turn: an alert and an event of its own say which one that was. Whoever answers 410 wants
to hear no more, and hears no more until an operator says so.

Nothing here can harm sending: whatever fails is logged, and tried again later.
"""

from __future__ import annotations

import structlog

from paceline.core.events import EventKind
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
from paceline.core.webhooks import Webhook, body_of, headers_of
from paceline.engine import alerts
from paceline.engine.looking import Looker
from paceline.engine.ports import Clock, Event, Hook, Journal, Posted, Postman, Tx, Work
from paceline.engine.ports.events import POST_WITHIN_US

LOOK_EVERY_US = 2 * SECOND
PAGE = 100
"""Events that are held at a time, however many wait."""
LEASE_US = 30 * SECOND
"""No try is begun that might last longer than what is left of this."""
RETRY_US = 10 * SECOND
LONGEST_RETRY_US = HOUR
GIVE_UP_US = DAY
TELL_AFTER_US = 15 * MINUTE
"""How long a webhook fails before operators are told of it."""
GONE = 410

log = structlog.get_logger("paceline.webhooks")


class Courier(Looker):
    """Runs beside the lanes, for one webhook."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        webhook: Webhook,
        postman: Postman,
        *,
        instance: str,
        secret: str,
        look_every_us: int = LOOK_EVERY_US,
    ) -> None:
        super().__init__(clock, look_every_us, log.bind(webhook=webhook.name), "events")
        self._journal = journal
        self._webhook = webhook
        self._postman = postman
        self._instance = instance
        self._secret = secret
        self._known = False
        self._settled = 0
        """Up to which event none is to come any more."""
        self._lease_ends_us = 0

    async def end(self) -> None:
        await self._postman.close()

    async def look(self) -> int:
        """Bring what there is to bring, unless another process does; how many were taken."""
        name = self._webhook.name
        if not self._known:
            await self._journal.write(lambda tx: tx.hooks.open(name))
            self._known = True
        if not await self._journal.read(lambda tx: tx.hooks.is_due(name)):
            return 0
        held = await self._holding(lambda tx: tx.hooks.take(name, LEASE_US))
        if held is None:
            return 0
        before, at_it = held.delivered, True
        while at_it and not self._stopping:
            page = await self._page(held.cursor)
            after = await self._bring(held, page)
            if after is None:
                self._log.info("somebody else brings the events now")
                return held.delivered - before
            held = after
            at_it = bool(page) and held.lease_until_at is not None
        if held.lease_until_at is not None:
            ours = held
            await self._journal.write(lambda tx: tx.hooks.change(ours, lease_until_at=None))
        return held.delivered - before

    async def _page(self, cursor: int) -> list[Event]:
        """The next events; none where those that could come first have yet to be committed."""
        settled = self._settled
        page = await self._journal.read(lambda tx: tx.events.after(cursor, PAGE, settled))
        if page:
            return page
        found = await self._journal.read(lambda tx: tx.events.settled())
        self._settled = max(settled, found)
        if found <= cursor:
            return []
        return await self._journal.read(lambda tx: tx.events.after(cursor, PAGE, found))

    async def _bring(self, held: Hook, page: list[Event]) -> Hook | None:
        """One event after the other, as far as they are taken; None if the webhook is not ours any
        more."""
        passed = held.cursor
        for event in page:
            if event.kind in self._webhook.wanted:
                if self._stopping:
                    break
                after = await self._send(held, event)
                if after is None or after.lease_until_at is None:
                    return after
                held = after
            passed = event.id
        return await self._go_on(held, passed) if passed > held.cursor else held

    async def _send(self, held: Hook, event: Event) -> Hook | None:
        """One try at one event, and what it leads to is written down."""
        if self._lease_ends_us - self._clock.monotonic_us() < POST_WITHIN_US:
            renewed = await self._go_on(held, held.cursor)
            if renewed is None:
                return None
            held = renewed
        body = body_of(event.id, event.kind, event.at, event.text, event.data)
        name = f"{self._instance}-{event.id}"
        headers = headers_of(self._secret, name, body, self._clock.now())
        posted = await self._postman.post(headers, body)
        if not posted.ok:
            self._log.warning("event not taken", id=event.id, kind=event.kind, why=posted.problem)
        return await self._holding(lambda tx: settle(tx, held, event, posted))

    async def _go_on(self, held: Hook, cursor: int) -> Hook | None:
        """Leave behind what it does not want to hear of, and keep it for longer."""
        return await self._holding(
            lambda tx: tx.hooks.change(held, cursor=cursor, lease_until_at=tx.now + LEASE_US)
        )

    async def _holding(self, work: Work[Hook | None]) -> Hook | None:
        """A write that takes the webhook, or keeps it. The lease began before it was committed."""
        before_us = self._clock.monotonic_us()
        held = await self._journal.write(work, alone=True)
        self._lease_ends_us = before_us + LEASE_US
        return held


def settle(tx: Tx, held: Hook, event: Event, posted: Posted) -> Hook | None:
    """What one try leads to; None where the webhook is not ours any more."""
    now, on = tx.now, tx.now + LEASE_US
    if posted.ok:
        after = tx.hooks.change(
            held,
            cursor=event.id,
            lease_until_at=on,
            delivered=held.delivered + 1,
            delivered_at=now,
            failures=0,
            failing_since_at=None,
            next_try_at=None,
            problem="",
        )
        if after is not None and held.failures:
            alerts.webhook_works(tx, held.name, now)
        return after
    if posted.status == GONE:
        return _disable(tx, held, posted.problem, now)
    since_at = held.failing_since_at if held.failing_since_at is not None else now
    failed = {
        "failures": held.failures + 1,
        "failing_since_at": since_at,
        "problem": posted.problem,
    }
    if now - since_at >= GIVE_UP_US and now - event.at >= GIVE_UP_US:
        skipped = held.skipped + 1
        after = tx.hooks.change(held, cursor=event.id, lease_until_at=on, skipped=skipped, **failed)
        if after is not None:
            _tell_skipped(tx, after, event, now)
        return after
    pause_us = max(pause_after(held.failures + 1), min(posted.wait_us or 0, LONGEST_RETRY_US))
    after = tx.hooks.change(held, lease_until_at=None, next_try_at=now + pause_us, **failed)
    if after is not None and now - since_at >= TELL_AFTER_US:
        alerts.webhook_fails(tx, after, now)
    return after


def pause_after(failures: int) -> int:
    """10 s, 20 s, 40 s, … and never more than an hour."""
    return min(RETRY_US << min(failures - 1, 20), LONGEST_RETRY_US)


def _disable(tx: Tx, held: Hook, problem: str, now: Instant) -> Hook | None:
    """Whoever answers 410 has gone. The event stays where it is, in case somebody comes back."""
    after = tx.hooks.change(held, lease_until_at=None, disabled_at=now, problem=problem)
    if after is not None:
        text = f"webhook {held.name} wants no more events: {problem}"
        told = {"webhook": held.name, "problem": problem}
        tx.events.add(EventKind.WEBHOOK_DISABLED, text, at=now, data=told)
        alerts.webhook_disabled(tx, held.name, problem, now)
    return after


def _tell_skipped(tx: Tx, hook: Hook, event: Event, now: Instant) -> None:
    """Never in silence. About what was said of a webhook nothing more is said, or one that is dead
    would be told of itself for ever."""
    if not event.kind.startswith("webhook."):
        text = f"webhook {hook.name} has not taken event {event.id} ({event.kind}), it was given up"
        told = {
            "webhook": hook.name,
            "event": event.id,
            "kind": event.kind,
            "problem": hook.problem,
        }
        tx.events.add(EventKind.WEBHOOK_SKIPPED, text, at=now, data=told)
    alerts.webhook_skipped(tx, hook, event, now)
