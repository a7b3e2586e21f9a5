"""A bare loop over the engine's own statements: what the database part alone can do.

One thread, no event loop, no lanes, no pacer, no provider. As a program it prints how long it took
to read, intend and settle every waiting delivery, in groups of a given size.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench import scenes
from bench.serving import quiet_end
from paceline.core import usage as usages
from paceline.core.instants import HOUR, SECOND
from paceline.core.model import Ask
from paceline.core.outcome import accepted
from paceline.core.policy import Policy
from paceline.core.states import DeliveryState
from paceline.core.usage import Usage
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Account, Delivery, Intent, LaneUnit, Lease, Settlement, Store
from paceline.engine.run_queue import LARGEST_PAGE


@dataclass(slots=True)
class _Lane:
    account: Account
    lease: Lease
    revision: int
    page: deque[Delivery] = field(default_factory=deque)
    sending: Delivery | None = None
    intent_at: int = 0
    dry: bool = False


class BareLoop:
    """Every lane of one store, served in turn."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._clock = SystemClock()
        self._usage = _typical_usage(self._clock.now())
        with store.write() as tx:
            self._run_id = scenes.only_run(tx).id
            process = tx.processes.join("bare", HOUR)
            self._lanes = []
            for account in tx.accounts.list():
                row = tx.lanes.take(account.id, process.id)
                assert row is not None, f"the lane of {account.name} is not free"
                lease = Lease(account.id, process.id, row.generation)
                self._lanes.append(_Lane(account, lease, row.revision))

    def run(self, group: int) -> int:
        """Settle everything; how many deliveries that were."""
        settled = 0
        for lanes in self._groups(group):
            units = [self._unit(lane) for lane in lanes]
            with self._store.write(at_once=True) as tx:  # as the engine's own groups are
                results = tx.path.apply(units)
            for unit, result in zip(units, results, strict=True):
                if not result.held or not all(result.settled):
                    raise AssertionError(f"refused: {unit}, {result}")
                if result.intended is not (unit.intent is not None):
                    raise AssertionError(f"refused: {unit}, {result}")
                settled += len(unit.settlements)
        return settled

    def _groups(self, size: int) -> Iterator[list[_Lane]]:
        """The lanes that still have something to write, so many at a time, in turn for ever."""
        waiting = deque(self._lanes)
        while waiting:
            group: list[_Lane] = []
            while waiting and len(group) < size:
                lane = waiting.popleft()
                self._read_ahead(lane)
                if lane.page or lane.sending is not None:
                    group.append(lane)
            if group:
                yield group
                waiting.extend(group)

    def _read_ahead(self, lane: _Lane) -> None:
        if lane.page or lane.dry:
            return
        now = self._clock.now()
        with self._store.read() as tx:
            lane.page = deque(tx.path.due(lane.account.id, self._run_id, now, LARGEST_PAGE))
        lane.dry = not lane.page

    def _unit(self, lane: _Lane) -> LaneUnit:
        now = self._clock.now()
        settlements = (self._settlement(lane, lane.sending, now),) if lane.sending else ()
        lane.sending = lane.page.popleft() if lane.page else None
        lane.intent_at = now
        return LaneUnit(
            lease=lane.lease,
            revision=lane.revision,
            usage=self._usage,
            settlements=settlements,
            intent=self._intent(lane, lane.sending, now) if lane.sending else None,
        )

    def _intent(self, lane: _Lane, delivery: Delivery, now: int) -> Intent:
        return Intent(
            delivery_id=delivery.id,
            run_id=delivery.run_id,
            part=0,
            attempt=delivery.attempts + 1,
            action=delivery.action,
            at=now,
            policy_id=lane.account.policy_id,
        )

    def _settlement(self, lane: _Lane, delivery: Delivery, now: int) -> Settlement:
        return Settlement(
            delivery_id=delivery.id,
            run_id=delivery.run_id,
            part=0,
            attempt=delivery.attempts + 1,
            action=delivery.action,
            intent_at=lane.intent_at,
            started_at=lane.intent_at,
            settled_at=now,
            # As long as the ids that the sandbox gives.
            outcome=accepted(f"sandbox-{delivery.id:020}"),
            policy_id=lane.account.policy_id,
            state=DeliveryState.SENT,
            parts_done=1,
            latency_us=now - lane.intent_at,
        )


def _typical_usage(now: int) -> str:
    """A checkpoint such as a lane without limits writes."""
    ask = Ask(action="message", parts=1, run_id=1)
    spent = usages.spend(Usage(), Policy(), ask, now, random.Random(1))
    settled = usages.settle(spent, ask, accepted("x"), now, 1, limit=20)
    return json.dumps(usages.encode(settled))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("count", type=int)
    parser.add_argument("group", type=int)
    asked = parser.parse_args()
    quiet_end()
    clock = SystemClock()
    with scenes.opened(asked.url) as store:
        loop = BareLoop(store)
        began_us = clock.monotonic_us()
        settled = loop.run(asked.group)
        seconds = (clock.monotonic_us() - began_us) / SECOND
        if settled != asked.count:
            raise AssertionError(f"{asked.count} were to be settled, {settled} were")
        scenes.check_sent(store, asked.count)
    json.dump({"count": settled, "seconds": seconds}, sys.stdout)


if __name__ == "__main__":
    main()
