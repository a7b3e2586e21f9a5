"""What operators are told of: what raises an alert, what ends it by itself, and its words.

Raised in the transaction of its cause, so that no crash can come between the two. Who tells it to
people, and when, is the teller's affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paceline.core.calendar import day_start_of
from paceline.core.errors import ConflictError, NotFoundError
from paceline.core.health import WINDOW_SIZE
from paceline.core.instants import HOUR, Instant
from paceline.core.outcome import COUNTS_AS_FAILED, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.states import AccountState
from paceline.engine.ports import Account, Alert, NewAlert, Tx
from paceline.engine.ports.alerts import Reasons

BREAKER = "campaign.breaker"
SIGNALLED = "campaign.signal"
BOUNCES = "account.bounces"
THROTTLED = "account.throttled"

OUT_OF_SERVICE = (AccountState.SUSPENDED, AccountState.COOLING_DOWN, AccountState.PAUSED)

REASONS_TOLD = 5
"""Different reasons that are told one by one; whoever fails for a hundred has the ledger."""

QUIET_US = HOUR
"""An account that was not throttled for so long is over it."""


def campaign_paused(
    tx: Tx, run_id: int, account: Account, reason: str, now: Instant, *, by_breaker: bool
) -> None:
    """A campaign was paused by itself: its breaker tripped, or a signal said so."""
    kind = BREAKER if by_breaker else SIGNALLED
    campaign = tx.runs.get(run_id).campaign
    what = "its breaker" if by_breaker else "a signal of the provider"
    reasons = _failures(tx, account, run_id) if by_breaker else ()
    tx.alerts.put(
        NewAlert(
            key=f"{kind}:{run_id}",
            kind=kind,
            text=f"campaign {campaign} was paused by {what} on {account.name}: {reason}",
            reasons=reasons,
            account_id=account.id,
            run_id=run_id,
        ),
        now,
    )


def account_stopped(
    tx: Tx,
    account: Account,
    state: AccountState,
    reason: str,
    now: Instant,
    *,
    breaker_run: int | None = None,
) -> None:
    """An account was paused, suspended or cooled down by itself.

    ``breaker_run`` is the run whose errors paused it, where there is no campaign to be paused.
    """
    kind = f"account.{state}"
    reasons: Reasons = ()
    if breaker_run is not None:
        reasons = _failures(tx, account, breaker_run)
    elif state is AccountState.PAUSED:
        policy = Policy.from_mapping(account.policy, where=account.name)
        today_at = day_start_of(now, policy.day_zone)
        kind, bounces = BOUNCES, (OutcomeKind.BOUNCED,)
        reasons = _grouped(tx.alerts.reasons(account.id, bounces, since_at=today_at))
    tx.alerts.put(
        NewAlert(
            key=f"{kind}:{account.id}",
            kind=kind,
            text=f"account {account.name} is {state.replace('_', ' ')}: {reason}",
            reasons=reasons,
            account_id=account.id,
        ),
        now,
    )


def throttled_again(tx: Tx, account: Account, setbacks: int, reason: str, now: Instant) -> None:
    """An account was throttled, or found its provider away, several times in a row."""
    text = f"account {account.name} was held back {setbacks} times in a row: {reason}"
    key = f"{THROTTLED}:{account.id}"
    tx.alerts.put(NewAlert(key=key, kind=THROTTLED, text=text, account_id=account.id), now)


def _failures(tx: Tx, account: Account, run_id: int) -> Reasons:
    """Why messages of a run failed lately: among as many as the breaker looks at, since somebody
    last let the run go on with a clean sheet."""
    breaker = Policy.from_mapping(account.policy, where=account.name).breaker
    cleared = [
        alert.cleared_at
        for alert in tx.alerts.list(with_cleared=True)
        if alert.run_id == run_id and alert.cleared_at is not None
    ]
    failures = tx.alerts.reasons(
        account.id,
        COUNTS_AS_FAILED,
        run_id=run_id,
        since_at=max(cleared, default=0),
        latest=WINDOW_SIZE if breaker is None else breaker.window,
    )
    return _grouped(failures)


def _grouped(counted: Iterable[tuple[str, int]]) -> Reasons:
    """The most frequent reasons, and how many others there were."""
    reasons = list(counted)
    told, rest = reasons[:REASONS_TOLD], reasons[REASONS_TOLD:]
    if rest:
        told.append((f"{len(rest)} other reasons", sum(count for _, count in rest)))
    return tuple(told)


def account_goes_on(tx: Tx, account_id: int, now: Instant) -> None:
    """The account was resumed or removed, or its time is over: what stopped it is history."""
    kinds = [BOUNCES, THROTTLED, *(f"account.{state}" for state in OUT_OF_SERVICE)]
    tx.alerts.clear(now, account_id=account_id, kinds=kinds)


def campaign_goes_on(tx: Tx, run_id: int, now: Instant) -> None:
    """The campaign was resumed or cancelled, or has ended."""
    tx.alerts.clear(now, run_id=run_id, kinds=(BREAKER, SIGNALLED))


def is_quiet(alert: Alert, now: Instant) -> bool:
    return alert.kind == THROTTLED and alert.last_at <= now - QUIET_US


def clear_quiet(tx: Tx, now: Instant) -> int:
    """Accounts that have long not been throttled: nobody resumes them, for nothing was stopped."""
    return tx.alerts.clear(now, kinds=(THROTTLED,), quiet_since_at=now - QUIET_US)


def clear(tx: Tx, alert_id: int, now: Instant) -> Alert:
    """By hand: somebody has seen to it."""
    alert = tx.alerts.get(alert_id)
    if alert is None:
        raise NotFoundError(f"there is no alert {alert_id}", hint="See: paceline alerts --all")
    if not tx.alerts.clear(now, alert_id=alert_id):
        raise ConflictError(f"alert {alert_id} is cleared already")
    return alert


def concerning(
    tx: Tx, *, account_ids: Sequence[int] = (), run_ids: Sequence[int] = ()
) -> list[Alert]:
    """The open alerts about any of these."""
    return [
        alert
        for alert in tx.alerts.list()
        if alert.account_id in account_ids or alert.run_id in run_ids
    ]


def reasons_text(reasons: Reasons) -> str:
    """The reasons in one line: ``12 × recipient does not exist, 3 × timed out``."""
    return ", ".join(f"{count} \N{MULTIPLICATION SIGN} {reason}" for reason, count in reasons)
