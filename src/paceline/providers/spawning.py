"""Workers as processes of the operating system: our end of the pipes to each of them.

A worker inherits our surroundings and our standard error, so that its log goes where ours goes. Its
settings are the first line that it is told: what could be a secret is never on its command line. It
is a session of its own: Ctrl-C is for us, and we decide what becomes of it. When its standard input
ends, however we ended, so does it: no other process has an end of that pipe.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence

import structlog

from paceline.core.reports import Assignment, Report, read_report, write_assignment

log = structlog.get_logger("paceline.orchestrator")

COMMAND = (sys.executable, "-P", "-m", "paceline", "worker")
LONGEST_LINE = 8 * 1024 * 1024
"""A worker's counts of a thousand accounts are a long line."""
LAST_WORDS_S = 5
"""How long what a worker said last may take to be read, once it has ended."""

Hear = Callable[[Report], None]


class ProcessWorkers:
    """Starts workers, and can end all of them at once."""

    def __init__(
        self,
        environ: Mapping[str, str],
        greet: Callable[[str], bytes],
        command: Sequence[str] = COMMAND,
    ) -> None:
        """``greet`` is the first line that a worker of this name is told."""
        self._environ = environ
        self._greet = greet
        self._command = command
        self._running: set[ProcessWorker] = set()

    async def start(self, name: str, account_ids: Sequence[int], hear: Hear) -> ProcessWorker:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            "--accounts",
            ",".join(map(str, account_ids)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=self._environ,
            start_new_session=True,
            limit=LONGEST_LINE,
        )
        worker = ProcessWorker(process, name, hear, self._running.discard)
        self._running.add(worker)
        worker.tell(self._greet(name))
        return worker

    def kill_all(self) -> None:
        for worker in list(self._running):
            worker.kill()


class ProcessWorker:
    """One worker, from its start to its end."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        name: str,
        hear: Hear,
        over: Callable[[ProcessWorker], None],
    ) -> None:
        self._process = process
        self._name = name
        self._hear = hear
        self._over = over
        self._reading = asyncio.ensure_future(self._read())

    @property
    def pid(self) -> int:
        return self._process.pid

    def assign(self, assignment: Assignment) -> None:
        self.tell(write_assignment(assignment))

    def tell(self, line: bytes) -> None:
        stdin = self._process.stdin
        if stdin is None or stdin.is_closing():
            return
        try:
            stdin.write(line)
        except (OSError, RuntimeError) as error:
            # It has just ended; whoever waits for its end will know.
            log.debug("the worker could not be told", worker=self._name, error=repr(error))

    def stop(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        if self._process.returncode is None:
            try:
                self._process.kill()
            except ProcessLookupError:
                log.debug("the worker had ended already", worker=self._name)

    async def ended(self) -> int:
        code = await self._process.wait()
        self._over(self)
        self.stop()
        # What it said last counts as well.
        await asyncio.wait({self._reading}, timeout=LAST_WORDS_S)
        self._reading.cancel()
        return code

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            async for line in self._process.stdout:
                self._take(line)
        except ValueError as error:
            # Longer than any line of ours. Whoever is not understood is not heard, either.
            log.error("a worker talks nonsense", worker=self._name, error=str(error))

    def _take(self, line: bytes) -> None:
        try:
            self._hear(read_report(line))
        except Exception:
            # Whatever is wrong with one line, those that follow are waited for.
            log.exception("a report could not be taken", worker=self._name)
