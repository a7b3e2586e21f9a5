"""The command ``paceline``: its parts put together, and its errors turned into one line each.

Exit codes: 0 done, 1 it could not be done, 2 what was asked for is wrong, 130 interrupted, 141
the reader of its answer has gone, 143 ended by SIGTERM.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from paceline import __version__
from paceline.cli.surroundings import Surroundings
from paceline.core.errors import InputError, PacelineError

INTERRUPTED = 130
BROKEN_PIPE = 141

PARTS = {
    "up": ("service.up",),
    "demo": ("service.demo",),
    "worker": ("service.worker",),
    "account": (
        "accounts.app",
        "visiting.check",
        "visiting.groups",
        "pairing.pair",
        "hooking.hook",
        "answering.answering",
    ),
    "policy": ("policies.app",),
    "audience": ("audiences.app",),
    "contact": ("people.contact",),
    "suppress": ("people.suppress",),
    "history": ("history.app",),
    "reminder": ("reminders.app",),
    "campaign": ("campaigns.app",),
    "plan": ("plan.plan",),
    "send": ("sending.send",),
    "conversations": ("conversations.app",),
    "locks": ("conversations.locks",),
    "unknown": ("doubts.app",),
    "why": ("why.why",),
    "limits": ("limits.app",),
    "alerts": ("alerts.all_app",),
    "alert": ("alerts.app",),
    "webhook": ("webhooks.app",),
    "events": ("events.events",),
    "signals": ("signals.app",),
    "key": ("keys.app",),
    "simulate": ("simulate.simulate",),
    "verify": ("control.verify",),
    "stop-all": ("control.stop_all",),
    "go-on": ("control.go_on",),
}
"""Where what is mounted under a name is found in this package: a command or a group of them. A
group's further commands are those that live in modules of their own."""

HIDDEN = frozenset({"worker"})
"""What programs call and people need not know of."""


def _ask_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


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


def version() -> None:
    """Print the version."""
    print(f"paceline {__version__}")


def make_app(names: Iterable[str] = PARTS) -> typer.Typer:
    """The command line with these of its parts."""
    app = typer.Typer(
        name="paceline",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(surroundings)
    for name in names:
        part = _part(name)
        if isinstance(part, typer.Typer):
            app.add_typer(part, name=name)
        else:
            app.command(name, hidden=name in HIDDEN)(part)
    app.command()(version)
    return app


@cache
def _part(name: str) -> Any:
    part, *further = map(_found, PARTS[name])
    for command in further:
        part.command()(command)
    return part


def _found(place: str) -> Any:
    module, _, name = place.partition(".")
    return getattr(import_module(f"paceline.cli.{module}"), name)


def _needed(words: Sequence[str]) -> Iterable[str]:
    """The parts to load: the one that is named, for all of them take longer than most commands.

    Where it is not plain which that is, they are all loaded, as the help and a guess at what was
    meant need them to be.
    """
    rest = iter(words)
    for word in rest:
        if word in ("--config", "--database"):
            next(rest, None)
        elif word in ("--version", "version"):
            return ()
        elif not word.startswith(("--config=", "--database=")):
            return (word,) if word in PARTS else PARTS
    return PARTS


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
        from paceline.cli.campaign_export import UNWRITABLE

        if error.errno not in UNWRITABLE:
            raise
        _write_no_more()
        return _told(f"cannot write: {error.strerror}", 1)


def _run(argv: Sequence[str] | None) -> int:
    try:
        words = sys.argv[1:] if argv is None else argv
        command: Any = typer.main.get_command(make_app(_needed(words)))
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
    from paceline.cli.output import note

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
