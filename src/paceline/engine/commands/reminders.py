"""Reminders: create, edit, enable, disable, fire by hand, pause and resume what they have begun,
remove. Single runs of theirs are in ``reminder_runs.py``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, NamedTuple

from paceline.core.errors import ConflictError, InputError, NotFoundError
from paceline.core.events import EventKind
from paceline.core.instants import Instant, local_text
from paceline.core.model import Target
from paceline.core.nearest import did_you_mean
from paceline.core.schedule import Rule
from paceline.core.states import CampaignState, RunState
from paceline.engine import firing
from paceline.engine.alerts import OUT_OF_SERVICE, reminder_is_gone
from paceline.engine.allotting import allot
from paceline.engine.campaign_checks import account_named
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.commands import campaigns
from paceline.engine.commands.introducing import introduced
from paceline.engine.firing import Fired
from paceline.engine.once import once
from paceline.engine.people import Unreachable
from paceline.engine.ports import Campaign, Providers, Reminder, Run, Tx
from paceline.engine.reminder_spec import ReminderSpec, day_of_window, edited

_GOING = (RunState.WAITING, RunState.RUNNING, RunState.PAUSED)


@dataclass(frozen=True, slots=True)
class Made:
    """A reminder as it was created or changed, and what its writer should know."""

    reminder: Reminder
    warnings: list[str]
    unreachable: list[Unreachable]


def find(tx: Tx, name: str) -> Reminder:
    found = tx.reminders.find(name)
    if found is None:
        names = [known.name for known in tx.reminders.list()]
        raise NotFoundError(
            f"no reminder named '{name}'{did_you_mean(name, names)}",
            hint="paceline reminder list shows those there are",
        )
    return found


def spec_of(tx: Tx, reminder: Reminder) -> ReminderSpec:
    """A reminder as it is kept, read back."""
    campaign = tx.campaigns.get(reminder.campaign_id)
    kept = CampaignSpec.stored(campaign.name, campaign.content, campaign.settings)
    return ReminderSpec(kept, Rule.parse(reminder.rule, reminder.zone))


def create(
    tx: Tx,
    spec: ReminderSpec,
    targets: Sequence[Target],
    providers: Providers,
    at: Instant,
    *,
    key: str | None = None,
) -> tuple[Made, bool]:
    """An enabled reminder, or an error and nothing at all; and whether it was made now."""
    wish = [
        spec.name,
        spec.campaign.settings(),
        spec.campaign.stored_content(),
        str(spec.rule),
        [(target.address, sorted(target.fields.items())) for target in targets],
    ]
    made, new = once(
        tx, key, "reminder", wish, at, lambda: _create(tx, spec, targets, providers, at)
    )
    campaign = tx.campaigns.get(made)
    if tx.reminders.find(campaign.name) is None:
        raise ConflictError(
            f"the reminder that was made with the key '{key}' was removed since",
            key="key",
            hint="Choose a new key for what is new",
        )
    return _told(tx, find(tx, campaign.name), providers, at), new


def _create(
    tx: Tx, spec: ReminderSpec, targets: Sequence[Target], providers: Providers, at: Instant
) -> int:
    if tx.campaigns.find(spec.name) is not None:
        raise ConflictError(f"there is something named '{spec.name}' already", key="name")
    _refuse_over(spec, at)
    campaigns.check(tx, spec.campaign, targets, providers)
    targets = introduced(tx, targets, at)
    campaign = tx.campaigns.add(
        name=spec.name,
        kind="reminder",
        content=spec.campaign.stored_content(),
        settings=spec.campaign.settings(),
        at=at,
    )
    tx.campaigns.move(campaign.id, "launch", at=at)
    reminder = tx.reminders.add(campaign.id, str(spec.rule), spec.rule.zone, at)
    if not spec.campaign.audience:
        tx.reminders.set_targets(reminder.id, targets)
    tx.reminders.switch(reminder.id, True, spec.rule.after(at))
    told = {"reminder": spec.name, "targets": len(targets)}
    many = "1 target" if len(targets) == 1 else f"{len(targets)} targets"
    text = f"{spec.name}: {many}"
    tx.events.add(EventKind.REMINDER_CREATED, text, at=at, data=told)
    return campaign.id


def _refuse_over(spec: ReminderSpec, at: Instant) -> None:
    if spec.rule.after(at) is None:
        raise InputError(
            f"{local_text(spec.rule.at or 0, spec.rule.zone)} is over: it would never fire",
            key="at",
        )


def edit(
    tx: Tx,
    name: str,
    changes: Mapping[str, Any],
    providers: Providers,
    at: Instant,
    *,
    instead: ReminderSpec | None = None,
    targets: Sequence[Target] | None = None,
) -> Made:
    """Change when it fires and when it may send, or put another file in its place.

    What has fired already goes on as it was: a run has its content, targets and window of its own.
    What is due and has not fired yet is due as before, unless its times are others now.
    """
    # People first, as everybody does it: behind the fence nobody is waited for any more.
    tx.contacts.hold(alone=False, adding=instead is not None)
    tx.settings.fence()
    reminder = find(tx, name)
    spec = instead or firing.of_those_left(tx, spec_of(tx, reminder))
    if instead is not None and instead.name != name:
        raise InputError(
            f"the file is about '{instead.name}', not about '{name}'",
            key="name",
            hint="A reminder keeps its name; create another one under the new name",
        )
    spec = edited(spec, changes, name)
    if targets is None:
        targets, _ = firing.whom(tx, reminder, spec.campaign, providers)
    campaigns.check(tx, spec.campaign, targets, providers)
    tx.campaigns.set_content(
        reminder.campaign_id, spec.campaign.stored_content(), spec.campaign.settings()
    )
    if instead is not None:
        tx.reminders.set_targets(
            reminder.id, [] if spec.campaign.audience else introduced(tx, targets, at)
        )
    next_at = reminder.next_at
    if (str(spec.rule), spec.rule.zone) != (reminder.rule, reminder.zone):
        if str(spec.rule) != reminder.rule:
            _refuse_over(spec, at)
        firing.forgo(tx, reminder, "it was given other times before it fired", at)
        next_at = spec.rule.after(at) if reminder.enabled else None
    tx.reminders.change(reminder.id, str(spec.rule), spec.rule.zone, next_at, at)
    tx.events.add(EventKind.REMINDER_EDITED, f"{name} edited", at=at, data={"reminder": name})
    return _told(tx, find(tx, name), providers, at)


def _told(tx: Tx, reminder: Reminder, providers: Providers, at: Instant) -> Made:
    kept = spec_of(tx, reminder)
    spec = firing.of_those_left(tx, kept)
    targets, unreachable = firing.whom(tx, reminder, spec.campaign, providers)
    accounts = [account_named(tx, name) for name in spec.campaign.accounts]
    allotment = allot(tx, accounts, targets)
    warnings = [*spec.warnings(at), *away(tx, kept.campaign.accounts)]
    return Made(reminder, warnings, [*unreachable, *allotment.unreached()])


def away(tx: Tx, names: Iterable[str]) -> list[str]:
    """Which of these accounts cannot send as things stand, each in a sentence with the reason."""
    told = []
    for name in names:
        account = tx.accounts.find(name)
        if account is None:
            told.append(f"account {name} was removed")
        elif account.state in OUT_OF_SERVICE:
            because = f": {account.state_reason}" if account.state_reason else ""
            told.append(f"account {name} is {account.state.replace('_', ' ')}{because}")
    return told


def enable(tx: Tx, name: str, at: Instant) -> Reminder:
    """It fires again from its next time on; what was due while it was off is not made up for."""
    reminder = find(tx, name)
    if reminder.enabled and reminder.next_at is not None:
        raise ConflictError(f"reminder {name} is enabled already")
    next_at = Rule.parse(reminder.rule, reminder.zone).after(at)
    if next_at is None:
        raise ConflictError(
            f"reminder {name} has no time left to fire at",
            hint=f"Give it another one: paceline reminder edit {name} --at …",
        )
    tx.reminders.switch(reminder.id, True, next_at)
    tx.events.add(EventKind.REMINDER_ENABLED, f"{name} enabled", at=at, data={"reminder": name})
    return find(tx, name)


def disable(tx: Tx, name: str, at: Instant) -> Reminder:
    """It fires no more; what it has begun goes on."""
    reminder = find(tx, name)
    if not reminder.enabled:
        raise ConflictError(f"reminder {name} is disabled already")
    firing.forgo(tx, reminder, "it was disabled before it fired", at)
    tx.reminders.switch(reminder.id, False, None)
    tx.events.add(EventKind.REMINDER_DISABLED, f"{name} disabled", at=at, data={"reminder": name})
    return find(tx, name)


def fire(tx: Tx, name: str, providers: Providers, at: Instant, *, key: str | None = None) -> Fired:
    """Now, by hand, beside its own times. Outside its window nothing would go, so it is refused."""
    tx.contacts.hold(alone=False)
    tx.settings.fence()
    reminder = find(tx, name)
    spec = spec_of(tx, reminder).campaign
    campaign = tx.campaigns.get(reminder.campaign_id)
    unreachable: list[Unreachable] = []

    def make() -> int:
        refuse_shut(campaign, reminder, spec, at)
        prepared = firing.prepare(tx, reminder, spec, providers)
        fired = firing.begin(tx, campaign, prepared, at)
        unreachable.extend(fired.unreachable)
        return fired.run.id

    run_id, _ = once(tx, key, "firing", [name], at, make)
    return Fired(tx.runs.get(run_id), unreachable)


def refuse_shut(campaign: Campaign, reminder: Reminder, spec: CampaignSpec, at: Instant) -> None:
    """Nothing is fired by hand that could not be sent."""
    name = reminder.name
    if campaign.state is CampaignState.PAUSED:
        hint = f"Let it go on first: paceline reminder resume {quote(name)}"
        raise ConflictError(f"reminder {name} is paused", hint=hint)
    _, closes_at = day_of_window(spec.window, at)
    if spec.at_close == "skip" and at >= closes_at:
        raise ConflictError(
            f"its window closed at {local_text(closes_at, reminder.zone)}: nothing would be sent",
            hint=f"Widen it: paceline reminder edit {quote(name)} --window 0-24",
        )


def pause(tx: Tx, name: str, at: Instant, reason: str = "paused by an operator") -> Campaign:
    """What it has begun stops before the next message, and it does not fire meanwhile."""
    return campaigns.steer(tx, _campaign(tx, name), "pause", at, reason)


def resume(tx: Tx, name: str, at: Instant) -> Campaign:
    return campaigns.steer(tx, _campaign(tx, name), "resume", at, "")


def _campaign(tx: Tx, name: str) -> Campaign:
    return tx.campaigns.get(find(tx, name).campaign_id)


_REMOVED = " (removed "


def remove(tx: Tx, name: str, at: Instant) -> None:
    """It is gone, and its name is free. What it has sent stays, under the numbers of its runs."""
    tx.settings.fence()
    reminder = find(tx, name)
    going = tx.runs.of_campaign(reminder.campaign_id, _GOING)
    if going:
        raise ConflictError(
            f"run {going[-1].id} of reminder {name} is under way",
            hint=f"Cancel it first: paceline reminder cancel {quote(name)}",
        )
    firing.forgo(tx, reminder, "it was removed before it fired", at)
    tx.reminders.remove(reminder.id)
    reminder_is_gone(tx, reminder.campaign_id, at)
    tx.campaigns.move(reminder.campaign_id, "cancel", at=at, reason="removed")
    tx.campaigns.rename(reminder.campaign_id, f"{name}{_REMOVED}{reminder.campaign_id})")
    tx.events.add(EventKind.REMINDER_REMOVED, f"{name} removed", at=at, data={"reminder": name})


def removed_as(run: Run) -> str | None:
    """The name that the reminder of a run had before it was removed."""
    before, mark, _ = run.campaign.rpartition(_REMOVED)
    return before if mark else None


class Concerned(NamedTuple):
    """The reminders that name an account, by their names."""

    others: list[str]
    """They have other accounts as well."""
    alone: list[str]
    """They have no other one, and nothing to be sent from without it."""


def sent_from(tx: Tx, account: str) -> Concerned:
    found = Concerned([], [])
    for one in tx.reminders.list():
        accounts = spec_of(tx, one).campaign.accounts
        left = [name for name in accounts if name != account and tx.accounts.find(name) is not None]
        if account in accounts:
            (found.others if left else found.alone).append(one.name)
    return found


def sent_to(tx: Tx, audience: str) -> list[str]:
    """The reminders that go to an audience, by their names."""
    known = tx.reminders.list()
    return [
        one.name for one in known if spec_of(tx, one).campaign.audience.get("audience") == audience
    ]
