"""The plan: the pacer that sends, run in virtual time, so that the end is known beforehand.

Pure. It is given what lanes would find (limits, usage, what waits in which order) and does what
they would do: the same turns between runs, the same stepping aside, the same gates. What providers
will answer, and how long they take over it, nobody knows: everything is taken to be accepted, and
to take ``latency_us``. Where everything comes from, and what becomes of it, is the engine's affair.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence

from paceline.core.instants import DAY, Instant
from paceline.core.slots import Layout, Never, Queue, Rank, Seat, Slot, Want
from paceline.core.virtual_lane import CONCURRENCY, Lane
from paceline.core.virtual_line import STEP, Line

__all__ = [
    "CONCURRENCY",
    "LONGEST_US",
    "STEP",
    "Layout",
    "Never",
    "Queue",
    "Rank",
    "Seat",
    "Slot",
    "Want",
    "lay_out",
]

LONGEST_US = 20 * 365 * DAY
"""No plan reaches further; nobody waits for a message that long."""


def lay_out(
    seats: Sequence[Seat],
    queues: Iterable[Queue],
    start_at: Instant,
    rng: random.Random,
    *,
    latency_us: int = 0,
    promised: Mapping[str, Sequence[Instant]] | None = None,
) -> Layout:
    """Play every lane from ``start_at`` on, in the order of time, until nothing is left.

    ``promised`` is when people will be written to by others, by their names: they keep those slots,
    and whoever minds how often a person is written to goes around them.
    """
    lines = list(_lines(queues))
    served_by: dict[int, list[Line]] = {}
    for line in lines:
        for account_id in line.queue.accounts:
            served_by.setdefault(account_id, []).append(line)
    slots: list[Slot] = []
    written: dict[str, list[Instant]] | None = None
    if any(seat.policy.per_recipient is not None for seat in seats):
        written = {name: sorted(instants) for name, instants in (promised or {}).items()}
    lanes = []
    for seat in seats:
        # A stream for each: one account more or less changes nothing for the others.
        draws = random.Random(rng.getrandbits(64))
        lane = Lane(
            seat,
            served_by.get(seat.account_id, ()),
            start_at=start_at,
            rng=draws,
            latency_us=latency_us,
            slots=slots,
            written=written,
        )
        lanes.append(lane)
    _play(lanes, start_at)
    slots.sort(key=_start)
    too_long = f"no room for it within {LONGEST_US // (365 * DAY)} years"
    return Layout(slots, [never for line in lines for never in line.end("horizon", too_long)])


def _lines(queues: Iterable[Queue]) -> Iterator[Line]:
    """A line for each queue. What an account has to itself of a run that it shares as well lies in
    the line that it shares: there is one order over both."""
    known = list(queues)
    homes: dict[tuple[int, int], Queue] = {}
    for queue in sorted(known, key=lambda queue: -len(queue.accounts)):
        for account_id in queue.accounts:
            homes.setdefault((queue.run_id, account_id), queue)
    bound: dict[int, list[Queue]] = {}
    for queue in known:
        home = homes[queue.run_id, queue.accounts[0]] if queue.accounts else queue
        bound.setdefault(id(home), [])
        if home is not queue:
            bound[id(home)].append(queue)
    return (Line(queue, bound[id(queue)]) for queue in known if id(queue) in bound)


def _play(lanes: Sequence[Lane], start_at: Instant) -> None:
    last_at = start_at + LONGEST_US
    # Lanes that may go at the same instant take turns.
    turn = len(lanes)
    waiting = [(start_at, number, lane) for number, lane in enumerate(lanes)]
    while waiting:
        now, _, lane = waiting[0]
        wake_at = lane.step(now)
        if wake_at is None or wake_at > last_at:
            lane.end()
            heapq.heappop(waiting)
        else:
            turn += 1
            heapq.heapreplace(waiting, (wake_at, turn, lane))


def _start(slot: Slot) -> Instant:
    return slot.at
