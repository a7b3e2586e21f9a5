"""What operators are told of: what raises an alert, what ends it by itself, and its words.

Raised in the transaction of its cause, so that no crash can come between the two. Who tells it to
people, and when, is the teller's affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paceline.core.calendar import day_start_of
from paceline.core.errors import ConflictError, NotFoundError
from paceline.core.instants import HOUR, Instant, local_text
from paceline.core.outcome import COUNTS_AS_FAILED, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.states import AccountState
from paceline.engine.ports import (
    Account,
    Alert,
    Delivery,
    Event,
    Hook,
    NewAlert,
    OpenKind,
    Run,
    Tx,
    Withheld,
)
from paceline.engine.ports.alerts import Reasons

BREAKER = "campaign.breaker"
SIGNALLED = "campaign.signal"
DEFECT = "campaign.defect"
BOUNCES = "account.bounces"
COMPLAINTS = "account.complaints"
THROTTLED = "account.throttled"
AWAY = "account.away"
MISSED = "reminder.missed"
UNFINISHED = "reminder.unfinished"
MAILBOX_FAILS = "mailbox.failing"
WITHHELD = "mailbox.letter"
CONVERSATION = "conversation.person"
RESPONDER = "responder.failing"
STALE_TURNS = "turns.stale"
HELD_TURNS = "turns.held"
BUSY_TURNS = "turns.busy"
WEBHOOK_FAILS = "webhook.failing"
WEBHOOK_SKIPPED = "webhook.skipped"
WEBHOOK_DISABLED = "webhook.disabled"

OUT_OF_SERVICE = (AccountState.SUSPENDED, AccountState.COOLING_DOWN, AccountState.PAUSED)

REASONS_TOLD = 5
"""Different reasons that are told one by one; whoever fails for a hundred has the ledger."""

QUIET_US = HOUR
"""An account that was not throttled for so long is over it."""
PASSING = (THROTTLED, AWAY, STALE_TURNS)
"""What is over once it has not been told of for so long."""


def campaign_paused(
    tx: Tx, run_id: int, account: Account, reason: str, now: Instant, *, failed: int
) -> None:
    """A campaign was paused by itself: its breaker tripped because so many failed, or, where none
    did, a signal said so."""
    kind = BREAKER if failed else SIGNALLED
    campaign = tx.runs.get(run_id).campaign
    what = "its breaker" if failed else "a signal of the provider"
    reasons = _failures(tx, account, run_id, failed) if failed else ()
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


def run_failed(tx: Tx, run: Run, account: Account, reason: str, now: Instant) -> None:
    """A campaign or a reminder was paused because its lane crashes whenever it is its turn."""
    tx.alerts.put(
        NewAlert(
            key=f"{DEFECT}:{run.id}",
            kind=DEFECT,
            text=f"{run.kind} {run.campaign} was paused on {account.name}: {reason}",
            account_id=account.id,
            run_id=run.id,
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
    failed: tuple[int, int] | None = None,
    bounced: bool = False,
) -> None:
    """An account was paused, suspended or cooled down by itself.

    ``failed`` is the run whose errors paused it, and how many they were, where there is no campaign
    to be paused; ``bounced`` is said where too much of what it sent that day came back.
    """
    kind = f"account.{state}"
    reasons: Reasons = ()
    if failed is not None:
        reasons = _failures(tx, account, *failed)
    elif bounced:
        policy = Policy.from_mapping(account.policy, where=account.name)
        today_at = day_start_of(now, policy.day_zone)
        kind, bounces = BOUNCES, (OutcomeKind.BOUNCED,)
        reasons = grouped(tx.alerts.reasons(account.id, bounces, since_at=today_at))
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


def away_again(tx: Tx, account: Account, times: int, reason: str, now: Instant) -> None:
    """An account could not be opened several times in a row, because its provider is away."""
    text = f"account {account.name} could not be opened {times} times in a row: {reason}"
    tx.alerts.put(NewAlert(f"{AWAY}:{account.id}", AWAY, text, account_id=account.id), now)


def complained(tx: Tx, delivery: Delivery, now: Instant) -> None:
    """Somebody called a message spam. Mail houses count these, and few are forgiven."""
    assert delivery.account_id is not None, "what was sent was sent from somewhere"
    account = tx.accounts.get(delivery.account_id)
    tx.alerts.put(
        NewAlert(
            key=f"{COMPLAINTS}:{delivery.account_id}",
            kind=COMPLAINTS,
            text=f"account {account.name}: recipients call its messages spam",
            account_id=delivery.account_id,
        ),
        now,
    )


def firing_missed(tx: Tx, reminder: str, run: Run, told: str, now: Instant) -> None:
    """A reminder was to fire, and nobody was there; or it was paused."""
    _about_reminder(tx, MISSED, reminder, run, told, now)


def fell_short(tx: Tx, reminder: str, run: Run, told: str, now: Instant) -> None:
    """A reminder fired and did not reach everybody, or nobody at all."""
    _about_reminder(tx, UNFINISHED, reminder, run, told, now)


def reminder_goes_well(tx: Tx, run: Run, now: Instant) -> None:
    """A firing reached everybody: what became of those before it is history."""
    reminder_is_gone(tx, run.campaign_id, now)


def reminder_is_gone(tx: Tx, campaign_id: int, now: Instant) -> None:
    """Nobody waits for a reminder that was removed."""
    tx.alerts.clear(now, keys=[f"{kind}:{campaign_id}" for kind in (MISSED, UNFINISHED)])


def _about_reminder(tx: Tx, kind: str, reminder: str, run: Run, told: str, now: Instant) -> None:
    # One alert for all firings of a reminder: the same trouble every morning is counted.
    key = f"{kind}:{run.campaign_id}"
    text = f"reminder {reminder}: {told}"
    tx.alerts.put(NewAlert(key=key, kind=kind, text=text, run_id=run.id), now)


def mailbox_fails(tx: Tx, account: Account, reason: str, now: Instant) -> None:
    """What comes back to an account is not heard of any more."""
    text = f"the mailbox of {account.name} cannot be read: {reason}"
    key = f"{MAILBOX_FAILS}:{account.id}"
    tx.alerts.put(NewAlert(key, MAILBOX_FAILS, text, account_id=account.id), now)


def mailbox_works(tx: Tx, account: Account, now: Instant) -> None:
    tx.alerts.clear(now, keys=[f"{MAILBOX_FAILS}:{account.id}"])


def letters_withheld(tx: Tx, account: Account, letters: Iterable[Withheld], now: Instant) -> None:
    """Letters were passed over that their server does not hand over. That stays true, so only a
    person ends such an alert, who has looked at the letter in another way."""
    for one in letters:
        place = f"folder {one.folder!r}, UID {one.letter}"
        why = f"its server does not hand it over ({one.reason})"
        text = f"a letter to {account.name} was passed over, {place}: {why}; see what it says"
        key = f"{WITHHELD}:{account.id}:{one.folder}:{one.letter}"
        tx.alerts.put(NewAlert(key, WITHHELD, text, account_id=account.id), now)


def mailbox_is_gone(tx: Tx, account: Account, now: Instant) -> None:
    """Nobody reads it any more."""
    tx.alerts.clear(now, account_id=account.id, kinds=(MAILBOX_FAILS, WITHHELD))


def webhook_fails(tx: Tx, hook: Hook, now: Instant) -> None:
    """A webhook takes nothing, and has not for a while. What it is to be told waits."""
    since = local_text(hook.failing_since_at or now, "UTC")
    text = f"webhook {hook.name} has taken nothing since {since}: {hook.problem}"
    tx.alerts.put(NewAlert(f"{WEBHOOK_FAILS}:{hook.name}", WEBHOOK_FAILS, text), now)


def webhook_skipped(tx: Tx, hook: Hook, event: Event, now: Instant) -> None:
    """An event was given up. That stays true, so only a person ends this alert."""
    told = f"webhook {hook.name} has not taken event {event.id} ({event.kind}) for a day"
    text = f"{told}, and it was given up, as were {hook.skipped} in all: {hook.problem}"
    tx.alerts.put(NewAlert(f"{WEBHOOK_SKIPPED}:{hook.name}", WEBHOOK_SKIPPED, text), now)


def webhook_disabled(tx: Tx, name: str, problem: str, now: Instant) -> None:
    text = f"webhook {name} is sent nothing any more: {problem}"
    tx.alerts.put(NewAlert(f"{WEBHOOK_DISABLED}:{name}", WEBHOOK_DISABLED, text), now)


def webhook_works(tx: Tx, name: str, now: Instant) -> None:
    """It has taken an event, or an operator lets it go on."""
    tx.alerts.clear(now, keys=[f"{kind}:{name}" for kind in (WEBHOOK_FAILS, WEBHOOK_DISABLED)])


def _failures(tx: Tx, account: Account, run_id: int, failed: int) -> Reasons:
    """Why messages of a run failed lately: as many as tripped the breaker."""
    kinds = COUNTS_AS_FAILED
    return grouped(tx.alerts.reasons(account.id, kinds, run_id=run_id, latest=failed))


def grouped(counted: Iterable[tuple[str, int]]) -> Reasons:
    """The most frequent reasons, and how many others there were."""
    reasons = list(counted)
    told, rest = reasons[:REASONS_TOLD], reasons[REASONS_TOLD:]
    if rest:
        told.append((f"{len(rest)} other reasons", sum(count for _, count in rest)))
    return tuple(told)


def account_goes_on(tx: Tx, account_id: int, now: Instant) -> None:
    """The account was resumed or removed, or its time is over: what stopped it is history."""
    kinds = [BOUNCES, THROTTLED, AWAY, *(f"account.{state}" for state in OUT_OF_SERVICE)]
    tx.alerts.clear(now, account_id=account_id, kinds=kinds)


def campaign_goes_on(tx: Tx, run_id: int, now: Instant) -> None:
    """The campaign was resumed or cancelled, or has ended."""
    tx.alerts.clear(now, run_id=run_id, kinds=(BREAKER, SIGNALLED))


def some_quiet(kind: OpenKind, now: Instant) -> bool:
    return kind.kind in PASSING and kind.quietest_at <= now - QUIET_US


def clear_quiet(tx: Tx, now: Instant) -> int:
    """Accounts that have long not been throttled: nobody resumes them, for nothing was stopped.
    And processes that have long not been found to have ended."""
    return tx.alerts.clear(now, kinds=PASSING, quiet_since_at=now - QUIET_US)


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
    return tx.alerts.about(account_ids, run_ids)


def of_campaign(tx: Tx, run_ids: Sequence[int]) -> list[Alert]:
    """The open alerts about these runs of a campaign, and about the accounts that are to send what
    waits of them. That another campaign was paused on such an account is not their concern."""
    found = tx.alerts.about(tx.waiting.accounts(run_ids), run_ids)
    return [alert for alert in found if alert.run_id is None or alert.run_id in run_ids]


def reasons_text(reasons: Reasons) -> str:
    """The reasons in one line: ``12 × recipient does not exist, 3 × timed out``."""
    return ", ".join(f"{count} \N{MULTIPLICATION SIGN} {reason}" for reason, count in reasons)


def needs_a_person(
    tx: Tx, account: Account, conversation_id: int, reason: str, now: Instant
) -> None:
    """Somebody has written, and nobody but a person can answer."""
    text = f"conversation {conversation_id} with {account.name} needs a person: {reason}"
    key = f"{CONVERSATION}:{conversation_id}"
    tx.alerts.put(NewAlert(key, CONVERSATION, text, account_id=account.id), now)


def a_person_saw_to(tx: Tx, conversation_id: int, now: Instant) -> None:
    tx.alerts.clear(now, keys=[f"{CONVERSATION}:{conversation_id}"])


def responder_fails(tx: Tx, way: str, reason: str, now: Instant) -> None:
    """Nobody is answered any more who is to be answered in this way."""
    text = f"nobody is answered by {way}, and what they write waits: {reason}"
    tx.alerts.put(NewAlert(responder_key(way), RESPONDER, text), now)


def responder_works(tx: Tx, way: str, now: Instant) -> None:
    tx.alerts.clear(now, keys=[responder_key(way)])


def responder_key(way: str) -> str:
    return f"{RESPONDER}:{way}"


def many_left_behind(tx: Tx, count: int, now: Instant) -> None:
    """More turns than so many were found whose owners had gone: something keeps ending them."""
    text = f"more than {count} answers were found half made: processes that answer keep ending"
    tx.alerts.put(NewAlert(STALE_TURNS, STALE_TURNS, text), now)


def held_long(tx: Tx, text: str, now: Instant) -> None:
    """Conversations are held for longer than an answer should take. One alert for all of them."""
    tx.alerts.put(NewAlert(HELD_TURNS, HELD_TURNS, text), now)


def none_held(tx: Tx, now: Instant) -> None:
    tx.alerts.clear(now, keys=[HELD_TURNS])


def answers_lag(tx: Tx, text: str, now: Instant) -> None:
    """Most of what people write meets an answer that is still being made."""
    tx.alerts.put(NewAlert(BUSY_TURNS, BUSY_TURNS, text), now)


def answers_keep_up(tx: Tx, now: Instant) -> None:
    tx.alerts.clear(now, keys=[BUSY_TURNS])
