"""A short version of every benchmark: what it counts is right, however fast this machine is."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import claims, conversations, engine, inbound, lanes, pace, scenes, smtp
from bench.bare import BareLoop
from bench.children import ROOT, Child, measure
from bench.places import KINDS, Places, places
from bench.report import BenchError
from bench.threads import ThreadBook
from paceline.core.grammar import Rate
from paceline.core.instants import SECOND
from tests import postgres
from tests.tidy import rules
from tests.tidy.rules import Rule, Source


@pytest.fixture
def here(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    """Places on the server that the tests have already."""
    monkeypatch.setenv(postgres.URL_VARIABLE, postgres_url)
    with places(tmp_path, durable=False) as made:
        yield made


def quiet(_: str) -> None:
    """Nobody watches the progress of a test."""


def test_the_engine_and_the_bare_loop_send_everything(here: Places) -> None:
    options = engine.EngineOptions(repetitions=1, accounts=10, count=200, kinds=("postgresql",))
    made = json.loads(engine.run(here, options, quiet).to_json())
    assert [row["name"] for row in made["rows"]] == ["paceline postgresql", "bare postgresql"]
    for row in made["rows"]:
        assert row["per_second"] > 0
        assert row["deliveries"] == 200
        assert 1 <= row["group"] <= 10
    assert set(made["ratios"]) == {"paceline postgresql / bare postgresql"}


def test_letters_reach_the_sink_each_once(here: Places) -> None:
    options = smtp.SmtpOptions(repetitions=1, accounts=3, count=120, kinds=("sqlite",))
    made = json.loads(smtp.run(here, options, quiet).to_json())
    rows = ["bare aiosmtplib", "tuned aiosmtplib", "paceline sqlite"]
    assert [row["name"] for row in made["rows"]] == rows
    assert all(row["per_second"] > 0 and row["letters"] == 120 for row in made["rows"])
    assert set(made["ratios"]) == {f"paceline sqlite / {peer}" for peer in rows[:2]}
    assert list(made["bars"]) == ["paceline sqlite / bare aiosmtplib"]


@pytest.mark.parametrize("kind", KINDS)
def test_reports_are_taken_in_each_once(here: Places, kind: str) -> None:
    options = inbound.InboundOptions(
        repetitions=1,
        accounts=2,
        customers=20,
        connections=4,
        count=120,
        warm_up=20,
        alone=5,
        kinds=(kind,),
    )
    made = json.loads(inbound.run(here, options, quiet).to_json())
    bare, ours, alone = made["rows"]
    assert [row["name"] for row in made["rows"]] == [
        "bare route",
        f"paceline {kind}",
        f"alone {kind}",
    ]
    for row in (bare, ours):
        assert row["reports"] == 120
        assert 0 < row["p50_ms"] <= row["p99_ms"]
        assert row["per_second"] > 0 and row["cpu_us"] > 0
    assert alone["buffering_ms"] > 0 and alone["lock_ms"] > 0
    assert (
        set(made["bars"])
        == set(made["ratios"])
        == {
            f"paceline {kind} / bare route",
            f"paceline {kind} p99 ms",
            f"alone {kind} buffering ms",
            f"alone {kind} taking the lock ms",
        }
    )


def test_conversations_are_all_in_flight_and_each_is_answered_once(here: Places) -> None:
    options = conversations.ConversationsOptions(count=25, kinds=("sqlite",))
    report = conversations.run(here, options, quiet)
    [row] = json.loads(report.to_json())["rows"]
    assert (row["name"], row["in_flight"], row["twice"]) == ("conversations sqlite", 25, 0)
    assert [ratio.value for ratio in report.ratios[:2]] == [25, 25]


def test_every_thread_is_kept_account_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "run", threading.Thread.run)  # put back afterwards
    book = ThreadBook(profiled=True)
    book.watch()
    thread = threading.Thread(target=lambda: sum(range(1000)), name="paceline-writer_0")
    thread.start()
    thread.join()
    book.keep("loop", lambda: None)
    assert set(book.cpu_s) == set(book.profiles()) == {"paceline-writer_0", "loop"}
    assert "built-in method builtins.sum" in book.profiles()["paceline-writer_0"]
    spent = {"loop": 2.0, "paceline-reader_0": 0.5, "paceline-reader_1": 0.5, "uvloop_0": 0.1}
    assert engine.cpu_per_delivery({"count": 1000, "cpu_s": spent}) == {
        "loop": 2000,
        "reader": 1000,
        "other": 100,
    }


def test_the_bare_loop_settles_everything_on_a_file(here: Places) -> None:
    with here.fresh("sqlite") as url, scenes.opened(url) as store:
        scenes.launched_campaign(store, scenes.add_accounts(store, 7, {}), 120)
        assert BareLoop(store).run(group=3) == 120
        scenes.check_sent(store, 120)
        with pytest.raises(AssertionError, match="121 were to be sent"):
            scenes.check_sent(store, 121)


def test_peers_that_are_not_installed_are_missed(here: Places, tmp_path: Path) -> None:
    options = engine.EngineOptions(kinds=(), peer_python=tmp_path / "python")
    with pytest.raises(BenchError, match="scripts/bench installs them"):
        engine.run(here, options, quiet)


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_looks_at_the_same_rows_however_many_wait(here: Places, kind: str) -> None:
    options = claims.ClaimsOptions(
        sizes=(500, 5_000), accounts=5, repetitions=1, rounds=1, suppressed=300, kinds=(kind,)
    )
    report = claims.run(here, options, quiet)
    few, many = (row.to_mapping() for row in report.rows)
    assert (few["name"], many["name"]) == (f"claim {kind} 500", f"claim {kind} 5k")
    unit = "steps" if kind == "sqlite" else "rows_examined"
    assert few[unit] == many[unit] > 0
    assert few["plan"] == many["plan"]
    assert any("ix_deliveries_due" in line for line in few["plan"])
    assert {ratio.name: ratio.value for ratio in report.ratios}[f"examined {kind} 5k / 500"] == 1


def test_rows_that_were_thrown_away_were_examined() -> None:
    node = {
        "Relation Name": "deliveries",
        "Actual Rows": 3,
        "Actual Loops": 2,
        "Rows Removed by Filter": 4,
        "Rows Removed by Index Recheck": 1,
    }
    assert claims.examined(node) == 16
    assert claims.examined({"Node Type": "Limit", "Actual Rows": 3, "Actual Loops": 1}) == 0


def test_lanes_are_watched(here: Places) -> None:
    options = lanes.LanesOptions(
        lanes=(5,), repetitions=2, rate="240/min", warm_up_s=0, window_s=0.5
    )
    [row] = lanes.run(here, options, quiet).rows
    found = row.to_mapping()
    assert found["name"] == "lanes 5"
    assert len(found["repetitions"]) == 2
    assert (found["asked"], found["sending"], found["withdrawn"]) == (5, 5, 0)
    assert found["cpu_share"] > 0
    assert found["sending_mb"] > 1
    assert found["overshoot"] >= 0


@pytest.mark.parametrize(
    ("rate", "seconds", "over"),
    [
        ("60/min", [0, 1, 2, 3], 0),
        ("60/min", [3, 1, 0, 2], 0),
        ("60/min", [0, 10, 10.5], 0.5),
        ("60/min", [0, 0, 0], 2),
        ("60/min burst 3", [0, 0, 0], 0),
        ("60/min burst 3", [0, 0, 0, 0.75], 0.25),
        ("60/min", [5], 0),
        ("60/min", [], 0),
    ],
)
def test_the_judge_of_the_pace(rate: str, seconds: list[float], over: float) -> None:
    instants = [round(each * SECOND) for each in seconds]
    assert pace.overshoot(instants, Rate.parse(rate)) == over


def test_a_child_that_fails_says_why() -> None:
    script = "import sys; print('so and so', file=sys.stderr); sys.exit(3)"
    with pytest.raises(BenchError, match=r"ended with 3:\nso and so"):
        measure(Child([sys.executable, "-c", script]), 30)


def test_a_child_is_not_left_behind() -> None:
    script = "import signal; print('up', flush=True); signal.pause()"
    with Child([sys.executable, "-c", script]) as child:
        pid = child.pid
        with pytest.raises(BenchError, match=r"did not end within"):
            child.output(0.01)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


SOURCES = [Source.read(ROOT, path) for path in sorted((ROOT / "bench").glob("*.py"))]


@pytest.mark.parametrize(
    "rule",
    [rules.short_file, rules.short_functions, rules.module_docstring, *rules.TEXT_RULES],
    ids=lambda rule: rule.__name__,
)
def test_the_harness_keeps_the_house_rules(rule: Rule) -> None:
    assert len(SOURCES) > 5
    assert not [problem for source in SOURCES for problem in rule(source)]


def test_the_peers_are_pinned_by_hash_and_name_no_place() -> None:
    lock = Source.read(ROOT, ROOT / "bench" / "peers.txt")
    assert rules.only_hashes(lock) == []
    assert "procrastinate==" in lock.text
