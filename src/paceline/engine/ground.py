"""The ground a plan stands on: accounts as they are now, and what already waits on them.

Read in one transaction, in a number of statements that grows with the accounts and the runs, never
with the deliveries. How it is laid out is ``core/plan.py``; what is made of it, ``planning.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from paceline.core.instants import Instant
from paceline.core.plan import Queue, Seat, Want
from paceline.core.policy import Policy
from paceline.engine.campaign_spec import Timing
from paceline.engine.memory import take_snapshot
from paceline.engine.ports import Run, Tx, WaitingRow
from paceline.engine.reading import Distances, Reading
from paceline.engine.recipients import Recipients
from paceline.engine.turns import planned_rank

NotBefore = Callable[[WaitingRow, Run], Instant]
Changed = Callable[[str, Policy], Policy]


@dataclass(frozen=True, slots=True)
class Draft:
    """A run as it would be if it were launched now."""

    run: Run
    expire_after_us: int | None = None
    """From its start on; written down with every delivery at the launch."""


@dataclass(slots=True)
class Ground:
    """Seats and queues, ready to be laid out."""

    now: Instant
    seats: dict[int, Seat] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)
    queues: list[Queue] = field(default_factory=list)
    until_at: Instant | None = None
    """What is due later was left out; None where nothing was."""
    targets: dict[int, str] = field(default_factory=dict)
    """Whom the stored deliveries are for, by their numbers."""
    people: dict[str, int | None] = field(default_factory=dict)
    """By target, whose it is, where that is known."""
    in_line: set[int] = field(default_factory=set)
    """Those that a gate has put off and that have no slot of their own."""

    @property
    def following(self) -> set[int]:
        """Those that wait for another one to be sent, and then for their minute."""
        wants = (want for queue in self.queues for want in queue.wants)
        return {want.key for want in wants if want.follows is not None}

    def sit(self, seat: Seat, name: str) -> None:
        self.seats[seat.account_id] = seat
        self.names[seat.account_id] = name


def gather(
    tx: Tx,
    account_ids: Iterable[int],
    now: Instant,
    *,
    not_before: NotBefore,
    extra: Sequence[Draft] = (),
    changed: Changed = lambda _, policy: policy,
    most: int | None = None,
) -> Ground:
    """These accounts, whoever shares a pool with them, and all that waits on any of them.

    ``extra`` are runs that do not run yet. ``changed`` is what is to be tried: it is given an
    account's name and limits. Where more than ``most`` wait, only what is due first is read, about
    so many.
    """
    ground = Ground(now)
    drafts = {draft.run.id: draft.run for draft in extra}
    wanted = set(account_ids) | set(tx.waiting.accounts(drafts))
    pools: Mapping[int, tuple[int, ...]] = {}
    while wanted - ground.seats.keys():
        for account_id in sorted(wanted - ground.seats.keys()):
            _seat(tx, ground, account_id, changed)
        ground.runs = {run.id: run for run in tx.waiting.runs(ground.seats)} | drafts
        pools = tx.waiting.pools(run_id for run_id, run in ground.runs.items() if run.pooled)
        wanted |= {account_id for pool in pools.values() for account_id in pool}
    if most is not None:
        ground.until_at = tx.waiting.nth_due_at(ground.runs, most)
    expire_us = {draft.run.id: draft.expire_after_us for draft in extra}
    _add_queues(tx, ground, pools, not_before, expire_us)
    return ground


def _seat(tx: Tx, ground: Ground, account_id: int, changed: Changed) -> None:
    seat, name = seat_of(tx, account_id, ground.now)
    ground.sit(replace(seat, policy=changed(name, seat.policy)), name)


def seat_of(tx: Tx, account_id: int, now: Instant) -> tuple[Seat, str]:
    """An account as its lane would find it now, and its name."""
    snapshot = take_snapshot(tx, account_id, now)
    seat = Seat(account_id, snapshot.policy, snapshot.standing, snapshot.usage())
    return seat, snapshot.restored.account.name


def _add_queues(
    tx: Tx,
    ground: Ground,
    pools: Mapping[int, tuple[int, ...]],
    not_before: NotBefore,
    expire_us: Mapping[int, int | None],
) -> None:
    lines: dict[tuple[int, int | None], list[WaitingRow]] = {}
    for row in tx.waiting.deliveries(ground.runs, ground.until_at):
        if row.account_id is None or row.account_id in ground.seats:
            lines.setdefault((row.run_id, row.account_id), []).append(row)
            ground.targets[row.id] = row.target
            if row.in_line:
                ground.in_line.add(row.id)
            if row.contact_id is not None or row.target not in ground.people:
                ground.people[row.target] = row.contact_id
    recipients = Recipients(tx, ground.seats.values(), ground.now, ground.people)
    by_turns = isinstance(not_before, AsTheyMight)
    reading = Reading(tx, ground.now, recipients, ground.targets, by_turns=by_turns)
    for (run_id, account_id), rows in lines.items():
        run = ground.runs[run_id]
        accounts = pools.get(run_id, ()) if account_id is None else (account_id,)
        wants: list[Want] = []
        for row in rows:
            at, expires_at = not_before(row, run), row.expires_at
            after_us = expire_us.get(run_id)
            if after_us is not None and row.step == 1:
                expires_at = max(at, ground.now) + after_us
            wants.append(reading.want(row, run, accounts, at, expires_at))
        ground.queues.append(Queue(run_id, planned_rank(run, ground.now), wants, accounts))


def as_they_stand(row: WaitingRow, run: Run) -> Instant:
    """What a lane goes by: the instant at which each is due."""
    return row.scheduled_at if row.due_at is None else row.due_at


class AsTheyMight:
    """What a new plan goes by: an instant that only the last plan chose may be chosen anew.

    What was tried before, and what somebody sent by hand, keeps its own; a later step keeps its
    distance to the one before.
    """

    def __init__(self, tx: Tx, now: Instant) -> None:
        self._tx = tx
        self._now = now
        self._starts: dict[int, list[Instant]] = {}
        self._distances = Distances(tx)

    def __call__(self, row: WaitingRow, run: Run) -> Instant:
        if row.attempts or run.kind == "direct":
            return as_they_stand(row, run)
        if row.step > 1:
            if row.planned or row.before_sent_at is None:
                return 0 if row.planned else row.scheduled_at
            return row.before_sent_at + self._distances.before(row.step, run)
        starts = self._starts.get(run.id)
        if starts is None:
            starts = self._starts[run.id] = self._starts_of(run)
        return starts[min(row.position, len(starts) - 1)]

    def _starts_of(self, run: Run) -> list[Instant]:
        """From its launch on; where nothing is spread over days they are all one."""
        campaign = self._tx.campaigns.get(run.campaign_id)
        timing = Timing.stored(campaign.settings)
        steps = 1 + len(campaign.settings.get("steps", []))
        count = 1 if timing.spread_days == 1 else run.total // steps
        return list(timing.starts(run.started_at or self._now, max(1, count)))
