"""Whether a cap that is used up is what an account waits for, which is what its state shows.

Asked when a lane has nothing to send for a while. When it is to be woken for the next message is
the pacer's affair, and that may be a weekend later: the state ends when the cap begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from paceline.core.gates import NEVER
from paceline.core.instants import Instant, earlier
from paceline.core.model import Ask, Wait
from paceline.core.states import AccountState, DeliveryState
from paceline.engine.memory import LaneMemory
from paceline.engine.ports import Delivery, Journal, Tx
from paceline.engine.putting_off import plain
from paceline.engine.run_queue import RunQueue

MOST_READ = 8
"""Runs of which it is not known what is to be sent next, and is found out: those due first."""
NEXT_FEW = 20
"""How many of a run's next deliveries are looked at for one that is not a doubt."""


class _Next(NamedTuple):
    """What is to be sent next of a run."""

    ask: Ask | None
    """None where that is not known."""
    due_at: Instant


async def used_up(journal: Journal, memory: LaneMemory, now: Instant) -> Wait | None:
    """The cap that all waits for that could go before it begins anew. The caps are asked alone."""
    account = memory.account
    # Any other state says more than a cap could, and one that is shown has its end already.
    if not memory.policy.capped or account.state is not AccountState.ACTIVE:
        return None
    queues = memory.agenda.in_turn(now)
    waiting = {
        queue.run.id: _Next(queue.waits_as(now), due_at)
        for queue in queues
        if (due_at := queue.next_due_at) is not None
    }
    unknown = [queue for queue in queues if (one := waiting.get(queue.run.id)) and one.ask is None]
    if unknown and _scarce(memory, waiting.values(), now):
        unknown.sort(key=lambda queue: waiting[queue.run.id].due_at)
        some = unknown[:MOST_READ]
        found = await journal.read(lambda tx: _read(tx, account.id, some))
        for queue in some:
            del waiting[queue.run.id]
        waiting |= found
    return _judged(memory, waiting.values(), now)


def _judged(memory: LaneMemory, waiting: Iterable[_Next], now: Instant) -> Wait | None:
    """A day may be used up for one action and not for another; the account has reached its limit
    when nothing else falls due before the first of its caps begins anew. Replies come at any time
    and show nothing about what was planned."""
    first: Wait | None = None
    free_at: Instant | None = None
    for ask, due_at in waiting:
        cap = _cap(memory, ask, now)
        if cap is not None:
            first = cap if first is None or _end_of(cap) < _end_of(first) else first
        elif ask is None or not ask.reply:
            free_at = earlier(free_at, due_at)
    ends_at = NEVER if first is None else _end_of(first)
    return None if free_at is not None and free_at < ends_at else first


def _cap(memory: LaneMemory, ask: Ask | None, now: Instant) -> Wait | None:
    return None if ask is None else memory.pacer.cap(now, memory.usage, plain(ask))


def _end_of(cap: Wait) -> Instant:
    return NEVER if cap.until_at is None else cap.until_at


def _scarce(memory: LaneMemory, waiting: Iterable[_Next], now: Instant) -> bool:
    """Whether any cap is used up: only then is it worth a look at what waits."""
    policy, usage = memory.policy, memory.usage
    actions = {*policy.daily, *policy.weekly, *usage.day, *usage.week}
    asks = [*(one.ask for one in waiting), *(Ask(action) for action in actions)]
    return any(_cap(memory, ask, now) is not None for ask in asks)


def _read(tx: Tx, account_id: int, queues: list[RunQueue]) -> dict[int, _Next]:
    """What is to be sent next of each: nothing, where there are only doubts."""
    found: dict[int, _Next] = {}
    for queue in queues:
        run_id = queue.run.id
        rows = tx.path.due(account_id, run_id, NEVER, NEXT_FEW)
        if queue.run.pooled:
            rows += tx.path.pooled(run_id, NEVER, 1)
        row = next((row for row in rows if row.state is DeliveryState.READY), None)
        if row is not None:
            with suppress(LookupError):  # what has nothing to say is seen to when its turn comes
                found[run_id] = _Next(_ask_of(queue, row), row.due_at or 0)
    return found


def _ask_of(queue: RunQueue, delivery: Delivery) -> Ask:
    parts = len(queue.content_of(delivery).parts) - delivery.parts_done
    run = queue.run
    return Ask(delivery.action, parts, run.id, delivery.reply, closes_at=run.closes_at)
