"""``smtp``: letters per second to a fast mail server of this machine, beside a bare loop.

All send the same number over ten connections, and the server itself says how long that took.
Repetitions take turns, so that a busy minute of the machine harms none alone. The bar is a loop as
anybody would write it; beside it stands one that was given our event loop and our settings of the
interpreter, to tell what is theirs from what is ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench import scenes
from bench.children import END_WITHIN_S, measure, module
from bench.engine import Contest, Say
from bench.places import KINDS, Places, settle_down
from bench.report import BenchError, Ratio, Report

SHARE_OF_BARE = 0.60
BARE, TUNED = "bare aiosmtplib", "tuned aiosmtplib"
SEND_WITHIN_S = 600


@dataclass(frozen=True, slots=True)
class SmtpOptions:
    """How much is measured; the tests and ``--quick`` ask for less."""

    repetitions: int = 5
    accounts: int = 10
    count: int = 20_000
    kinds: tuple[str, ...] = KINDS


QUICK = SmtpOptions(repetitions=1, count=3_000)


def run(places: Places, options: SmtpOptions, say: Say) -> Report:
    more = {"letters": options.count}
    contests = [
        Contest(BARE, lambda: _bare(options), more),
        Contest(TUNED, lambda: _bare(options, "--tuned"), more),
    ]
    for kind in options.kinds:
        contests.append(Contest(f"paceline {kind}", _ours(places, kind, options), more))
    for repetition in range(1, options.repetitions + 1):
        say(f"repetition {repetition} of {options.repetitions}")
        for contest in contests:
            contest.repeat(say)
    rows = [contest.row() for contest in contests]
    bare, tuned, *ours = rows
    ratios = [
        Ratio(f"{row.name} / {other.name}", row.per_second / other.per_second, bar)
        for other, bar in ((bare, SHARE_OF_BARE), (tuned, None))
        for row in ours
    ]
    return Report("letters to a mail server on this machine", rows, ratios)


def _bare(options: SmtpOptions, *how: str) -> float:
    with _sink(options.count) as sink:
        asked = (sink.port, options.count, options.accounts, *how)
        measure(module("bare_smtp", *asked), SEND_WITHIN_S)
    return sink.rate


def _ours(places: Places, kind: str, options: SmtpOptions) -> Callable[[], float]:
    def once() -> float:
        with places.fresh(kind) as url, _sink(options.count) as sink:
            _load(url, options, sink.port)
            measure(module("serving_smtp", url, options.count), SEND_WITHIN_S)
        return sink.rate

    return once


def _load(url: str, options: SmtpOptions, port: int) -> None:
    settings = {"host": "127.0.0.1", "port": port, "security": "plain"}
    with scenes.opened(url) as store:
        senders = scenes.add_accounts(
            store, options.accounts, {}, provider="smtp", settings=settings
        )
        scenes.launched_campaign(store, senders, options.count, action="email")
    settle_down(url)


@dataclass(slots=True)
class _Sink:
    port: int
    rate: float = 0.0


@contextmanager
def _sink(count: int) -> Iterator[_Sink]:
    """A mail server while the block lasts; afterwards it has said how fast letters came."""
    with module("sink", talks=True) as child:
        sink = _Sink(child.hear()["port"])
        yield sink
        # Its input ends here, and with it the server.
        found: dict[str, Any] = json.loads(child.output(END_WITHIN_S))
    if (found["taken"], found["different"]) != (count, count):
        raise BenchError(f"{count} letters were to be sent: {found}")
    sink.rate = count / found["seconds"]
