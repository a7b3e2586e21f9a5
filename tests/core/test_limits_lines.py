"""The lines and boards on which slots are looked for."""

from paceline.core.instants import MINUTE, parse_instant
from paceline.core.limits import Board
from paceline.core.relocating import Line
from tests.core.test_limits import every, seat

MONDAY = parse_instant("2026-03-02T09:00:00Z")


def test_a_line_joins_stretches_that_leave_no_room() -> None:
    line = Line(least_us=10, longest_us=0)
    line.add(100, 0)
    line.add(119, 0)  # nothing fits in between
    assert line.free_from(95, 10) == 129
    assert line.free_from(90, 10) == 90
    line.add(150, 5)
    assert line.free_from(95, 10) == 129
    assert line.free_from(95, 15) == 134
    assert line.free_from(95, 90) == 140, "as far as there is room"
    line.shut(130, 200)
    assert line.free_from(95, 90) == 129
    assert line.free_from(130, 10) == 200
    assert line.free_from(130, 50) == 205, "reckoned from the send at 150, which ends at 155"


def test_a_board_tells_apart() -> None:
    board = Board(seat(min_gap="6m"), every(4 * MINUTE, 4))
    assert [one.key for one in board.paced] == [0, 2]
    assert [one.key for one in board.offending] == [1, 3]


# ---------------------------------------------------------------------- in their order
