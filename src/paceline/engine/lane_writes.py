"""What a lane writes beside its hot path: rare, and each in one transaction with its cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from paceline.core.errors import LeaseLost
from paceline.core.instants import Instant
from paceline.core.outcome import OutcomeKind
from paceline.core.states import AccountState, DeliveryState, RunState
from paceline.engine import alerts, events
from paceline.engine.bouncing import look_at_bounces, may_give_back
from paceline.engine.people import known_as
from paceline.engine.pooling import give_back, hold_to_stop
from paceline.engine.ports import (
    Account,
    Delivery,
    LaneResult,
    LaneUnit,
    Lease,
    LedgerRow,
    Run,
    Settlement,
    Tx,
    Work,
)
from paceline.engine.runs import end_if_done, reopen_for
from paceline.engine.settling import Aftermath, Settled

T = TypeVar("T")

__all__ = [
    "Ended",
    "LaneResult",
    "Tx",
    "abandon",
    "break_off",
    "end_run",
    "end_runs",
    "held",
    "hold",
    "is_news",
    "judge",
    "put_off",
    "reopen",
    "start_run",
    "tell_owner",
    "with_aftermath",
]


@dataclass(frozen=True, slots=True)
class Ended:
    state: RunState
    counts: dict[str, int]


def hold(tx: Tx, lease: Lease) -> None:
    """Make sure that the lane is still ours, and keep it so until this transaction ends.

    First in everything a lane writes about a delivery outside the message path: its new owner may
    have sent the same delivery on its way long ago.
    """
    (result,) = tx.path.apply([LaneUnit(lease, revision=0)])
    if not result.held:
        raise LeaseLost("another process owns this lane now")


def is_ours(intent: LedgerRow | None, lease: Lease) -> bool:
    """Whether this lane can put a stranded delivery right: its own intent, or between parts."""
    return intent is None or intent.generation == lease.generation


def held(lease: Lease, work: Work[T]) -> Work[T]:
    """The same work, done only while the lane is ours."""

    def guarded(tx: Tx) -> T:
        hold(tx, lease)
        return work(tx)

    return guarded


def tell_owner(
    tx: Tx,
    account_id: int,
    late: list[Settlement],
    now: Instant,
    *,
    in_company: bool = False,
) -> bool:
    """Outcomes came in after the lane had a new owner, who took them for lost: wake it up.

    Where a part was accepted and others follow, the doubt is over and the next part may go. What
    was to be sent again while in doubt, and was accepted at last, is not sent again.

    What was accepted may be what pauses the account: held, and ``in_company``, as where a doubt
    ends well (``record_presence``).
    """
    tx.lanes.touch(account_id, now)
    account = tx.accounts.get(account_id)
    accepted = [one for one in late if one.outcome.kind is OutcomeKind.ACCEPTED]
    if in_company and accepted and may_give_back(tx, account, now):
        return False
    for settlement in late:
        _take_as_accepted(tx, settlement, now)
        delivery = tx.deliveries.get(settlement.delivery_id)
        going_on = settlement.state is DeliveryState.SENDING
        in_doubt = delivery.state is DeliveryState.UNKNOWN
        if going_on and in_doubt and delivery.attempts == settlement.attempt:
            reason = f"going on after a late answer to part {settlement.part + 1}"
            tx.deliveries.move(delivery.id, "retry", at=now, due_at=now, reason=reason)
        if cancel_if_gone(tx, account, delivery.id, now):
            end_if_done(tx, delivery.run_id, now)
        else:
            reopen_for(tx, delivery.id, now)
    if accepted:
        look_at_bounces(tx, account, now, arrived=len(accepted))
    return True


def is_news(settlement: Settlement, *, moved: bool) -> bool:
    """Whether an answer that came late may change anything for whoever has the lane now."""
    return moved or settlement.outcome.kind is OutcomeKind.ACCEPTED


def _take_as_accepted(tx: Tx, settlement: Settlement, now: Instant) -> None:
    """Of a delivery that waits to be sent again an earlier try was accepted: whatever was found out
    about that before, by a person or by asking, it has arrived since."""
    delivery = tx.deliveries.get(settlement.delivery_id)
    waits = delivery.state is DeliveryState.READY and delivery.parts_done == settlement.part
    accepted = settlement.outcome.kind is OutcomeKind.ACCEPTED
    if not (waits and accepted):
        return
    event = "arrive" if _was_absent(tx, settlement) else "lose"
    if tx.deliveries.move(delivery.id, event, at=now) is None:
        return
    done = settlement.part + 1
    if settlement.state is DeliveryState.SENT:
        name = settlement.outcome.provider_id
        tx.deliveries.move(delivery.id, "accept", at=now, parts_done=done, provider_id=name)
    else:
        reason = f"going on after a late answer to part {done}"
        tx.deliveries.move(delivery.id, "retry", at=now, due_at=now, reason=reason, parts_done=done)


def _was_absent(tx: Tx, settlement: Settlement) -> bool:
    """Whether somebody has found that the provider had not got it, which was before it had."""
    return any(
        row.outcome == "absent" and (row.part, row.attempt) == (settlement.part, settlement.attempt)
        for row in tx.ledger.of_delivery(settlement.delivery_id)
    )


def cancel_if_gone(tx: Tx, account: Account, delivery_id: int, now: Instant) -> bool:
    """Call off what waits for an account that was removed: nobody will ever send it."""
    if account.removed_at is None:
        return False
    if tx.deliveries.get(delivery_id).state is not DeliveryState.READY:
        return False
    reason = f"account {account.name} removed"
    return tx.deliveries.move(delivery_id, "cancel", at=now, reason=reason) is not None


def with_aftermath(
    tx: Tx,
    unit: LaneUnit,
    aftermaths: list[tuple[Settlement, Aftermath]],
    account: Account,
    now: Instant,
    *,
    stops: bool = False,
) -> LaneResult:
    """Settle, and suspend, pause or suppress in the same transaction; ``stops``: what follows there
    may stop the account as well."""
    _stand_first(tx, account, [aftermath for _, aftermath in aftermaths], stops=stops)
    unwritten = [one for one in aftermaths if not _is_written(tx, one[0])]
    (result,) = tx.path.apply([unit])
    _leave_open(tx, unit, result, unwritten, now)
    fresh = [aftermath for _, aftermath in unwritten]
    moved = [_carry_out(tx, aftermath, account, now) for aftermath in fresh]
    if any(aftermath.counts_bounces for aftermath in fresh):
        look_at_bounces(tx, account, now)
    elif any(aftermath.counts_bounces for _, aftermath in aftermaths):
        # Written with everybody else's, and not looked at, for the store did not answer any more.
        look_at_bounces(tx, account, now, arrived=1)
    # After everything that waits for a lane: who raises the same alert must not have to wait for
    # us while we wait for them.
    for aftermath, changed in zip(fresh, moved, strict=True):
        _alert(tx, aftermath, changed, account, now)
    return result


def judge(tx: Tx, account: Account, now: Instant) -> None:
    """Look at the day's bounces where nothing else is written with it."""
    _stand_first(tx, account, (), stops=True)
    look_at_bounces(tx, account, now)


def _stand_first(
    tx: Tx, account: Account, aftermaths: Sequence[Aftermath], *, stops: bool = False
) -> None:
    """Behind the fence, before anything is written; and where the account or a campaign may be
    stopped, with all the lanes that are touched then."""
    tx.settings.fence()
    if stops or any(one.stops for one in aftermaths):
        runs = {one.pause_run for one in aftermaths if one.pause_run is not None}
        hold_to_stop(tx, account.id, *sorted(runs))


def _leave_open(
    tx: Tx,
    unit: LaneUnit,
    result: LaneResult,
    fresh: list[tuple[Settlement, Aftermath]],
    now: Instant,
) -> None:
    """What has failed just now, and of which an earlier try may have arrived, is held. An answer
    that comes late changes nothing of what a person has decided meanwhile."""
    settled = zip(unit.settlements, result.settled, strict=True)
    moved = [settlement for settlement, has_moved in settled if has_moved]
    for settlement, aftermath in fresh:
        if aftermath.tried_before is not None and settlement in moved:
            tx.deliveries.lose(aftermath.tried_before, now)


def _is_written(tx: Tx, settlement: Settlement) -> bool:
    """Whether this very answer was settled before, by a commit of which nobody heard: what follows
    from it was done with it, and somebody may have put it right since."""
    said = (settlement.part, settlement.attempt, settlement.settled_at, settlement.outcome.kind)
    known = tx.ledger.of_delivery(settlement.delivery_id)
    return any((row.part, row.attempt, row.at, row.outcome) == said for row in known)


class _Changed(NamedTuple):
    """What an aftermath has brought about that operators are told of."""

    account: AccountState | None = None
    run_id: int | None = None


def _carry_out(tx: Tx, aftermath: Aftermath, account: Account, now: Instant) -> _Changed:
    """Suppress, stop the account and pause the campaign, as far as it says so."""
    if aftermath.suppress is not None:
        # Whoever was erased while the answer was awaited must not come back by it.
        address = known_as(tx, aftermath.suppress)
        tx.suppressions.add(address, aftermath.suppress_reason, "bounce", now)
    state = paused = None
    event, run_id = aftermath.account_event, aftermath.pause_run
    if run_id is not None and tx.runs.get(run_id).kind == "direct":
        # Single messages have no campaign that somebody could resume: their account waits.
        event, run_id = event or "pause", None
    if event is not None:
        state = tx.accounts.move(
            account.id, event, reason=aftermath.reason, until_at=aftermath.until_at
        )
        if state is not None:
            why, until_at = aftermath.reason, aftermath.until_at
            events.account_is(tx, account, state, now, reason=why, until_at=until_at)
            tx.lanes.touch(account.id, now)
            give_back(tx, account.id, now)
    if run_id is not None:
        by = "breaker" if aftermath.by_breaker else "signal"
        if pause_run(tx, run_id, account, by, aftermath.run_reason, now):
            paused = run_id
    return _Changed(state, paused)


def _alert(tx: Tx, aftermath: Aftermath, changed: _Changed, account: Account, now: Instant) -> None:
    reason = aftermath.reason
    if changed.account is not None:
        # Of single messages an account is stopped for what would have paused their campaign.
        own, run_id = aftermath.account_event, aftermath.pause_run
        failed = (run_id, aftermath.failed) if own is None and run_id is not None else None
        state, bounced = changed.account, own == "pause"
        alerts.account_stopped(tx, account, state, reason, now, failed=failed, bounced=bounced)
    if changed.run_id is not None:
        why, failures = aftermath.run_reason, aftermath.failed
        alerts.campaign_paused(tx, changed.run_id, account, why, now, failed=failures)
    if aftermath.setbacks and tx.accounts.get(account.id).removed_at is None:
        alerts.throttled_again(tx, account, aftermath.setbacks, reason, now)


def pause_run(tx: Tx, run_id: int, account: Account, by: str, reason: str, now: Instant) -> bool:
    """Pause a campaign or a reminder that was paused by nobody; False if it is not under way."""
    if tx.runs.move(run_id, "pause", at=now, reason=reason) is None:
        return False
    run = tx.runs.get(run_id)
    tx.campaigns.move(run.campaign_id, "pause", at=now, reason=reason)
    events.paused_by_itself(tx, run, account, by, reason, now)
    tx.lanes.touch_run(run_id, now)
    return True


def abandon(tx: Tx, unit: LaneUnit, settled: Settled, account: Account, now: Instant) -> None:
    """Move a delivery that failed before its intent, as its outcome says; in a transaction of its
    own where anything follows from that."""
    if not settled.aftermath.empty:
        _stand_first(tx, account, [settled.aftermath])
    hold(tx, unit.lease)
    tx.path.apply([unit])
    after = settled.settlement
    if not tx.deliveries.hold(after.delivery_id, account.id):
        return
    if after.state is not DeliveryState.READY:
        tx.deliveries.move(after.delivery_id, "fail", at=now, reason=after.reason)
    else:
        put_off(tx, after.delivery_id, after.due_at, after.reason, now, after.retries)
    if not settled.aftermath.empty:
        changed = _carry_out(tx, settled.aftermath, account, now)
        _alert(tx, settled.aftermath, changed, account, now)


def put_off(
    tx: Tx,
    delivery_id: int,
    due_at: Instant | None,
    reason: str,
    at: Instant,
    retries: int | None = None,
) -> None:
    """Let a delivery wait that has started, or that has not: then only its time moves."""
    if not tx.deliveries.move(
        delivery_id, "retry", at=at, due_at=due_at, reason=reason, retries=retries
    ):
        tx.deliveries.postpone(delivery_id, due_at, reason, retries)


def break_off(tx: Tx, lease: Lease, delivery: Delivery, part: int, now: Instant) -> None:
    """A started delivery whose next part was refused: to the suppressed never, else later."""
    hold(tx, lease)
    if tx.suppressions.covers(delivery.target):
        reason = f"recipient was suppressed after part {part} of the message"
        tx.deliveries.move(delivery.id, "fail", at=now, reason=reason)
    else:
        # Due as it was planned, not now: whoever has half a message is not sent to the end.
        due_at = min(delivery.scheduled_at, now)
        reason = f"broken off after part {part}"
        tx.deliveries.move(
            delivery.id, "retry", at=now, due_at=due_at, reason=reason, parts_done=part
        )


def reopen(tx: Tx, account_id: int, now: Instant) -> None:
    """The time of a cool-down or of a reached limit is over."""
    tx.lanes.hold(account_id)
    state = tx.accounts.move(account_id, "reopen")
    if state is not None:
        events.account_is(tx, tx.accounts.get(account_id), state, now)
        alerts.account_goes_on(tx, account_id, now)


def start_run(tx: Tx, run: Run, now: Instant) -> None:
    """The first message of a firing is about to go, from one of its accounts."""
    if tx.runs.move(run.id, "start", at=now) is not None:
        events.run_started(tx, run, now)


def end_run(tx: Tx, run_id: int, now: Instant) -> Ended | None:
    state = end_if_done(tx, run_id, now)
    if state is None:
        return None
    counts = {str(name): count for name, count in tx.runs.counts(run_id).items() if count}
    return Ended(state, counts)


def end_runs(tx: Tx, asked: Sequence[tuple[int, Instant]]) -> list[Ended | None]:
    """The same for all lanes that ask at once: those of a campaign come to its end together. One
    look is enough for a run, and one of them is told."""
    looked_at = set[int]()
    answers: list[Ended | None] = []
    for run_id, now in asked:
        answers.append(None if run_id in looked_at else end_run(tx, run_id, now))
        looked_at.add(run_id)
    return answers
