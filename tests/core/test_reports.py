"""What passes between a service and its workers: the same on both ends, and nothing else."""

import pytest

from paceline.core.reports import (
    Assignment,
    Away,
    Beat,
    Joined,
    LaneCrash,
    Report,
    Standstill,
    read_assignment,
    read_report,
    write_assignment,
    write_report,
)


@pytest.mark.parametrize(
    "report",
    [
        Joined(7),
        Beat(7, 1 << 30, 3, {"intents": {"ann": 2}}),
        Beat(None, 0, 0, {}),
        LaneCrash(1, 1_700_000_000_000_000, None),
        LaneCrash(1, 1_700_000_000_000_000, 5),
        Standstill("ann"),
        Standstill(None),
        Standstill(None, excused=True, where="write (logs.py:1)"),
        Away("the database cannot be reached"),
    ],
)
def test_a_report_is_one_line_and_comes_back_as_it_was(report: Report) -> None:
    line = write_report(report)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    back = read_report(line)
    assert type(back) is type(report) and back == report


def test_an_assignment_comes_back_as_it_was() -> None:
    assignment = Assignment((3, 1), (LaneCrash(3, 5, None), LaneCrash(1, 6, 9)))
    assert read_assignment(write_assignment(assignment)) == assignment
    assert read_assignment(write_assignment(Assignment(()))) == Assignment(())


@pytest.mark.parametrize(
    "line", [b"", b"hello\n", b"{}\n", b"[]\n", b"7\n", b'["Gone", 1]\n', b'["Joined"]\n', b"[[1]]"]
)
def test_anything_else_is_no_report(line: bytes) -> None:
    with pytest.raises(ValueError):
        read_report(line)
