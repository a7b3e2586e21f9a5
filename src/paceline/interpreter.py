"""What every long-running process of ours does to its interpreter, and knows of itself."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Callable

SWITCH_S = 0.0002
GC_THRESHOLDS = (50_000, 20, 50)

EXIT_BLOCKED = 70
"""Something has blocked the whole process, and it has put an end to itself."""
EXIT_MEMORY = 71
"""It took more memory than it may, and has ended in good order."""


def tune_interpreter() -> None:
    """Make the interpreter fit for a service: one busy loop, and threads that only wait for disks.

    A thread that comes back from the database waits for its turn as long as this interval, several
    times for every group of messages. And what a service has loaded stays: looking through it for
    garbage again and again finds nothing.
    """
    sys.setswitchinterval(SWITCH_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where there is one; it is only faster, nothing depends on it."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def memory_taken() -> int:
    """What this process takes of the machine's memory, in bytes; where the system does not say,
    the most that it ever took."""
    try:
        with open("/proc/self/statm", "rb") as counts:
            return int(counts.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
