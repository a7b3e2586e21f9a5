"""How events are told that are raised in several places, or have several values.

Each is written in the transaction of its cause. What they mean is said once, in ``core/events.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.core.events import EventKind
from paceline.core.instants import Instant, iso
from paceline.core.states import AccountState, DeliveryState, RunState
from paceline.engine.ports import Account, Progress, Run, Tx


def whose(kind: str, name: str) -> dict[str, str | None]:
    """Whose run it is: a campaign's or a reminder's, and the other is nobody."""
    is_reminder = kind == "reminder"
    return {"campaign": None if is_reminder else name, "reminder": name if is_reminder else None}


def about(run: Run) -> dict[str, Any]:
    return {"run": run.id, **whose(run.kind, run.campaign)}


def run_fired(tx: Tx, run: Run, waiting: int, total: int, at: Instant) -> None:
    beyond = f", {total - waiting} cannot be reached" if waiting < total else ""
    text = f"{run.campaign}: {waiting} waiting{beyond}"
    told = {**about(run), "total": total}
    tx.events.add(EventKind.RUN_FIRED, text, at=at, run_id=run.id, data=told)


def run_started(tx: Tx, run: Run, at: Instant) -> None:
    counts = tx.runs.counts(run.id)
    left = counts[DeliveryState.PLANNED] + counts[DeliveryState.READY]
    text = f"{run.campaign}: {left} to send"
    told = {**about(run), "total": run.total}
    tx.events.add(EventKind.RUN_STARTED, text, at=at, run_id=run.id, data=told)


def run_progress(tx: Tx, now_is: Progress, at: Instant) -> None:
    text = f"{now_is.name}: {now_is.delivered} of {now_is.total} delivered, {now_is.done} done"
    told = {
        "run": now_is.run_id,
        **whose(now_is.kind, now_is.name),
        "delivered": now_is.delivered,
        "done": now_is.done,
        "total": now_is.total,
    }
    tx.events.add(EventKind.RUN_PROGRESS, text, at=at, run_id=now_is.run_id, data=told)


def run_finished(
    tx: Tx,
    run: Run,
    status: RunState,
    counts: Mapping[DeliveryState, int],
    summary: str,
    at: Instant,
) -> None:
    told = {
        **about(run),
        "status": status.value,
        "delivered": counts.get(DeliveryState.SENT, 0),
        "total": sum(counts.values()),
        "counts": {state.value: count for state, count in counts.items() if count},
        "summary": summary,
    }
    text = f"{run.campaign}: {summary}"
    tx.events.add(EventKind.RUN_FINISHED, text, at=at, run_id=run.id, data=told)


def run_missed(tx: Tx, run: Run, reason: str, summary: str, at: Instant) -> None:
    text = f"{run.campaign}: {summary}"
    told = {**about(run), "reason": reason, "summary": summary}
    tx.events.add(EventKind.RUN_MISSED, text, at=at, run_id=run.id, data=told)


def account_is(
    tx: Tx,
    account: Account,
    state: AccountState,
    at: Instant,
    *,
    reason: str = "",
    until_at: Instant | None = None,
) -> None:
    """It has come into another state, whoever or whatever brought it there."""
    text = f"{account.name} is {state.replace('_', ' ')}" + (f": {reason}" if reason else "")
    told = {
        "account": account.name,
        "reason": reason,
        "until_at": None if until_at is None else iso(until_at),
    }
    kind = EventKind(f"account.{state}")
    tx.events.add(kind, text, at=at, account_id=account.id, data=told)


_BY_ITSELF = {"breaker": "its breaker", "signal": "a signal", "defect": "a defect"}


def paused_by_itself(tx: Tx, run: Run, account: Account, by: str, reason: str, at: Instant) -> None:
    """A campaign or a reminder was paused by its breaker, by a signal or for a defect of ours."""
    text = f"{run.kind} {run.campaign} paused by {_BY_ITSELF[by]} on {account.name}: {reason}"
    told = {run.kind: run.campaign, "reason": reason, "by": by, "account": account.name}
    kind = EventKind(f"{run.kind}.paused")
    tx.events.add(kind, text, at=at, account_id=account.id, run_id=run.id, data=told)
