"""The pipe to an account's process: a real process, which may do anything it likes."""

import asyncio
import fcntl
import json
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import uvloop

from paceline.providers.whatsapp import process as processes
from paceline.providers.whatsapp.process import ProcessWire, read_event, surroundings
from paceline.providers.whatsapp.wire import (
    Acknowledged,
    Came,
    Draft,
    LibraryError,
    QrCode,
    Standing,
    Uploaded,
    WireEvent,
    WireGroup,
    WireLost,
    WireRefused,
)

ROOT = Path(__file__).parents[3]
OTHER_END = (sys.executable, "-P", "-m", "tests.providers.whatsapp.other_end")
ANNA = "4915187654321@s.whatsapp.net"

Scene = Callable[["Line"], Awaitable[None]]


class Line:
    """A wire to the other end, and what it was told."""

    def __init__(self, session: Path) -> None:
        self.session = session
        self.told: list[WireEvent] = []
        self.stirred = asyncio.Event()
        self.wire = ProcessWire(session, self._hear, OTHER_END)

    def _hear(self, event: WireEvent) -> None:
        self.told.append(event)
        self.stirred.set()

    async def until(self, wanted: Callable[[], bool]) -> None:
        while not wanted():
            self.stirred.clear()
            await self.stirred.wait()

    async def send(self, text: str) -> str:
        return await self.wire.send(ANNA, Draft(text))


@asynccontextmanager
async def connected(session: Path) -> AsyncIterator[Line]:
    line = Line(session)
    try:
        await line.wire.connect()
        yield line
    finally:
        await line.wire.close()


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return tmp_path / "whatsapp" / "team.session"


def wish(session: Path, **wished: Any) -> None:
    session.parent.mkdir(exist_ok=True)
    session.write_text(json.dumps(wished))


def play(session: Path, scene: Scene) -> None:
    async def whole() -> None:
        async with connected(session) as line:
            await scene(line)

    asyncio.run(whole())


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_calls_and_answers(
    session: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    content = bytes(range(256)) * 20_000

    async def whole() -> None:
        async with connected(session) as line:
            wire = line.wire
            assert await line.send("Grüße 🎉\x00") == "3EB0 Grüße 🎉\x00"
            assert await wire.groups() == [WireGroup("1203@g.us", "Grüße 🎉", 3, True)]
            assert (await wire.group("77@g.us")).may_send is False
            assert await wire.look_up("+4915187654321") is None
            uploaded = await wire.upload("image", content)
            assert uploaded == Uploaded(
                sha256(content).hexdigest(), "image", b"\x00", b"", b"", len(content)
            )
            await line.until(lambda: line.told == [Standing("ready")])

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(whole())


def test_calls_do_not_wait_for_each_other(session: Path) -> None:
    async def scene(line: Line) -> None:
        hanging = asyncio.ensure_future(line.send("hang"))
        assert await line.send("hello") == "3EB0 hello"
        assert not hanging.done()
        line.wire.abort()
        with pytest.raises(WireLost) as lost:
            await hanging
        assert lost.value.handed_over

    play(session, scene)


def test_an_error_is_told_in_its_own_words(session: Path) -> None:
    async def scene(line: Line) -> None:
        with pytest.raises(LibraryError, match=r"^server returned error 479$"):
            await line.send("error: server returned error 479")
        with pytest.raises(LibraryError, match=r"^RuntimeError$"):
            await line.send("error: ")

    play(session, scene)


def test_a_crash_stays_on_the_other_side(session: Path) -> None:
    async def scene(line: Line) -> None:
        waiting = [asyncio.ensure_future(line.send(text)) for text in ("hang", "crash")]
        await asyncio.wait(waiting)
        for call in waiting:
            error = call.exception()
            assert isinstance(error, WireLost) and error.handed_over
        reason = "its process crashed (panic: runtime error: index out of range)"
        assert str(error) == reason
        assert line.told == [Standing("ready"), Standing("ended", reason)]
        with pytest.raises(WireLost) as after:
            await line.send("hello")
        assert not after.value.handed_over

    play(session, scene)


def test_nonsense_is_not_believed(session: Path) -> None:
    async def scene(line: Line) -> None:
        with pytest.raises(WireLost):
            await line.send("nonsense")
        assert line.told[-1].state == "ended"  # type: ignore[union-attr]

    play(session, scene)


def test_a_call_without_an_answer_ends_with_its_process(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "WITHIN_S", {**processes.WITHIN_S, "send": 0.2})

    async def scene(line: Line) -> None:
        number = int((await line.wire.group("77@g.us")).name)
        with pytest.raises(WireLost, match="does not answer") as lost:
            await line.send("hang")
        assert lost.value.handed_over
        assert line.told[-1] == Standing("ended", "its process was ended")
        await line.wire.close()
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)

    play(session, scene)


def test_closing_is_quiet_and_may_be_done_twice(session: Path) -> None:
    async def scene(line: Line) -> None:
        await line.until(lambda: bool(line.told))
        hanging = asyncio.ensure_future(line.send("hang"))
        await line.send("hello")
        await line.wire.close()
        await line.wire.close()
        assert line.told == [Standing("ready")], "who closes need not be told"
        with pytest.raises(WireLost):
            await hanging

    play(session, scene)


def test_a_process_that_does_not_want_to_end_is_ended(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "CLOSE_WITHIN_S", 0.2)
    wish(session, never_ends=True)

    async def scene(line: Line) -> None:
        number = int((await line.wire.group("77@g.us")).name)
        await line.wire.close()
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)

    play(session, scene)


def test_a_session_is_used_by_one_process_at_a_time(session: Path) -> None:
    async def scene(line: Line) -> None:
        with pytest.raises(WireRefused, match="another process uses its session") as refused:
            async with connected(session):
                pass
        assert refused.value.code == "in-use"
        assert await line.send("hello") == "3EB0 hello"
        await line.wire.close()
        async with connected(session) as next_one:
            assert await next_one.send("hello") == "3EB0 hello"

    play(session, scene)


def test_nobody_else_can_read_a_session(session: Path) -> None:
    session.parent.mkdir()
    session.touch(mode=0o644)

    async def scene(line: Line) -> None:
        await line.send("hello")

    play(session, scene)
    kept = {path.name: stat.S_IMODE(path.stat().st_mode) for path in session.parent.iterdir()}
    assert {"team.session", "team.session.lock", "team.session.inbox"} <= kept.keys()
    assert set(kept.values()) == {0o600}


def test_the_folder_is_made_for_us_alone(session: Path) -> None:
    async def scene(line: Line) -> None:
        await line.send("hello")

    play(session, scene)
    assert stat.S_IMODE(session.parent.stat().st_mode) == 0o700


def test_the_process_knows_no_secrets_of_ours(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACELINE_ALERTS_URLS", "mailto://user:password@example.com")
    monkeypatch.setenv("UNIPILE_API_KEY", "secret")
    monkeypatch.setenv("https_proxy", "http://proxy:3128")

    async def scene(line: Line) -> None:
        known = json.loads(await line.wire.pair_by_phone("+4915112345678"))
        assert not {"PACELINE_ALERTS_URLS", "UNIPILE_API_KEY"} & set(known)
        assert known["https_proxy"] == "http://proxy:3128"
        assert "NEONIZE_BOT_TAG" not in known, "the library marks what a program sends"

    play(session, scene)
    hidden = {"AWS_SECRET": "x", "NEONIZE_BOT_TAG": "off"}
    assert surroundings({"PATH": "/bin", **hidden}) == {"PATH": "/bin"}


def test_a_flood_of_reports_holds_up_nothing(session: Path) -> None:
    async def scene(line: Line) -> None:
        assert await line.send("flood") == "3EB0 flood"
        newest = Acknowledged(("4999",), "read", 1)
        await line.until(lambda: newest in line.told)
        assert await line.send("hello") == "3EB0 hello"

    play(session, scene)


def test_a_message_survives_whoever_is_killed_until_it_was_confirmed(session: Path) -> None:
    said = {"event": "came", "id": "3EB0A", "chat": ANNA, "sender": ANNA, "text": "Hello",
            "kind": "text", "at": 1, "from_us": False, "group": False}  # fmt: skip
    wish(session, tells=[{"event": "standing", "state": "ready"}, said])

    def heard(line: Line) -> list[Came]:
        return [one for one in line.told if isinstance(one, Came)]

    async def killed(line: Line) -> None:
        await line.until(lambda: bool(heard(line)))
        line.wire.abort()

    async def confirmed(line: Line) -> None:
        # What was told the last time, and what the library says once more.
        await line.until(lambda: len(heard(line)) == 2)
        first, again = heard(line)
        assert first.mark != again.mark and first._replace(mark="") == again._replace(mark="")
        assert (first.chat, first.text) == ("+4915187654321", "Hello")
        await line.wire.confirm(again.mark)

    async def quiet(line: Line) -> None:
        await line.until(lambda: Standing("ready") in line.told)
        await line.send("hello")
        assert heard(line) == []

    play(session, killed)
    play(session, confirmed)
    wish(session)
    play(session, quiet)


@pytest.mark.parametrize("command", ["no-such-program", sys.executable])
def test_a_process_that_cannot_be_started(session: Path, command: str) -> None:
    async def scene() -> None:
        wire = ProcessWire(session, lambda event: None, (command, "-c", "raise SystemExit(3)"))
        with pytest.raises(WireLost) as lost:
            await wire.connect()
        assert not lost.value.handed_over
        await wire.close()

    asyncio.run(scene())


def test_a_process_that_never_says_hello(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "START_WITHIN_S", 0.2)
    wish(session, silent=True)

    async def scene() -> None:
        line = Line(session)
        with pytest.raises(WireLost, match="did not start") as lost:
            await line.wire.connect()
        assert not lost.value.handed_over
        await line.wire.close()

    asyncio.run(scene())


PARENT = """
import asyncio, sys
from pathlib import Path
from paceline.providers.whatsapp.process import ProcessWire
from tests.providers.whatsapp.test_process import OTHER_END

async def main():
    wire = ProcessWire(Path(sys.argv[1]), lambda event: None, OTHER_END)
    await wire.connect()
    print("connected", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_when_we_are_killed_so_is_the_process(session: Path) -> None:
    """Or it would go on sending, and hold the session."""
    session.parent.mkdir()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(session)], stdout=subprocess.PIPE, cwd=ROOT
    )
    with parent:
        assert parent.stdout is not None
        # Whoever has not set up logging logs here, too.
        assert b"connected\n" in iter(parent.stdout.readline, b"")
        with open(f"{session}.lock") as lock:
            with pytest.raises(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            parent.kill()
            # Granted when the process that holds it is gone, and not before.
            fcntl.flock(lock, fcntl.LOCK_EX)


def test_a_report_that_cannot_be_read_holds_up_nothing(session: Path) -> None:
    wish(session, tells=[{"event": "dance"}, {"event": "qr"}, {"event": "qr", "code": "2@x"}])

    async def scene(line: Line) -> None:
        await line.until(lambda: line.told == [QrCode("2@x")])
        assert await line.send("hello") == "3EB0 hello"

    play(session, scene)


def test_an_event_nobody_knows_is_a_defect() -> None:
    with pytest.raises(ValueError, match="there is no event 'dance'"):
        read_event({"event": "dance"})
