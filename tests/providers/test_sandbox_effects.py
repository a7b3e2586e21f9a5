"""The log of effects: in order, shared, never taken back, and readable after any crash."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.errors import InputError, NotFoundError
from paceline.core.model import Part
from paceline.providers.sandbox import Effect, Effects, FileEffects, MemoryEffects, PartDigest
from paceline.providers.sandbox.effects import read_effects

EXAMPLE = Effect(
    kind="send",
    called_at=10,
    at=12,
    account="first",
    address="first@example.com",
    key="k1",
    target="anna@example.com",
    action="message",
    part=PartDigest.of(Part("text", "hello"), None),
    attempt=1,
    answer="accepted",
    code="",
    accepted=True,
    provider_id="sandbox-1",
)

WRITER = """
import sys
from dataclasses import replace
from paceline.providers.sandbox import FileEffects
from tests.providers.test_sandbox_effects import EXAMPLE
effects = FileEffects(sys.argv[1])
numbers = range(int(sys.argv[3])) if len(sys.argv) > 3 else iter(int, 1)
for turn, _ in enumerate(numbers):
    effects.record(replace(EXAMPLE, account=sys.argv[2], key=f"k{turn}", target="x" * (turn % 997)))
    if turn == 0:
        print("started", flush=True)
"""


def start_writer(path: Path, *arguments: str) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[2]
    environment = os.environ | {"PYTHONPATH": str(root)}
    command = [sys.executable, "-c", WRITER, str(path), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.fixture(params=["memory", "file"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Effects]:
    if request.param == "memory":
        return MemoryEffects
    return lambda: FileEffects(tmp_path / "effects.jsonl")


def test_effects_come_back_as_recorded_and_numbered(make: Callable[[], Effects]) -> None:
    effects = make()
    upload = replace(EXAMPLE, kind="upload", expires_at=99, retry_after_us=5, accepted=False)
    effects.record(EXAMPLE)
    effects.record(upload)
    assert effects.all() == [replace(EXAMPLE, number=1), replace(upload, number=2)]


def test_each_tail_keeps_its_own_place(make: Callable[[], Effects]) -> None:
    effects = make()
    early = effects.tail()
    assert early.fresh() == []
    effects.record(EXAMPLE)
    late = effects.tail()
    assert [e.number for e in early.fresh()] == [1]
    effects.record(EXAMPLE)
    assert [e.number for e in early.fresh()] == [2]
    assert [e.number for e in late.fresh()] == [1, 2]
    assert late.fresh() == []


@given(st.text(), st.text(), st.text())
def test_any_text_survives_the_file(key: str, target: str, code: str) -> None:
    effect = replace(EXAMPLE, key=key, target=target, code=code)
    line = effect.to_json()
    assert "\n" not in line
    assert line.isascii()


def test_a_digest_tells_parts_apart_without_their_words() -> None:
    one = PartDigest.of(Part("text", "a secret"), None)
    assert one == PartDigest.of(Part("text", "a secret"), None)
    assert one != PartDigest.of(Part("text", "another "), None)
    assert one != PartDigest.of(Part("text", "a secret", subject="s"), None)
    assert one.size == 8
    assert "secret" not in replace(EXAMPLE, part=one).to_json()


def test_a_digest_is_the_same_in_every_release_and_whenever_it_is_asked_for() -> None:
    late = PartDigest.of(Part("media", "hello", "a", "<b>", "m1"), "h1")
    known = PartDigest("media", 5, "a60201b54065d074", "m1", "h1")
    assert late == known
    assert hash(late) == hash(known)
    assert repr(late) == repr(known)
    assert late != "a60201b54065d074"
    assert replace(EXAMPLE, part=late).to_json() == replace(EXAMPLE, part=known).to_json()


def test_a_line_of_the_log_reads_the_same_in_every_release() -> None:
    assert EXAMPLE.to_json() == (
        '{"kind":"send","called_at":10,"at":12,"account":"first","address":"first@example.com",'
        '"key":"k1","target":"anna@example.com","action":"message","attempt":1,'
        '"answer":"accepted","code":"","accepted":true,"provider_id":"sandbox-1",'
        '"retry_after_us":null,"expires_at":null,"part":{"kind":"text","size":5,'
        '"digest":"1ee6237cbac81dce","media":null,"handle":null}}'
    )


def test_a_new_process_reads_what_the_last_one_wrote(tmp_path: Path) -> None:
    path = tmp_path / "effects.jsonl"
    with FileEffects(path) as effects:
        effects.record(EXAMPLE)
    with FileEffects(path) as effects:
        effects.record(EXAMPLE)
    assert [e.number for e in read_effects(path)] == [1, 2]


def test_the_file_is_its_owner_s_only(tmp_path: Path) -> None:
    path = tmp_path / "effects.jsonl"
    FileEffects(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_reading_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no log of effects"):
        read_effects(tmp_path / "nowhere.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "effects.jsonl"
    for wrong in ("just some text\n", "[1]\n", '{"kind":"send"}\n'):
        path.write_text(wrong)
        with pytest.raises(InputError, match=r"effects\.jsonl:1: this is not an effect"):
            read_effects(path)


def test_a_closed_log_says_so(tmp_path: Path) -> None:
    effects = FileEffects(tmp_path / "effects.jsonl")
    tail = effects.tail()
    effects.close()
    effects.close()
    with pytest.raises(ValueError, match="has been closed"):
        effects.record(EXAMPLE)
    with pytest.raises(ValueError, match="has been closed"):
        tail.fresh()


@pytest.mark.parametrize("length", [1, 20, len(EXAMPLE.to_json())])
def test_half_a_line_never_happened_and_harms_no_other(tmp_path: Path, length: int) -> None:
    path = tmp_path / "effects.jsonl"
    with FileEffects(path) as effects:
        effects.record(replace(EXAMPLE, key="before"))
        tail = effects.tail()
        with path.open("a") as file:
            file.write(EXAMPLE.to_json()[: length - 1])
        assert [e.key for e in tail.fresh()] == ["before"]
        effects.record(replace(EXAMPLE, key="after"))
        assert [(e.number, e.key) for e in tail.fresh()] == [(2, "after")]
    assert [(e.number, e.key) for e in read_effects(path)] == [(1, "before"), (2, "after")]


def test_many_processes_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "effects.jsonl"
    writers = [start_writer(path, f"writer {n}", "400") for n in range(3)]
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    effects = read_effects(path)
    assert [e.number for e in effects] == list(range(1, 1201))
    for n in range(3):
        keys = [e.key for e in effects if e.account == f"writer {n}"]
        assert keys == [f"k{turn}" for turn in range(400)]
    assert len(path.read_text().splitlines()) == 1200


def test_killing_a_writer_takes_nothing_back(tmp_path: Path) -> None:
    path = tmp_path / "effects.jsonl"
    writer = start_writer(path, "doomed")
    with FileEffects(path) as effects:
        tail, seen = effects.tail(), 0
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "started\n"
            while seen < 200 and writer.poll() is None:
                seen += len(tail.fresh())
        finally:
            writer.kill()
            writer.communicate(timeout=60)
        assert writer.returncode == -signal.SIGKILL
        effects.record(replace(EXAMPLE, account="heir", key="last"))
        seen += len(tail.fresh())
    effects_read = read_effects(path)
    assert len(effects_read) == seen
    assert effects_read[-1].key == "last"
    assert [e.key for e in effects_read[:-1]] == [f"k{turn}" for turn in range(seen - 1)]
