"""How a run is told when it is over: one or two sentences for people.

A run that its window cut off while it was being sent is told differently from one that failed here
and there, or that stood still by then: the first wants another account, the others their reasons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from shlex import quote

from paceline.core import zones
from paceline.core.address import guess_kind
from paceline.core.calendar import day_start_of, week_start
from paceline.core.hours import Hours
from paceline.core.instants import MINUTE, Instant
from paceline.core.policy import Policy
from paceline.core.states import DeliveryState, RunState
from paceline.engine.alerts import OUT_OF_SERVICE
from paceline.engine.ports import Account, Run, Tx, Undelivered
from paceline.engine.stopping import stopped

WINDOW_CLOSED = "delivery window closed"
"""The reason of what was skipped because of it, as the window's gate has it."""

ENDED = (RunState.SUCCESS, RunState.PARTIAL, RunState.FAILED)

REASONS_TOLD = 5

_CLOSED = "Delivery window closed at"

IDLE_US = 5 * MINUTE
"""An account that has sent nothing for so long, and longer than its pace explains, stood still."""

_ADVICE = "at capacity for this fan-out: consider sending the remainder from another paired account"


def summary(tx: Tx, run: Run, counts: Mapping[DeliveryState, int]) -> str:
    """What was delivered, and what was not and why not."""
    total, sent = sum(counts.values()), counts[DeliveryState.SENT]
    if run.kind != "reminder":
        return f"{sent} of {total} delivered{_by_state(counts)}"
    missing = tx.runs.undelivered(run.id)
    cut_off = [one for one in missing if one.reason == WINDOW_CLOSED]
    rest = [one for one in missing if one.reason != WINDOW_CLOSED]
    stood_still = _stood_still(tx, run, cut_off)
    rest += [
        one._replace(reason=stood_still[one.account_id])
        for one in cut_off
        if one.account_id in stood_still
    ]
    senders = _senders(tx, run)
    told = f"{sent} of {total} {_noun(tx, run)} delivered{_from(senders)}."
    why_not = f" Not delivered: {_reasons(rest)}." if rest else ""
    if not cut_off or run.closes_at is None:
        return told + why_not
    closed = f"{_CLOSED} {_wall(run, tx)}."
    sending = {one.account_id for one in cut_off} - stood_still.keys()
    if not sent or not sending:
        return f"{closed} {told}{why_not}"
    busy = tx.accounts.several(sorted(number for number in sending if number))
    those = _those([account.name for account in busy.values()], len(senders))
    how = f"paceline reminder fire {quote(run.campaign)} --rest --run {run.id} --from ACCOUNT"
    return f"{closed} {told} {those} {_ADVICE} ({how}).{why_not}"


def retold(tx: Tx, run: Run, counts: Mapping[DeliveryState, int]) -> Run:
    """The run with its summary as it would be told by now: letters come back after it has ended,
    and doubts are cleared. What a window has cut off stays as it was seen when it closed."""
    if not run.summary or run.state not in ENDED or run.summary.startswith(_CLOSED):
        return run
    return replace(run, summary=summary(tx, run, counts))


def _those(names: Sequence[str], senders: int) -> str:
    if senders == 1:
        return "This account is"
    if len(names) == senders:
        return "These accounts are"
    return f"{names[0]} is" if len(names) == 1 else f"{_listed(names)} are"


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _stood_still(tx: Tx, run: Run, cut_off: Sequence[Undelivered]) -> dict[int | None, str]:
    """Of the accounts whose rest the window cut off, those that were not sending any more when it
    closed, each with the reason of what it has left."""
    closes_at = run.closes_at
    if not cut_off or closes_at is None:
        return {}
    whose = tx.accounts.several(sorted({one.account_id for one in cut_off if one.account_id}))
    stop = stopped(tx)
    if stop is not None and (stop.since_at is None or stop.since_at < closes_at):
        return dict.fromkeys(whose, _while("everything was stopped", stop.reason))
    if run.state is RunState.PAUSED:
        return dict.fromkeys(whose, _while("it was paused", run.reason))
    found: dict[int | None, str] = {}
    for account in whose.values():
        if account.state in OUT_OF_SERVICE:
            was = f"{account.name} was {account.state.replace('_', ' ')}"
            found[account.id] = _while(was, account.state_reason)
        elif not _used_up(tx, account, closes_at) and _was_idle(tx, run, account, closes_at):
            found[account.id] = f"the window closed, and nothing was sent from {account.name}"
    return found


def _while(what: str, reason: str) -> str:
    return f"the window closed while {what}" + (f": {reason}" if reason else "")


def _used_up(tx: Tx, account: Account, at: Instant) -> bool:
    """Whether a cap of its day or its week was used up: then it was at capacity, though silent."""
    policy = Policy.from_mapping(account.policy, where=account.name)
    for caps, since_at in (
        (policy.daily, day_start_of(at, policy.day_zone)),
        (policy.weekly, week_start(at, policy.day_zone)),
    ):
        used = tx.ledger.counts(account.id, since_at) if caps else {}
        if any(used.get(action, 0) >= cap for action, cap in caps.items()):
            return True
    return False


def _was_idle(tx: Tx, run: Run, account: Account, closes_at: Instant) -> bool:
    """Whether an account had long sent nothing when the window closed: nobody was there to send,
    or its hours were over."""
    policy = Policy.from_mapping(account.policy, where=account.name)
    pace_us = policy.longest_gap_us
    pace_us += policy.batch.pause_us if policy.batch is not None else 0
    pace_us += policy.rate.per_us // policy.rate.count if policy.rate is not None else 0
    since_at = closes_at - IDLE_US - pace_us
    if max(run.started_at or closes_at, run.opens_at or 0) > since_at:
        return False  # it has hardly begun
    first = next(tx.ledger.walk(account.id, since_at), None)
    return first is None or first.intent_at >= closes_at


def _by_state(counts: Mapping[DeliveryState, int]) -> str:
    rest = [f"{n} {state}" for state, n in counts.items() if n and state is not DeliveryState.SENT]
    return f" ({', '.join(rest)})" if rest else ""


def _senders(tx: Tx, run: Run) -> list[tuple[str, int]]:
    """The accounts that took part, each with what it has sent."""
    found = {number: counts for number, counts in tx.runs.accounts(run.id).items() if number}
    names = tx.accounts.several(sorted(found))
    return [
        (names[number].name, counts[DeliveryState.SENT])
        for number, counts in found.items()
        if number in names and any(counts.values())
    ]


def _from(senders: Sequence[tuple[str, int]]) -> str:
    if len(senders) < 2:
        return "".join(f" from {name}" for name, _ in senders)
    return f" from {_listed([f'{name} ({sent})' for name, sent in senders])}"


def _noun(tx: Tx, run: Run) -> str:
    """Reminders mostly go to groups; where they do not, nobody calls a person one."""
    first = tx.deliveries.page(run_id=run.id, limit=1)
    return "groups" if first and guess_kind(first[0].target) == "group" else "recipients"


def _wall(run: Run, tx: Tx) -> str:
    """When it closed, as its operator reads a clock; midnight is the end of the day."""
    if run.window is not None:
        zone = Hours.parse(run.window).zone  # somebody may have given the reminder another one
    else:
        zone = str(tx.campaigns.get(run.campaign_id).settings.get("zone", "UTC"))
    closes_at: Instant = run.closes_at or 0
    text = f"{zones.wall_at(closes_at, zone):%H:%M}"
    return f"{'24:00' if text == '00:00' else text} ({zone})"


def _reasons(missing: Sequence[Undelivered]) -> str:
    """Grouped and counted over the accounts, the most frequent first."""
    counted: dict[tuple[DeliveryState, str], int] = {}
    for one in missing:
        key = one.state, one.reason
        counted[key] = counted.get(key, 0) + one.deliveries
    ranked = sorted(counted.items(), key=lambda entry: (-entry[1], entry[0]))
    told = [
        f"{count} {state}" + (f" ({reason})" if reason else "")
        for (state, reason), count in ranked[:REASONS_TOLD]
    ]
    more = sum(count for _, count in ranked[REASONS_TOLD:])
    return ", ".join(told) + (f", {more} for other reasons" if more else "")
