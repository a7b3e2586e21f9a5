"""Campaigns: create, launch, pause, resume, cancel; and one message sent by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.core.errors import ConflictError, InputError, NotFoundError
from paceline.core.instants import Instant
from paceline.core.model import Content, Target
from paceline.core.nearest import did_you_mean
from paceline.core.states import CAMPAIGN, CampaignState, RunState
from paceline.core.template import content_variables
from paceline.engine.campaign_checks import (
    account_named,
    check_capabilities,
    check_media,
    check_room,
    check_variables,
)
from paceline.engine.campaign_spec import CampaignSpec, Timing
from paceline.engine.commands.accounts import find as find_account
from paceline.engine.ports import Account, Campaign, NewDelivery, Providers, Run, Tx
from paceline.engine.runs import end_if_done

BY_HAND = ("launch", "pause", "resume", "cancel")
"""What an operator may ask of a campaign; its other events happen by themselves."""

DIRECT = "(direct)"
"""The standing campaign of messages that belong to no campaign."""


def find(tx: Tx, name: str) -> Campaign:
    """A campaign of that name; the standing ones are nobody's to launch, pause or cancel."""
    campaign = tx.campaigns.find(name)
    if campaign is None or campaign.kind != "campaign":
        names = [known.name for known in tx.campaigns.list() if known.kind == "campaign"]
        raise NotFoundError(f"no campaign named '{name}'{did_you_mean(name, names)}")
    return campaign


def create(
    tx: Tx, spec: CampaignSpec, targets: Sequence[Target], providers: Providers, at: Instant
) -> Campaign:
    """A draft with all its deliveries planned, or an error and nothing at all."""
    if tx.campaigns.find(spec.name) is not None:
        raise ConflictError(f"a campaign named '{spec.name}' exists already", key="name")
    if not targets:
        raise InputError("the audience is empty", key="audience")
    accounts = [account_named(tx, name) for name in spec.accounts]
    for account in accounts:
        check_capabilities(account, spec.action, spec.content, providers)
        check_room(account, spec.action, spec.content)
    check_media(tx, spec.content)
    check_variables(spec.content, targets)
    campaign = tx.campaigns.add(
        name=spec.name,
        kind="campaign",
        content=spec.content.to_list(),
        settings=spec.settings(),
        at=at,
    )
    run = tx.runs.add(
        campaign_id=campaign.id,
        window=str(spec.window) if spec.window is not None else None,
        priority=spec.priority,
        at=at,
    )
    tx.deliveries.add(_planned(run, spec, accounts, targets, at), at)
    tx.events.add("campaign.created", f"{spec.name}: {len(targets)} planned", at=at, run_id=run.id)
    return campaign


def _planned(
    run: Run,
    spec: CampaignSpec,
    accounts: Sequence[Account],
    targets: Sequence[Target],
    at: Instant,
) -> Iterator[NewDelivery]:
    start_at = max(spec.start_at or at, at)
    for position, target in enumerate(targets):
        yield NewDelivery(
            run_id=run.id,
            account_id=accounts[position % len(accounts)].id,
            position=position,
            target=target.address,
            scheduled_at=start_at,
            fields=dict(target.fields),
            action=spec.action,
            recipient_hours=spec.recipient_hours_of(target),
        )


def launch(tx: Tx, name: str, at: Instant) -> Campaign:
    """Release every delivery; windows and expiries count from now, however old the draft is."""
    campaign = find(tx, name)
    _move(tx, campaign, "launch", at)
    timing = Timing.stored(campaign.settings)
    for run in tx.runs.of_campaign(campaign.id):
        tx.runs.set_window(run.id, *timing.window_on(at))
        tx.runs.move(run.id, "start", at=at)
        tx.deliveries.release(run.id, at, at, timing.expire_after_us)
        tx.lanes.touch_run(run.id, at)
    tx.events.add("campaign.launched", f"{name} launched", at=at)
    return tx.campaigns.get(campaign.id)


def pause(tx: Tx, name: str, at: Instant, reason: str = "paused by an operator") -> Campaign:
    """In force before the next message; a delivery that has started finishes."""
    return _steer(tx, name, "pause", at, reason)


def resume(tx: Tx, name: str, at: Instant) -> Campaign:
    return _steer(tx, name, "resume", at, "")


def cancel(tx: Tx, name: str, at: Instant, reason: str = "cancelled by an operator") -> Campaign:
    """Nothing more starts. What is on its way finishes and is counted; the rest is cancelled."""
    tx.settings.fence()
    campaign = find(tx, name)
    _move(tx, campaign, "cancel", at, reason)
    for run in tx.runs.of_campaign(campaign.id):
        tx.lanes.touch_run(run.id, at)
        tx.deliveries.move_all(run.id, "cancel", at=at, reason=reason)
        tx.runs.move(run.id, "cancel", at=at, reason=reason)
    tx.events.add("campaign.cancelled", f"{name} cancelled", at=at)
    return tx.campaigns.get(campaign.id)


def _steer(tx: Tx, name: str, event: str, at: Instant, reason: str) -> Campaign:
    tx.settings.fence()
    campaign = find(tx, name)
    _move(tx, campaign, event, at, reason)
    for run in tx.runs.of_campaign(campaign.id):
        tx.lanes.touch_run(run.id, at)
        tx.runs.move(run.id, event, at=at, reason=reason)
        if event == "resume":
            end_if_done(tx, run.id, at)
    tx.events.add(f"campaign.{event}d", f"{name} {event}d", at=at)
    return tx.campaigns.get(campaign.id)


def _move(tx: Tx, campaign: Campaign, event: str, at: Instant, reason: str = "") -> CampaignState:
    state = tx.campaigns.move(campaign.id, event, at=at, reason=reason)
    if state is None:
        now_is = tx.campaigns.get(campaign.id).state
        possible = [name for known, name in CAMPAIGN.table if known is now_is and name in BY_HAND]
        raise ConflictError(
            f"campaign {campaign.name} is {now_is}: cannot {event}",
            hint=f"Possible now: {', '.join(possible) or 'nothing'}",
        )
    return state


def send_direct(
    tx: Tx,
    account_name: str,
    target: str,
    content: Content,
    action: str,
    at: Instant,
    *,
    providers: Providers,
) -> int:
    """One message, now, under every limit of the account; the delivery's id."""
    account = find_account(tx, account_name)
    if not target.strip():
        raise InputError("a message needs somebody to go to", key="target")
    check_capabilities(account, action, content, providers)
    needed = sorted(content_variables(content))
    if needed:
        raise InputError(f"a single message has no value for {', '.join(needed)}", key="text")
    check_media(tx, content)
    check_variables(content, [Target(target.strip())])
    check_room(account, action, content)
    # The lane first, as the message path does it: whoever locks in one order never deadlocks.
    tx.lanes.touch(account.id, at)
    run = _direct_run(tx, action, at)
    delivery_id = tx.deliveries.add_one(
        NewDelivery(
            run_id=run.id,
            account_id=account.id,
            position=run.total,
            target=target.strip(),
            scheduled_at=at,
            due_at=at,
            content=content.to_list(),
            action=action,
        ),
        at,
    )
    return delivery_id


def _direct_run(tx: Tx, action: str, at: Instant) -> Run:
    """One standing run per action type: a cap that is reached holds back its own kind only."""
    name = DIRECT if action == "message" else f"({DIRECT[1:-1]} {action})"
    campaign = tx.campaigns.find(name)
    if campaign is None:
        campaign = tx.campaigns.add(name=name, kind="direct", content=[], settings={}, at=at)
        tx.campaigns.move(campaign.id, "launch", at=at)
        return tx.runs.add(campaign_id=campaign.id, state=RunState.RUNNING, at=at)
    return tx.runs.of_campaign(campaign.id)[0]
