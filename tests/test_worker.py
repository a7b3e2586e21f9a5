"""A worker's own end of the line, and who it looks after."""

import os
import threading

from paceline.core.reports import (
    Assignment,
    Beat,
    Joined,
    LaneCrash,
    Standstill,
    read_report,
    write_assignment,
)
from paceline.interpreter import memory_taken
from paceline.worker import Line, Roster

PATIENCE_S = 30


class Pipes:
    """A line, and the service's ends of it."""

    def __init__(self) -> None:
        self.source, self.to_worker = os.pipe()
        self.from_worker, self.sink = os.pipe()
        self.line = Line(self.source, self.sink)

    def read(self) -> bytes:
        return os.read(self.from_worker, 1 << 20)

    def close(self) -> None:
        for end in (self.from_worker, self.sink):
            os.close(end)


def test_what_is_told_is_there_at_once() -> None:
    pipes = Pipes()
    pipes.line.tell(Joined(7))
    pipes.line.tell(Standstill("ann"))
    lines = pipes.read().splitlines()
    assert [read_report(line) for line in lines] == [Joined(7), Standstill("ann")]
    os.close(pipes.source)
    os.close(pipes.to_worker)
    pipes.close()


def test_a_service_that_does_not_read_holds_up_nobody_and_misses_nothing() -> None:
    pipes = Pipes()
    told = [LaneCrash(number, 1_700_000_000_000_000, None) for number in range(5_000)]
    for report in told:
        pipes.line.tell(report)  # far more than a pipe holds
    assert not pipes.line.clear, "and so there is no beat"
    heard = b""
    while not pipes.line.clear:
        heard += pipes.read()
    heard += pipes.read()
    assert [read_report(line) for line in heard.splitlines()] == told
    os.close(pipes.source)
    os.close(pipes.to_worker)
    pipes.close()


def test_a_service_that_has_gone_is_told_nothing_and_its_going_is_noticed() -> None:
    pipes, ended = Pipes(), threading.Event()
    assigned: list[Assignment] = []
    pipes.line.listen(assigned.append, ended.set)
    os.write(pipes.to_worker, write_assignment(Assignment((1, 2))))
    os.close(pipes.from_worker)
    pipes.line.tell(Beat(7, 1, 1, {}))
    assert pipes.line.clear
    assert not ended.is_set()
    os.close(pipes.to_worker)
    assert ended.wait(PATIENCE_S)
    assert assigned == [Assignment((1, 2))]
    os.close(pipes.sink)


def test_who_is_added_is_looked_after_from_the_next_look_on() -> None:
    roster = Roster([1, 2])
    looking = iter(roster)
    roster.add([2, 3])
    assert sorted(looking) == [1, 2]
    assert sorted(roster) == [1, 2, 3]


def test_a_process_knows_what_it_takes() -> None:
    before = memory_taken()
    taken = b"x" * (64 << 20)
    assert memory_taken() - before > 32 << 20
    assert len(taken)
