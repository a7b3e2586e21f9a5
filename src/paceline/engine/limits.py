"""Limits checked over what was sent and what is planned, and plans put right where they offend.

Everything here is looked at beside the lanes and never instead of them: whatever a plan says, every
limit is asked again before each message. Reading is done on a snapshot; what is written afterwards
only says when deliveries are due.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Literal, NamedTuple

from paceline.core import together
from paceline.core.calendar import day_of, week_start
from paceline.core.instants import DAY, Instant
from paceline.core.limits import Booked, Breach
from paceline.core.rehousing import Place
from paceline.core.relocating import Relocation
from paceline.core.repairing import repaired
from paceline.core.slots import Never
from paceline.core.states import DeliveryState
from paceline.core.takers import Common
from paceline.core.together import Crowd
from paceline.engine import launching
from paceline.engine.booking import SLACK_US, all_booked
from paceline.engine.ground import Ground, as_they_stand, gather
from paceline.engine.memory import policy_of
from paceline.engine.ports import Account, Store, Tx
from paceline.engine.ports.pools import NOBODY
from paceline.engine.ports.timetable import Later
from paceline.engine.verify import Offence, judge_account

MOST_LAID_ANEW = 20_000
"""How many waiting deliveries a command lays out anew in passing."""

MOVED = "moved by limits fix"
WAITING = (DeliveryState.PLANNED, DeliveryState.READY)


@dataclass(frozen=True, slots=True)
class Finding:
    """What went, or is planned to go, against one limit of one account, or of all accounts of a
    pool together, on one day."""

    account: str
    """Empty where it is nobody's."""
    when: Literal["past", "planned"]
    day: date
    rule: str
    action: str
    count: int
    """For a cap, all that is used and planned; else those that offend."""
    cap: int | None
    offending: int
    """How many messages are one too many, too early, too late or too close."""
    text: str
    deliveries: tuple[int, ...] = ()
    """Of what is planned: those that offend."""
    pool: str = ""
    """The campaign whose accounts share it, where it is nobody's."""
    accounts: tuple[str, ...] = ()
    """Those accounts."""


class Move(NamedTuple):
    """A planned delivery that offends, and where it goes instead."""

    delivery_id: int
    from_at: Instant
    to_at: Instant
    why: str
    follows: bool = False
    """Whether it waits for another one to be sent: then only its planned minute changes."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What is to be done, or was, for one account, or for what the accounts of a pool share."""

    account: str
    """Empty where it is nobody's."""
    zone: str
    moves: tuple[Move, ...]
    nevers: tuple[Never, ...]
    """What offends and has no legal slot, with the reason."""
    pool: str = ""
    """The campaign whose accounts share it, where it is nobody's."""


# ---------------------------------------------------------------------- check


def check(
    tx: Tx, now: Instant, accounts: Sequence[Account] | None = None, days: int = 30
) -> list[Finding]:
    """What these accounts, or all, have done against their limits in the last days, and what they
    are planned to do; by account and day."""
    chosen = tx.accounts.list() if accounts is None else accounts
    found = [one for account in chosen for one in _past(tx, account, now, days)]
    found += planned(tx, now, chosen)
    return sorted(found, key=_order)


def _order(one: Finding) -> tuple[object, ...]:
    """Accounts first, and then what they share."""
    return bool(one.pool), one.account, one.pool, one.day, one.when, one.rule, one.action


def planned(tx: Tx, now: Instant, accounts: Sequence[Account]) -> list[Finding]:
    """What is planned against a limit on these accounts and in their pools; what today's ledger has
    used is counted."""
    table = _Table(gather(tx, [account.id for account in accounts], now, not_before=as_they_stand))
    crowd = table.crowd(moving=False)
    found = []
    for account in accounts:
        board = crowd.boards[account.id]
        for breach in board.breaches():
            text = breach.text(board.seat.policy)
            found.append(replace(_as_finding(breach, text), account=account.name))
    shared, wanted = crowd.breaches(), {account.id for account in accounts}
    for run_id, pool in table.pools.items():
        names = tuple(table.ground.names[number] for number in pool)
        campaign = table.ground.runs[run_id].campaign
        for breach in shared.get(run_id, ()) if wanted.intersection(pool) else ():
            text = together.text_of(breach, crowd.boards[pool[0]].seat.policy)
            finding = _as_finding(breach, text)
            found.append(replace(finding, pool=campaign, accounts=names))
    return found


def _as_finding(breach: Breach, text: str) -> Finding:
    return Finding(
        account="",
        when="planned",
        day=breach.day,
        rule=breach.rule,
        action=breach.action,
        count=breach.count,
        cap=breach.cap,
        offending=len(breach.keys),
        text=text,
        deliveries=breach.keys,
    )


def _past(tx: Tx, account: Account, now: Instant, days: int) -> list[Finding]:
    """The ledger's own violations. It is read from the week before on, because a cap counts from
    its Monday, and a delivery may have begun the day before."""
    zone = policy_of(account).day_zone
    first_day = day_of(now, zone) - timedelta(days=days)
    since_at = week_start(now - days * DAY, zone) - DAY
    groups: dict[tuple[date, str, str], list[Offence]] = {}
    for violation in judge_account(tx, account, since_at):
        offence = violation.offence
        if offence is None or (day := day_of(offence.at, offence.zone)) < first_day:
            continue
        if offence.rule == "weekly":
            day -= timedelta(days=day.weekday())
        groups.setdefault((day, offence.rule, offence.action), []).append(offence)
    return [
        _as_past(account.name, day, rule, action, offences)
        for (day, rule, action), offences in groups.items()
    ]


def _as_past(
    account: str, day: date, rule: str, action: str, offences: Sequence[Offence]
) -> Finding:
    worst = max(offences, key=lambda offence: offence.count)
    capped = worst.cap is not None
    return Finding(
        account=account,
        when="past",
        day=day,
        rule=rule,
        action=action,
        count=worst.count if capped else len(offences),
        cap=worst.cap,
        offending=len(offences),
        text=_PAST[rule],
    )


_PAST = {
    "daily": "sent beyond the day's cap",
    "weekly": "sent beyond the week's cap",
    "hours": "sent outside business hours",
    "window": "sent outside its campaign's window",
    "gap": "sent too close to the one before",
}


# ---------------------------------------------------------------------- fix


def fix(
    store: Store, now: Instant, accounts: Sequence[Account] | None = None, *, dry_run: bool = False
) -> list[Repair]:
    """Give what is planned against a limit its next legal slot; nothing else moves, but for what
    follows it."""
    with store.read() as tx:
        chosen = tx.accounts.list() if accounts is None else accounts
        ground = gather(tx, [account.id for account in chosen], now, not_before=as_they_stand)
    table = _Table(ground)
    crowd = table.crowd(moving=True)
    wanted = {account.id for account in chosen}
    # The same draws every time: what a dry run has said is what is done.
    draws = {number: random.Random(name) for number, name in ground.names.items()}
    found = repaired(crowd, wanted, draws)
    repairs = []
    for account in chosen:
        repair = table.own_repair(account, crowd, found)
        if repair.moves or repair.nevers:
            repairs.append(repair)
        if repair.moves and not dry_run:
            # One account at a time: whoever writes timetables holds one lane only.
            with store.write() as tx:
                _write(tx, account.id, repair.moves, now)
    for repair in table.pool_repairs(crowd, found):
        if repair.moves or repair.nevers:
            repairs.append(repair)
        if repair.moves and not dry_run:
            with store.write() as tx:
                _write_pooled(tx, repair.moves)
    return repairs


def _write(tx: Tx, account_id: int, moves: Iterable[Move], now: Instant) -> None:
    by_reason: dict[str, list[tuple[int, Instant]]] = {}
    for move in moves:
        if not move.follows:
            by_reason.setdefault(move.why, []).append((move.delivery_id, move.to_at))
    for why, slots in by_reason.items():
        tx.timetable.lay(sorted(slots), f"{MOVED}: {why}")
    _expect(tx, moves)
    # Somebody may have put one of them off since the snapshot: then it is due earlier now.
    tx.lanes.touch(account_id, now)


def _write_pooled(tx: Tx, moves: Iterable[Move]) -> None:
    """Only where nobody has moved or taken it since; so nobody has to be woken for it."""
    tx.timetable.put_off_pooled(
        Later(move.delivery_id, move.from_at, move.to_at, f"{MOVED}: {move.why}")
        for move in sorted(moves)
        if not move.follows
    )
    _expect(tx, moves)


def _expect(tx: Tx, moves: Iterable[Move]) -> None:
    tx.timetable.expect(sorted((move.delivery_id, move.to_at) for move in moves if move.follows))


# ---------------------------------------------------------------------- laying anew


class LaidAnew(NamedTuple):
    """What came of it when the ground had changed."""

    waiting: int
    moved: int | None
    """None where there were too many to lay them out in passing."""


def lay_anew(store: Store, account_ids: Sequence[int], now: Instant, reason: str) -> LaidAnew:
    """Lay out anew what waits on these accounts, unless that is too much to be done in passing."""
    with store.read() as tx:
        waiting = _waiting(tx, account_ids)
    if not 0 < waiting <= MOST_LAID_ANEW:
        return LaidAnew(waiting, None if waiting else 0)
    return LaidAnew(waiting, launching.lay_anew(store, account_ids, now, reason))


def accounts_of(tx: Tx, campaign_name: str) -> list[int]:
    """The accounts in service that a campaign was laid out on."""
    campaign = tx.campaigns.find(campaign_name)
    if campaign is None:
        return []
    run_ids = [run.id for run in tx.runs.of_campaign(campaign.id)]
    owners = {owner for run_id in run_ids for owner in tx.runs.accounts(run_id)}
    owners |= {owner for pool in tx.waiting.pools(run_ids).values() for owner in pool}
    known = tx.accounts.several(sorted(owners - {NOBODY}))
    return sorted(number for number, account in known.items() if account.removed_at is None)


def _waiting(tx: Tx, account_ids: Sequence[int]) -> int:
    """What waits in the runs of these accounts, as the counters have it."""
    owners = {*account_ids, NOBODY}
    return sum(
        states.get(state, 0)
        for run in tx.waiting.runs(account_ids)
        if run.kind != "direct"
        for owner, states in tx.runs.accounts(run.id).items()
        if owner in owners
        for state in WAITING
    )


# ---------------------------------------------------------------------- both


class _Table:
    """The accounts as they stand with what is booked on each, and what they share."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.pools: dict[int, tuple[int, ...]] = {}
        """By run, the accounts that share it."""
        self._own: dict[int, list[Booked]] = {number: [] for number in ground.seats}
        self._shared: dict[int, list[Common]] = {}
        for queue, one in all_booked(ground):
            if len(queue.accounts) > 1:
                self.pools[queue.run_id] = queue.accounts
                self._shared.setdefault(queue.run_id, []).append(Common(one, queue.accounts))
            elif queue.accounts:
                self._own[queue.accounts[0]].append(one)

    def crowd(self, *, moving: bool) -> Crowd:
        places = [Place(seat, self._own[number]) for number, seat in self.ground.seats.items()]
        shared = [common for commons in self._shared.values() for common in commons]
        return Crowd(places, shared, SLACK_US, moving=moving)

    def own_repair(self, account: Account, crowd: Crowd, found: Relocation) -> Repair:
        board = crowd.boards[account.id]
        policy = board.seat.policy
        whys = {key: b.text(policy) for b in board.breaches() for key in b.keys}
        moves, nevers = _moves(self._own[account.id], whys, found)
        return Repair(account.name, policy.day_zone, moves, nevers)

    def pool_repairs(self, crowd: Crowd, found: Relocation) -> Iterator[Repair]:
        shared = crowd.breaches()
        for run_id, pool in self.pools.items():
            policy = crowd.boards[pool[0]].seat.policy
            breaches = shared.get(run_id, ())
            whys = {key: together.text_of(b, policy) for b in breaches for key in b.keys}
            moves, nevers = _moves((c.one for c in self._shared[run_id]), whys, found)
            campaign = self.ground.runs[run_id].campaign
            yield Repair("", policy.day_zone, moves, nevers, campaign)


def _moves(
    bookings: Iterable[Booked], whys: Mapping[int, str], found: Relocation
) -> tuple[tuple[Move, ...], tuple[Never, ...]]:
    moves = [
        Move(one.key, one.ask.not_before_at, found.slots[one.key], whys[one.key], one.depth > 0)
        for one in bookings
        if one.key in found.slots
    ]
    moves.sort(key=lambda move: (move.to_at, move.delivery_id))
    return tuple(moves), tuple(never for never in found.nevers if never.key in whys)
