"""Follow-ups: the message of a campaign that is sent to whoever answers it, and to nobody else.

It is there from the moment that somebody bids it, in the transaction that takes their answer in, so
that no crash comes between the two; and there is one of it at most for every place in the audience,
however often they answer and however many hear of it: that is a unique index's affair. It goes from
the account that wrote to them. All follow-ups of a campaign are a run of their own, which has its
turn before others and stops with its campaign.

Whoever answers while the message is still on its way bids as well, but nobody knows yet whether
they got it: the follow-up waits until that is settled, and is skipped if they did not, or if it was
sent only later, when it had to be tried again. Then they may bid it as if they never had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import structlog

from paceline.core.durations import parse_duration, print_duration
from paceline.core.instants import DAY, HOUR, SECOND, Instant
from paceline.core.model import Trigger
from paceline.core.outcome import OutcomeKind
from paceline.core.states import CampaignState, DeliveryState, RunState
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.commands.accounts import find as find_account
from paceline.engine.muted import REASON as MUTED
from paceline.engine.muted import is_muted, was_skipped
from paceline.engine.ports import (
    Account,
    Campaign,
    Delivery,
    Journal,
    NewDelivery,
    Providers,
    Run,
    Tx,
)
from paceline.engine.ports.bids import Doubtful, Reached
from paceline.engine.runs import end_if_done, reopen
from paceline.engine.spec_parts import bidden_step

ANSWERED = "they have answered"
"""Why the steps are skipped that were to follow."""
TOO_SOON = "they had written before step {} was sent"
"""Why a follow-up is skipped that was bidden while a message was tried in vain."""
WINDOW_US = DAY
"""For how long somebody who has written may be answered in words of one's own, on channels that
want a template otherwise."""
CLOCKS_US = 2 * SECOND
"""By how much an answer may seem to be older than what it answers: some say when in whole seconds,
and by a clock of their own."""
LATE_US = HOUR
"""For how long after the last moment a campaign waits for reports of answers that came in time.
Later ones are acted upon as well; but by then it has been told as finished."""

PRIORITY = 1
"""Ahead of single messages, as answers are."""

log = structlog.get_logger("paceline.steps")


class Bid(NamedTuple):
    """Something that somebody did."""

    on: Trigger
    names: frozenset[str]
    """All that they are known by."""
    at: Instant
    """When they did it."""
    received_id: int | None = None
    """The number of what they wrote; None where they did something else."""
    answers: Delivery | None = None
    """What it says that it answers; None where it does not say."""
    muted_as: frozenset[str] | None = None
    """Those of the names that a mute goes by; None where all are."""


class Rules(NamedTuple):
    """What a campaign does when somebody answers."""

    on: Trigger | None
    within_us: int
    action: str
    expire_us: int | None
    step: int
    stops: bool

    @classmethod
    def stored(cls, settings: Mapping[str, Any]) -> Rules:
        kept = settings.get("follow_up") or {}
        expires = kept.get("expire_after")
        return cls(
            kept.get("on"),
            parse_duration(kept["within"]) if kept else 0,
            kept.get("action") or settings.get("action", "message"),
            parse_duration(expires) if expires else None,
            bidden_step(settings),
            settings.get("stop_on_reply", False),
        )


def end_of_answering(tx: Tx, spec: CampaignSpec, providers: Providers) -> dict[str, Any]:
    """What is kept of a follow-up besides what its file says: how long after the answer it may go,
    where a channel lets people be answered only so long in words of one's own."""
    bidden = spec.follow_up
    if bidden is None:
        return {}
    accounts = [find_account(tx, name) for name in spec.accounts]
    ables = [providers.get(one.provider).capabilities_of(one.settings) for one in accounts]
    own_words = any(not part.template for part in bidden.content.parts)
    if not own_words or not any(able.needs_templates for able in ables):
        return {}
    kept = spec.settings()["follow_up"]
    return {"follow_up": {**kept, "expire_after": print_duration(WINDOW_US)}}


def open_for(tx: Tx, campaign: Campaign, at: Instant) -> None:
    """A campaign is launched: whatever is bidden from now on has its run."""
    if "follow_up" in campaign.settings:
        tx.runs.open_follow_ups(campaign.id, PRIORITY, at)


# ---------------------------------------------------------------------- what somebody did


def take_up(tx: Tx, account: Account, bid: Bid, now: Instant) -> int:
    """Make the follow-ups that somebody has bidden, and skip what their answer stops; how many
    follow-ups there are of it. Comes before any conversation is held, for it holds the lane."""
    by_campaign: dict[int, list[Reached]] = {}
    for name in sorted(bid.names):
        for one in tx.bids.reached(account.id, name):
            by_campaign.setdefault(one.campaign_id, []).append(one)
    return sum(
        _take_up(tx, account, tx.campaigns.get(campaign_id), reached, bid, now)
        for campaign_id, reached in sorted(by_campaign.items())
    )


def _take_up(
    tx: Tx,
    account: Account,
    campaign: Campaign,
    reached: Iterable[Reached],
    bid: Bid,
    now: Instant,
) -> bool:
    rules = Rules.stored(campaign.settings)
    if rules.on != bid.on and not (rules.stops and bid.on == "reply"):
        return False
    if bid.answers is not None and tx.runs.get(bid.answers.run_id).campaign_id != campaign.id:
        return False
    answered = [one for one in reached if _began_at(tx, one.delivery_id) <= bid.at + CLOCKS_US]
    if not answered:
        return False
    tx.lanes.touch(account.id, now)
    if rules.stops and bid.on == "reply":
        # Also what follows those that went out since they wrote.
        _stop(tx, reached, now)
    if rules.on != bid.on:
        return False
    last = max(answered, key=lambda one: (one.step, one.delivery_id))
    sent_at = _sent_at(tx, last)
    in_time = sent_at is None or bid.at <= sent_at + rules.within_us
    return in_time and _make(tx, campaign, last, rules, bid, now)


def _began_at(tx: Tx, delivery_id: int) -> Instant:
    """Before when nobody can have answered it: when it was begun, as it was sent in the end."""
    rows = tx.ledger.of_delivery(delivery_id)
    begun = [row.at for row in rows if row.kind == "intent" and row.part == 0]
    return max(begun) if begun else tx.deliveries.get(delivery_id).sent_at or 0


def _sent_at(tx: Tx, one: Reached) -> Instant | None:
    """From when on they have their time; of a message of which only the beginning was sent, from
    that. None while nobody knows."""
    if one.state is not DeliveryState.FAILED:
        return one.sent_at
    rows = tx.ledger.of_delivery(one.delivery_id)
    return max((row.at for row in rows if row.outcome == OutcomeKind.ACCEPTED), default=None)


def _was_got(before: Delivery) -> bool:
    """Whether they have got it, or at least its beginning."""
    begun = before.state is DeliveryState.FAILED and before.parts_done > 0
    return before.state is DeliveryState.SENT or begun


def _stop(tx: Tx, reached: Iterable[Reached], now: Instant) -> None:
    for one in reached:
        for follower in tx.bids.following(one.run_id, one.delivery_id):
            tx.deliveries.move(follower, "skip", at=now, reason=ANSWERED)
            end_if_done(tx, one.run_id, now)
            log.info("stopped", delivery=follower, why=ANSWERED)


def _make(tx: Tx, campaign: Campaign, after: Reached, rules: Rules, bid: Bid, now: Instant) -> bool:
    runs = [run for run in tx.runs.of_campaign(campaign.id) if run.follow_ups]
    if campaign.state is CampaignState.CANCELLED or not runs:
        return False
    (run,) = runs
    before = tx.deliveries.get(after.delivery_id)
    silent = _is_silent(tx, before, bid.names if bid.muted_as is None else bid.muted_as)
    earlier = tx.bids.find(run.id, after.position)
    if earlier is not None and not _gives_way(tx, earlier, after, now, silent=silent):
        return False
    number = tx.deliveries.add_one(
        NewDelivery(
            run_id=run.id,
            account_id=before.account_id,
            position=after.position,
            target=before.target,
            fields=before.fields,
            contact_id=before.contact_id,
            scheduled_at=now,
            due_at=now if _was_got(before) and not silent else None,
            expires_at=None if rules.expire_us is None else bid.at + rules.expire_us,
            action=rules.action,
            # Whoever accepts an invitation has not written, and is not waiting for an answer.
            reply=bid.on == "reply",
            recipient_hours=None if bid.on == "reply" else before.recipient_hours,
            step=rules.step,
            after_id=before.id,
            bidden=True,
            bidden_by=bid.received_id,
        ),
        now,
    )
    if silent:
        # It is there, so that everybody can see why nothing follows; they may bid it again.
        tx.deliveries.move(number, "skip", at=now, reason=MUTED)
        log.info("follow-up is skipped", run=run.id, delivery=number, why=MUTED)
        return False
    reopen(tx, run, now)
    log.info("follow-up is bidden", run=run.id, delivery=number, after=before.id)
    return True


def _is_silent(tx: Tx, before: Delivery, names: Iterable[str] = ()) -> bool:
    """Whether nobody answers whoever got this."""
    account_id = before.account_id
    return account_id is not None and is_muted(tx, account_id, {before.target, *names})


def _gives_way(tx: Tx, earlier: int, after: Reached, now: Instant, *, silent: bool) -> bool:
    """Whether the follow-up of this place is none that counts, and another one may be made."""
    if was_skipped(tx.deliveries.get(earlier)):
        if not silent:
            tx.bids.give_back(earlier)
        return not silent
    if not _came_too_soon(tx, earlier, after.delivery_id):
        return False
    _withdraw(tx, earlier, TOO_SOON.format(after.step), now)
    return True


def _came_too_soon(tx: Tx, follow_up: int, before: int) -> bool:
    """Whether it was bidden while the message before was tried in vain: whoever wrote then had not
    got what was sent when it was tried again."""
    bidden = tx.deliveries.get(follow_up)
    waits = bidden.state is DeliveryState.PLANNED
    return waits and bidden.scheduled_at + CLOCKS_US < _began_at(tx, before)


def _withdraw(tx: Tx, follow_up: int, why: str, now: Instant) -> None:
    """They may bid it again."""
    tx.deliveries.move(follow_up, "skip", at=now, reason=why)
    tx.bids.give_back(follow_up)


# ---------------------------------------------------------------------- once in a while


async def look_after_bids(journal: Journal, open_runs: Sequence[int], now: Instant) -> None:
    """Settle what was bidden in doubt, and end the runs to which nothing can come any more."""
    doubtful = await journal.read(
        lambda tx: [one for run_id in open_runs for one in tx.bids.settled(run_id)]
    )
    for one in sorted(doubtful):
        await journal.write(partial(_settle, one=one, now=now))
    for run_id in open_runs:
        ended = await journal.write(partial(end_if_over, run_id=run_id, now=now))
        if ended is not None:
            log.info("run ended", run=run_id, state=str(ended))


def _settle(tx: Tx, one: Doubtful, now: Instant) -> None:
    tx.lanes.touch(one.account_id, now)
    if not _was_got(tx.deliveries.get(one.before_id)):
        why = f"step {one.step - 1} was not delivered: it is {one.before}"
        _withdraw(tx, one.delivery_id, why, now)
    elif _came_too_soon(tx, one.delivery_id, one.before_id):
        _withdraw(tx, one.delivery_id, TOO_SOON.format(one.step - 1), now)
    elif _is_silent(tx, tx.deliveries.get(one.before_id)):
        tx.deliveries.move(one.delivery_id, "skip", at=now, reason=MUTED)
    else:
        tx.deliveries.move(one.delivery_id, "release", at=now)


def end_if_over(tx: Tx, run_id: int, now: Instant) -> RunState | None:
    """End a campaign's run of follow-ups when its others have ended, and everybody has had the time
    they had to answer."""
    campaign = tx.campaigns.get(tx.runs.get(run_id).campaign_id)
    until_at = _until_at(campaign, tx.runs.of_campaign(campaign.id))
    if until_at is None or until_at + LATE_US > now:
        return None
    return end_if_done(tx, run_id, now, follow_ups=True)


def _until_at(campaign: Campaign, runs: Iterable[Run]) -> Instant | None:
    """Until when somebody may answer in time; None while more of them are written to."""
    ends = [run.finished_at for run in runs if not run.follow_ups]
    known = [end_at for end_at in ends if end_at is not None]
    within_us = Rules.stored(campaign.settings).within_us
    return max(known) + within_us if known and len(known) == len(ends) else None


# ---------------------------------------------------------------------- for people to see


class FollowUps(NamedTuple):
    """How a campaign's follow-ups stand."""

    on: Trigger
    within_us: int
    counts: Mapping[DeliveryState, int]
    until_at: Instant | None
    """Until when somebody may still bid one; None while first messages go out."""
    over: bool


def follow_ups_of(tx: Tx, campaign: Campaign, runs: Sequence[Run]) -> FollowUps | None:
    """None where a campaign has none, or was not launched."""
    rules = Rules.stored(campaign.settings)
    theirs = [run for run in runs if run.follow_ups]
    if rules.on is None or not theirs:
        return None
    (run,) = theirs
    over = run.state not in (RunState.RUNNING, RunState.PAUSED)
    counts = tx.runs.counts(run.id)
    return FollowUps(rules.on, rules.within_us, counts, _until_at(campaign, runs), over)
