"""The ground a plan stands on: accounts as they are now, and what already waits on them.

Read in one transaction, in a number of statements that grows with the accounts and the runs, never
with the deliveries. How it is laid out is ``core/plan.py``; what is made of it, ``planning.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from paceline.core.durations import parse_duration
from paceline.core.instants import Instant
from paceline.core.model import Ask, Content
from paceline.core.plan import Queue, Rank, Seat, Want
from paceline.core.policy import Policy
from paceline.engine.agenda import FAR, parsed_hours
from paceline.engine.campaign_spec import Timing
from paceline.engine.memory import take_snapshot
from paceline.engine.ports import Run, Tx, WaitingRow

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
    targets: dict[int, str] = field(default_factory=dict)
    """Whom the stored deliveries are for, by their numbers."""
    put_off: set[int] = field(default_factory=set)
    """Those that a gate has put off, and that stand in line."""

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
) -> Ground:
    """These accounts, whoever shares a pool with them, and all that waits on any of them.

    ``extra`` are runs that do not run yet. ``changed`` is what is to be tried: it is given an
    account's name and limits.
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
    expire_us = {draft.run.id: draft.expire_after_us for draft in extra}
    _add_queues(tx, ground, pools, not_before, expire_us)
    return ground


def _seat(tx: Tx, ground: Ground, account_id: int, changed: Changed) -> None:
    snapshot = take_snapshot(tx, account_id, ground.now)
    account = snapshot.restored.account
    policy = changed(account.name, snapshot.policy)
    ground.sit(Seat(account_id, policy, snapshot.standing, snapshot.usage()), account.name)


def _add_queues(
    tx: Tx,
    ground: Ground,
    pools: Mapping[int, tuple[int, ...]],
    not_before: NotBefore,
    expire_us: Mapping[int, int | None],
) -> None:
    lines: dict[tuple[int, int | None], list[WaitingRow]] = {}
    people: dict[str, int] = {}
    for row in tx.waiting.deliveries(ground.runs):
        if row.account_id is None or row.account_id in ground.seats:
            lines.setdefault((row.run_id, row.account_id), []).append(row)
            ground.targets[row.id] = row.target
            if row.put_off:
                ground.put_off.add(row.id)
            if row.contact_id is not None:
                people[row.target] = row.contact_id
    reading = _Reading(tx, ground, contacts_of(tx, ground, ground.targets.values(), people))
    for (run_id, account_id), rows in lines.items():
        run = ground.runs[run_id]
        accounts = pools.get(run_id, ()) if account_id is None else (account_id,)
        wants: list[Want] = []
        for row in rows:
            at, expires_at = not_before(row, run), row.expires_at
            after_us = expire_us.get(run_id)
            if after_us is not None and row.step == 1:
                expires_at = max(at, ground.now) + after_us
            wants.append(reading.want(row, run, at, expires_at))
        ground.queues.append(Queue(run_id, rank_of(run), wants, accounts))


def contacts_of(
    tx: Tx, ground: Ground, targets: Iterable[str], people: Mapping[str, int]
) -> Mapping[str, tuple[Instant, ...]]:
    """When people were written to lately, where some account minds how often that is; ``people``
    says whose a target is, where that is known."""
    frequencies = [
        seat.policy.per_recipient.per_us
        for seat in ground.seats.values()
        if seat.policy.per_recipient is not None
    ]
    if not frequencies:
        return {}
    return tx.deliveries.contacted(list(targets), ground.now - max(frequencies), people)


def rank_of(run: Run) -> Rank:
    """As the agenda has it."""
    return (run.kind != "direct", -run.priority, run.closes_at or FAR)


def person_of(target: str, contact_id: int | None) -> str:
    """Whom the limit per recipient is about: a person, however many addresses they have."""
    return target if contact_id is None else f"#{contact_id}"


class _Reading:
    """Rows read as what the pacer is asked. What most of a run ask for is the same value."""

    def __init__(
        self, tx: Tx, ground: Ground, contacted: Mapping[str, tuple[Instant, ...]]
    ) -> None:
        self._tx = tx
        self._ground = ground
        self._contacted = contacted
        self._asks: dict[tuple[object, ...], Ask] = {}
        self._parts: dict[tuple[int, int], int] = {}
        self._waits: dict[int, list[int]] = {}

    def want(
        self, row: WaitingRow, run: Run, not_before_at: Instant, expires_at: Instant | None
    ) -> Want:
        after_us = 0
        if row.planned and row.step > 1:
            after_us = self._after_us(run, row.step)
            if row.after_id not in self._ground.targets:
                # The one before is on its way, or was sent a moment ago.
                not_before_at = self._ground.now + after_us
        ask = self._ask(row, run, not_before_at, expires_at)
        person = person_of(row.target, row.contact_id)
        follows = row.after_id if row.planned else None
        return Want(row.id, ask, person, row.attempts > 0, follows, after_us)

    def _ask(
        self, row: WaitingRow, run: Run, not_before_at: Instant, expires_at: Instant | None
    ) -> Ask:
        instants = self._contacted.get(row.target, ())
        asked = (row.step, row.parts, row.parts_done, row.action, row.reply, row.suppressed)
        key = (run.id, not_before_at, expires_at, asked, row.recipient_hours, instants)
        ask = self._asks.get(key)
        if ask is None:
            hours = row.recipient_hours
            ask = self._asks[key] = Ask(
                action=row.action,
                parts=self._parts_of(row, run) - row.parts_done,
                run_id=run.id,
                reply=row.reply,
                not_before_at=not_before_at,
                expires_at=expires_at,
                suppressed=row.suppressed,
                window=parsed_hours(run.window) if run.window else None,
                opens_at=run.opens_at,
                closes_at=run.closes_at,
                recipient_hours=parsed_hours(hours) if hours else None,
                contacted=instants,
            )
        return ask

    def _parts_of(self, row: WaitingRow, run: Run) -> int:
        if row.parts is not None:
            return row.parts
        parts = self._parts.get((run.id, row.step))
        if parts is None:
            parts = len(Content.from_list(run.content, row.step).parts)
            self._parts[run.id, row.step] = parts
        return parts

    def _after_us(self, run: Run, step: int) -> int:
        waits = self._waits.get(run.id)
        if waits is None:
            written = self._tx.campaigns.get(run.campaign_id).settings.get("steps", [])
            waits = self._waits[run.id] = [parse_duration(text) for text in written]
        return waits[step - 2]


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

    def __call__(self, row: WaitingRow, run: Run) -> Instant:
        if row.attempts or run.kind == "direct":
            return as_they_stand(row, run)
        if row.step > 1:
            return 0 if row.planned else row.scheduled_at
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
