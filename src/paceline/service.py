"""``paceline up`` as a process: what signals mean to it, who guards it, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import structlog

from paceline.app import App, make_workers, open_app, serve
from paceline.config import Settings
from paceline.guard import Guard, GuardOptions
from paceline.interpreter import loop_factory, tune_interpreter
from paceline.store.database import open_store

log = structlog.get_logger("paceline.app")

AT_ONCE = (
    "paceline: stopped at once; messages under way are in doubt now, and whoever takes up their "
    "lanes will look into them"
)


def run_service(settings: Settings) -> int:
    """Serve until SIGTERM or Ctrl-C, or until the guard puts an end to it; the exit code."""
    tune_interpreter()
    with (
        open_app(settings, sends=True) as app,
        asyncio.Runner(loop_factory=loop_factory()) as runner,
    ):
        return runner.run(_serve_until_told(app))


async def _serve_until_told(app: App) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    workers = make_workers(app.settings)

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set() and number is signal.SIGINT:
            print(AT_ONCE, file=sys.stderr, flush=True)
            workers.kill_all()
            # The threads of the journal would be waited for, and that is what nobody wants now.
            os._exit(130)
        if not stop.is_set():
            log.info("stopping, once more Ctrl-C stops at once", signal=number.name)
            stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    guard = _guard(app, stop)
    guard.start(loop)
    try:
        await serve(app, stop=stop, workers=workers)
    finally:
        guard.end()
    return guard.code


def _guard(app: App, stop: asyncio.Event) -> Guard:
    """Workers' memory is weighed by whoever starts them; here it is that of all lanes together."""
    settings, clock = app.settings, app.clock
    shared = settings.isolation == "shared"
    return Guard(
        settings.process_name,
        lambda: open_store(settings.database, clock=clock.now, create=False),
        clock,
        stop.set,
        GuardOptions(memory_limit=settings.memory_limit if shared else 0),
    )
