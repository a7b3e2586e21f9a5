"""The guard of a service: what it does when one lane blocks or leaks away what all others need.

It runs in a thread of its own, with a connection to the database of its own, because whatever has
happened has happened to the others. What it notices by is the watchdog.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

import structlog

from paceline.core.errors import PacelineError
from paceline.core.instants import SECOND
from paceline.core.sizes import print_size
from paceline.engine import blocking
from paceline.engine.leases import LEASE_US, RENEW_EVERY_US
from paceline.engine.ports import Clock, Store, Work
from paceline.engine.watchdog import Standing, Step, Watchdog
from paceline.interpreter import EXIT_BLOCKED, EXIT_MEMORY, memory_taken

log = structlog.get_logger("paceline.guard")

WITHIN_S = 15
"""How long the database, or the log, may take for what has to be written before the end."""


@dataclass(frozen=True, slots=True)
class GuardOptions:
    hold_after_us: int = LEASE_US - RENEW_EVERY_US - SECOND
    """Before anybody else can take over the lane, and be blocked by it in turn."""
    tell_after_us: int = 30 * SECOND
    end_after_us: int = 60 * SECOND
    memory_limit: int = 0
    look_us: int = SECOND


@dataclass(slots=True)
class Guard:
    """Guards one process; ``stop`` is called when it has to end in good order."""

    name: str
    open_store: Callable[[], Store]
    clock: Clock
    stop: Callable[[], None]
    options: GuardOptions
    code: int = 0
    """What the process should end with."""
    _watchdog: Watchdog | None = field(default=None, repr=False)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        options = self.options
        steps = (
            Step(options.hold_after_us, self._hold),
            Step(options.tell_after_us, self._tell),
            Step(options.end_after_us, self._end),
        )
        self._watchdog = Watchdog(
            loop, self.clock, steps, look_us=options.look_us, each_look=lambda: self._weigh(loop)
        )
        self._watchdog.start()

    def end(self) -> None:
        if self._watchdog is not None:
            self._watchdog.stop()

    # ------------------------------------------------------------------ blocking

    def _hold(self, at: Standing, still_us: int) -> None:
        account, now = at.account, self.clock.now()
        self._tell(at, still_us)
        if account is not None:
            self._write(lambda tx: blocking.hold(tx, account, now))

    def _tell(self, at: Standing, still_us: int) -> None:
        told = {"for_s": still_us // SECOND, **at._asdict()}
        _in_time(lambda: log.error("nothing moves in this process", **told))

    def _end(self, at: Standing, still_us: int) -> NoReturn:
        """Nothing can be handed back by whoever is blocked; the lease ran out long ago."""
        account, now = at.account, self.clock.now()
        if account is not None:
            self._write(lambda tx: blocking.suspend(tx, account, still_us, now))
        else:
            what = (
                f"process {self.name} was blocked for {still_us // SECOND} s by what is no "
                f"account's lane, and was ended to be started anew; it stood at {at.where}"
            )
            self._write(lambda tx: blocking.stood_still(tx, self.name, what, now))
        told = {"for_s": still_us // SECOND, "account": account, "where": at.where}
        _in_time(lambda: log.critical("blocked for too long, ending", **told))
        os._exit(EXIT_BLOCKED)

    # ------------------------------------------------------------------ leaking

    def _weigh(self, loop: asyncio.AbstractEventLoop) -> None:
        limit = self.options.memory_limit
        if not limit or self.code or (taken := memory_taken()) <= limit:
            return
        self.code = EXIT_MEMORY
        log.error("this process takes too much memory, ending", memory=taken, limit=limit)
        now = self.clock.now()
        told = print_size(taken), print_size(limit)
        self._write(lambda tx: blocking.too_much_memory(tx, self.name, *told, now))
        loop.call_soon_threadsafe(self.stop)

    # ------------------------------------------------------------------ writing

    def _write(self, work: Work[object]) -> None:
        """Write it if that can be done in time; whatever happens to it, the watch goes on."""
        _in_time(lambda: self._try_to_write(work))

    def _try_to_write(self, work: Work[object]) -> None:
        try:
            store = self.open_store()
            try:
                with store.write() as tx:
                    work(tx)
            finally:
                store.close()
        except PacelineError as error:
            log.error("could not be written down", error=str(error))


def _in_time(act: Callable[[], object]) -> None:
    """Do it aside, and wait for it only so long: whatever is blocked may hold what it needs, and be
    it the log."""
    aside = threading.Thread(target=act, daemon=True)
    aside.start()
    aside.join(WITHIN_S)
