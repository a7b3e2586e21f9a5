"""The watchdog: a thread that notices when the event loop does not turn, and whose fault that is.

A driver that blocks the loop's thread stops every lane of the process, and nothing in the loop can
notice. The thread asks the loop for an answer every second. As long as none comes it counts, and
after so long each it does what it was told to do then. Time in which the whole process stood still,
as on a machine that sleeps, is not counted.

What holds the interpreter as well, such as a regular expression that never ends, would keep this
thread from running at all. The processor time that passes without an answer rings a signal, whose
handler does nothing but let this thread have its turn.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import paceline
from paceline.core.instants import SECOND
from paceline.engine.lane_names import who_acts, whose_lane
from paceline.engine.ports import Clock

LOOK_US = SECOND
HOGGED_S = 2
"""Processor time between two turns that are made for the thread, where it gets none by itself."""

TURN_S = 60
"""How long such a turn may take, for what has to be written may take its time."""

_HERE = Path(paceline.__file__).parent
_INNOCENT = (str(_HERE / "logs.py"), str(_HERE / "store"))
"""Where whoever waits is not to blame: for whoever reads the log, and for the database."""


class Standing(NamedTuple):
    """What a loop stands still at."""

    account: str | None
    """The account whose lane it is, if it is one's."""
    where: str
    """The call that does not return, with its line."""
    stack: str
    excused: bool = False
    """Whether it waits for what no account is to blame for."""


class Step(NamedTuple):
    """What is done when the loop has stood still for so long, once each time it does."""

    after_us: int
    act: Callable[[Standing, int], None]


class Watchdog:
    """Watches the loop of the thread that starts it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        steps: Sequence[Step],
        *,
        look_us: int = LOOK_US,
        each_look: Callable[[], None] | None = None,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._steps = sorted(steps, key=lambda step: step.after_us)
        self._look_us = look_us
        self._each_look = each_look
        self._watched = threading.get_ident()
        self._over = threading.Event()
        self._looked = threading.Event()
        self._thread = threading.Thread(target=self._run, name="paceline-watchdog", daemon=True)
        self._answered = True
        self._answered_us = clock.monotonic_us()
        self._looked_us = self._answered_us
        self._still_us = 0
        self._taken = 0

    def start(self) -> None:
        self._thread.start()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGPROF, self._let_it_look)
            signal.siginterrupt(signal.SIGPROF, False)
            signal.setitimer(signal.ITIMER_PROF, HOGGED_S, HOGGED_S)

    def stop(self) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.setitimer(signal.ITIMER_PROF, 0)
        self._over.set()
        self._thread.join()

    def _let_it_look(self, *_: object) -> None:
        """In the main thread, wherever it is: if that goes on and on, the other has a turn."""
        if self._clock.monotonic_us() - self._answered_us > 2 * self._look_us:
            self._looked.clear()
            self._looked.wait(TURN_S)

    def _run(self) -> None:
        while not self._over.wait(self._look_us / SECOND):
            self._look()
            if self._each_look is not None:
                self._each_look()
            self._looked.set()

    def _look(self) -> None:
        now_us = self._clock.monotonic_us()
        # One look that comes late is the machine's fault and not the loop's.
        passed_us = min(now_us - self._looked_us, 2 * self._look_us)
        self._looked_us = now_us
        if self._answered:
            self._answered, self._still_us, self._taken = False, 0, 0
            self._ask()
            return
        self._still_us += passed_us
        while (
            self._taken < len(self._steps) and self._still_us >= self._steps[self._taken].after_us
        ):
            step = self._steps[self._taken]
            self._taken += 1
            step.act(standing_at(self._loop, self._watched), self._still_us)

    def _ask(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._answer)
        except RuntimeError:  # it has been closed
            self._over.set()

    def _answer(self) -> None:
        self._answered_us = self._clock.monotonic_us()
        self._answered = True


def standing_at(loop: asyncio.AbstractEventLoop, thread: int) -> Standing:
    """What a loop is doing right now, as seen from another thread."""
    name = who_acts(loop)
    account = None if name is None else whose_lane(name)
    stack = traceback.extract_stack(sys._current_frames().get(thread))
    # Where our own signal has interrupted it is not where it stands.
    frames = list(takewhile(lambda frame: frame.filename != __file__, stack))
    excused = any(frame.filename.startswith(_INNOCENT) for frame in frames)
    if excused:
        account = None
    last = frames[-1] if frames else None
    where = "" if last is None else f"{last.name} ({last.filename}:{last.lineno})"
    return Standing(account, where, "".join(traceback.format_list(frames)), excused)
