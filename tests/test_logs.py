"""The log: one line per event on stderr, ours and other people's alike."""

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from paceline import logs


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == "", "the log never mixes with answers"
    return captured.err.splitlines()


def test_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    structlog.get_logger("paceline.lane").info("parked", account="sales", wake_at=1_000_000)
    logging.getLogger("uvicorn.error").warning("too %s", "late")
    ours, theirs = (json.loads(line) for line in lines(capsys))
    assert list(ours)[:4] == ["timestamp", "level", "logger", "event"]
    assert ours["timestamp"].endswith("Z")
    assert (ours["level"], ours["logger"], ours["event"]) == ("info", "paceline.lane", "parked")
    assert (ours["account"], ours["wake_at"]) == ("sales", "1970-01-01T00:00:01Z")
    assert (theirs["logger"], theirs["event"]) == ("uvicorn.error", "too late")


def test_console_lines_have_no_colour_where_nobody_sees_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure("info", "console")
    structlog.get_logger("paceline.lane").warning("lost", account="sales")
    (line,) = lines(capsys)
    assert "\x1b" not in line
    assert line.endswith("lost [paceline.lane] account=sales")


def test_levels(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("warning", "json")
    structlog.get_logger("paceline").info("quiet")
    logging.getLogger("alembic").info("quiet")
    assert lines(capsys) == []
    logs.configure("debug", "json")
    structlog.get_logger("paceline").debug("loud")
    logging.getLogger("alembic").info("of no interest to anybody")
    assert len(lines(capsys)) == 1, "and the earlier configuration is gone"


def test_an_exception_is_part_of_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    try:
        raise ValueError("broken")
    except ValueError:
        structlog.get_logger("paceline").exception("crashed")
    (line,) = lines(capsys)
    assert "ValueError: broken" in json.loads(line)["exception"]


def test_the_secret_in_an_address_is_logged_by_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever logs what was asked for, and however."""
    logs.configure("info", "json")
    address = "/hooks/anna@example.com/s3cret-S3cret_s3cret"
    logging.getLogger("uvicorn.error").warning('%s - "%s"', "::1", f"POST {address}?a=1 HTTP/1.1")
    structlog.get_logger("paceline").info("asked", path=address)
    structlog.get_logger("paceline").info(f"https://mail.example.com{address}")
    said = lines(capsys)
    assert len(said) == 3 and all("/hooks/anna@example.com/(secret)" in line for line in said)
    assert "s3cret" not in "".join(said).lower()
