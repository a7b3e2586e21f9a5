"""Processes that play parts of something, each on a core of its own, and that end with whoever
started them.

However that comes about: they are killed when there is nothing left to play, when somebody breaks
off (Ctrl-C), and at a SIGTERM; and where nobody was left to do that, they notice by themselves.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, Generic, NoReturn, TypeVar

import structlog

from paceline.interpreter import tune_interpreter

Part = TypeVar("Part")
Outcome = TypeVar("Outcome")

DEAF_TO = (signal.SIGINT, signal.SIGTERM)
"""What does not disturb while workers are started and ended, each of which takes a moment."""


class WorkerGone(RuntimeError):
    """A worker has ended in the middle of a part, by itself or by somebody else's hand."""


class Crew(Generic[Part, Outcome]):
    """Workers, and the line to each of them."""

    def __init__(self, play: Callable[[Part], Outcome]) -> None:
        self._play = play
        self._workers: dict[Connection, BaseProcess] = {}

    def start(self, workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        for number in range(workers):
            ours, theirs = context.Pipe()
            worker = context.Process(
                target=_work, args=(theirs, self._play), name=f"worker {number}", daemon=True
            )
            worker.start()
            self._workers[ours] = worker
            theirs.close()

    def play(self, parts: Iterable[Part]) -> Iterator[Outcome]:
        """What they come to, as it comes in. Nobody is given a part before they have nothing to
        do."""
        left, busy = iter(parts), set[Connection]()
        idle = list(self._workers)
        while True:
            for line, part in zip(list(idle), left, strict=False):
                line.send(part)
                idle.remove(line)
                busy.add(line)
            if not busy:
                return
            for answering in wait(list(busy)):
                assert isinstance(answering, Connection)
                outcome = self._answer(answering)
                busy.remove(answering)
                idle.append(answering)
                yield outcome

    def _answer(self, line: Connection) -> Outcome:
        try:
            outcome, error = line.recv()
        except (EOFError, ConnectionError):
            worker = self._workers[line]
            worker.join()
            raise WorkerGone(f"{worker.name} has ended ({worker.exitcode})") from None
        if error is not None:
            raise error
        answered: Outcome = outcome
        return answered

    def end(self) -> None:
        """At once: whoever breaks off does not want to wait for a part that may take minutes."""
        for worker in self._workers.values():
            worker.kill()
        for line, worker in self._workers.items():
            worker.join()
            line.close()


@contextmanager
def crew(play: Callable[[Part], Outcome], workers: int) -> Iterator[Crew[Part, Outcome]]:
    """So many workers, until this is left, in whatever way."""
    hands = Crew(play)
    with _ended_by_sigterm():
        try:
            # A helper of the library that is there once for all; as it is started it lets signals
            # through again.
            resource_tracker.ensure_running()
            with _fixed_hashes(), _blocked():
                hands.start(workers)
            yield hands
        finally:
            with _deaf():
                hands.end()


# ---------------------------------------------------------------------- in a worker


def _work(line: Connection, play: Callable[[Part], Outcome]) -> None:
    """One part after the other, until nobody is at the other end."""
    threading.Thread(target=_end_with_parent, name="orphanage", daemon=True).start()
    _begin()
    while True:
        try:
            part = line.recv()
        except EOFError:
            return
        answer: tuple[Outcome | None, Exception | None]
        try:
            answer = (play(part), None)
        except Exception as error:
            error.add_note(traceback.format_exc())
            answer = (None, error)
        try:
            line.send(answer)
        except BrokenPipeError:
            return
        except Exception as unsent:  # what cannot be sent is told in words
            reason = unsent if answer[1] is None else answer[1]
            line.send((None, RuntimeError("".join(traceback.format_exception(reason)))))


def _end_with_parent() -> NoReturn:
    """Whoever started this may be killed without a chance to end it."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _begin() -> None:
    """An interrupt is the parent's affair, and nobody reads a log."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, DEAF_TO)
    tune_interpreter()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        cache_logger_on_first_use=True,
    )


# ---------------------------------------------------------------------- signals


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let go of everything on the way out, as at a Ctrl-C. Where signals are somebody else's
    affair, they remain that."""
    in_charge = threading.current_thread() is threading.main_thread()
    if not in_charge or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave(number: int, _: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


@contextmanager
def _blocked() -> Iterator[None]:
    """Whoever is started meanwhile begins without hearing them, and nobody is started whom nobody
    knows of."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, DEAF_TO)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _deaf() -> Iterator[None]:
    """For a moment: whoever asks for the end more than once gets it all the same."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[signal.Signals, Any] = {
        number: signal.signal(number, signal.SIG_IGN) for number in DEAF_TO
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _fixed_hashes() -> Iterator[None]:
    """Workers hash texts alike. No trace depends on it; should one ever, it still repeats."""
    before = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONHASHSEED"]
        else:
            os.environ["PYTHONHASHSEED"] = before
