"""The command ``paceline``: its parts put together, and its errors turned into one line each.

Exit codes: 0 done, 1 it could not be done, 2 what was asked for is wrong, 130 interrupted, 141
the reader of its answer has gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from paceline import __version__
from paceline.cli import (
    accounts,
    alerts,
    audiences,
    campaigns,
    control,
    doubts,
    events,
    history,
    limits,
    pairing,
    people,
    plan,
    policies,
    reminders,
    sending,
    service,
    signals,
    simulate,
    visiting,
    webhooks,
    why,
)
from paceline.cli.campaign_export import UNWRITABLE
from paceline.cli.output import note
from paceline.cli.surroundings import Surroundings
from paceline.core.errors import InputError, PacelineError

INTERRUPTED = 130
BROKEN_PIPE = 141

app = typer.Typer(
    name="paceline",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(service.up)
app.command()(service.demo)
app.add_typer(accounts.app, name="account")
accounts.app.command()(visiting.check)
accounts.app.command()(visiting.groups)
accounts.app.command()(pairing.pair)
app.add_typer(policies.app, name="policy")
app.add_typer(audiences.app, name="audience")
app.add_typer(people.contact, name="contact")
app.add_typer(people.suppress, name="suppress")
app.add_typer(history.app, name="history")
app.add_typer(reminders.app, name="reminder")
app.add_typer(campaigns.app, name="campaign")
app.command()(plan.plan)
app.command()(sending.send)
app.add_typer(doubts.app, name="unknown")
app.command()(why.why)
app.add_typer(limits.app, name="limits")
app.add_typer(alerts.all_app, name="alerts")
app.add_typer(alerts.app, name="alert")
app.add_typer(webhooks.app, name="webhook")
app.command()(events.events)
app.add_typer(signals.app, name="signals")
app.command()(simulate.simulate)
app.command()(control.verify)
app.command("stop-all")(control.stop_all)
app.command("go-on")(control.go_on)


def _ask_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def surroundings(
    ctx: typer.Context,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="Settings; ./paceline.toml unless given."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option("--database", metavar="URL", help="A file path or postgresql://…"),
    ] = None,
    _version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_ask_version, help="Print the version."),
    ] = False,
) -> None:
    """Paceline sends messages from many accounts at the pace each can bear.

    \b
        paceline demo                                          see it work
        paceline account add sales --provider sandbox --policy cold-email
        paceline plan spring.toml                              when is it done?
        paceline campaign create -f spring.toml --launch
        paceline up                                            send
        paceline why sales                                     why not now?
    """
    ctx.obj = Surroundings(config, database)


@app.command()
def version() -> None:
    """Print the version."""
    print(f"paceline {__version__}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Whatever is expected to go wrong is one line on stderr."""
    try:
        code = _run(argv)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read has had enough.
        _write_no_more()
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        _write_no_more()
        return _told(f"cannot write: {error.strerror}", 1)


def _run(argv: Sequence[str] | None) -> int:
    try:
        command: Any = typer.main.get_command(app)
        code = command.main(args=argv, prog_name="paceline", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except InputError as error:
        return _told(str(error), 2)
    except PacelineError as error:
        return _told(str(error), 1)
    except typer.TyperException as error:
        return _misused(error)
    except typer.Abort:
        return _told("nothing was done", 1)
    except SystemExit as error:
        # Typer ends everything by itself when a reader has gone, with an exit code of its own.
        if isinstance(error.__context__, BrokenPipeError):
            raise error.__context__ from None
        raise


def _write_no_more() -> None:
    """Python would complain once more when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(text: str, code: int) -> int:
    note(f"paceline: {' '.join(text.split())}")
    return code


def _misused(error: Any) -> int:
    """A command that was written wrongly; without any, its help is the answer."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message())
        return 0
    help_at = f" (see: {context.command_path} --help)" if context is not None else ""
    return _told(f"{error.format_message().rstrip('.')}{help_at}", error.exit_code)
