"""What each thread of a process has used: its processor time, and on request its profile.

Patches ``threading.Thread.run``, so it belongs into the measured process, before it starts any.
"""

from __future__ import annotations

import cProfile
import pstats
import resource
import threading
import time
from collections.abc import Callable
from io import StringIO


def cpu_used_s() -> float:
    """Processor time that all threads of this process have used, the kernel's work for it
    included."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class ThreadBook:
    """Keeps account of threads from their start to their end; the main thread by hand."""

    def __init__(self, *, profiled: bool) -> None:
        self.cpu_s: dict[str, float] = {}
        self._profiled = profiled
        self._profiles: dict[str, cProfile.Profile] = {}

    def watch(self) -> None:
        original = threading.Thread.run

        def run(thread: threading.Thread) -> None:
            self.keep(thread.name, lambda: original(thread))

        setattr(threading.Thread, "run", run)  # noqa: B010  (a method is replaced on purpose)

    def keep(self, name: str, work: Callable[[], None]) -> None:
        """Do the work in this thread, under this name."""
        profile = cProfile.Profile() if self._profiled else None
        began_s = time.thread_time()
        try:
            if profile is None:
                work()
            else:
                profile.runcall(work)
        finally:
            self.cpu_s[name] = time.thread_time() - began_s
            if profile is not None:
                self._profiles[name] = profile

    def profiles(self, functions: int = 30) -> dict[str, str]:
        """Each thread's functions that took longest by themselves, as text."""
        texts = {}
        for name, profile in self._profiles.items():
            text = StringIO()
            pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(functions)
            texts[name] = text.getvalue()
        return texts
