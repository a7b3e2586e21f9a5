"""Calls that were given up and live on: nothing may overtake them, and their answers still count.

A driver that ignores cancellation may deliver long after its message was written down as lost. As
long as such a call lives, that the provider does not have the message proves nothing: it may have
it a moment later, and a message sent again by then would arrive twice. Hence three rules.

In the process in which the call lives, nothing is sent under its key, whoever asks for it: not
after a proof of absence, not because the policy or a person says so (``LateCalls.lives``).

Other processes cannot see the call, so what they can see is kept from them: whenever the lane is
not ours, the doubt is moved ahead every few seconds, and never falls due while the call lives. It
is a lease on the doubt. When the process dies its calls die with it, nobody moves the doubt any
more, and two minutes later it is resolved like any other. Nothing has to be tidied up.

When the call ends with an answer, the answer is settled as any late one; when it fails, the doubt
is resolved as usual, a little later, for what was written last may not be seen at once.

What is left is told in decision 10. Asking the provider is the recovery's affair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog

from paceline.core import outcome as outcomes
from paceline.core.errors import StoreError
from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.retry import ASK_AFTER_US
from paceline.core.signals import DEFAULT_SIGNALS, Signals
from paceline.core.states import DeliveryState
from paceline.core.usage import Usage
from paceline.engine import lane_writes
from paceline.engine.leases import ProcessLease
from paceline.engine.ports import (
    Account,
    Capabilities,
    Clock,
    Delivery,
    Journal,
    LaneUnit,
    Lease,
    Tx,
)
from paceline.engine.settling import Flight, Settled, settle

BEAT_US = 5 * SECOND
"""How often a living call is looked at. A takeover writes no doubt that falls due earlier."""

HOLD_US = 2 * MINUTE
"""How far ahead the doubt is moved: longer than a process takes to die after it was told to."""

KEPT_US = 15 * MINUTE
"""How long a lane with nothing to do is kept for the sake of such a call. Parking it would close
the account and cut off an answer that may still come; keeping it for ever would help nobody."""

ASK_AGAIN_US = 10 * MINUTE
"""A doubt whose call has not ended is looked into so often at least: the call may end any time."""

NOT_ENDED = "its call has not ended"
MAY_LIVE = "its call may not have ended"

log = structlog.get_logger("paceline.late")


@dataclass(frozen=True, slots=True, eq=False)
class LateCall:
    """A call that did not end when it was told to, with all that is needed to settle it."""

    key: str
    call: asyncio.Future[Any]
    lease: Lease
    flight: Flight
    account: Account
    policy: Policy
    capabilities: Capabilities
    given_up_at: Instant
    ended: Callable[[], None]
    """Tells the lane that made it, if that lane still runs."""
    signals: Signals = DEFAULT_SIGNALS

    def is_doubt(self, delivery: Delivery) -> bool:
        """Whether the delivery is in doubt because of this very call."""
        flight = self.flight
        same = (delivery.attempts, delivery.parts_done) == (flight.attempt, flight.part)
        return same and delivery.state is DeliveryState.UNKNOWN

    def settled(self, outcome: Outcome, now: Instant) -> Settled:
        """What follows from its answer. As to the pace it is old news: the next one will tell."""
        return settle(
            self.flight,
            outcome,
            usage=Usage(),
            policy=self.policy,
            capabilities=self.capabilities,
            now=now,
            provider=self.account.provider,
            signals=self.signals,
        )


class LateCalls:
    """All such calls of one process, whichever of its lanes made them."""

    def __init__(self) -> None:
        self._living: dict[LateCall, asyncio.Task[None]] = {}

    def lives(self, key: str) -> bool:
        """Whether a message under this key may still arrive."""
        return bool(self._living) and any(late.key == key for late in self._living)

    def of(self, lease: Lease) -> list[LateCall]:
        """Those that one lane has made and that have not ended."""
        return [late for late in self._living if late.lease == lease and not late.call.done()]

    def kept_until_at(self, lease: Lease) -> Instant:
        """Until when a lane should be kept for the sake of those it has made."""
        return max((late.given_up_at + KEPT_US for late in self.of(lease)), default=0)

    def watch(self, late: LateCall, journal: Journal, clock: Clock, process: ProcessLease) -> None:
        """See a call off, however long it takes."""
        log.error(
            "a call of the driver ignores that it was called off; nothing is sent in its place",
            account=late.account.name,
            run=late.flight.delivery.run_id,
            delivery=late.flight.delivery.id,
        )
        seeing_off = asyncio.ensure_future(self._see_off(late, journal, clock, process))
        self._living[late] = seeing_off

    async def hold_back(self, lease: Lease, journal: Journal, clock: Clock) -> None:
        """The lane is about to be given away: whoever takes it must not come too early."""
        for late in self.of(lease):
            await journal.write(partial(_move_ahead, late=late, now=clock.now()))

    async def _see_off(
        self, late: LateCall, journal: Journal, clock: Clock, process: ProcessLease
    ) -> None:
        try:
            while not late.call.done():
                await _beat(late, journal, clock, process)
                if clock.now() >= late.given_up_at + KEPT_US:
                    # Nobody waits for it any more. One that ignored this once may yet hear it.
                    late.call.cancel()
                await asyncio.wait({late.call}, timeout=BEAT_US / SECOND)
            outcome = _answer(late)
            if outcome is None:
                await clock.sleep(ASK_AFTER_US[0])
            else:
                await _settle(late, outcome, journal, clock)
        finally:
            del self._living[late]
            late.ended()


def _answer(late: LateCall) -> Outcome | None:
    """What it ended with, where that is an answer. A failure was logged where it was left."""
    call = late.call
    if call.cancelled() or call.exception() is not None:
        return None
    outcome = call.result()
    if not isinstance(outcome, Outcome) or outcome.kind is OutcomeKind.UNKNOWN:
        return None
    return outcome


async def _beat(late: LateCall, journal: Journal, clock: Clock, process: ProcessLease) -> None:
    """Keep the doubt from falling due, unless the lane is ours: we know, and may well ask."""
    try:
        owner, delivery = await journal.read(
            lambda tx: (
                tx.lanes.get(late.lease.account_id).owner,
                tx.deliveries.get(late.flight.delivery.id),
            )
        )
        ours = process.joined and owner == process.process_id
        now = clock.now()
        if not ours and _falls_due(late, delivery, now):
            log.warning("a call of a former owner lives", account=late.account.name, key=late.key)
            await journal.write(lambda tx: _move_ahead(tx, late, now))
    except StoreError as error:
        # Whoever takes the lane meanwhile cannot be told. The next beat may get through.
        log.error("cannot tell of a living call", account=late.account.name, error=str(error))


def _falls_due(late: LateCall, delivery: Delivery, now: Instant) -> bool:
    """Whether the doubt is looked into soon. Where only a person can, there is nothing to do."""
    due_at = delivery.due_at
    return late.is_doubt(delivery) and due_at is not None and due_at < now + HOLD_US // 2


def _move_ahead(tx: Tx, late: LateCall, now: Instant) -> None:
    delivery = tx.deliveries.get(late.flight.delivery.id)
    if _falls_due(late, delivery, now):
        tx.deliveries.postpone(delivery.id, now + HOLD_US, not_ended(delivery.reason))


def not_ended(reason: str) -> str:
    """The reason of a doubt that has to wait for its call, told once."""
    return reason if NOT_ENDED in reason else f"{reason}; {NOT_ENDED}"


def waited_for(reason: str) -> str:
    """The same where whoever made the call has been given the time to say that it lives."""
    if NOT_ENDED not in reason:
        return reason
    return reason.replace(f"; {MAY_LIVE}", "").replace(NOT_ENDED, MAY_LIVE)


async def _settle(late: LateCall, outcome: Outcome, journal: Journal, clock: Clock) -> None:
    """Write a late answer, however long the store is away: it must not be lost."""
    now = clock.now()
    settled = late.settled(outcome, now)
    log.warning(
        "a call that was given up has answered",
        account=late.account.name,
        delivery=late.flight.delivery.id,
        outcome=str(outcome.kind),
    )
    while True:
        try:
            await journal.write(lambda tx: _write_answer(tx, late, settled, now), alone=True)
            return
        except StoreError as error:
            log.warning("late answer not written, trying again", error=str(error))
            await clock.sleep(SECOND)


def _write_answer(tx: Tx, late: LateCall, settled: Settled, now: Instant) -> None:
    """As from a former owner, whose outcomes are true whoever has the lane.

    The loss comes along, for the lane may not have written it yet; else it changes nothing.
    """
    answer = settled.settlement
    lost = answer._replace(
        outcome=outcomes.unknown(NOT_ENDED),
        state=DeliveryState.UNKNOWN,
        due_at=None,
        parts_done=answer.part,
        retries=late.flight.delivery.retries,
        reason=NOT_ENDED,
    )
    unit = LaneUnit(late.lease, revision=0, settlements=(lost, answer))
    aftermaths = [] if settled.aftermath.empty else [(answer, settled.aftermath)]
    result = lane_writes.with_aftermath(tx, unit, aftermaths, late.account, now, stops=True)
    if lane_writes.is_news(answer, moved=result.settled[1]):
        lane_writes.tell_owner(tx, late.lease.account_id, [answer], now)
