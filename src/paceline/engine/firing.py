"""Firing a reminder: its targets are frozen, every delivery is there at once, and lanes are woken.

All of it is one transaction, of a handful of statements however many targets there are. Whoever
moves the reminder on to its next time fires, and nobody else does for that time; a crash before the
commit leaves everything as it was, and the next look fires.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from paceline.core.errors import ConflictError, InputError, NotFoundError
from paceline.core.instants import MINUTE, Instant, local_text
from paceline.core.model import Target
from paceline.core.schedule import Rule
from paceline.core.states import CampaignState
from paceline.engine import alerts, events
from paceline.engine.allotting import Allotment, allot
from paceline.engine.campaign_checks import account_named
from paceline.engine.campaign_spec import CampaignSpec, Timing
from paceline.engine.commands import campaigns
from paceline.engine.people import Unreachable, reached_by, recognised
from paceline.engine.ports import Campaign, NewDelivery, Providers, Reminder, Run, Tx
from paceline.engine.ports.reminders import Firing
from paceline.engine.reminder_spec import ReminderSpec, day_of_window
from paceline.engine.runs import end_if_done

LATE_US = 2 * MINUTE
"""Whoever is later than this was not there when the reminder was to fire."""

_CLOSED_SINCE = "its window closed before the service got to it"

MOST_MISSED = 100
"""How many missed firings are told apart; of more it is only said that there were more."""


@dataclass(frozen=True, slots=True)
class Fired:
    run: Run
    unreachable: list[Unreachable]
    """Groups and people that its accounts cannot write to, and why."""


def ring(tx: Tx, seen: Reminder, providers: Providers, now: Instant) -> Run | None:
    """Fire a reminder whose time has come, or write down that it was missed; None where somebody
    else has done so."""
    assert seen.next_at is not None, "only what has a next time is due"
    # People first, as everybody does it: behind the fence nobody is waited for any more.
    tx.contacts.hold(alone=False)
    tx.settings.fence()
    rule = Rule.parse(seen.rule, seen.zone)
    if not tx.reminders.advance(seen, rule.after(now)):
        return None
    known_at = tx.runs.last_fired_for(seen.campaign_id)
    times, more = rule.between(max(seen.next_at - 1, known_at), now, MOST_MISSED)
    if not times and known_at >= seen.next_at:
        return None  # whoever enabled or edited it did so by a clock that is behind
    latest = times[-1] if times else seen.next_at
    campaign = tx.campaigns.get(seen.campaign_id)
    reason = _why_missed(campaign, latest, now)
    missed = times if reason else times[:-1]
    run = None
    if missed:
        text = reason or "the service was not there in time"
        run = _miss(tx, seen, campaign, missed, text, now, more=more)
    return run if reason else fire(tx, seen, providers, now, latest).run


def forgo(tx: Tx, seen: Reminder, reason: str, now: Instant) -> None:
    """Somebody is about to take away the time for which a reminder is due, and nobody has fired it
    yet: it is told as missed. A time that went by in silence would be looked for in vain."""
    if seen.next_at is None or seen.next_at > now or not tx.reminders.advance(seen, None):
        return
    rule, known_at = Rule.parse(seen.rule, seen.zone), tx.runs.last_fired_for(seen.campaign_id)
    times, more = rule.between(max(seen.next_at - 1, known_at), now, MOST_MISSED)
    if times:
        _miss(tx, seen, tx.campaigns.get(seen.campaign_id), times, reason, now, more=more)


def _why_missed(campaign: Campaign, fires_at: Instant, now: Instant) -> str:
    """Why a firing cannot take place any more; empty if it can."""
    if campaign.state is CampaignState.PAUSED:
        return f"it was paused: {campaign.reason}" if campaign.reason else "it was paused"
    timing = Timing.stored(campaign.settings)
    if now - fires_at <= LATE_US:
        return _CLOSED_SINCE if _closed_since(timing, fires_at, now) else ""
    closed = "the service was down until after its window had closed"
    return "" if now < _closes_after(timing, fires_at) else closed


def _closes_after(timing: Timing, fires_at: Instant) -> Instant:
    """When the window closes in which it was to be sent. One that goes on the next day, and fires
    in the evening, has that day's."""
    if timing.window is None or timing.at_close == "skip":
        return day_of_window(timing.window, fires_at)[1]
    opens_at = timing.window.next_open(fires_at)
    return fires_at if opens_at is None else timing.window.closes_at(opens_at)


def _closed_since(timing: Timing, fires_at: Instant, now: Instant) -> bool:
    """Whether the window was open when it was to fire, and has closed for good since."""
    opens_at, closes_at = day_of_window(timing.window, fires_at)
    return timing.at_close == "skip" and opens_at <= fires_at < closes_at <= now


def _miss(
    tx: Tx,
    reminder: Reminder,
    campaign: Campaign,
    missed: list[Instant],
    reason: str,
    now: Instant,
    *,
    more: bool,
) -> Run:
    """One run for all that were missed in one go: a week of minutes is not ten thousand runs."""
    first, last = (local_text(at, reminder.zone) for at in (missed[0], missed[-1]))
    many = f"{'more than ' if more else ''}{len(missed)} times, {first} to {last}"
    told = f"Missed {many if len(missed) > 1 else last}: {reason}."
    run = tx.runs.add(campaign_id=campaign.id, firing=Firing(campaign.content, missed[-1]), at=now)
    tx.runs.move(run.id, "miss", at=now, reason=reason, summary=told)
    run = tx.runs.get(run.id)
    events.run_missed(tx, run, reason, told, now)
    alerts.firing_missed(tx, reminder.name, run, told, now)
    return run


def fire(
    tx: Tx, reminder: Reminder, providers: Providers, at: Instant, fired_for: Instant
) -> Fired:
    """Begin a run of it for one of its times. Whoever calls has the fence, taken before anything
    was read or written: so it is all of what was last said about it, and nobody pauses it in
    between. Where nothing can be sent, that is a run as well."""
    campaign = tx.campaigns.get(reminder.campaign_id)
    spec = CampaignSpec.stored(campaign.name, campaign.content, campaign.settings)
    try:
        prepared = prepare(tx, reminder, spec, providers)
    except InputError as error:
        return Fired(_cannot(tx, reminder, campaign, fired_for, error.reason, at), [])
    return begin(tx, campaign, prepared, at, fired_for)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is about to be sent, to whom and from where, all of it checked."""

    spec: CampaignSpec
    targets: list[Target]
    unreachable: list[Unreachable]
    """Who of its audience cannot be reached at all."""


def prepare(
    tx: Tx,
    reminder: Reminder,
    stored: CampaignSpec,
    providers: Providers,
    targets: Sequence[Target] | None = None,
) -> Prepared:
    """All that can go wrong goes wrong here, before anything is written, in plain words: they may
    be read when nobody remembers any more what was typed."""
    spec = _with_those_left(tx, stored)
    audience = spec.audience.get("audience") if targets is None else None
    if tx.accounts.find(spec.accounts[0]) is None:
        raise NotFoundError(_removed(spec.accounts))
    if audience is not None and tx.audiences.find(str(audience)) is None:
        raise NotFoundError(f"there is no audience {audience} any more")
    unreachable: list[Unreachable] = []
    if targets is None:
        targets, unreachable = whom(tx, reminder, spec, providers)
    if not targets and audience is not None:
        raise InputError(f"nobody of audience {audience} can be reached")
    campaigns.check(tx, spec, targets, providers)
    return Prepared(spec, recognised(tx, targets), unreachable)


def _removed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"account {names[0]} was removed"
    return f"accounts {', '.join(names[:-1])} and {names[-1]} were removed"


def begin(
    tx: Tx,
    campaign: Campaign,
    prepared: Prepared,
    at: Instant,
    fired_for: Instant | None = None,
) -> Fired:
    """A run with all its deliveries. By hand it is for no time of its own, and is made only if
    something can be sent."""
    spec, targets = prepared.spec, prepared.targets
    accounts = [account_named(tx, name) for name in spec.accounts]
    allotment = allot(tx, accounts, targets)
    if fired_for is None and not allotment.owners:
        raise ConflictError(_nobody(allotment))
    tx.timetable.hold(account.id for account in accounts)
    opens_at, closes_at = Timing.stored(campaign.settings).window_on(fired_for or at)
    content = spec.stored_content()
    run = tx.runs.add(
        campaign_id=campaign.id,
        window=str(spec.window) if spec.window and spec.before_open == "hold" else None,
        opens_at=opens_at,
        closes_at=closes_at,
        priority=spec.priority,
        firing=Firing(content, fired_for),
        at=at,
    )
    _fill(tx, run, spec, allotment, accounts[0].id, at)
    events.run_fired(tx, run, len(allotment.owners), len(targets), at)
    if not allotment.owners:
        tx.runs.move(run.id, "start", at=at)
        end_if_done(tx, run.id, at)
    return Fired(tx.runs.get(run.id), [*prepared.unreachable, *allotment.unreached()])


def _nobody(allotment: Allotment) -> str:
    """Why nothing of it can be sent."""
    told = (f"{len(some)}: {why}" for why, some in sorted(allotment.unreachable.items()))
    return f"none of its targets can be reached ({'; '.join(told)})"


def of_those_left(tx: Tx, spec: ReminderSpec) -> ReminderSpec:
    return replace(spec, campaign=_with_those_left(tx, spec.campaign))


def _with_those_left(tx: Tx, spec: CampaignSpec) -> CampaignSpec:
    """From the accounts that were not removed since; if all were, it cannot go, and says so."""
    left = tuple(name for name in spec.accounts if tx.accounts.find(name) is not None)
    return replace(spec, accounts=left) if left else spec


def whom(
    tx: Tx, reminder: Reminder, spec: CampaignSpec, providers: Providers
) -> tuple[list[Target], list[Unreachable]]:
    """Whom it goes to as things are now; and who of its audience cannot be reached."""
    name = spec.audience.get("audience")
    if name is None:
        return tx.reminders.targets(reminder.id), []
    reached = reached_by(tx, str(name), spec.action, spec.accounts, providers)
    return reached.targets, reached.unreachable


def _fill(
    tx: Tx, run: Run, spec: CampaignSpec, allotment: Allotment, first_account: int, at: Instant
) -> None:
    """Every delivery, those that can never go as well, so that all add up from the beginning."""
    position = 0

    def new(target: Target, account_id: int, due_at: Instant | None) -> NewDelivery:
        nonlocal position
        position += 1
        return NewDelivery(
            run_id=run.id,
            account_id=account_id,
            position=position - 1,
            target=target.address,
            scheduled_at=at,
            due_at=due_at,
            fields=dict(target.fields),
            action=spec.action,
            recipient_hours=spec.recipient_hours_of(target),
            contact_id=target.contact_id,
        )

    for why, targets in sorted(allotment.unreachable.items()):
        tx.deliveries.add((new(target, first_account, None) for target in targets), at)
        tx.deliveries.move_all(run.id, "skip", at=at, reason=why)
    tx.deliveries.add((new(target, owner, at) for target, owner in allotment.owners), at)
    tx.lanes.touch_run(run.id, at)


def _cannot(
    tx: Tx,
    reminder: Reminder,
    campaign: Campaign,
    fired_for: Instant | None,
    reason: str,
    at: Instant,
) -> Run:
    """It was to fire and nothing can be sent: a run that says so, and operators who are told."""
    run = tx.runs.add(campaign_id=campaign.id, firing=Firing(campaign.content, fired_for), at=at)
    tx.runs.move(run.id, "start", at=at)
    told = f"Nothing was sent: {reason.rstrip('.?!')}."
    tx.runs.move(run.id, "finish_none", at=at, reason=reason, summary=told)
    run = tx.runs.get(run.id)
    events.run_finished(tx, run, run.state, {}, told, at)
    alerts.fell_short(tx, reminder.name, run, told, at)
    return run
