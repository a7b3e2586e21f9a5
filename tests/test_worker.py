"""A worker's own end of the line, and who it looks after."""

import os
import queue
import threading

import pytest

from paceline.core.reports import (
    Assignment,
    Beat,
    Joined,
    LaneCrash,
    Standstill,
    read_report,
    write_assignment,
)
from paceline.engine.watchdog import Standing
from paceline.interpreter import memory_taken
from paceline.worker import Line, Orders, Roster, _tell_standstill

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


def test_where_a_worker_stands_still_is_told_and_whether_anybody_is_to_blame() -> None:
    pipes = Pipes()
    for at in (Standing("ann", "send (a.py:1)", "…"), Standing(None, "write (b.py:2)", "…", True)):
        _tell_standstill(pipes.line, at)
    assert [read_report(line) for line in pipes.read().splitlines()] == [
        Standstill("ann", excused=False, where="send (a.py:1)"),
        Standstill(None, excused=True, where="write (b.py:2)"),
    ]
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


def test_the_first_line_is_read_alone_and_what_follows_is_listened_to() -> None:
    pipes, ended = Pipes(), threading.Event()
    assigned: list[Assignment] = []
    os.write(pipes.to_worker, b'{"name": "one"}\n' + write_assignment(Assignment((1, 2))))
    os.close(pipes.to_worker)
    assert pipes.line.first() == b'{"name": "one"}\n'
    pipes.line.listen(assigned.append, ended.set)
    assert ended.wait(PATIENCE_S)
    assert assigned == [Assignment((1, 2))]
    pipes.close()


def test_orders_that_come_before_somebody_follows_are_kept() -> None:
    pipes, ended = Pipes(), threading.Event()
    assigned: list[Assignment] = []
    orders = Orders(pipes.line)
    orders._assigned(Assignment((1,)))
    orders.follow(assigned.append, ended.set)
    os.write(pipes.to_worker, write_assignment(Assignment((2,))))
    os.close(pipes.to_worker)
    assert ended.wait(PATIENCE_S)
    assert assigned == [Assignment((1,)), Assignment((2,))]
    pipes.close()


def test_a_service_that_goes_before_anything_was_begun_ends_its_worker_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes: queue.Queue[int] = queue.Queue()

    def exit_with(code: int) -> None:
        codes.put(code)
        threading.Event().wait()  # as the real one, it never returns

    monkeypatch.setattr("paceline.worker.os._exit", exit_with)
    pipes = Pipes()
    Orders(pipes.line)
    os.close(pipes.to_worker)
    assert codes.get(timeout=PATIENCE_S) == 0
    pipes.close()


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
