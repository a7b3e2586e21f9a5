"""``smtp``: letters per second to a fast mail server of this machine, beside a bare loop.

Both send the same number over ten connections, and the server itself says how long that took.
Repetitions take turns, so that a busy minute of the machine harms none alone.
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
    contests = [Contest("bare aiosmtplib", lambda: _bare(options), {"letters": options.count})]
    for kind in options.kinds:
        more = {"letters": options.count}
        contests.append(Contest(f"paceline {kind}", _ours(places, kind, options), more))
    for repetition in range(1, options.repetitions + 1):
        say(f"repetition {repetition} of {options.repetitions}")
        for contest in contests:
            contest.repeat(say)
    rows = [contest.row() for contest in contests]
    bare = rows[0]
    ratios = [
        Ratio(f"{row.name} / {bare.name}", row.per_second / bare.per_second, SHARE_OF_BARE)
        for row in rows[1:]
    ]
    return Report("letters to a mail server on this machine", rows, ratios)


def _bare(options: SmtpOptions) -> float:
    with _sink(options.count) as sink:
        measure(module("bare_smtp", sink.port, options.count, options.accounts), SEND_WITHIN_S)
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
