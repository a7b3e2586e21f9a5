"""The harness's command line: what to measure, how much of it, and how to say it.

Exit codes: 0, every bar is met; 1, a bar is missed; 2, it could not be measured; 130, Ctrl-C.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TypeVar

from rich.console import Console

from bench import claims, conversations, engine, inbound, lanes, smtp
from bench.children import ROOT
from bench.places import KINDS, Places, in_memory, places
from bench.report import BenchError, Report

Options = TypeVar(
    "Options",
    engine.EngineOptions,
    lanes.LanesOptions,
    claims.ClaimsOptions,
    smtp.SmtpOptions,
    inbound.InboundOptions,
    conversations.ConversationsOptions,
)

PEERS = ROOT / ".venv-bench" / "bin" / "python"
MISSED, FAILED, INTERRUPTED = 1, 2, 130
PROFILED = 20_000
CHOICES = ["engine", "lanes", "claims", "smtp", "inbound", "conversations", "profile"]

ABOUT = """\
Measures this copy of Paceline on this machine, and says whether it reaches its bars.

  engine   deliveries per second through the whole durable path, on SQLite and on PostgreSQL,
           beside Procrastinate, pgbench and a bare loop over the same statements
  lanes    processor share, memory and pace of 1 000 and of 10 000 paced lanes, in real time
  claims   the cost of a claim with 10 000 and with 1 000 000 waiting rows, on both databases
  smtp     letters per second to a fast mail server on this machine, beside a bare loop
  inbound  reports of messages taken in over HTTP on both databases, beside a bare route, and what
           a message and the beginning of a turn take by themselves
  conversations  10 000 in flight at once in one process: each answered once, and its memory
  profile  where the engine's time goes, thread by thread (no bars)
"""
CODES = """\
Exit codes: 0 every bar is met, 1 a bar is missed, 2 it could not be measured, 130 Ctrl-C.
PostgreSQL is started from the programs found on this host, as the tests do it, and ended again;
PACELINE_TEST_POSTGRES_URL names a server to use instead. docs/performance.md says more.
"""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description=ABOUT,
        epilog=CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=CHOICES)
    parser.add_argument(
        "--json", action="store_true", help="print the report as JSON, nothing else"
    )
    parser.add_argument("--quick", action="store_true", help="one repetition, small counts")
    parser.add_argument(
        "--repetitions", type=_positive, metavar="N", help="instead of 5, at most 50"
    )
    parser.add_argument(
        "--no-peers", action="store_true", help="engine: without Procrastinate and pgbench"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="where the databases are made, instead of the folder for temporary files",
    )
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 50:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 50")
    return int(text)


def measure(asked: argparse.Namespace, where: Places) -> Report:
    if asked.what == "engine":
        options = engine.QUICK if asked.quick else engine.EngineOptions()
        options = replace(options, peer_python=None if asked.no_peers else PEERS)
        return engine.run(where, _repeated(options, asked), say)
    if asked.what == "lanes":
        looks = lanes.QUICK if asked.quick else lanes.LanesOptions()
        return lanes.run(where, _repeated(looks, asked), say)
    if asked.what == "smtp":
        mail = smtp.QUICK if asked.quick else smtp.SmtpOptions()
        return smtp.run(where, _repeated(mail, asked), say)
    if asked.what == "inbound":
        reported = inbound.QUICK if asked.quick else inbound.InboundOptions()
        return inbound.run(where, _repeated(reported, asked), say)
    if asked.what == "conversations":
        talks = conversations.QUICK if asked.quick else conversations.ConversationsOptions()
        return conversations.run(where, _repeated(talks, asked), say)
    pages = claims.QUICK if asked.quick else claims.ClaimsOptions()
    return claims.run(where, _repeated(pages, asked), say)


def _repeated(options: Options, asked: argparse.Namespace) -> Options:
    return replace(options, repetitions=asked.repetitions) if asked.repetitions else options


def profile(asked: argparse.Namespace, where: Places) -> None:
    """Slower than without: the profiler takes its share, of short functions the most."""
    count = PROFILED // 5 if asked.quick else PROFILED
    for kind in KINDS:
        say(f"paceline {kind}: {count:,} deliveries, twice")
        plain = engine.serve_once(where, kind, accounts=200, count=count)
        profiled = engine.serve_once(where, kind, accounts=200, count=count, profile=True)
        spent = ", ".join(f"{k} {us} µs" for k, us in engine.cpu_per_delivery(plain).items())
        print(
            f"paceline {kind}: {count / plain['seconds']:,.0f}/s, processor per delivery: {spent}"
        )
        for thread, text in sorted(profiled["profiles"].items()):
            if thread == "loop" or "writer" in thread:
                print(f"--- {kind}, {thread}\n{text}")


def _stop_once(number: int, _: FrameType | None) -> None:
    """The first Ctrl-C ends everything in order; further ones must not cut that short."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt(signal.Signals(number).name)


def main(arguments: list[str] | None = None) -> int:
    asked = parse(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop_once)
    try:
        with places(asked.folder) as where:
            if in_memory(Path(tempfile.gettempdir())):
                say("beware: the databases lie in memory here; name a folder on disk (--folder)")
            if asked.what == "profile":
                profile(asked, where)
                return 0
            report = measure(asked, where)
    except BenchError as error:
        say(f"scripts/bench: {error}")
        return FAILED
    except KeyboardInterrupt:
        say("scripts/bench: interrupted; everything it started has been ended")
        return INTERRUPTED
    if asked.json:
        print(report.to_json())
    else:
        report.show(Console())
    for ratio in report.missed:
        say(f"scripts/bench: missed: {ratio.name} is {ratio.value:.4g}, the bar is {ratio.bar}")
    return MISSED if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
