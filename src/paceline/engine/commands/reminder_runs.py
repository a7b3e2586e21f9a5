"""A reminder's runs: which one is meant, what it has left undelivered, and calling off the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from shlex import quote

from paceline.core.address import ERASED
from paceline.core.errors import ConflictError, NotFoundError
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.core.model import Target
from paceline.core.states import DeliveryState, RunState
from paceline.engine import firing
from paceline.engine.alerts import campaign_goes_on
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.commands.accounts import find as find_account
from paceline.engine.commands.reminders import find, refuse_shut, removed_as
from paceline.engine.firing import Fired
from paceline.engine.once import once
from paceline.engine.ports import Delivery, Providers, Reminder, Run, Tx

PAGE = 1_000
LOOKED_THROUGH = 100
"""Among so many of the latest runs one is looked for that has deliveries."""

UNDER_WAY = (RunState.WAITING, RunState.RUNNING, RunState.PAUSED)
UNDELIVERED = (DeliveryState.SKIPPED, DeliveryState.FAILED, DeliveryState.CANCELLED)
"""What got nothing. What bounced or is in doubt may have arrived."""
MOVING = (DeliveryState.PLANNED, DeliveryState.READY, DeliveryState.SENDING)


@dataclass(frozen=True, slots=True)
class Rest:
    """What was left of a run, on its way again."""

    fired: Fired
    of_run: Run | None = None
    """None where it was asked for before, under the same key."""
    begun: int = 0
    """Whoever has got a part of it is left alone: another sender would begin anew."""
    since: int = 0
    """Whoever has got it since in a later run, or is about to."""


def run_of(tx: Tx, name: str, run_id: int | None = None) -> Run:
    """One of a reminder's runs, also of one that was removed; the latest that has deliveries unless
    it is named."""
    if run_id is not None:
        try:
            run = tx.runs.get(run_id)
        except NotFoundError:
            run = None
        if run is not None and run.kind == "reminder" and name in (run.campaign, removed_as(run)):
            return run
        raise NotFoundError(
            f"reminder {name} has no run {run_id}",
            hint=f"See: paceline reminder runs {quote(name)}",
        )
    latest = tx.runs.latest(find(tx, name).campaign_id, LOOKED_THROUGH)
    found = next((run for run in latest if run.total), None)
    if found is None:
        raise NotFoundError(f"reminder {name} has sent nothing yet")
    return found


def deliveries_of(tx: Tx, run_id: int) -> Iterator[Delivery]:
    """All of them, a page at a time."""
    after_id = 0
    while page := tx.deliveries.page(run_id=run_id, after_id=after_id, limit=PAGE):
        yield from page
        after_id = page[-1].id


def under_way(tx: Tx, reminder: Reminder) -> list[Run]:
    return tx.runs.of_campaign(reminder.campaign_id, UNDER_WAY)


def fire_rest(
    tx: Tx,
    name: str,
    providers: Providers,
    at: Instant,
    *,
    run_id: int | None = None,
    from_accounts: Sequence[str] = (),
    key: str | None = None,
) -> Rest:
    """A new run of what a finished one has not delivered, as that one said it, from the reminder's
    accounts or from others. Refused, and nothing is written, where nothing is left."""
    tx.contacts.hold(alone=False)
    tx.settings.fence()
    reminder = find(tx, name)
    campaign = tx.campaigns.get(reminder.campaign_id)
    spec = CampaignSpec.stored(campaign.name, campaign.content, campaign.settings)
    senders = [find_account(tx, one).name for one in dict.fromkeys(from_accounts)]
    done: list[Rest] = []

    def make() -> int:
        refuse_shut(campaign, reminder, spec, at)
        run = run_of(tx, name, run_id)
        if run.campaign_id != reminder.campaign_id:
            # Who got it since could not be told: what this one sends is not that one's.
            raise ConflictError(
                f"run {run.id} is of a reminder {name} that was removed",
                hint=f"See whom it left out: paceline reminder export {quote(name)} - "
                f"--run {run.id}",
            )
        _refuse_moving(tx, run)
        left = _left_of(tx, run)
        if not left.targets:
            raise ConflictError(_nothing_left(run, left))
        said = CampaignSpec.stored(campaign.name, run.content, campaign.settings)
        said = replace(said, accounts=tuple(senders)) if senders else said
        prepared = firing.prepare(tx, reminder, said, providers, left.targets)
        done.append(Rest(firing.begin(tx, campaign, prepared, at), run, left.begun, left.since))
        return done[0].fired.run.id

    made, new = once(tx, key, "firing", [name, "rest", run_id, senders], at, make)
    return done[0] if new else Rest(Fired(tx.runs.get(made), []))


def _refuse_moving(tx: Tx, run: Run) -> None:
    counts = tx.runs.counts(run.id)
    if run.state in UNDER_WAY or any(counts[state] for state in MOVING):
        raise ConflictError(
            f"run {run.id} of reminder {run.campaign} is under way yet",
            hint="Wait until it is over, or let others send what waits: "
            f"paceline reminder reassign {quote(run.campaign)}",
        )


@dataclass(slots=True)
class _Left:
    targets: list[Target]
    begun: int = 0
    since: int = 0


def _left_of(tx: Tx, run: Run) -> _Left:
    missing = [row for row in deliveries_of(tx, run.id) if row.state in UNDELIVERED]
    # Whoever was erased is known by a hash, to which nothing can be sent.
    missing = [row for row in missing if not row.target.startswith(ERASED)]
    # Nor may it be to whoever does not want it, or does not exist.
    missing = [row for row in missing if not row.suppressed]
    fresh = [row for row in missing if not row.parts_done]
    # Asked for twice, or a day later, nobody gets the same again, by no address of theirs.
    since = tx.runs.reached_after(run.id, UNDELIVERED) if fresh else []
    targets_since = {target for target, _ in since}
    people_since = {contact_id for _, contact_id in since if contact_id is not None}
    wanted = [
        row
        for row in fresh
        if row.target not in targets_since and row.contact_id not in people_since
    ]
    wanted.sort(key=lambda row: row.position)
    targets = [Target(row.target, row.fields, row.contact_id) for row in wanted]
    return _Left(targets, len(missing) - len(fresh), len(fresh) - len(targets))


def _nothing_left(run: Run, left: _Left) -> str:
    told = []
    if left.begun:
        told.append(f"{left.begun} got a part of it")
    if left.since:
        told.append(f"{left.since} got it since, or are about to")
    besides = f" ({', '.join(told)})" if told else ""
    return f"run {run.id} of reminder {run.campaign} has left nothing to be sent{besides}"


def cancel(
    tx: Tx,
    name: str,
    at: Instant,
    *,
    run_id: int | None = None,
    reason: str = "cancelled by an operator",
) -> Run:
    """Nothing more of a run starts. What is on its way finishes and is counted; its reminder fires
    again at its next time."""
    tx.settings.fence()
    reminder = find(tx, name)
    runs = under_way(tx, reminder)
    if run_id is not None:
        wanted = run_of(tx, name, run_id)
        if wanted.state not in UNDER_WAY:
            raise ConflictError(f"run {run_id} of reminder {name} is over: {wanted.state}")
        runs = [wanted]
    if not runs:
        raise ConflictError(f"reminder {name} has no run under way")
    if len(runs) > 1:
        numbers = ", ".join(str(run.id) for run in runs)
        raise ConflictError(f"several runs are under way: {numbers}", hint="Say which: --run ID")
    (run,) = runs
    tx.lanes.touch_run(run.id, at)
    tx.deliveries.move_all(run.id, "cancel", at=at, reason=reason)
    if tx.runs.move(run.id, "cancel", at=at, reason=reason) is None:
        raise ConflictError(f"run {run.id} of reminder {name} has just ended")
    campaign_goes_on(tx, run.id, at)
    told = {"reminder": name, "run": run.id, "reason": reason}
    text = f"{name}: run {run.id} cancelled"
    tx.events.add(EventKind.REMINDER_CANCELLED, text, at=at, run_id=run.id, data=told)
    return tx.runs.get(run.id)
