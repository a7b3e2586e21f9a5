"""``paceline reminder``: its runs, one by one: fire, list, export, reassign, cancel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from paceline.cli import output, shapes
from paceline.cli.campaign_export import is_file, write_rows
from paceline.cli.options import AsJson, Key, Reason, ReminderName, Yes
from paceline.cli.reminder_words import TARGETS, run_shape, show_runs, standstill
from paceline.cli.surroundings import existing
from paceline.core.errors import InputError
from paceline.core.states import CampaignState, DeliveryState
from paceline.engine.commands import accounts, reminder_runs, reminders
from paceline.engine.commands.reassigning import reassign as reassign_run
from paceline.engine.ports import Run, Tx
from paceline.engine.reminder_view import reminder_view

COLUMNS = ("target", "name", "account", "state", "reason", "sent_at")

RunNumber = Annotated[
    int | None, typer.Option("--run", metavar="ID", min=1, help="Which; the latest unless given.")
]


def runs(
    ctx: typer.Context,
    name: ReminderName,
    as_json: AsJson = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many of the latest.")] = 20,
) -> None:
    """List a reminder's runs: how far each is or how it ended."""
    with existing(ctx) as house, house.store.read() as tx:
        view = reminder_view(tx, name, house.clock.now(), runs_shown=limit)
        stands = standstill(tx)
    if as_json:
        output.say_json([run_shape(entry, stands.stop) for entry in view.runs])
        return
    show_runs(view.runs, view.reminder.zone)
    stands.note()


def export(
    ctx: typer.Context,
    name: ReminderName,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Write to this file; - prints it.")
    ] = None,
    run: RunNumber = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per line instead of CSV.")
    ] = False,
) -> None:
    """Print who got a run of a reminder, who did not, and why.

    What did not arrive can be sent with 'paceline reminder fire --rest'.
    """
    with existing(ctx) as house, house.store.read() as tx:
        found = reminder_runs.run_of(tx, name, run)
        count = write_rows(file, _exported(tx, found), COLUMNS, as_json=as_json)
    if is_file(file):
        many = output.plural(count, "delivery", "deliveries")
        output.note(f"{many} of run {found.id} written to {file}")


def _exported(tx: Tx, run: Run) -> Iterator[dict[str, Any]]:
    senders = tx.accounts.several(sorted(number for number in tx.runs.accounts(run.id) if number))
    known = {group.id: group.name for number in senders for group in tx.groups.list(number)}
    for row in reminder_runs.deliveries_of(tx, run.id):
        account = senders[row.account_id].name if row.account_id in senders else ""
        yield {**shapes.delivery(row, account, run.campaign), "name": known.get(row.target, "")}


def fire(
    ctx: typer.Context,
    name: ReminderName,
    rest: Annotated[
        bool, typer.Option("--rest", help="Only what a finished run did not deliver.")
    ] = False,
    run: RunNumber = None,
    from_: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="ACCOUNT", help="With --rest: from these instead."),
    ] = None,
    key: Key = None,
    yes: Yes = False,
) -> None:
    """Fire a reminder now, beside its own times.

    \b
        paceline reminder fire standup                     all of it
        paceline reminder fire standup --rest --from shop  what its last run left
    """
    if not rest and (run is not None or from_):
        raise InputError("goes with --rest", key="--run" if run is not None else "--from")
    with existing(ctx) as house:
        with house.store.read() as tx:
            reminder = reminders.find(tx, name)
            going = reminder_runs.under_way(tx, reminder)
            named = [accounts.find(tx, one).name for one in from_ or ()]
            senders = named or reminders.spec_of(tx, reminder).campaign.accounts
            away = reminders.away(tx, senders)
        for warning in away:
            output.note(warning)
        told = "".join(f"Run {one.id} of it is {one.state}. " for one in going)
        what = "what is left of reminder" if rest else "reminder"
        output.confirm(f"{told}Fire {what} {name} now?", yes=yes)
        now = house.clock.now()
        with house.store.write() as tx:
            if rest:
                done = reminder_runs.fire_rest(
                    tx, name, house.providers, now, run_id=run, from_accounts=from_ or (), key=key
                )
            else:
                fired = reminders.fire(tx, name, house.providers, now, key=key)
                done = reminder_runs.Rest(fired)
            waiting = tx.runs.counts(done.fired.run.id)[DeliveryState.READY]
        with house.store.read() as tx:
            stands = standstill(tx)
    _say_fired(name, done, waiting)
    for one in going:
        if one.id != done.fired.run.id:
            output.note(f"run {one.id} of it is {one.state}; this is run {done.fired.run.id}")
    stands.note()


def _say_fired(name: str, done: reminder_runs.Rest, waiting: int) -> None:
    many = output.plural(waiting, "message waits", "messages wait")
    of_run = f" with what run {done.of_run.id} left" if done.of_run is not None else ""
    output.say(f"reminder {name} fired{of_run}: {many}")
    output.say(f"follow it with: paceline reminder runs {quote(name)}")
    output.tell_unreachable(done.fired.unreachable, nouns=TARGETS)
    if done.begun:
        output.note(f"{done.begun} got a part of it, and are left alone")
    if done.since:
        output.note(f"{done.since} got it since in a later run, or are about to")


def cancel(
    ctx: typer.Context,
    name: ReminderName,
    run: RunNumber = None,
    reason: Reason = None,
    yes: Yes = False,
) -> None:
    """Cancel what is left of a run that is under way.

    The reminder fires again at its next time.
    """
    which = f"run {run}" if run is not None else "the run under way"
    output.confirm(f"Cancel what is left of {which} of reminder {name}?", yes=yes)
    with existing(ctx) as house, house.store.write() as tx:
        why = reason or "cancelled by an operator"
        done = reminder_runs.cancel(tx, name, house.clock.now(), run_id=run, reason=why)
        counts = tx.runs.counts(done.id)
        paused = tx.campaigns.get(done.campaign_id).state is CampaignState.PAUSED
    sent, left = counts[DeliveryState.SENT], counts[DeliveryState.CANCELLED]
    output.say(f"run {done.id} of reminder {name} cancelled: {sent} had been sent, {left} will not")
    if left:
        again = f"paceline reminder fire {quote(name)} --rest --run {done.id}"
        output.say(f"send them after all with: {again}")
    if paused:
        go_on = f"paceline reminder resume {quote(name)}"
        output.note(f"reminder {name} is paused, and fires again once it goes on: {go_on}")


def reassign(
    ctx: typer.Context,
    name: ReminderName,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="ACCOUNT", help="Whose; those out of service unless given."),
    ] = None,
    to: Annotated[
        list[str] | None,
        typer.Option("--to", metavar="ACCOUNT", help="To whom; its other accounts unless given."),
    ] = None,
) -> None:
    """Send what is left of a run from other accounts.

    A group is sent to only by an account that is a member of it.
    """
    with existing(ctx) as house, house.store.write() as tx:
        done = reassign_run(
            tx,
            name,
            house.providers,
            house.clock.now(),
            from_account=from_,
            to_accounts=to or (),
        )
    told = ", ".join(f"{count} to {account}" for account, count in sorted(done.given.items()))
    output.say(f"reminder {name}: {told or 'nothing was left that could be moved'}")
    for account, why in sorted(done.stays.items()):
        reasons = ", ".join(f"{count} because {reason}" for reason, count in sorted(why.items()))
        stay = "stays" if why.total() == 1 else "stay"
        output.say(f"{why.total()} {stay} with {account}: {reasons}")
