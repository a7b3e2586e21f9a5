"""After a crash, and after a lost answer: finding out what became of a message.

A delivery whose intent has no outcome may or may not be with the provider. It becomes ``unknown``;
the provider is asked where it can prove an answer; else it is held for a person, or sent again
where the policy says so. Nothing here ever guesses.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import structlog

from paceline.core import outcome as outcomes
from paceline.core import usage as usages
from paceline.core.instants import SECOND, Instant
from paceline.core.model import RETRIES, Part
from paceline.core.outcome import Outcome
from paceline.core.retry import most_resends, next_ask_at
from paceline.core.states import DeliveryState, RunState
from paceline.core.template import render_part
from paceline.engine.context import LaneContext
from paceline.engine.doubts import record_absence, record_presence
from paceline.engine.drivers import CLEAN_UP_US
from paceline.engine.lane_writes import hold, is_ours
from paceline.engine.late import ASK_AGAIN_US, HOLD_US, NOT_ENDED, not_ended, waited_for
from paceline.engine.memory import (
    LaneMemory,
    Snapshot,
    Stranded,
    policy_from,
    read_ahead,
    take_snapshot,
)
from paceline.engine.pooling import hold_to_stop
from paceline.engine.ports import (
    Capabilities,
    Delivery,
    Driver,
    Found,
    LaneUnit,
    Lease,
    LedgerRow,
    Message,
    Settlement,
    Tx,
    Work,
)
from paceline.engine.settling import doubt_due_at

log = structlog.get_logger("paceline.recovery")


async def take_stock(
    context: LaneContext, snapshot: Snapshot, lease: Lease, capabilities: Capabilities
) -> Snapshot:
    """Put right what a crashed predecessor left in the middle; how everything stands afterwards.

    In one visit: a process that dies leaves dozens of lanes in the middle of something, and whoever
    takes them over has to get on.
    """
    if not snapshot.stranded:
        return snapshot

    def put_right(tx: Tx) -> Snapshot:
        now = context.clock.now()
        unit = _doubts(tx, snapshot, lease, capabilities, now)
        between_parts = [delivery for delivery, intent in snapshot.stranded if intent is None]
        _put_right(tx, unit, between_parts, now)
        return read_ahead(tx, take_snapshot(tx, lease.account_id, now))

    after = await context.journal.write(put_right)
    log.warning(
        "took up after a crash",
        account=snapshot.restored.account.name,
        in_doubt=sum(intent is not None for _, intent in snapshot.stranded),
        between_parts=sum(intent is None for _, intent in snapshot.stranded),
    )
    return after


def _doubts(
    tx: Tx, snapshot: Snapshot, lease: Lease, capabilities: Capabilities, now: Instant
) -> LaneUnit:
    """What is to be written of calls of which nobody knows what became."""
    policy, settlements = snapshot.policy, list[Settlement]()
    policies = {intent.policy_id for _, intent in snapshot.stranded if intent is not None}
    timeouts = _timeouts(tx, policies)
    # The last call may have been made at any moment until now. Counting it as made now costs one
    # interval and can never be too fast.
    usage = usages.started(snapshot.usage(), now, policy, reply=False)
    for delivery, intent in snapshot.stranded:
        if intent is None:
            continue
        # Its owner's lease is over, so the call began before now, whatever its clock says.
        over_at = now + timeouts[intent.policy_id] + CLEAN_UP_US
        due_at = doubt_due_at(policy, capabilities, _look_at(capabilities, now, now, over_at))
        outcome = outcomes.unknown("stopped between intent and outcome")
        settlements.append(
            _settlement(delivery, intent, outcome, DeliveryState.UNKNOWN, due_at, now)
        )
    # The usage goes along: were we to crash as well, our successor would find nothing stranded.
    return LaneUnit(lease, snapshot.row.revision, usages.to_json(usage), tuple(settlements))


def _look_at(
    capabilities: Capabilities, lost_at: Instant, now: Instant, over_at: Instant
) -> Instant:
    """When to look into a doubt next whose call is over at ``over_at``: what is there can be found
    before, and only that it is not there can not be known."""
    return min(over_at, next_ask_at(lost_at, now) or over_at) if capabilities.finds else over_at


def _timeouts(tx: Tx, policies: set[int]) -> dict[int, int]:
    """How long a call may take under each of these policies."""
    return {
        policy_id: policy_from(tx.policies.body(policy_id)).timeout_us
        for policy_id in sorted(policies)
    }


def _put_right(tx: Tx, unit: LaneUnit, between_parts: list[Delivery], now: Instant) -> None:
    hold(tx, unit.lease)
    tx.path.apply([unit])
    for delivery in between_parts:
        reason = f"broken off after part {delivery.parts_done}"
        tx.deliveries.move(delivery.id, "retry", at=now, due_at=now, reason=reason)


async def take_back(
    context: LaneContext, memory: LaneMemory, lease: Lease, flying: frozenset[int]
) -> bool:
    """Give back what is marked as sending but is not on its way; whether there was any.

    An intent of whose commit we never heard was never followed by a call, so it is withdrawn. Such
    a commit may come through long after its connection was lost, so this is asked again whenever
    the lane looks around and before it is given away.
    """
    ours = await context.journal.read(lambda tx: left_over(tx, lease, flying))
    if ours:
        await give_back(context, memory, lease, ours)
    return bool(ours)


def left_over(tx: Tx, lease: Lease, flying: frozenset[int]) -> Stranded:
    """What is marked as sending by this lane, and is not on its way."""
    return [
        (delivery, intent)
        for delivery, intent in tx.path.stranded(lease.account_id)
        if delivery.id not in flying and is_ours(intent, lease)
    ]


async def give_back(context: LaneContext, memory: LaneMemory, lease: Lease, ours: Stranded) -> None:
    """Let it wait for its turn again: nobody has heard of it."""
    now = context.clock.now()
    outcome = outcomes.withdrawn("the store was away")
    settlements = tuple(
        _settlement(delivery, intent, outcome, DeliveryState.READY, now, now)
        for delivery, intent in ours
        if intent is not None
    )
    unit = LaneUnit(lease, memory.revision, settlements=settlements)
    between_parts = [delivery for delivery, intent in ours if intent is None]
    await context.journal.write(lambda tx: _put_right(tx, unit, between_parts, now))


def _settlement(
    delivery: Delivery,
    intent: LedgerRow,
    outcome: Outcome,
    state: DeliveryState,
    due_at: Instant | None,
    now: Instant,
) -> Settlement:
    return Settlement(
        delivery_id=delivery.id,
        run_id=delivery.run_id,
        part=intent.part,
        attempt=intent.attempt,
        action=intent.action,
        intent_at=intent.intent_at,
        started_at=None,
        settled_at=now,
        outcome=outcome,
        policy_id=intent.policy_id,
        state=state,
        due_at=due_at,
        parts_done=intent.part,
        retries=delivery.retries,
        reason=outcome.reason,
    )


@dataclass(frozen=True, slots=True)
class Resolution:
    """What asking came to: when the delivery falls due again, and whether a slot came back."""

    due_at: Instant | None
    slot_returned: bool = False


async def resolve(
    context: LaneContext, memory: LaneMemory, lease: Lease, driver: Driver, delivery: Delivery
) -> Resolution:
    """Look into one doubt and write what was found."""
    doubt = _Doubt(context, lease, delivery)
    rows, timeouts, content = await context.journal.read(lambda tx: _history(tx, delivery))
    attempt = [row for row in rows if row.attempt == delivery.attempts]
    intents = [row for row in attempt if row.kind == "intent" and row.part == delivery.parts_done]
    # Asked before the provider is: what it says of a message whose call still lives may be untrue a
    # moment later. Presence is presence, but absence proves nothing, and nothing is sent again.
    living = context.late.lives(context.key(delivery.id, delivery.parts_done))
    if not intents and living:
        return await doubt.keep(context.clock.now() + ASK_AGAIN_US, living=True)
    if not intents:
        # The answer came late, when the doubt had been raised already: the next part is due.
        return await doubt.go_on("going on after a late answer")
    intent, lost = intents[0], max(attempt, key=lambda row: row.at)
    capabilities = driver.capabilities
    found = Found("unclear")
    # Judged by our own clock, from when we wrote down the loss, and before asking: an answer given
    # while the call may still be under way proves nothing, however long it takes to arrive.
    over_at = lost.at + CLEAN_UP_US
    if lost.started_at is None:
        over_at += timeouts[intent.policy_id]
    waits = NOT_ENDED in delivery.reason
    if waits:
        # When it was written down its call lived on, perhaps in a process that has lost the lane
        # and not its life: as long as it lives it moves the doubt ahead, so we give it the time.
        # Once: what is kept for that says so, or every lane that is parked meanwhile began anew.
        over_at = max(over_at, memory.began_at + HOLD_US)
    certain = context.clock.now() >= over_at and not living
    if capabilities.finds:
        message = _message(context.key(delivery.id, intent.part), delivery, content)
        found = await _ask(memory, driver, message, intent.intent_at)
    now = context.clock.now()
    again = delivery.retries < most_resends(memory.policy, content[0].get(RETRIES))
    bound = log.bind(account=memory.account.name, run=delivery.run_id, delivery=delivery.id)
    if found.finding == "present":
        bound.info("found at the provider")
        return await doubt.present(found, whole=_is_whole(memory, delivery))
    if found.finding == "absent" and capabilities.proves_absence and certain:
        bound.info("proved absent", sent_again=again)
        return await doubt.absent(again=again)
    ask_at = next_ask_at(lost.at, now) if capabilities.finds else None
    if living:
        ask_at = min(now + ASK_AGAIN_US, ask_at or now + ASK_AGAIN_US)
    elif now < over_at:
        # Whoever is given the time to say that a call lives is given all of it.
        ask_at = over_at if waits else _look_at(capabilities, lost.at, now, over_at)
    if ask_at is None and memory.policy.on_unknown == "resend" and again:
        bound.warning("no answer can be had, sending again as the policy says")
        return await doubt.go_on("sent again while in doubt", climbs=True)
    bound.info("still in doubt", ask_again_at=ask_at, call_lives=living)
    return await doubt.keep(ask_at, living=living)


def _history(tx: Tx, delivery: Delivery) -> tuple[list[LedgerRow], dict[int, int], list[Any]]:
    """What was tried, how long it may take, and what it says: its run may be long over."""
    rows, content = tx.ledger.of_delivery(delivery.id), delivery.content
    if content is None:
        content = tx.runs.get(delivery.run_id).parts_of(delivery.step)
    return rows, _timeouts(tx, {row.policy_id for row in rows}), content


async def _ask(memory: LaneMemory, driver: Driver, message: Message, since_at: Instant) -> Found:
    try:
        async with asyncio.timeout(memory.policy.timeout_us / SECOND):
            return await driver.find(message, since_at)
    except Exception as error:
        # Not being told is not an answer: the doubt stays, and is looked into again later.
        log.warning("could not ask the provider", key=message.key, error=repr(error))
        return Found("unclear")


def _message(key: str, delivery: Delivery, content: list[Any]) -> Message:
    """The part in doubt, as it was sent."""
    part = Part.from_mapping(content[delivery.parts_done])
    rendered = render_part(part, delivery.target, delivery.fields)
    return Message(key, delivery.target, delivery.action, rendered)


def _is_whole(memory: LaneMemory, delivery: Delivery) -> bool:
    """Whether the part in doubt is the last one."""
    parts = len(delivery.content) if delivery.content is not None else None
    if parts is None:
        queue = memory.agenda.queue_of(delivery.run_id)
        parts = len(queue.content_of(delivery).parts) if queue is not None else 1
    return delivery.parts_done + 1 >= parts


class _Doubt:
    """One delivery in doubt, and the ways in which its doubt can end.

    Asking takes time, in which the lane may be lost, the late answer come in, or a person decide.
    Whatever was found out is written only where the doubt is still the same, and ours.
    """

    def __init__(self, context: LaneContext, lease: Lease, delivery: Delivery) -> None:
        self._context = context
        self._lease = lease
        self._delivery = delivery

    async def present(self, found: Found, *, whole: bool) -> Resolution:
        now, name = self._context.clock.now(), found.provider_id
        ending = partial(
            end_well, lease=self._lease, before=self._delivery, name=name, whole=whole, now=now
        )
        came_to = await self._context.journal.write(partial(ending, in_company=True))
        if came_to == "by itself":
            came_to = await self._context.journal.write(ending, alone=True)
        if came_to == "changed":
            return self._look_again()
        return Resolution(None if whole else now)

    async def absent(self, *, again: bool) -> Resolution:
        now, delivery = self._context.clock.now(), self._delivery
        return await self._end(
            lambda tx: record_absence(tx, delivery, now, again=again),
            Resolution(now if again else None, slot_returned=True),
        )

    async def go_on(self, reason: str, *, climbs: bool = False) -> Resolution:
        """Send what is not known to be sent; each time once more on the way to giving up."""
        now, delivery = self._context.clock.now(), self._delivery
        retries = delivery.retries + climbs

        def again(tx: Tx) -> None:
            if climbs and tx.runs.get(delivery.run_id).state is RunState.CANCELLED:
                # Nobody sends it any more, and still nobody knows whether it has arrived.
                held = f"{delivery.reason}; held for a person"
                tx.deliveries.postpone(delivery.id, None, held)
                return
            tx.deliveries.move(
                delivery.id, "retry", at=now, due_at=now, reason=reason, retries=retries
            )

        return await self._end(again, Resolution(now))

    async def keep(self, ask_at: Instant | None, *, living: bool) -> Resolution:
        delivery = self._delivery
        reason = (not_ended if living else waited_for)(delivery.reason)
        if ask_at is None:
            reason = f"{reason}; held for a person"
        return await self._end(
            lambda tx: tx.deliveries.postpone(delivery.id, ask_at, reason), Resolution(ask_at)
        )

    async def _end(self, work: Work[object], resolution: Resolution) -> Resolution:
        lease, before = self._lease, self._delivery

        def guarded(tx: Tx) -> bool:
            same = _is_still(tx, lease, before)
            if same:
                work(tx)
            return same

        written = await self._context.journal.write(guarded)
        return resolution if written else self._look_again()

    def _look_again(self) -> Resolution:
        """Somebody was faster."""
        return Resolution(self._context.clock.now())


def _is_still(tx: Tx, lease: Lease, before: Delivery) -> bool:
    """Whether the doubt is the same as it was, and ours."""
    hold(tx, lease)
    after = tx.deliveries.get(before.id)
    same = (after.attempts, after.parts_done) == (before.attempts, before.parts_done)
    # A process in which the call still lives moves the doubt ahead (``late``).
    same = same and after.due_at == before.due_at
    return same and after.state is DeliveryState.UNKNOWN


def end_well(
    tx: Tx,
    lease: Lease,
    before: Delivery,
    name: str | None,
    *,
    whole: bool,
    now: Instant,
    in_company: bool = False,
) -> Literal["written", "changed", "by itself"]:
    """Write that a message was found where its doubt is still the same; or nothing, where somebody
    was faster, or where that may stop the account and has to go alone."""
    if not in_company:
        # Whoever holds a lane as its owner passes the fence as well, and that comes before lanes.
        tx.settings.fence()
        hold_to_stop(tx, lease.account_id)
    if not _is_still(tx, lease, before):
        return "changed"
    done = record_presence(tx, before, name, whole=whole, now=now, in_company=in_company)
    return "written" if done else "by itself"
