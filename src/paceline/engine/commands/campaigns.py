"""Campaigns: create, launch, pause, resume, cancel; and one message sent by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from paceline.core.address import canonical
from paceline.core.errors import ConflictError, InputError, NotFoundError
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.core.model import Content, Target
from paceline.core.nearest import did_you_mean
from paceline.core.states import CAMPAIGN, RUN, CampaignState
from paceline.core.template import content_variables
from paceline.engine import bidding, events
from paceline.engine.alerts import campaign_goes_on
from paceline.engine.campaign_checks import (
    account_named,
    check_addresses,
    check_capabilities,
    check_links,
    check_media,
    check_room,
    check_said,
    check_steps,
    check_variables,
    longest_text,
)
from paceline.engine.campaign_spec import CampaignSpec, Timing
from paceline.engine.commands.accounts import find as find_account
from paceline.engine.commands.introducing import introduced
from paceline.engine.once import once
from paceline.engine.people import recognised
from paceline.engine.ports import Account, Campaign, NewDelivery, Providers, Run, Tx
from paceline.engine.routes import route_of
from paceline.engine.runs import end_if_done, standing_run

BY_HAND = ("launch", "pause", "resume", "cancel")
"""What an operator may ask of a campaign; its other events happen by themselves."""

DIRECT = "(direct)"
"""The standing campaign of messages that belong to no campaign."""
REPLIES = "(replies)"
"""The one of answers: they wait for less than others, and must not stand behind them."""


def find(tx: Tx, name: str) -> Campaign:
    """A campaign of that name; the standing ones are nobody's to launch, pause or cancel."""
    campaign = tx.campaigns.find(name)
    if campaign is None or campaign.kind != "campaign":
        names = [known.name for known in tx.campaigns.list() if known.kind == "campaign"]
        raise NotFoundError(f"no campaign named '{name}'{did_you_mean(name, names)}")
    return campaign


def create_once(
    tx: Tx,
    spec: CampaignSpec,
    targets: Sequence[Target],
    providers: Providers,
    at: Instant,
    key: str | None,
) -> tuple[Campaign, bool]:
    """The campaign of a key, and whether it was created now: asked for twice, it exists once."""
    wish = [
        spec.name,
        spec.settings(),
        spec.stored_content(),
        [(target.address, sorted(target.fields.items())) for target in targets],
    ]
    made, new = once(
        tx, key, "campaign", wish, at, lambda: create(tx, spec, targets, providers, at).id
    )
    return tx.campaigns.get(made), new


def create(
    tx: Tx, spec: CampaignSpec, targets: Sequence[Target], providers: Providers, at: Instant
) -> Campaign:
    """A draft with all its deliveries planned, or an error and nothing at all."""
    if tx.campaigns.find(spec.name) is not None:
        raise ConflictError(f"a campaign named '{spec.name}' exists already", key="name")
    check(tx, spec, targets, providers)
    targets = introduced(tx, targets, at)
    campaign = tx.campaigns.add(
        name=spec.name,
        kind="campaign",
        content=spec.stored_content(),
        settings=spec.settings() | bidding.end_of_answering(tx, spec, providers),
        at=at,
    )
    run = tx.runs.add(
        campaign_id=campaign.id,
        # Before it opens, only its end counts where the campaign says so.
        window=str(spec.window) if spec.window and spec.before_open == "hold" else None,
        priority=spec.priority,
        at=at,
    )
    if spec.assignment == "pooled":
        tx.pools.open(run.id, (account_named(tx, name).id for name in spec.accounts))
    planned = fill(tx, run, spec, targets, at)
    told = {"campaign": spec.name, "run": run.id, "planned": planned}
    text = f"{spec.name}: {planned} planned"
    tx.events.add(EventKind.CAMPAIGN_CREATED, text, at=at, run_id=run.id, data=told)
    return campaign


def check(tx: Tx, spec: CampaignSpec, targets: Sequence[Target], providers: Providers) -> None:
    """Everything that can be known to go wrong, before anything is written."""
    if not targets:
        raise InputError("the audience is empty", key="audience")
    accounts = [account_named(tx, name) for name in spec.accounts]
    for account in accounts:
        check_steps(account, spec.action, len(spec.contents), providers)
    for action in dict.fromkeys(said.action for said in spec.messages):
        check_addresses(accounts, action, targets, providers)
    for said in spec.messages:
        for account in accounts:
            check_said(account, said, providers)
        check_media(tx, said.content)
        check_links(tx, said.content)
        check_variables(said.content, targets, longest_text(accounts, said.action, providers))


def fill(tx: Tx, run: Run, spec: CampaignSpec, targets: Sequence[Target], at: Instant) -> int:
    """Plan a run's deliveries, those of later steps as well; how many."""
    accounts = [account_named(tx, name) for name in spec.accounts]
    planned = tx.deliveries.add(_planned(run, spec, accounts, targets, at), at)
    if spec.steps:
        tx.steps.link(run.id)
    return planned


def _planned(
    run: Run,
    spec: CampaignSpec,
    accounts: Sequence[Account],
    targets: Sequence[Target],
    at: Instant,
) -> Iterator[NewDelivery]:
    timing = Timing.stored(spec.settings())
    owners = [None] if spec.assignment == "pooled" else [account.id for account in accounts]
    starts = timing.starts(at, len(targets))
    for position, (target, start_at) in enumerate(zip(targets, starts, strict=True)):
        first = NewDelivery(
            run_id=run.id,
            account_id=owners[position % len(owners)],
            position=position,
            target=target.address,
            scheduled_at=start_at,
            fields=dict(target.fields),
            action=spec.action,
            recipient_hours=spec.recipient_hours_of(target),
            contact_id=target.contact_id,
            awaited=bool(spec.steps),
        )
        yield first
        follows_at, last = start_at, 1 + len(spec.steps)
        for number, step in enumerate(spec.steps, start=2):
            follows_at += step.after_us
            awaited = number < last
            yield replace(first, step=number, scheduled_at=follows_at, awaited=awaited)


def launchable(tx: Tx, name: str) -> Campaign:
    """The campaign, provided that it can be launched."""
    campaign = find(tx, name)
    if (campaign.state, "launch") not in CAMPAIGN.table:
        raise _cannot(campaign, "launch")
    return campaign


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
    tx.events.add(EventKind.CAMPAIGN_LAUNCHED, f"{name} launched", at=at, data={"campaign": name})
    for run in tx.runs.of_campaign(campaign.id):
        events.run_started(tx, run, at)
    bidding.open_for(tx, campaign, at)
    return tx.campaigns.get(campaign.id)


def pause(tx: Tx, name: str, at: Instant, reason: str = "paused by an operator") -> Campaign:
    """In force before the next message; a delivery that has started finishes."""
    return steer(tx, find(tx, name), "pause", at, reason)


def resume(tx: Tx, name: str, at: Instant) -> Campaign:
    return steer(tx, find(tx, name), "resume", at, "")


def cancel(tx: Tx, name: str, at: Instant, reason: str = "cancelled by an operator") -> Campaign:
    """Nothing more starts. What is on its way finishes and is counted; the rest is cancelled."""
    tx.settings.fence()
    campaign = find(tx, name)
    runs = tx.runs.of_campaign(campaign.id)
    _touch(tx, runs, at)
    _move(tx, campaign, "cancel", at, reason)
    for run in runs:
        tx.deliveries.move_all(run.id, "cancel", at=at, reason=reason)
        tx.runs.move(run.id, "cancel", at=at, reason=reason)
        campaign_goes_on(tx, run.id, at)
    told = {"campaign": name, "reason": reason}
    tx.events.add(EventKind.CAMPAIGN_CANCELLED, f"{name} cancelled", at=at, data=told)
    return tx.campaigns.get(campaign.id)


def steer(tx: Tx, campaign: Campaign, event: str, at: Instant, reason: str) -> Campaign:
    """Pause or resume it, and whatever of it is under way."""
    tx.settings.fence()
    runs = [run for run in tx.runs.of_campaign(campaign.id) if (run.state, event) in RUN.table]
    _touch(tx, runs, at)
    _move(tx, campaign, event, at, reason)
    for run in runs:
        tx.runs.move(run.id, event, at=at, reason=reason)
        if event == "resume":
            campaign_goes_on(tx, run.id, at)
            end_if_done(tx, run.id, at)
    told: dict[str, str | None] = {campaign.kind: campaign.name}
    if event == "pause":
        told |= {"reason": reason, "by": "operator", "account": None}
    kind = EventKind(f"{campaign.kind}.{event}d")
    tx.events.add(kind, f"{campaign.name} {event}d", at=at, data=told)
    return tx.campaigns.get(campaign.id)


def _touch(tx: Tx, runs: Iterable[Run], at: Instant) -> None:
    """Have the lanes look up; before the campaign is held, as whoever takes an answer in does."""
    for run in runs:
        tx.lanes.touch_run(run.id, at)


def _move(tx: Tx, campaign: Campaign, event: str, at: Instant, reason: str = "") -> CampaignState:
    state = tx.campaigns.move(campaign.id, event, at=at, reason=reason)
    if state is None:
        raise _cannot(tx.campaigns.get(campaign.id), event)
    return state


def _cannot(campaign: Campaign, event: str) -> ConflictError:
    now_is = campaign.state
    by_hand = ("pause", "resume") if campaign.kind == "reminder" else BY_HAND
    possible = [name for known, name in CAMPAIGN.table if known is now_is and name in by_hand]
    return ConflictError(
        f"{campaign.kind} {campaign.name} is {now_is}: cannot {event}",
        hint=f"Possible now: {', '.join(possible) or 'nothing'}",
    )


def send_direct(
    tx: Tx,
    account_name: str,
    target: str,
    content: Content,
    action: str,
    at: Instant,
    *,
    providers: Providers,
    key: str | None = None,
) -> int:
    """One message, now, under every limit of the account; the delivery's id.

    Asked for twice with the same key, it is sent once.
    """
    message = DirectMessage(account_name, target.strip(), content, action)
    wish = [account_name, message.target, content.to_list(), action]
    made, _ = once(tx, key, "message", wish, at, lambda: send_message(tx, message, at, providers))
    return made


@dataclass(frozen=True, slots=True)
class DirectMessage:
    """One message to one person, of no campaign."""

    account: str
    target: str
    content: Content
    action: str = "message"
    reply: bool = False
    """Whether they have written to us: then it waits neither for hours nor for a gap."""
    expires_at: Instant | None = None


def send_message(tx: Tx, message: DirectMessage, at: Instant, providers: Providers) -> int:
    """The delivery's id; all that can be wrong with it is said before anything is written."""
    content, action, target = message.content, message.action, message.target
    account = find_account(tx, message.account)
    if not target:
        raise InputError("a message needs somebody to go to", key="target")
    check_capabilities(account, action, content, providers, answering=True)
    needed = sorted(content_variables(content))
    if needed:
        raise InputError(f"a single message has no value for {', '.join(needed)}", key="text")
    check_media(tx, content)
    check_links(tx, content)
    if problem := route_of([account], action, providers).problem(canonical(target)):
        raise InputError(f"{target} {problem}", key="target")
    longest = longest_text([account], action, providers)
    check_variables(content, [Target(target)], longest)
    check_room(account, action, content)
    (person,) = recognised(tx, [Target(target)])
    # The lane first, as the message path does it: whoever locks in one order never deadlocks.
    tx.lanes.touch(account.id, at)
    run = _replies_run(tx, at) if message.reply else _direct_run(tx, action, at)
    return tx.deliveries.add_one(
        NewDelivery(
            run_id=run.id,
            account_id=account.id,
            position=run.total,
            target=person.address,
            contact_id=person.contact_id,
            scheduled_at=at,
            due_at=at,
            expires_at=message.expires_at,
            content=content.to_list(),
            action=action,
            reply=message.reply,
        ),
        at,
    )


def _replies_run(tx: Tx, at: Instant) -> Run:
    return standing_run(tx, REPLIES, at, priority=1)


def _direct_run(tx: Tx, action: str, at: Instant) -> Run:
    """One standing run per action type: a cap that is reached holds back its own kind only."""
    name = DIRECT if action == "message" else f"({DIRECT[1:-1]} {action})"
    return standing_run(tx, name, at)
