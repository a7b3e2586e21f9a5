"""Limits checked over what was sent and what is planned, and plans put right where they offend.

Everything here is looked at beside the lanes and never instead of them: whatever a plan says, every
limit is asked again before each message. Reading is done on a snapshot; what is written afterwards
only says when deliveries are due.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, NamedTuple

from paceline.core.calendar import day_of, week_start
from paceline.core.instants import DAY, Instant
from paceline.core.limits import Booked, Breach, breaches
from paceline.core.policy import Policy
from paceline.core.relocating import relocated
from paceline.core.slots import Never, Seat
from paceline.core.states import DeliveryState
from paceline.engine import launching
from paceline.engine.booking import SLACK_US, booked, has_minutes
from paceline.engine.ground import Ground, as_they_stand, gather
from paceline.engine.memory import policy_of
from paceline.engine.ports import Account, Store, Tx
from paceline.engine.ports.pools import NOBODY
from paceline.engine.verify import Offence, judge_account

MOST_LAID_ANEW = 20_000
"""How many waiting deliveries a command lays out anew in passing."""

WAITING = (DeliveryState.PLANNED, DeliveryState.READY)


@dataclass(frozen=True, slots=True)
class Finding:
    """What went, or is planned to go, against one limit of one account on one day."""

    account: str
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


class Move(NamedTuple):
    """A planned delivery that offends, and where it goes instead."""

    delivery_id: int
    from_at: Instant
    to_at: Instant
    why: str


@dataclass(frozen=True, slots=True)
class Repair:
    """What is to be done, or was, for one account."""

    account: str
    zone: str
    moves: tuple[Move, ...]
    nevers: tuple[Never, ...]
    """What offends and has no legal slot, with the reason."""


# ---------------------------------------------------------------------- check


def check(
    tx: Tx, now: Instant, accounts: Sequence[Account] | None = None, days: int = 30
) -> list[Finding]:
    """What these accounts, or all, have done against their limits in the last days, and what they
    are planned to do; by account and day."""
    chosen = tx.accounts.list() if accounts is None else accounts
    found = [one for account in chosen for one in _past(tx, account, now, days)]
    found += planned(tx, now, chosen)
    return sorted(found, key=lambda one: (one.account, one.day, one.when, one.rule, one.action))


def planned(tx: Tx, now: Instant, accounts: Sequence[Account]) -> list[Finding]:
    """What is planned against a limit; what today's ledger has used is counted."""
    ground, places = _ground(tx, now, accounts)
    return [
        _as_finding(breach, account.name, ground.seats[account.id].policy)
        for account in accounts
        for breach in breaches(ground.seats[account.id], places[account.id], slack_us=SLACK_US)
    ]


def _as_finding(breach: Breach, account: str, policy: Policy) -> Finding:
    return Finding(
        account=account,
        when="planned",
        day=breach.day,
        rule=breach.rule,
        action=breach.action,
        count=breach.count,
        cap=breach.cap,
        offending=len(breach.keys),
        text=breach.text(policy),
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
    """Give what is planned against a limit its next legal slot; nothing else moves."""
    with store.read() as tx:
        chosen = tx.accounts.list() if accounts is None else accounts
        ground, places = _ground(tx, now, chosen)
    repairs = []
    for account in chosen:
        seat = ground.seats[account.id]
        repair = _repair(account.name, seat, places[account.id])
        if repair.moves or repair.nevers:
            repairs.append(repair)
        if repair.moves and not dry_run:
            # One account at a time: whoever writes timetables holds one lane only.
            with store.write() as tx:
                _write(tx, account.id, repair.moves, now)
    return repairs


def _repair(account: str, seat: Seat, here: Sequence[Booked]) -> Repair:
    # The same draws every time: what a dry run has said is what is done.
    found = relocated(seat, here, random.Random(account), slack_us=SLACK_US)
    whys = {
        key: breach.text(seat.policy)
        for breach in breaches(seat, here, slack_us=SLACK_US)
        for key in breach.keys
    }
    moves = [
        Move(one.key, one.at, found.slots[one.key], whys[one.key])
        for one in here
        if one.key in found.slots
    ]
    moves.sort(key=lambda move: (move.to_at, move.delivery_id))
    return Repair(account, seat.policy.day_zone, tuple(moves), tuple(found.nevers))


def _write(tx: Tx, account_id: int, moves: Iterable[Move], now: Instant) -> None:
    by_reason: dict[str, list[tuple[int, Instant]]] = {}
    for move in moves:
        by_reason.setdefault(move.why, []).append((move.delivery_id, move.to_at))
    for why, slots in by_reason.items():
        tx.timetable.lay(sorted(slots), f"moved by limits fix: {why}")
    # Somebody may have put one of them off since the snapshot: then it is due earlier now.
    tx.lanes.touch(account_id, now)


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


def _ground(
    tx: Tx, now: Instant, accounts: Sequence[Account]
) -> tuple[Ground, dict[int, list[Booked]]]:
    """The accounts as they stand, and what is booked on each."""
    ground = gather(tx, [account.id for account in accounts], now, not_before=as_they_stand)
    places: dict[int, list[Booked]] = {account.id: [] for account in accounts}
    for queue in ground.queues:
        # What several share is nobody's yet: whoever may send it first takes it.
        here = places.get(queue.accounts[0]) if len(queue.accounts) == 1 else None
        if here is None:
            continue
        by_hand = not has_minutes(ground.runs[queue.run_id])
        for want in queue.wants:
            one = booked(want, now, by_hand=by_hand)
            # What stands in line behind a gate is planned for no minute.
            if one is not None and want.key not in ground.in_line:
                here.append(one)
    return ground, places
