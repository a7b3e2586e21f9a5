"""What people wrote is in a file before anything else, and stays there until it was confirmed."""

from __future__ import annotations

import stat
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from paceline.providers.whatsapp import letterbox
from paceline.providers.whatsapp.letterbox import Letterbox, Spool


def came(number: int) -> dict[str, Any]:
    return {"event": "came", "id": f"m{number}"}


class Quiet:
    """An account that is asked, and says nothing."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def call(self, name: str, words: dict[str, Any], body: bytes) -> Any:
        self.asked.append(name)
        return name

    def stop(self) -> None:
        self.asked.append("stop")


class Box:
    """A letterbox over a file, opened anew as often as a test likes."""

    def __init__(self, path: Path, *, at_once: int = 500, most: int = 1_000) -> None:
        self.told: list[dict[str, Any]] = []
        self.spool = Spool(path, most)
        self.box = Letterbox(self.spool, self.told.append, at_once)
        self.box.calls = self.calls = Quiet()

    def connect(self) -> None:
        self.box.call("connect", {}, b"")

    def confirm(self, mark: str) -> None:
        self.box.call("confirm", {"mark": mark}, b"")

    @property
    def ids(self) -> list[str]:
        return [one["id"] for one in self.told if one["event"] == "came"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "team.session.inbox"


def test_what_was_not_confirmed_is_told_again(path: Path) -> None:
    first = Box(path)
    first.connect()
    for number in range(4):
        first.box.tell(came(number))
    assert first.ids == ["m0", "m1", "m2", "m3"]
    first.confirm(first.told[1]["mark"])
    second = Box(path)
    assert second.ids == [], "nobody reads yet"
    second.connect()
    assert second.ids == ["m2", "m3"]
    second.confirm(second.told[-1]["mark"])
    third = Box(path)
    third.connect()
    assert third.ids == []
    third.box.tell(came(4))
    assert third.ids == ["m4"]
    assert third.told[0]["mark"] not in {one["mark"] for one in first.told}


def test_what_came_before_anybody_read_is_kept(path: Path) -> None:
    box = Box(path)
    box.box.tell(came(1))
    box.box.tell({"event": "standing", "state": "ready"})
    assert box.told == [{"event": "standing", "state": "ready"}]
    box.connect()
    assert box.ids == ["m1"]


def test_no_more_is_told_at_once_than_can_be_kept_in_memory(path: Path) -> None:
    box = Box(path, at_once=3)
    box.connect()
    for number in range(8):
        box.box.tell(came(number))
    assert box.ids == ["m0", "m1", "m2"]
    box.confirm(box.told[1]["mark"])
    assert box.ids == ["m0", "m1", "m2", "m3", "m4"]
    box.confirm(box.told[-1]["mark"])
    assert box.ids == [f"m{number}" for number in range(8)]


def test_a_mark_of_another_file_confirms_nothing(path: Path, tmp_path: Path) -> None:
    other = Box(tmp_path / "other")
    other.connect()
    box = Box(path)
    box.connect()
    for one in (other, box):
        one.box.tell(came(1))
    box.confirm(other.told[0]["mark"])
    again = Box(path)
    again.connect()
    assert again.ids == ["m1"]


def test_the_oldest_go_first_where_nobody_reads_for_long(path: Path) -> None:
    box = Box(path, most=3)
    for number in range(5):
        box.box.tell(came(number))
    assert box.told == [{"event": "dropped", "count": 1}] * 2
    box.connect()
    assert box.ids == ["m2", "m3", "m4"]


def test_many_threads_tell_at_once(path: Path) -> None:
    box = Box(path)
    box.connect()
    threads = [Thread(target=box.box.tell, args=(came(number),)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(box.ids) == sorted(f"m{number}" for number in range(40))
    marks = [int(one["mark"].partition(":")[2]) for one in box.told]
    assert marks == sorted(marks), "in the order in which they are confirmed"


def test_a_full_disk_keeps_nobody_from_being_heard(path: Path) -> None:
    box = Box(path)
    box.connect()
    box.spool.close()
    box.box.tell(came(1))
    assert [one["event"] for one in box.told] == ["came", "unkept"]
    assert "mark" not in box.told[0]


def test_a_line_that_was_cut_short_was_never_told(path: Path) -> None:
    box = Box(path)
    for number in range(3):
        box.box.tell(came(number))
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        again = Box(path)
        again.connect()
        assert again.ids == ["m0", "m1", "m2"][: len(again.ids)]
        again.box.tell(came(9))
        marks = [int(one["mark"].partition(":")[2]) for one in again.told]
        assert again.ids[-1] == "m9" and len(set(marks)) == len(marks)
        again.spool.close()


def test_nothing_of_what_was_confirmed_is_left_in_the_file(path: Path) -> None:
    box = Box(path)
    box.connect()
    for number in range(3):
        box.box.tell({**came(number), "text": "a secret"})
    assert b"a secret" in path.read_bytes()
    box.confirm(box.told[-1]["mark"])
    assert b"a secret" not in path.read_bytes()
    box.box.tell(came(7))
    assert box.ids[-1] == "m7"


def test_a_file_in_which_something_always_waits_does_not_grow_for_ever(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letterbox, "LARGEST", 10_000)
    box = Box(path)
    box.connect()
    box.box.tell(came(0))
    for number in range(1, 300):
        box.box.tell({**came(number), "text": "x" * 100})
        box.confirm(box.told[-2]["mark"])
    assert path.stat().st_size < 12_000
    again = Box(path)
    again.connect()
    assert again.ids == ["m299"]


def test_other_calls_are_passed_on(path: Path) -> None:
    box = Box(path)
    assert box.box.call("groups", {}, b"") == "groups"
    box.box.stop()
    assert box.calls.asked == ["groups", "stop"]


def test_nobody_else_can_read_it(path: Path) -> None:
    from paceline.providers.whatsapp import host

    session = path.with_name("team.session")
    host.kept(session, lambda told: None, lambda tell: Quiet())
    assert path.exists()
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
