"""``paceline campaign``: what is sent to whom, and steering it while it runs."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli import output, shapes
from paceline.cli.alerts import say_alerts
from paceline.cli.alerts import shape as alert_shape
from paceline.cli.campaign_export import is_file, write_rows
from paceline.cli.options import CAMPAIGN_FILE, AsJson, CampaignName, Key, Reason, Yes
from paceline.cli.surroundings import database_of, existing
from paceline.core.durations import print_duration
from paceline.core.errors import ConflictError, InputError
from paceline.core.instants import iso
from paceline.core.states import CampaignState, DeliveryState
from paceline.engine import fleet, queries
from paceline.engine.alerts import of_campaign
from paceline.engine.commands import campaigns
from paceline.engine.commands.retrying import retry_failed
from paceline.engine.stopping import stopped

if TYPE_CHECKING:
    from paceline.app import App
    from paceline.engine.launching import Launched
    from paceline.engine.planning import RunPlan
    from paceline.engine.ports import Campaign

BULK = 1_000
"""Deliveries from which on the database's statistics are worth refreshing."""

app = typer.Typer(
    help="Campaigns: what is sent to whom.",
    no_args_is_help=True,
)


@app.command()
def create(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Option("-f", "--file", metavar="FILE", readable=False, help=CAMPAIGN_FILE),
    ],
    launch: Annotated[bool, typer.Option("--launch", help="Launch it at once.")] = False,
    key: Key = None,
) -> None:
    """Create a campaign from a file.

    It is created with all its deliveries, or not at all.

    \b
        name = "spring"
        accounts = ["sales", "team"]
        audience = "people.csv"     # columns email, phone, …; or an audience
        [[parts]]
        text = "Hello {{ first_name }}"
        [[parts]]
        media = "poster.png"
        caption = "See you there"
    """
    from paceline.cli.campaign_file import read_campaign

    written = read_campaign(file)
    with existing(ctx) as house:
        now = house.clock.now()
        with house.store.write() as tx, written.blamed():
            written = written.with_people(tx, house.providers)
            spec = written.stored_spec(tx, now)
            campaign, new = campaigns.create_once(
                tx, spec, written.targets, house.providers, now, key
            )
        if not new and (not launch or campaign.state is not CampaignState.DRAFT):
            _say_it_exists(campaign)
            return
        if len(written.targets) >= BULK:
            house.store.analyse()
        try:
            launched = _launched(house, spec.name) if launch else None
        except ConflictError:
            with house.store.read() as tx:
                campaign = tx.campaigns.get(campaign.id)
            if key is None or campaign.state is CampaignState.DRAFT:
                raise
            # Whoever asked for the same at the same time was first to launch it.
            _say_it_exists(campaign)
            return
        with house.store.read() as tx:
            running = fleet.is_running(tx)
    doubles = f" ({written.duplicates} named twice)" if written.duplicates else ""
    many = f"{len(spec.accounts)} accounts" if len(spec.accounts) > 1 else spec.accounts[0]
    count = len(written.targets) * len(spec.contents)
    planned = output.plural(count, "delivery", "deliveries")
    done = "created" if new else "exists under this key"
    output.say(f"campaign {spec.name} {done}: {planned} on {many}{doubles}")
    if spec.follow_up is not None:
        within = print_duration(spec.follow_up.within_us)
        who = "answers" if spec.follow_up.on == "reply" else "accepts"
        output.say(f"and a follow-up to whoever {who} within {within}")
    output.tell_unreachable(written.unreachable)
    if launched is None:
        output.say(f"launch it with: paceline campaign launch {quote(spec.name)}")
    else:
        output.say(f"launched; {_finish(launched.plan)}")
        output.say(f"follow it with: paceline campaign status {quote(spec.name)} --watch")
        if not running:
            output.note(fleet.NOBODY_RUNS)


def _say_it_exists(campaign: Campaign) -> None:
    output.say(f"campaign {campaign.name} exists under this key; it is {campaign.state}")


def _launched(house: App, name: str) -> Launched:
    from paceline.engine import launching

    return launching.launch(house.store, name, house.clock.now(), house.providers)


def _finish(plan: RunPlan) -> str:
    """When it will be done, as far as can be told when it is launched."""
    if plan.plan.finish_at is None:
        return "nothing of it can be sent as things stand"
    never = len(plan.nevers)
    rest = f"; {output.plural(never, 'message', 'messages')} cannot be sent" if never else ""
    done = output.until_text(plan.plan.finish_at, plan.plan.start_at, plan.plan.zone)
    return f"by plan it is done {done}{rest}"


@app.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the campaigns and how far they are."""
    with existing(ctx) as house, house.store.read() as tx:
        names = [found.name for found in tx.campaigns.list() if found.kind == "campaign"]
        views = [queries.campaign_view(tx, name) for name in names]
        stop, database = stopped(tx), database_of(house)
    if as_json:
        output.say_json([shapes.campaign_view(view) for view in views])
        return
    rows = [
        (
            view.campaign.name,
            output.state_text(view.campaign.state),
            view.total,
            view.counts[DeliveryState.SENT],
            iso(view.campaign.created_at)[:10],
        )
        for view in views
    ]
    output.show_table(
        ("NAME", "STATE", "TOTAL", "SENT", "CREATED"),
        rows,
        right=("TOTAL", "SENT"),
        empty=f"no campaigns yet in {database}; create one with: paceline campaign create -f FILE",
    )
    if stop is not None:
        output.say(f"\n{output.stop_text(stop)}")


@app.command()
def launch(ctx: typer.Context, name: CampaignName) -> None:
    """Start a campaign.

    Its deliveries leave as soon as their accounts allow.
    """
    with existing(ctx) as house:
        launched = _launched(house, name)
        with house.store.read() as tx:
            running = fleet.is_running(tx)
    output.say(f"campaign {name} launched; {_finish(launched.plan)}")
    output.tell_unreachable(launched.unreachable)
    if not running:
        output.note(fleet.NOBODY_RUNS)


@app.command()
def pause(ctx: typer.Context, name: CampaignName, reason: Reason = None) -> None:
    """Pause a campaign, before its next message.

    What has started finishes.
    """
    with existing(ctx) as house, house.store.write() as tx:
        campaigns.pause(tx, name, house.clock.now(), reason or "paused by an operator")
    output.say(f"campaign {name} is paused; go on with: paceline campaign resume {quote(name)}")


@app.command()
def resume(ctx: typer.Context, name: CampaignName) -> None:
    """Go on with a paused campaign."""
    with existing(ctx) as house, house.store.write() as tx:
        campaigns.resume(tx, name, house.clock.now())
    output.say(f"campaign {name} goes on")


@app.command()
def cancel(ctx: typer.Context, name: CampaignName, reason: Reason = None, yes: Yes = False) -> None:
    """Cancel a campaign for good; what has been sent stays sent."""
    from paceline.cli.limits import after_cancel

    output.confirm(f"Cancel campaign {name} for good?", yes=yes)
    with existing(ctx) as house:
        with house.store.write() as tx:
            why = reason or "cancelled by an operator"
            campaigns.cancel(tx, name, house.clock.now(), why)
        with house.store.read() as tx:
            counts = queries.campaign_view(tx, name).counts
        sent, cancelled = counts[DeliveryState.SENT], counts[DeliveryState.CANCELLED]
        output.say(f"campaign {name} cancelled: {sent} had been sent, {cancelled} will not be")
        after_cancel(house.store, name, house.clock.now())


@app.command()
def retry(
    ctx: typer.Context,
    name: CampaignName,
    failed: Annotated[
        bool, typer.Option("--failed", help="Those whose message failed for good.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Send again to exactly those who did not get it.

    Whoever got the message is not written to again. What may have arrived is left alone: see
    'paceline unknown list'.
    """
    if not failed:
        raise InputError("say what is to be sent again", key="retry", hint="Add --failed")
    output.confirm(f"Send campaign {name} again to those whose message failed?", yes=yes)
    with existing(ctx) as house, house.store.write() as tx:
        done = retry_failed(tx, name, house.clock.now())
    again = output.plural(done.again, "message", "messages")
    output.say(f"{again} of campaign {name} sent again" if done.again else "nothing has failed")
    if done.gone:
        if done.gone == 1:
            output.note("1 stays failed: its account was removed, or its recipient opted out")
        else:
            output.note(f"{done.gone} stay failed: their account was removed, or they opted out")
    if done.unknown:
        left = "is left alone" if done.unknown == 1 else "are left alone"
        output.note(f"{done.unknown} may have arrived and {left}: paceline unknown list")


@app.command()
def status(
    ctx: typer.Context,
    name: CampaignName,
    as_json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch", help="Follow it until it ends.")] = False,
) -> None:
    """Show how far a campaign is, per account and in all."""
    from paceline.cli.campaign_status import show_status, watch_status

    with existing(ctx) as house:
        if watch:
            watch_status(house.store, house.clock, name, as_json=as_json)
            return
        with house.store.read() as tx:
            view = queries.campaign_view(tx, name)
            now = house.clock.now()
            view = queries.with_eta(tx, view, now)
            found = of_campaign(tx, [run.id for run in view.runs])
            alerts = [alert_shape(tx, alert) for alert in found]
    if as_json:
        output.say_json({**shapes.campaign_view(view), "alerts": alerts})
    else:
        say_alerts(found)
        show_status(view, now)


@app.command()
def export(
    ctx: typer.Context,
    name: CampaignName,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per line instead of CSV.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to this file; - prints it."),
    ] = None,
) -> None:
    """Print every delivery of a campaign and what became of it."""
    with existing(ctx) as house, house.store.read() as tx:
        rows = (shapes.delivery(*row) for row in queries.exported(tx, name))
        count = write_rows(out, rows, as_json=as_json)
    if is_file(out):
        output.note(f"{output.plural(count, 'delivery', 'deliveries')} written to {out}")
