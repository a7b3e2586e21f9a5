"""Putting off: what a shut gate has left behind is given slots of its own, beside what is booked.

A lane asks for it when hours, a window or a cap shut, and has time until they open. What waits on
its account is read at once, and the slots are worked out on the thread that reads, so the loop goes
on meanwhile. They are written a few thousand at a time, each only where nobody has moved the
delivery since. Whatever gets lost on the way is overdue as before, and is found by the next look.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import structlog

from paceline.core.instants import MINUTE, Instant, iso
from paceline.core.limits import Booked
from paceline.core.model import Ask, Verdict, Wait
from paceline.core.pacer import CAP_GATES, HORIZON, Pacer
from paceline.core.relocating import Relocation, rehoused
from paceline.core.slots import Seat, Want
from paceline.engine import lane_writes
from paceline.engine.booking import SLACK_US, booked, has_minutes, is_void
from paceline.engine.expecting import expected_on
from paceline.engine.memory import LaneMemory, standing_of
from paceline.engine.ports import Journal, Lease, Run, Tx
from paceline.engine.ports.timetable import IN_LINE_WORDS, Later
from paceline.engine.reading import Reading
from paceline.engine.recipients import Recipients
from paceline.engine.turns import planned_rank

CALENDAR_GATES = CAP_GATES | {"hours", "window"}
"""Gates that stay shut for hours or days, for everything of its kind."""

PUT_OFF_US = 2 * MINUTE
"""A gate that opens sooner moves nothing: those that it keeps waiting stay where they are."""

MOST_BOOKED = 20_000
"""Beside more than this nobody looks for slots in passing: what is overdue stays as it is, and goes
in its order when the gate opens. ``limits fix`` gives it slots."""

WRITTEN_AT_ONCE = 2_000
"""Whoever writes next waits for no more than this."""

log = structlog.get_logger("paceline.lane")


class PutOff(NamedTuple):
    """What of one run can not go before the verdict says, and where it goes instead."""

    run_id: int
    verdict: Wait
    moves: list[Later]
    ask: Ask
    """What one of them asks for."""


def by_calendar(verdict: Verdict, now: Instant) -> Instant | None:
    """Until when a gate of the calendar shuts everything out, if that is worth moving anything."""
    if not isinstance(verdict, Wait) or verdict.gate not in CALENDAR_GATES:
        return None
    until_at = verdict.until_at
    return None if until_at is None or until_at - now < PUT_OFF_US else until_at


async def put_off(journal: Journal, lease: Lease, memory: LaneMemory, now: Instant) -> None:
    """Move what a gate shuts out now, on the lane's whole account, and write the reason on it."""
    account = memory.account
    seat = Seat(account.id, memory.policy, standing_of(account), memory.usage)
    for run_id, verdict, moves, ask in await journal.read(lambda tx: work_out(tx, seat, now)):
        moved = 0
        for start in range(0, len(moves), WRITTEN_AT_ONCE):
            some = moves[start : start + WRITTEN_AT_ONCE]
            write = partial(_write, account_id=account.id, moves=some)
            moved += await journal.write(lane_writes.held(lease, write))
        queue = memory.agenda.queue_of(run_id)
        if queue is not None:
            queue.put_off(verdict, ask)
        log.info(
            "put off",
            account=account.name,
            run=run_id,
            deliveries=moved,
            first=iso(min(move.at for move in moves)),
            last=iso(max(move.at for move in moves)),
            why=verdict.why,
        )


def _write(tx: Tx, account_id: int, moves: Sequence[Later]) -> int:
    return tx.timetable.put_off(account_id, moves)


def work_out(tx: Tx, seat: Seat, now: Instant) -> list[PutOff]:
    """What of each run is shut out, with a slot of its own for each that is planned at all."""
    waits = waiting_on(tx, seat.account_id, now)
    shut = [found for run in waits.runs for found in _shut_out(seat, waits, run, now)]
    moving = {want.key for found in shut if found.planned for want in found.wants}
    others = [
        one
        for run in waits.runs
        for want in waits.of(run)
        if want.key not in moving and want.key not in waits.in_line
        if (one := booked(want, now, by_hand=not has_minutes(run))) is not None
    ]
    due = {want.key: want.ask.not_before_at for run in waits.runs for want in waits.of(run)}
    others += expected_on(tx, seat.account_id, waits.runs, due, moving, now=now, most=MOST_BOOKED)
    # Another draw every time, and the same one in the same world.
    rng = random.Random(f"{seat.account_id}/{now}")
    homeless = [Booked(want.key, found.until_at, want.ask) for found, want in in_turn(shut, now)]
    homes = rehoused(seat, others, homeless, rng, slack_us=SLACK_US)
    return moves_of(shut, homes, now)


def moves_of(shut: Iterable[Shut], homes: Relocation, now: Instant) -> list[PutOff]:
    """Where everything goes that is shut out, by run."""
    last_at = max(homes.slots.values(), default=now)
    beyond = {never.key: last_at for never in homes.nevers if never.gate == HORIZON}
    return [
        PutOff(
            found.run.id,
            found.verdict,
            [_later(found, want, homes.slots.get(want.key), beyond) for want in found.wants],
            found.wants[0].ask,
        )
        for found in shut
    ]


class Waits(NamedTuple):
    """What is ready on an account."""

    runs: list[Run]
    wants: dict[int, list[Want]]
    """By run, in the order in which they fall due."""
    in_line: set[int]

    def of(self, run: Run) -> list[Want]:
        return self.wants.get(run.id, [])


class Shut(NamedTuple):
    """Those of a run that are counted the same, and what they wait for."""

    run: Run
    verdict: Wait
    until_at: Instant
    wants: list[Want]

    @property
    def planned(self) -> bool:
        """Whether they have minutes. What has none is moved to where the gate opens, out of the way
        of what need not wait, and has its turn then."""
        return has_minutes(self.run)


def waiting_on(tx: Tx, account_id: int, now: Instant) -> Waits:
    """What is ready on an account."""
    return waiting_in(tx, tx.waiting.runs([account_id]), account_id, now)


def waiting_in(
    tx: Tx, some: Iterable[Run], account_id: int | None, now: Instant, first: int | None = None
) -> Waits:
    """The same of these runs only, or the ``first`` of them; without an account, what is nobody's.
    Where there is too much it is as if nothing was waiting."""
    runs = {run.id: run for run in some}
    rows = tx.waiting.due(runs, account_id, first or MOST_BOOKED + 1)
    if len(rows) > MOST_BOOKED:
        return Waits([], {}, set())
    # Who the recipients are, and what else they are sent, is asked before each message.
    reading = Reading(tx, now, Recipients(tx, (), now, {}), {})
    takers = () if account_id is None else (account_id,)
    wants: dict[int, list[Want]] = {}
    for row in rows:
        due_at = row.scheduled_at if row.due_at is None else row.due_at
        want = reading.want(row, runs[row.run_id], takers, due_at, row.expires_at)
        wants.setdefault(row.run_id, []).append(want)
    return Waits(list(runs.values()), wants, {row.id for row in rows if row.in_line})


def _shut_out(seat: Seat, waits: Waits, run: Run, now: Instant) -> Iterator[Shut]:
    """What of a run can not go as long as it waits for a gate, and that gate.

    What was tried before keeps its own instant, and what will only be skipped waits for nothing.
    """
    pacer = Pacer(seat.policy, seat.standing)
    for wants in alike(waits, run, now):
        verdict = pacer.verdict(now, seat.usage, plain(wants[0].ask))
        until_at = by_calendar(verdict, now)
        if until_at is None or not isinstance(verdict, Wait):
            continue
        late = [want for want in wants if want.ask.not_before_at < until_at]
        if late:
            yield Shut(run, verdict, until_at, late)


def alike(waits: Waits, run: Run, now: Instant) -> Iterable[list[Want]]:
    """What of a run may be moved, those together that are counted the same."""
    groups: dict[str, list[Want]] = {}
    for want in waits.of(run):
        if not (want.begun or is_void(want.ask, now)):
            groups.setdefault(want.ask.counted_as, []).append(want)
    return groups.values()


def plain(ask: Ask) -> Ask:
    """The same, without what is true of one delivery only and not of its run."""
    return ask._replace(
        not_before_at=0, expires_at=None, suppressed=False, recipient_hours=None, contacted=()
    )


def in_turn(shut: Iterable[Shut], now: Instant) -> Iterator[tuple[Shut, Want]]:
    """Who is given a slot before whom: runs of equal rank take turns, as they do in their lane."""
    turns = [
        (planned_rank(found.run, now), turn, found.run.id, found, want)
        for found in shut
        if found.planned
        for turn, want in enumerate(found.wants)
    ]
    turns.sort(key=lambda one: one[:3])
    for *_, found, want in turns:
        yield found, want


def _later(
    found: Shut, want: Want, slot_at: Instant | None, beyond: Mapping[int, Instant]
) -> Later:
    """What is planned and has no legal slot stands in line. If its time will be over before there
    is one, where the gate opens: then it is among the first to go, or its own end decides. If there
    is none as far as anybody looks, ``beyond`` all that have one."""
    why = found.verdict.why[:1].upper() + found.verdict.why[1:]
    was_at, ends_at = want.ask.not_before_at, want.ask.expires_at
    if slot_at is not None:
        return Later(want.key, was_at, slot_at, why)
    opens_at = max(found.until_at, beyond.get(want.key, 0))
    opens_at = opens_at if ends_at is None else min(opens_at, ends_at)
    return Later(want.key, was_at, opens_at, f"{why}{IN_LINE_WORDS}" if found.planned else why)
