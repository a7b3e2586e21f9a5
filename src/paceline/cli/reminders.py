"""``paceline reminder``: what is sent to many groups again and again, or once, in a window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from paceline.cli import output, shapes
from paceline.cli.campaign_file import read_reminder
from paceline.cli.options import AsJson, Key, Reason, ReminderName, Yes
from paceline.cli.surroundings import database_of, existing
from paceline.core.errors import InputError
from paceline.core.instants import Instant
from paceline.core.states import DeliveryState, RunState
from paceline.engine import fleet
from paceline.engine.commands import reminders
from paceline.engine.commands.reassigning import reassign as reassign_run
from paceline.engine.commands.reminders import Made
from paceline.engine.reminder_spec import ReminderSpec
from paceline.engine.reminder_view import ReminderView, RunView, reminder_view

app = typer.Typer(help="Reminders: to many groups, by the clock.", no_args_is_help=True)

TARGETS = ("target", "targets")
_AT_CLOSE = {"skip": "then the rest is skipped", "resume": "then it goes on the next day"}

File = Annotated[
    Path,
    typer.Option(
        "-f",
        "--file",
        metavar="FILE",
        readable=False,
        help="The reminder's TOML file; - is standard input.",
    ),
]


@app.command()
def create(ctx: typer.Context, file: File, key: Key = None) -> None:
    """Create a reminder from a file; it is enabled at once.

    \b
        name = "standup"
        account = "team"
        targets = ["120363041234567890@g.us", "120363049876543210@g.us"]
        cron = "0 9 * * MON-FRI"    # or at = "2026-11-20", which is at nine
        zone = "Asia/Kuala_Lumpur"
        window = "6-18"             # what has not gone by then is skipped
        [[parts]]
        text = "Good morning"
        [[parts]]
        media = "plan.png"
    """
    written, rule = read_reminder(file)
    with existing(ctx) as house:
        now = house.clock.now()
        with house.store.write() as tx, written.blamed():
            written = written.with_people(tx, house.providers)
            spec = ReminderSpec(written.stored_spec(tx, now), rule)
            made, new = reminders.create(tx, spec, written.targets, house.providers, now, key=key)
        with house.store.read() as tx:
            view, running = reminder_view(tx, spec.name, now), fleet.is_running(tx)
    done = "created" if new else "exists under this key"
    many = output.plural(view.targets, "target", "targets")
    doubles = f" ({written.duplicates} named twice)" if written.duplicates else ""
    from_whom = ", ".join(spec.campaign.accounts)
    output.say(f"reminder {spec.name} {done}: {many}{doubles} from {from_whom}")
    _tell(made)
    _say_next(view)
    if not running:
        output.note(fleet.NOBODY_RUNS)


@app.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List reminders: their next firing and how the last went."""
    with existing(ctx) as house, house.store.read() as tx:
        now = house.clock.now()
        names = [known.name for known in tx.reminders.list()]
        views = [reminder_view(tx, name, now, runs_shown=1) for name in names]
        database = database_of(house)
    if as_json:
        output.say_json([shape(view) for view in views])
        return
    output.show_table(
        ("NAME", "STATE", "NEXT", "TARGETS", "FROM", "LAST"),
        [
            (
                view.reminder.name,
                output.state_text(_state(view)),
                _when(view.reminder.next_at, view.reminder.zone),
                view.targets,
                ", ".join(view.spec.campaign.accounts),
                _progress(view.runs[0]) if view.runs else "-",
            )
            for view in views
        ],
        right=("TARGETS",),
        empty=f"no reminders yet in {database}; create one with: paceline reminder create -f FILE",
    )


@app.command()
def show(ctx: typer.Context, name: ReminderName, as_json: AsJson = False) -> None:
    """Show one reminder: its next firings and its latest runs."""
    with existing(ctx) as house, house.store.read() as tx:
        view = reminder_view(tx, name, house.clock.now())
    if as_json:
        output.say_json(shape(view))
        return
    spec, zone = view.spec.campaign, view.reminder.zone
    facts = [
        ("state", output.state_text(_state(view))),
        ("fires", f"{view.spec.rule} ({zone})" if view.spec.rule.recurs else "once"),
        ("next", ", ".join(output.wall_text(at, zone) for at in view.firings) or "never"),
        ("window", f"{spec.window}, {_AT_CLOSE[spec.at_close]}"),
        ("from", ", ".join(spec.accounts)),
        ("to", _whom(view)),
        ("says", " | ".join(_said(part) for part in view.campaign.content)),
    ]
    output.console().print(output.table(("", ""), facts))
    _show_runs(view.runs, zone)


@app.command()
def runs(
    ctx: typer.Context,
    name: ReminderName,
    as_json: AsJson = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many of the latest.")] = 20,
) -> None:
    """List a reminder's runs: how far each is or how it ended."""
    with existing(ctx) as house, house.store.read() as tx:
        view = reminder_view(tx, name, house.clock.now(), runs_shown=limit)
    if as_json:
        output.say_json([run_shape(entry) for entry in view.runs])
        return
    _show_runs(view.runs, view.reminder.zone)


@app.command()
def edit(
    ctx: typer.Context,
    name: ReminderName,
    file: Annotated[
        Path | None,
        typer.Option("-f", "--file", metavar="FILE", help="A file to take its place altogether."),
    ] = None,
    at: Annotated[str | None, typer.Option("--at", help="Fire once, then.")] = None,
    cron: Annotated[str | None, typer.Option("--cron", help="Fire by this rule.")] = None,
    zone: Annotated[str | None, typer.Option("--zone", help="The clock it goes by.")] = None,
    window: Annotated[str | None, typer.Option("--window", help='Like "6-18".')] = None,
    at_close: Annotated[str | None, typer.Option("--at-close", help="skip or resume.")] = None,
) -> None:
    """Change a reminder. What it has begun goes on as it was."""
    given = {"at": at, "cron": cron, "zone": zone, "window": window, "at_close": at_close}
    changes = {key: value for key, value in given.items() if value is not None}
    if not changes and file is None:
        raise InputError("say what is to change", key="edit", hint="See: paceline reminder edit -h")
    read = None if file is None else read_reminder(file)
    with existing(ctx) as house:
        now = house.clock.now()
        with house.store.write() as tx:
            if read is None:
                made = reminders.edit(tx, name, changes, house.providers, now)
            else:
                written, rule = read
                with written.blamed():
                    written = written.with_people(tx, house.providers)
                    made = reminders.edit(
                        tx,
                        name,
                        changes,
                        house.providers,
                        now,
                        instead=ReminderSpec(written.stored_spec(tx, now), rule),
                        targets=written.targets,
                    )
        with house.store.read() as tx:
            view = reminder_view(tx, name, now)
    output.say(f"reminder {name} edited")
    _tell(made)
    _say_next(view)


@app.command()
def enable(ctx: typer.Context, name: ReminderName) -> None:
    """Let a reminder fire again, from its next time on."""
    with existing(ctx) as house:
        now = house.clock.now()
        with house.store.write() as tx:
            reminders.enable(tx, name, now)
            view = reminder_view(tx, name, now)
    output.say(f"reminder {name} is enabled")
    _say_next(view)


@app.command()
def disable(ctx: typer.Context, name: ReminderName) -> None:
    """Let a reminder fire no more. What it has begun goes on."""
    with existing(ctx) as house, house.store.write() as tx:
        reminders.disable(tx, name, house.clock.now())
    output.say(f"reminder {name} is disabled")


@app.command()
def fire(ctx: typer.Context, name: ReminderName, key: Key = None, yes: Yes = False) -> None:
    """Fire a reminder now, beside its own times."""
    output.confirm(f"Fire reminder {name} now?", yes=yes)
    with existing(ctx) as house:
        with house.store.write() as tx:
            fired = reminders.fire(tx, name, house.providers, house.clock.now(), key=key)
            counts = tx.runs.counts(fired.run.id)
        with house.store.read() as tx:
            running = fleet.is_running(tx)
    if fired.run.state is RunState.FAILED:
        raise InputError(fired.run.summary, key=name)
    many = output.plural(counts[DeliveryState.READY], "message waits", "messages wait")
    output.say(f"reminder {name} fired: {many}")
    output.say(f"follow it with: paceline reminder runs {quote(name)}")
    output.tell_unreachable(fired.unreachable, nouns=TARGETS)
    if not running:
        output.note(fleet.NOBODY_RUNS)


@app.command()
def pause(ctx: typer.Context, name: ReminderName, reason: Reason = None) -> None:
    """Pause a reminder before its next message.

    It does not fire while it is paused.
    """
    with existing(ctx) as house, house.store.write() as tx:
        reminders.pause(tx, name, house.clock.now(), reason or "paused by an operator")
    output.say(f"reminder {name} is paused; go on with: paceline reminder resume {quote(name)}")


@app.command()
def resume(ctx: typer.Context, name: ReminderName) -> None:
    """Go on with a paused reminder, where it stopped."""
    with existing(ctx) as house, house.store.write() as tx:
        reminders.resume(tx, name, house.clock.now())
    output.say(f"reminder {name} goes on")


@app.command()
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
    output.tell_unreachable(done.left, nouns=TARGETS)


# ---------------------------------------------------------------------- words


def _tell(made: Made) -> None:
    for warning in made.warnings:
        output.note(warning)
    output.tell_unreachable(made.unreachable, nouns=TARGETS)


def _say_next(view: ReminderView) -> None:
    zone = view.reminder.zone
    if view.firings:
        first, *more = [output.wall_text(at, zone) for at in view.firings]
        rest = f", then {more[0]}, …" if more else ""
        output.say(f"fires next at {first} {zone}{rest}")


def _state(view: ReminderView) -> str:
    if view.campaign.state == "paused":
        return "paused"
    if not view.reminder.enabled:
        return "disabled"
    return "enabled" if view.reminder.next_at is not None else "done"


def _when(at: Instant | None, zone: str) -> str:
    return "-" if at is None else f"{output.wall_text(at, zone)} {zone}"


def _whom(view: ReminderView) -> str:
    audience = view.spec.campaign.audience.get("audience")
    told = output.plural(view.targets, "target", "targets")
    return told if audience is None else f"audience {audience} ({told} now)"


def _said(part: dict[str, Any]) -> str:
    text = str(part.get("text") or part.get("caption") or part.get("kind", ""))
    return text if len(text) <= 60 else f"{text[:59]}…"


def _progress(entry: RunView) -> str:
    sent, total = entry.counts[DeliveryState.SENT], sum(entry.counts.values())
    return f"{entry.run.state}, {sent} of {total}" if total else str(entry.run.state)


def _show_runs(found: Sequence[RunView], zone: str) -> None:
    output.show_table(
        ("RUN", "FIRED FOR", "STATE", "SENT", "TOTAL", ""),
        [
            (
                entry.run.id,
                _when(entry.run.fired_for, zone) if entry.run.fired_for else "by hand",
                output.state_text(entry.run.state),
                entry.counts[DeliveryState.SENT],
                sum(entry.counts.values()),
                _note_on(entry),
            )
            for entry in found
        ],
        right=("RUN", "SENT", "TOTAL"),
        empty="it has not fired yet",
    )


def _note_on(entry: RunView) -> str:
    if entry.waits_for:
        return f"waits for {entry.waits_for}"
    return entry.run.summary or entry.run.reason


def shape(view: ReminderView) -> dict[str, Any]:
    """As JSON has it."""
    return {
        "name": view.reminder.name,
        "state": _state(view),
        "rule": view.reminder.rule,
        "zone": view.reminder.zone,
        "next": [shapes.instant(at) for at in view.firings],
        "targets": view.targets,
        "settings": dict(view.campaign.settings),
        "content": list(view.campaign.content),
        "runs": [run_shape(entry) for entry in view.runs],
    }


def run_shape(entry: RunView) -> dict[str, Any]:
    run = entry.run
    return {
        "id": run.id,
        "state": run.state.value,
        "fired_for": shapes.instant(run.fired_for),
        "started_at": shapes.instant(run.started_at),
        "finished_at": shapes.instant(run.finished_at),
        "closes_at": shapes.instant(run.closes_at),
        "delivered": entry.counts[DeliveryState.SENT],
        "total": sum(entry.counts.values()),
        "counts": shapes.counts(entry.counts),
        "waits_for": entry.waits_for,
        "summary": run.summary,
    }
