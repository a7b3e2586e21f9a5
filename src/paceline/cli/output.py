"""How answers are written: tables and lines for people, JSON for programs.

Colour and live displays appear on terminals only. What is in an answer is decided elsewhere.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from paceline.core.durations import print_duration
from paceline.core.errors import InputError
from paceline.core.instants import HOUR, MILLISECOND, SECOND, Instant, local_text
from paceline.engine.stopping import GO_ON, Stop

if TYPE_CHECKING:
    from paceline.engine.people import Unreachable

WIDE = 160
"""The width of what is not shown but read by another program, unless COLUMNS says otherwise."""

NARROWEST = 12
"""A column that gives way keeps this much: less is one letter per line."""

_OBEYED = dict.fromkeys([*range(32), *range(127, 160)], "\N{REPLACEMENT CHARACTER}")
del _OBEYED[ord("\n")], _OBEYED[ord("\t")]

_NUMBERED = {sign: f"\\u{sign:04x}" for sign in range(127, 160)}
"""What JSON lets stand as it is; what comes before it is numbered anyway."""

_STYLES = {
    "active": "green",
    "running": "green",
    "sent": "green",
    "success": "green",
    "open": "green",
    "finished": "green",
    "paused": "yellow",
    "limit reached": "yellow",
    "cooling down": "yellow",
    "unknown": "yellow",
    "partial": "yellow",
    "suspended": "red",
    "failed": "red",
    "bounced": "red",
}


class _Console(Console):
    """Leaves it to the command as a whole what becomes of it when its reader has gone."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Standard output, as it is now."""
    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE
    return _Console(width=wide, highlight=False, soft_wrap=False)


def tame(text: str) -> str:
    """Text with nothing in it that a terminal would obey: reasons come from strangers."""
    return text.translate(_OBEYED)


def say(text: str = "") -> None:
    """One line, as long as it needs to be, with nothing in it taken for markup."""
    console().print(Text(tame(text)), soft_wrap=True)


def note(text: str) -> None:
    """One line for the person, which is no part of the answer."""
    print(tame(text), file=sys.stderr)


def say_json(value: Any) -> None:
    print(json_text(value, indent=2))


def say_json_line(value: Any) -> None:
    print(json_text(value), flush=True)


def json_text(value: Any, indent: int | None = None) -> str:
    """Means what it says to whoever reads it, and nothing to a terminal: what that would obey is
    written as its number, which is the same in JSON."""
    return json.dumps(value, indent=indent, ensure_ascii=False).translate(_NUMBERED)


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Sequence[str] = (),
    firm: Sequence[str] = (),
    gap: int = 2,
) -> RenderableType:
    """Columns without lines around them; those that are not ``firm`` give way to narrow screens.

    Where even that is not enough, every row becomes a block with one line per heading.
    """
    cells = [
        [cell if isinstance(cell, Text) else Text(tame(str(cell))) for cell in row] for row in rows
    ]
    widths = [
        max(map(cell_len, [heading, *(row[column].plain for row in cells)]))
        for column, heading in enumerate(headings)
    ]
    least = [
        width if heading in right or heading in firm else min(width, NARROWEST)
        for heading, width in zip(headings, widths, strict=True)
    ]
    if any(headings) and sum(least) + gap * (len(least) - 1) > console().width:
        return _stacked(headings, cells)
    made = Table(
        box=None,
        pad_edge=False,
        padding=(0, gap, 0, 0),
        header_style="bold",
        show_header=any(headings),
    )
    for heading in headings:
        made.add_column(
            heading,
            justify="right" if heading in right else "left",
            no_wrap=heading in right or heading in firm,
            overflow="fold",
        )
    for row in cells:
        made.add_row(*row)
    return made


def _stacked(headings: Sequence[str], rows: Sequence[Sequence[Text]]) -> RenderableType:
    lines: list[RenderableType] = []
    for row in rows:
        named = [(heading, cell) for heading, cell in zip(headings, row, strict=True) if cell]
        lines += [Text.assemble((heading, "bold"), "  ", cell) for heading, cell in named]
        lines.append(Text())
    return Group(*lines[:-1])


def show_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    empty: str,
    right: Sequence[str] = (),
    firm: Sequence[str] = (),
) -> None:
    """A table, or a line that says that there is nothing and what to do about it."""
    if rows:
        console().print(table(headings, rows, right=right, firm=firm))
    else:
        say(empty)


def stop_text(stop: Stop) -> str:
    """That everything is stopped, since when, why, and what ends it."""
    since = f" since {local_text(stop.since_at, 'UTC')}" if stop.since_at is not None else ""
    told = f": {stop.reason}" if stop.reason else ""
    return f"everything is stopped{since}{told}; go on with: {GO_ON}"


def state_text(state: str) -> Text:
    words = state.replace("_", " ")
    return Text(words, style=_STYLES.get(words, ""))


def wall_text(at: Instant, zone: str) -> str:
    """A local time without its zone, for columns whose heading names it."""
    return local_text(at, zone).removesuffix(f" {zone}")


def soon_text(at: Instant, now: Instant, zone: str) -> str:
    """A short wait as a duration, a longer one as a local time."""
    if at <= now:
        return "now"
    return f"in {_rounded(at - now)}" if at - now < HOUR else wall_text(at, zone)


def until_text(at: Instant, now: Instant, zone: str) -> str:
    """A local time with its zone, and how long that is if it is not long."""
    left = f" (in {_rounded(at - now)})" if 0 < at - now < HOUR else ""
    return f"{local_text(at, zone)}{left}"


def _rounded(us: int) -> str:
    unit_us = SECOND if us >= 10 * SECOND else 100 * MILLISECOND
    return print_duration(-(-us // unit_us) * unit_us)


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something that cannot be undone; where nobody can be asked, it needs ``--yes``."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(
            f"{question} There is no answer, because there is no terminal to ask on",
            hint="Add --yes if that is what you want",
        )
    typer.confirm(question, abort=True, err=True)


def tell_unreachable(
    found: Sequence[Unreachable],
    shown: int = 5,
    nouns: tuple[str, str] = ("person of the audience", "people of the audience"),
) -> None:
    """Those who get nothing, so that nobody is left out in silence."""
    if not found:
        return
    say(f"{plural(len(found), *nouns)} cannot be reached:")
    for entry in found[:shown]:
        # The reason is half a sentence about them, or a whole one that needs a stop before it.
        say(f"  {entry.who}{'' if entry.why.startswith(_ABOUT_THEM) else ':'} {entry.why}")
    if len(found) > shown:
        say(f"  and {len(found) - shown} more")


_ABOUT_THEM = ("has ", "is ", "was ", "cannot ")


def plural(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


@contextmanager
def progress(what: str, *, total: int) -> Iterator[Callable[[], None]]:
    """A bar on standard error while something takes its time; silent where nobody watches."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    watched = sys.stderr.isatty()
    with Progress(
        *columns, console=Console(stderr=True), transient=True, disable=not watched
    ) as bar:
        number = bar.add_task(what, total=total)
        yield lambda: bar.advance(number)


@contextmanager
def reading(what: str, *, total: int) -> Iterator[Callable[[int], None]]:
    """The same while a file is read; it is told how many bytes have been."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    watched = sys.stderr.isatty()
    with Progress(
        *columns, console=Console(stderr=True), transient=True, disable=not watched
    ) as bar:
        number = bar.add_task(what, total=total)
        yield lambda position: bar.update(number, completed=position)
