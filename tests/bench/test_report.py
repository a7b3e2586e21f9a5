"""What the harness says: the shape of its JSON, its bars, and how it ends."""

import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from bench import __main__ as command
from bench import engine, inbound, lanes
from bench.report import BenchError, Ratio, Report, Row
from tests import postgres


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """The command answers to signals in its own way; afterwards they are pytest's again."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def rows(**rates: float) -> list[Row]:
    return [Row(name.replace("_", " "), rate) for name, rate in rates.items()]


EVERY = rows(
    paceline_sqlite=500,
    paceline_postgresql=1000,
    procrastinate_lock=100,
    pgbench=2000,
    bare_sqlite=1000,
    bare_postgresql=4000,
)


def test_the_json_has_rows_and_ratios() -> None:
    report = json.loads(Report("engine", EVERY, engine.ratios(EVERY)).to_json())
    assert [row["name"] for row in report["rows"]] == list(engine.ORDER)
    assert all(isinstance(row["per_second"], float) for row in report["rows"])
    assert report["ratios"] == {
        "paceline postgresql / procrastinate lock": 10.0,
        "paceline sqlite / bare sqlite": 0.5,
        "paceline postgresql / bare postgresql": 0.25,
        "paceline postgresql / pgbench": 0.5,
        "paceline sqlite / paceline postgresql": 0.5,
    }
    met = {name: bar["met"] for name, bar in report["bars"].items()}
    assert met == {
        "paceline postgresql / procrastinate lock": True,
        "paceline sqlite / bare sqlite": True,
        "paceline postgresql / bare postgresql": False,
    }


def test_a_row_is_the_median_of_its_repetitions() -> None:
    row = Row.of_runs("x", [5, 1, 9, 3, 7], more="words")
    assert row.to_mapping() == {
        "name": "x",
        "per_second": 5,
        "repetitions": [5, 1, 9, 3, 7],
        "more": "words",
    }


@pytest.mark.parametrize(
    ("ratio", "met", "bar"),
    [
        (Ratio("x", 10, at_least=10), True, "≥ 10"),
        (Ratio("x", 9.99, at_least=10), False, "≥ 10"),
        (Ratio("x", 1.2, at_most=1.2), True, "≤ 1.2"),
        (Ratio("x", 1.21, at_most=1.2), False, "≤ 1.2"),
        (Ratio("x", 1, at_least=1, at_most=1), True, "= 1"),
        (Ratio("x", 0.9, at_least=1, at_most=1), False, "= 1"),
        (Ratio("x", 123), True, ""),
    ],
)
def test_a_bar_is_met_or_missed(ratio: Ratio, met: bool, bar: str) -> None:
    assert (ratio.met, ratio.bar) == (met, bar)


def test_the_table_shows_bars_and_whether_they_are_met() -> None:
    written = io.StringIO()
    report = Report("engine", EVERY, engine.ratios(EVERY))
    report.show(Console(file=written, width=200))
    text = written.getvalue()
    assert "paceline sqlite / bare sqlite" in text
    assert "≥ 0.4" in text
    assert "NO" in text


def test_which_lanes_have_a_bar_for_what_they_cost() -> None:
    paid = {"cpu_share": 0.9, "kb_per_idle_lane": 30.0, "achieved_share": 1.0, "overshoot": 0.0}
    counts = {"lanes 10": (10, 10), "lanes 1000": (1_000, 1_000), "lanes 10000": (10_000, 9)}
    made = lanes.ratios(
        [
            Row(name, 1, paid | {"asked": asked, "sending": sending})
            for name, (asked, sending) in counts.items()
        ]
    )
    assert [ratio.name for ratio in made if not ratio.met] == [
        "lanes 1000 cpu / one core",
        "lanes 1000 kB per idle lane",
        "lanes 10000 kB per idle lane",
    ], "also where hardly any of them were sending"


def test_a_send_too_early_or_too_few_of_them_miss_a_bar() -> None:
    more = {"cpu_share": 0.1, "kb_per_idle_lane": 1.0, "asked": 10}
    bad = Row("lanes 10", 1, more | {"achieved_share": 0.98, "overshoot": 0.001})
    missed = [ratio.name for ratio in lanes.ratios([bad]) if not ratio.met]
    assert missed == ["lanes 10 sent / allowed", "lanes 10 overshoot"]


def test_what_an_answer_takes_and_what_a_turn_takes_have_bars() -> None:
    made = inbound.ratios(
        [
            Row("bare route", 1_000, {"p99_ms": 60.0}),
            Row("paceline sqlite", 599, {"p99_ms": 50.1}),
            Row("paceline postgresql", 600, {"p99_ms": 50.0}),
            Row("alone sqlite", 1, {"buffering_ms": 5.0, "lock_ms": 2.0}),
            Row("alone postgresql", 1, {"buffering_ms": 5.1, "lock_ms": 2.1}),
        ]
    )
    assert [ratio.name for ratio in made if not ratio.met] == [
        "paceline sqlite / bare route",
        "paceline sqlite p99 ms",
        "alone postgresql buffering ms",
        "alone postgresql taking the lock ms",
    ]


def answer_with(monkeypatch: pytest.MonkeyPatch, report: Report | Exception) -> None:
    def measure(*_: object) -> Report:
        if isinstance(report, Exception):
            raise report
        return report

    monkeypatch.setattr(command, "measure", measure)


def test_a_missed_bar_is_named_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer_with(monkeypatch, Report("x", EVERY, [Ratio("a / b", 0.3, at_least=0.4)]))
    assert command.main(["engine", "--json"]) == 1
    printed, said = capsys.readouterr()
    assert json.loads(printed)["ratios"] == {"a / b": 0.3}
    assert "missed: a / b is 0.3, the bar is ≥ 0.4" in said


def test_bars_that_are_met_end_with_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer_with(monkeypatch, Report("x", EVERY, [Ratio("a / b", 0.5, at_least=0.4)]))
    assert command.main(["engine"]) == 0
    assert "a / b" in capsys.readouterr().out


def test_what_cannot_be_measured_ends_with_2_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer_with(monkeypatch, BenchError("there is no PostgreSQL"))
    assert command.main(["claims", "--json"]) == 2
    printed, said = capsys.readouterr()
    assert (printed, said) == ("", "scripts/bench: there is no PostgreSQL\n")


def test_ctrl_c_ends_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(*_: object) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "measure", measure)
    assert command.main(["lanes"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["claims", "--folder", str(tmp_path / "nowhere")]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_a_host_without_postgresql_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(postgres.URL_VARIABLE, raising=False)
    monkeypatch.setattr(postgres, "installed_programs", list)
    monkeypatch.setattr(postgres, "packaged_programs", list)
    monkeypatch.setattr(command, "measure", lambda _, where: where.server_url)
    assert command.main(["claims", "--json"]) == 2
    said = capsys.readouterr().err
    assert "needs PostgreSQL" in said
    assert "No programs were found" in said
