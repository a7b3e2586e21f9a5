"""``paceline alerts`` and ``paceline alert``: what operators should look at, and who is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from paceline.cli import output
from paceline.cli.options import AsJson
from paceline.cli.surroundings import existing, settings_of
from paceline.core.errors import InputError, ProviderError
from paceline.core.instants import iso, local_text
from paceline.engine import alerts as engine
from paceline.engine.alerts import reasons_text
from paceline.engine.ports import Alert, Told, Tx

app = typer.Typer(help="Alerts: list or clear them, try out who is told.", no_args_is_help=True)
all_app = typer.Typer(invoke_without_command=True)
"""The same under another name, which lists them where nothing else is said."""

WithCleared = Annotated[bool, typer.Option("--all", help="Cleared ones, too.")]

NOBODY_IS_TOLD = (
    "nobody is told of alerts: name addresses in paceline.toml, "
    '[alerts] urls = ["mailto://user:password@example.com"]'
)


@all_app.callback()
def alerts(ctx: typer.Context, everything: WithCleared = False, as_json: AsJson = False) -> None:
    """List what somebody should look at.

    An alert ends by itself when its cause is gone, or with: paceline alert clear ID
    """
    if ctx.invoked_subcommand is None:
        list_(ctx, everything, as_json)


@app.command("list")
@all_app.command("list")
def list_(ctx: typer.Context, everything: WithCleared = False, as_json: AsJson = False) -> None:
    """List what somebody should look at."""
    # "alerts --json list" means what "alerts list --json" does.
    above = ctx.parent.params if ctx.parent is not None else {}
    everything = everything or above.get("everything", False)
    as_json = as_json or above.get("as_json", False)
    with existing(ctx) as house, house.store.read() as tx:
        found = tx.alerts.list(with_cleared=everything)
        shapes = [shape(tx, alert) for alert in found]
        told = bool(house.settings.alerts_urls)
    if as_json:
        output.say_json(shapes)
        return
    rows = [_row(alert, shape["campaign"]) for alert, shape in zip(found, shapes, strict=True)]
    headings = ["ID", "LAST (UTC)", "TIMES", "WHAT", "WHY"]
    rows = [row if everything else row[:-1] for row in rows]
    headings += ["CLEARED"] if everything else []
    output.show_table(
        headings,
        rows,
        right=("ID", "TIMES"),
        firm=("LAST (UTC)", "CLEARED"),
        empty="no alerts: nothing needs a person",
    )
    if not told:
        output.note(NOBODY_IS_TOLD)


def _row(alert: Alert, campaign: str | None) -> tuple[object, ...]:
    last = output.wall_text(alert.last_at, "UTC")
    cleared = "" if alert.cleared_at is None else output.wall_text(alert.cleared_at, "UTC")
    return alert.id, last, alert.count, *_what_and_why(alert, campaign), cleared


def _what_and_why(alert: Alert, campaign: str | None) -> tuple[str, str]:
    """What has happened, and why: the failures it was made from, else the reason in its text."""
    if alert.reasons:
        return alert.text, reasons_text(alert.reasons)
    # A campaign may have a colon in its name.
    named = alert.text.find(campaign) + len(campaign) if campaign else 0
    at = alert.text.find(": ", named)
    return (alert.text, "") if at < 0 else (alert.text[:at], alert.text[at + 2 :])


@app.command()
@all_app.command()
def clear(
    ctx: typer.Context,
    number: Annotated[int, typer.Argument(metavar="ID", help="The alert's number.")],
) -> None:
    """Say that somebody has seen to an alert.

    It comes back if it happens again.
    """
    with existing(ctx) as house, house.store.write() as tx:
        cleared = engine.clear(tx, number, house.clock.now())
    output.say(f"alert {cleared.id} is cleared: {cleared.text}")


@app.command()
@all_app.command()
def test(ctx: typer.Context) -> None:
    """Send a test notice to every address, and say what became of it."""
    from paceline.app import make_notifier

    notifier = make_notifier(settings_of(ctx))
    if notifier is None:
        raise InputError(NOBODY_IS_TOLD)
    text = "This is a test notice of Paceline. Alerts will reach you here."
    answers = asyncio.run(notifier.tell("Paceline: test", text))
    for number, answer in enumerate(answers, start=1):
        output.say(f"{number}. {answer.where}: {_became(answer)}")
    failed = sum(not answer.ok for answer in answers)
    if failed:
        raise ProviderError(f"{failed} of {len(answers)} could not be told")


def _became(answer: Told) -> str:
    return "told" if answer.ok else f"not told: {answer.problem}"


def say_alerts(found: Sequence[Alert]) -> None:
    """One line at the top of whatever they concern; nothing where there are none."""
    if found:
        output.say(alerts_line(found))
        output.say()


def alerts_line(found: Sequence[Alert]) -> str:
    first = found[0]
    if len(found) == 1:
        since = local_text(first.first_at, "UTC")
        return f"alert {first.id} since {since}: {first.text} (see: paceline alerts)"
    return f"{len(found)} open alerts, the latest: {first.text} (see: paceline alerts)"


def shape(tx: Tx, alert: Alert) -> dict[str, Any]:
    account_id, run_id = alert.account_id, alert.run_id
    return {
        "id": alert.id,
        "kind": alert.kind,
        "text": alert.text,
        "reasons": [{"reason": reason, "count": count} for reason, count in alert.reasons],
        "count": alert.count,
        "first_at": iso(alert.first_at),
        "last_at": iso(alert.last_at),
        "told_at": None if alert.told_at is None else iso(alert.told_at),
        "cleared_at": None if alert.cleared_at is None else iso(alert.cleared_at),
        "account": None if account_id is None else tx.accounts.get(account_id).name,
        "campaign": None if run_id is None else tx.runs.get(run_id).campaign,
    }
