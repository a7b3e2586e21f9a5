"""``paceline reminder``: what is sent to many groups again and again, or once, in a window.

What can be done with single runs is in ``reminder_runs.py``.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from paceline.cli import output
from paceline.cli import reminder_words as words
from paceline.cli.campaign_file import read_reminder
from paceline.cli.options import AsJson, Key, Reason, ReminderName, Yes
from paceline.cli.reminder_runs import cancel, export, fire, reassign, runs
from paceline.cli.surroundings import database_of, existing
from paceline.core.errors import InputError
from paceline.engine.commands import reminders
from paceline.engine.reminder_spec import ReminderSpec
from paceline.engine.reminder_view import reminder_view

app = typer.Typer(help="Reminders: to many groups, by the clock.", no_args_is_help=True)

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
            view, stands = reminder_view(tx, spec.name, now), words.standstill(tx)
    done = "created" if new else "exists under this key"
    many = output.plural(view.targets, "target", "targets")
    doubles = f" ({written.duplicates} named twice)" if written.duplicates else ""
    from_whom = ", ".join(spec.campaign.accounts)
    output.say(f"reminder {spec.name} {done}: {many}{doubles} from {from_whom}")
    words.tell(made)
    words.say_next(view)
    stands.note()


@app.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List reminders: their next firing and how the last went."""
    with existing(ctx) as house, house.store.read() as tx:
        now = house.clock.now()
        names = [known.name for known in tx.reminders.list()]
        views = [reminder_view(tx, name, now, runs_shown=1) for name in names]
        database, stands = database_of(house), words.standstill(tx)
    if as_json:
        output.say_json([words.shape(view, stands.stop) for view in views])
        return
    output.show_table(
        ("NAME", "STATE", "NEXT", "TARGETS", "FROM", "LAST"),
        [
            (
                view.reminder.name,
                output.state_text(words.state(view)),
                words.next_text(view),
                view.targets,
                ", ".join(view.spec.campaign.accounts),
                words.progress(view.runs[0]) if view.runs else "-",
            )
            for view in views
        ],
        right=("TARGETS",),
        empty=f"no reminders yet in {database}; create one with: paceline reminder create -f FILE",
    )
    if views:
        stands.note()


@app.command()
def show(ctx: typer.Context, name: ReminderName, as_json: AsJson = False) -> None:
    """Show one reminder: its next firings and its latest runs."""
    with existing(ctx) as house, house.store.read() as tx:
        view = reminder_view(tx, name, house.clock.now())
        stands = words.standstill(tx)
    if as_json:
        output.say_json(words.shape(view, stands.stop))
        return
    spec, zone = view.spec.campaign, view.reminder.zone
    facts = [
        ("state", output.state_text(words.state(view))),
        ("fires", f"{view.spec.rule} ({zone})" if view.spec.rule.recurs else "once"),
        ("next", words.firings_text(view)),
        ("window", f"{spec.window}, {_AT_CLOSE[spec.at_close]}"),
        ("from", ", ".join(spec.accounts)),
        ("to", words.whom(view)),
        ("says", " | ".join(words.said(part) for part in view.campaign.content)),
    ]
    output.console().print(output.table(("", ""), facts))
    words.show_runs(view.runs, zone)
    for warning in view.away:
        output.note(warning)
    stands.note()


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
    words.tell(made)
    words.say_next(view)


@app.command()
def enable(ctx: typer.Context, name: ReminderName) -> None:
    """Let a reminder fire again, from its next time on."""
    with existing(ctx) as house:
        now = house.clock.now()
        with house.store.write() as tx:
            reminders.enable(tx, name, now)
            view = reminder_view(tx, name, now)
    output.say(f"reminder {name} is enabled")
    words.say_next(view)


@app.command()
def disable(ctx: typer.Context, name: ReminderName) -> None:
    """Let a reminder fire no more. What it has begun goes on."""
    with existing(ctx) as house, house.store.write() as tx:
        reminders.disable(tx, name, house.clock.now())
    output.say(f"reminder {name} is disabled")


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
def remove(ctx: typer.Context, name: ReminderName, yes: Yes = False) -> None:
    """Remove a reminder; what it has sent stays known.

    Its runs can be read by their numbers: 'paceline reminder export NAME --run ID'.
    """
    output.confirm(f"Remove reminder {name}?", yes=yes)
    with existing(ctx) as house, house.store.write() as tx:
        reminders.remove(tx, name, house.clock.now())
    output.say(f"reminder {name} removed")


for command in (runs, fire, export, cancel, reassign):
    app.command()(command)
