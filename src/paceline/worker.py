"""A worker: the lanes of a few accounts in a process of their own, for the service that started it.

It runs the same supervisor, and nothing else of the service. Standard input brings the service's
settings, then the accounts it is to look after, and its end is the end of the worker, however the
service ended, and from the first moment on. What was standard output is the line on which it tells
how it is; whoever prints, prints to standard error.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

import structlog

from paceline import logs
from paceline.app import GATHER_US, App, open_app
from paceline.config import Settings
from paceline.core.errors import StoreError
from paceline.core.instants import MINUTE, SECOND
from paceline.core.reports import (
    Assignment,
    Away,
    Beat,
    Joined,
    LaneCrash,
    Report,
    Standstill,
    read_assignment,
    write_report,
)
from paceline.engine.crashes import Crash, CrashBook
from paceline.engine.journal import GroupJournal, ThreadRunner
from paceline.engine.orchestrator import END_WITHIN_US
from paceline.engine.ports.workers import AWAY
from paceline.engine.supervisor import Supervisor
from paceline.engine.tally import Tally
from paceline.engine.watchdog import LOOK_US, Standing, Step, Watchdog
from paceline.handing_down import read_settings
from paceline.interpreter import EXIT_BLOCKED, loop_factory, memory_taken, tune_interpreter
from paceline.stationing import supervisor_options

log = structlog.get_logger("paceline.worker")

BEAT_US = 5 * SECOND
STANDSTILL_US = 15 * SECOND
"""When it is told who keeps the loop from turning: long before anybody takes that for a hang."""
REST_US = MINUTE
"""A worker with nothing to do for so long, before and ahead, ends. To start one takes a second."""


class Roster:
    """The accounts it looks after. Whoever reads while somebody is added sees either."""

    def __init__(self, account_ids: Iterable[int]) -> None:
        self._ids = frozenset(account_ids)

    def add(self, account_ids: Iterable[int]) -> None:
        self._ids |= frozenset(account_ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids)


class Line:
    """Our ends of the pipes to the service. Nothing here ever keeps the event loop waiting."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self._unsaid = bytearray()
        self._lock = threading.Lock()
        os.set_blocking(sink, False)

    @property
    def clear(self) -> bool:
        """Whether all that was to be said has been."""
        self._say()
        return not self._unsaid

    def tell(self, report: Report) -> None:
        with self._lock:
            self._unsaid += write_report(report)
        self._say()

    def _say(self) -> None:
        with self._lock:
            try:
                while self._unsaid:
                    del self._unsaid[: os.write(self._sink, self._unsaid)]
            except BlockingIOError:
                return
            except BrokenPipeError:
                # The service has gone; that its end of the other pipe has gone is noticed, too.
                self._unsaid.clear()

    def first(self) -> bytes:
        """The first line, or what there is of it; empty if the service has gone already."""
        said = bytearray()
        # One byte at a time: what follows is for whoever listens.
        while not said.endswith(b"\n") and (byte := os.read(self._source, 1)):
            said += byte
        return bytes(said)

    def listen(self, assigned: Callable[[Assignment], None], ended: Callable[[], None]) -> None:
        """Whatever comes is passed on, until nothing comes any more. It takes a thread."""
        threading.Thread(
            target=self._listen, args=(assigned, ended), name="paceline-line", daemon=True
        ).start()

    def _listen(self, assigned: Callable[[Assignment], None], ended: Callable[[], None]) -> None:
        try:
            with os.fdopen(self._source, "rb") as source:
                for line in source:
                    assigned(read_assignment(line))
        finally:
            ended()


class Orders:
    """What the service says, from the first moment on.

    As long as nobody follows, nothing was begun: the worker is no member of the fleet. So if the
    service goes by then, there is nothing to be put in order, however long it would take to find
    the database.
    """

    def __init__(self, line: Line) -> None:
        self._lock = threading.Lock()
        self._kept: list[Assignment] = []
        self._follower: tuple[Callable[[Assignment], None], Callable[[], None]] | None = None
        line.listen(self._assigned, self._ended)

    def follow(self, assigned: Callable[[Assignment], None], ended: Callable[[], None]) -> None:
        with self._lock:
            self._follower = assigned, ended
        for assignment in self._kept:
            assigned(assignment)

    def _assigned(self, assignment: Assignment) -> None:
        with self._lock:
            if self._follower is None:
                self._kept.append(assignment)
                return
        self._follower[0](assignment)

    def _ended(self) -> None:
        with self._lock:
            if self._follower is None:
                os._exit(0)
        self._follower[1]()


def take_pipes() -> Line:
    """The pipes to ourselves: a driver that prints or reads must not meet them."""
    line = Line(os.dup(0), os.dup(1))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return line


def run_worker(account_ids: Iterable[int]) -> NoReturn:
    """``paceline worker``: look after these accounts until there is nothing to do, or until the
    service goes. Whatever has to last is written by then, and nobody waits for what drivers leave
    behind in threads."""
    line = take_pipes()
    said = line.first()
    if not said:
        os._exit(0)
    settings = read_settings(said)
    logs.configure(settings.log_level, settings.chosen_log_format)
    os._exit(_run(settings, Roster(account_ids), line))


def _run(settings: Settings, roster: Roster, line: Line) -> int:
    orders = Orders(line)
    tune_interpreter()
    structlog.contextvars.bind_contextvars(worker=settings.process_name)
    # Whoever starts us decides when we end; so it is with a terminal that we share.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with open_app(settings, sends=True, serves=False) as app:
            asyncio.Runner(loop_factory=loop_factory()).run(_work(app, roster, line, orders))
    except StoreError as error:
        log.warning("the database is away", error=str(error))
        line.tell(Away(str(error)))
        return AWAY
    except Exception:
        log.exception("worker failed")
        return 1
    return 0


async def _work(app: App, roster: Roster, line: Line, orders: Orders) -> None:
    tally = Tally()
    journal = GroupJournal(
        app.store,
        app.clock,
        writer=ThreadRunner("paceline-writer"),
        reader=ThreadRunner("paceline-reader"),
        observer=tally,
        gather_us=GATHER_US,
        here=True,
    )
    book = CrashBook(told=lambda account_id, crash: line.tell(LaneCrash(account_id, *crash)))
    supervisor = _supervisor(app, journal, tally, roster, book)
    _follow_orders(supervisor, orders, roster, book, app.settings.grace_us + END_WITHIN_US)
    telling = [
        asyncio.create_task(_announce(supervisor, line)),
        asyncio.create_task(_beat(app, supervisor, tally, line)),
    ]
    step = Step(STANDSTILL_US, lambda at, _: _tell_standstill(line, at))
    loop = asyncio.get_running_loop()
    watchdog = Watchdog(loop, app.clock, [step], look_us=LOOK_US)
    watchdog.start()
    try:
        await supervisor.run()
    finally:
        for one in telling:
            one.cancel()
        line.tell(_state(supervisor, tally))
    watchdog.stop()
    await journal.close()


def _supervisor(
    app: App, journal: GroupJournal, tally: Tally, roster: Roster, book: CrashBook
) -> Supervisor:
    more = {"accounts": roster, "leads": False, "rest_us": REST_US}
    options = supervisor_options(app.settings, app.providers, **more)
    return Supervisor(
        journal,
        app.clock,
        app.providers,
        observer=tally,
        rng=random.Random(secrets.randbits(64)),
        options=options,
        crashes=book,
    )


def _follow_orders(
    supervisor: Supervisor, orders: Orders, roster: Roster, book: CrashBook, end_within_us: int
) -> None:
    """Take what the service says, and end when it says so, or says nothing any more."""
    loop = asyncio.get_running_loop()

    def take(assignment: Assignment) -> None:
        for account_id, at, run_id in assignment.crashes:
            book.learn(account_id, Crash(at, run_id))
        roster.add(assignment.account_ids)
        supervisor.nudge()

    def end() -> None:
        loop.call_soon_threadsafe(supervisor.stop)
        # If the loop does not turn nobody hears that, and nobody else may be left to end us.
        threading.Event().wait(end_within_us / SECOND)
        os._exit(EXIT_BLOCKED)

    def assigned(assignment: Assignment) -> None:
        loop.call_soon_threadsafe(take, assignment)

    loop.add_signal_handler(signal.SIGTERM, supervisor.stop)
    orders.follow(assigned, end)


async def _announce(supervisor: Supervisor, line: Line) -> None:
    await supervisor.joined.wait()
    if supervisor.process_id is not None:
        line.tell(Joined(supervisor.process_id))


async def _beat(app: App, supervisor: Supervisor, tally: Tally, line: Line) -> None:
    while True:
        # Where nobody reads, what is counted waits here and not in the pipe.
        if line.clear:
            line.tell(_state(supervisor, tally))
        await app.clock.sleep(BEAT_US)


def _state(supervisor: Supervisor, tally: Tally) -> Beat:
    return Beat(supervisor.process_id, memory_taken(), tally.lanes, tally.take())


def _tell_standstill(line: Line, at: Standing) -> None:
    line.tell(Standstill(at.account, at.excused, at.where))
    log.error("nothing moves in this worker", account=at.account, where=at.where, stack=at.stack)
