"""Workers that play seeds: they do it as one would alone, and end with whoever started them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from paceline.sim.crew import WorkerGone, crew
from paceline.sim.many import spread

ROOT = Path(__file__).resolve().parents[2]
SOON_S = 15
"""A seed of ``mail`` takes longer, and the start of a worker a second or two."""

STORY = """
import os
import signal
import sys
from paceline.__main__ import run
from paceline.sim import many, simulation

def telling(seed, **how):
    os.write(1, f"{os.getpid()}\\n".encode())
    return simulation.simulate(seed, **how)

many.simulate = telling  # in the workers as well: they import this file

if __name__ == "__main__":
    # Whoever is started in the background of a shell is deaf to it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["paceline", "simulate", "--world", "mail", "--seeds", "8", "--workers", "2"]
    sys.exit(run())
"""


@dataclass
class Playing:
    """A command whose two workers are in the middle of a seed each."""

    command: subprocess.Popen[bytes]
    workers: list[int]
    """By which the system tells that they have ended."""

    def send(self, number: signal.Signals) -> None:
        """To all of them, as a terminal does it."""
        os.killpg(self.command.pid, number)

    def worker_ends(self) -> None:
        assert select.select(self.workers[:1], [], [], SOON_S)[0], "a worker plays on"

    def ends(self) -> int:
        """The exit code as a shell tells it. Nobody is left then."""
        _, said = self.command.communicate(timeout=SOON_S)
        assert b"Traceback" not in said, said.decode()
        for worker in self.workers:
            assert select.select([worker], [], [], SOON_S)[0], "a worker plays on"
        code = self.command.returncode
        return code if code >= 0 else 128 - code


@contextmanager
def playing(folder: Path) -> Iterator[Playing]:
    story = folder / "story.py"
    story.write_text(STORY)
    with subprocess.Popen(
        [sys.executable, str(story)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as command:
        assert command.stdout is not None
        numbers: list[int] = []
        handles: list[int] = []
        try:
            for _ in range(2):
                told = command.stdout.readline()
                assert told.strip().isdigit(), command.communicate(timeout=SOON_S)
                numbers.append(int(told))
                handles.append(os.pidfd_open(numbers[-1]))
            assert len({*numbers, command.pid}) == 3
            yield Playing(command, handles)
        finally:
            command.kill()
            for handle in handles:
                if not select.select([handle], [], [], 0)[0]:
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                os.close(handle)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Playing]:
    with playing(tmp_path) as opened:
        yield opened


def test_an_interrupt_ends_everybody(scene: Playing) -> None:
    scene.send(signal.SIGINT)
    assert scene.ends() == 130


def test_an_impatient_interrupt_does_as_well(scene: Playing) -> None:
    for _ in range(3):
        scene.send(signal.SIGINT)
    assert scene.ends() == 130


def test_one_more_while_they_are_being_ended_changes_nothing(scene: Playing) -> None:
    scene.send(signal.SIGINT)
    scene.worker_ends()
    scene.command.send_signal(signal.SIGINT)
    assert scene.ends() == 130


def test_a_request_to_end_ends_everybody(scene: Playing) -> None:
    scene.command.send_signal(signal.SIGTERM)
    assert scene.ends() == 143


def test_workers_do_not_outlive_a_parent_that_is_killed(scene: Playing) -> None:
    scene.command.kill()
    assert scene.ends() == 137


# ---------------------------------------------------------------------- in good order


def squared(number: int) -> int:
    return number * number


def refused(number: int) -> int:
    if number == 3:
        raise LookupError("not three")
    return number


class Unspeakable(Exception):
    """It cannot be sent from one process to another."""

    def __init__(self) -> None:
        super().__init__("what cannot be said")
        self.lock = threading.Lock()


def unspeakable(_: int) -> NoReturn:
    raise Unspeakable


def gone(_: int) -> NoReturn:
    os._exit(7)


def asked(name: str, _: int) -> str | None:
    return os.environ.get(name)


def test_everything_is_played_once_by_however_many() -> None:
    assert sorted(spread(squared, range(7), 2)) == [number**2 for number in range(7)]
    assert sorted(spread(squared, range(2), 8)) == [0, 1]
    assert list(spread(squared, [], 2)) == []


@pytest.mark.parametrize("play", [refused, partial(refused)], ids=["plain", "partial"])
def test_an_error_comes_out_with_the_place_it_comes_from(play: Callable[[int], int]) -> None:
    with pytest.raises(LookupError, match="not three") as caught:
        list(spread(play, range(8), 2))
    assert "in refused" in "".join(caught.value.__notes__)


def test_an_error_that_cannot_be_sent_is_told_in_its_words() -> None:
    with pytest.raises(RuntimeError, match="what cannot be said"):
        list(spread(unspeakable, range(2), 2))


def test_a_worker_that_is_gone_is_told_of() -> None:
    with pytest.raises(WorkerGone, match=r"worker \d has ended \(7\)"):
        list(spread(gone, range(4), 2))


def test_who_breaks_off_leaves_nobody_behind_and_signals_as_they_were() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with crew(squared, 2) as hands:
        workers = [worker for worker in hands._workers.values() if worker.is_alive()]
        assert len(workers) == 2
        assert next(hands.play(range(4))) in (0, 1)
    assert [worker.exitcode for worker in workers] == [-signal.SIGKILL] * 2
    assert before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


def test_texts_are_hashed_alike_in_every_worker_and_here_as_before() -> None:
    before = os.environ.get("PYTHONHASHSEED")
    assert set(spread(partial(asked, "PYTHONHASHSEED"), range(2), 2)) == {"0"}
    assert os.environ.get("PYTHONHASHSEED") == before


def test_they_can_be_asked_for_beside_the_main_thread() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.extend(spread(squared, range(3), 2)))
    thread.start()
    thread.join()
    assert sorted(found) == [0, 1, 4]
