"""An account's agenda: its runs, and whose turn it is.

What waits in each is read ahead by ``run_queue.py``. Who comes first is said in ``turns.py``; runs
of equal rank take turns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from paceline.core.instants import Instant
from paceline.core.model import Ask, Content
from paceline.core.policy import Policy
from paceline.core.slots import Rank
from paceline.core.states import RunState
from paceline.engine.pages import Page
from paceline.engine.pooling import Claims
from paceline.engine.ports import Delivery, Journal, Run
from paceline.engine.run_queue import RunQueue
from paceline.engine.turns import is_served, rank_of


class Agenda:
    """Every run that has something to send from one account."""

    def __init__(
        self,
        runs: Sequence[Run],
        account_id: int,
        policy: Policy,
        journal: Journal | None,
        served: Sequence[int] = (),
        claims: Claims | None = None,
        *,
        begun: Collection[int] = (),
        pages: Mapping[int, Page] = MappingProxyType({}),
    ) -> None:
        """``served`` are the runs that had their turn already, the latest last: reading the agenda
        anew must not begin the round anew, or the first run would have every turn. ``begun`` are
        the firings of which something was sent from here. ``pages`` were read ahead with all the
        rest."""
        self._queues = {
            run.id: RunQueue(run, account_id, policy, journal, claims)
            for run in runs
            if is_served(run) or run.state is RunState.CANCELLED
        }
        """A cancelled run sends nothing more, but what was on its way then is seen off."""
        for run_id in self._queues.keys() & set(begun):
            self._queues[run_id].begun = True
        for run_id in self._queues.keys() & pages.keys():
            self._queues[run_id].take(pages[run_id])
        self._turn = len(served)
        for turn, run_id in enumerate(served, start=1):
            if run_id in self._queues:
                self._queues[run_id].served = turn

    def in_turn(self, now: Instant) -> list[RunQueue]:
        """The queues in the order in which they may send next."""
        queues = list(self._queues.values())
        if len(queues) > 1:
            queues.sort(key=lambda queue: _rank(queue, now))
        return queues

    def awake(self, now: Instant, elsewhere: int) -> tuple[list[RunQueue], Instant | None]:
        """The queues that have to be looked at, in the order in which they may send next; and when
        the first of the others falls due. An account may have many runs that wait for their day,
        and is asked for every message."""
        awake, wake_at = [], None
        for queue in self._queues.values():
            until_at = queue.asleep_until(now, elsewhere)
            if until_at is None:
                awake.append(queue)
            elif wake_at is None or until_at < wake_at:
                wake_at = until_at
        if len(awake) > 1:
            awake.sort(key=lambda queue: _rank(queue, now))
        return awake, wake_at

    @property
    def next_up(self) -> tuple[Delivery, Content] | None:
        """What goes next, most likely: known where there is one run only."""
        if len(self._queues) != 1:
            return None
        (queue,) = self._queues.values()
        return queue.next_up

    def served(self, queue: RunQueue) -> None:
        self._turn += 1
        queue.served = self._turn
        queue.begun = True

    @property
    def run_ids(self) -> frozenset[int]:
        return frozenset(self._queues)

    def order(self) -> list[int]:
        """The runs that had a turn, the latest last."""
        had = [queue for queue in self._queues.values() if queue.served]
        return [queue.run.id for queue in sorted(had, key=lambda queue: queue.served)]

    def queue_of(self, run_id: int) -> RunQueue | None:
        return self._queues.get(run_id)

    def expect(self, run_id: int, due_at: Instant) -> None:
        """A delivery of that run will fall due then, if the run is still served from here."""
        queue = self._queues.get(run_id)
        if queue is not None:
            queue.expect(due_at)

    def drop(self, run_id: int) -> None:
        self._queues.pop(run_id, None)

    def wake_at(self) -> Instant | None:
        """When the next delivery falls due, over all runs."""
        due = [q.next_due_at for q in self._queues.values() if q.next_due_at is not None]
        return min(due, default=None)


def reserving(ask: Ask, unsent_parts: int) -> Ask:
    """The same ask, needing room also for the parts that started deliveries have yet to send."""
    return ask._replace(parts=ask.parts + unsent_parts) if unsent_parts else ask


def _rank(queue: RunQueue, now: Instant) -> tuple[Rank, int]:
    return rank_of(queue.run, now, begun=queue.begun), queue.served
