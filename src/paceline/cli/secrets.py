"""Secrets that are asked for: what is typed on a command line can be seen by everybody on the
machine, and stays in the shell's history."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any

import typer

from paceline.cli import output
from paceline.core.errors import InputError

Secret = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        metavar="KEY",
        help="A secret setting of its provider, asked for; else a line of standard input.",
    ),
]


def ask_for(names: Iterable[str], options: Mapping[str, Any]) -> dict[str, str]:
    """The secrets of these names: asked for without showing them, or read a line each."""
    found: dict[str, str] = {}
    for name in names:
        if name in options or name in found:
            raise InputError(f"{name} is given twice", key="--secret")
        if sys.stdin.isatty():
            found[name] = typer.prompt(name, hide_input=True, err=True)
        else:
            found[name] = sys.stdin.readline().rstrip("\r\n")
        if not found[name]:
            raise InputError(f"nothing was given for {name}", key="--secret")
    return found


def note_exposed(options: Mapping[str, Any], secrets: Collection[str]) -> None:
    """Say so where a secret was typed on the command line itself."""
    for name in sorted(options.keys() & secrets):
        if not str(options[name]).startswith("env:"):
            output.note(
                f"{name} was on the command line, where others on this machine can see it; "
                f"next time write --secret {name} instead"
            )
