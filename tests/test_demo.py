"""The demo, as a newcomer runs it: the whole of it, judged by its own report."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog

from paceline import logs
from paceline.core.errors import InputError
from paceline.demo import ACCOUNTS, main, picture


@pytest.fixture(autouse=True)
def logs_as_the_command_line_has_them() -> Iterator[None]:
    """The demo is called in this process, where nobody has said yet that logs go to stderr."""
    before, root = structlog.get_config(), logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    logs.configure()
    yield
    for handler in [known for known in root.handlers if known not in handlers]:
        root.removeHandler(handler)
    root.setLevel(level)
    structlog.configure(**before)


@pytest.fixture(scope="module")
def report() -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "paceline", "demo", "--json"],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    loaded: dict[str, object] = json.loads(done.stdout)  # the report, and nothing else
    return loaded


def test_the_report_has_the_promised_shape(report: dict[str, object]) -> None:
    assert list(report) == [
        "total", "sent", "failed", "skipped", "bounced", "unknown", "cancelled", "uploads",
        "accounts", "violations",
    ]  # fmt: skip


def test_every_message_is_accounted_for_and_no_promise_was_broken(
    report: dict[str, object],
) -> None:
    states = ("sent", "failed", "skipped", "bounced", "unknown", "cancelled")
    assert sum(int(str(report[state])) for state in states) == report["total"] == 1000
    assert report["violations"] == []


def test_media_are_uploaded_once_per_account(report: dict[str, object]) -> None:
    assert report["uploads"] == len(ACCOUNTS)


def test_a_lane_that_is_never_short_of_work_keeps_its_allowed_pace(
    report: dict[str, object],
) -> None:
    accounts = report["accounts"]
    assert isinstance(accounts, list) and len(accounts) == 3
    for account in accounts:
        assert account["allowed_per_min"] > 0
        share = account["achieved_per_min"] / account["allowed_per_min"]
        assert 0.98 <= share <= 1.0, account


def test_the_same_seed_gives_the_same_report(capsys: pytest.CaptureFixture[str]) -> None:
    reports = []
    for seed in (7, 7, 8):
        assert main(targets=60, as_json=True, seed=seed) == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0] == reports[1]
    assert reports[0]["total"] == reports[2]["total"] == 60


def test_it_says_in_words_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(targets=130) == 0
    text = capsys.readouterr().out
    assert "130 messages" in text
    assert "1 throttled" in text
    assert "1 lane killed between intent and outcome" in text
    assert "verify: every promise kept" in text


def test_too_few_targets_are_refused() -> None:
    with pytest.raises(InputError, match="at least 3 targets"):
        main(targets=2)


def test_the_picture_is_a_png_of_its_own() -> None:
    assert picture().startswith(b"\x89PNG\r\n\x1a\n")
