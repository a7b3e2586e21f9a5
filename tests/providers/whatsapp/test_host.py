"""The other end of the pipe, by itself: what is dropped, what is not, and the frames."""

import asyncio
import io
from typing import Any

import pytest

from paceline.providers.whatsapp import frames
from paceline.providers.whatsapp.host import Outgoing, Refused, Tell, serve


def report(number: int) -> dict[str, Any]:
    return {"event": "receipt", "number": number}


def test_reports_are_dropped_from_the_oldest_and_counted() -> None:
    outgoing = Outgoing(most=3)
    for number in range(8):
        outgoing.put(report(number))
    outgoing.put({"event": "standing", "state": "banned"})
    outgoing.put({"id": 1, "answer": None})
    outgoing.close()
    taken = list(iter(outgoing.take, None))
    assert taken == [
        {"event": "standing", "state": "banned"},
        {"id": 1, "answer": None},
        {"event": "dropped", "count": 5},
        report(5), report(6), report(7),
    ]  # fmt: skip


def test_answers_and_standings_are_never_dropped() -> None:
    outgoing = Outgoing(most=1)
    for number in range(100):
        outgoing.put({"event": "standing", "number": number})
    outgoing.close()
    assert len(list(iter(outgoing.take, None))) == 100


def written(sink: io.BytesIO) -> list[dict[str, Any]]:
    sink.seek(0)
    return [header for header, _ in iter(lambda: frames.read(sink), None)]


def test_what_cannot_be_is_refused_and_that_is_all() -> None:
    def make(tell: Tell) -> Any:
        raise Refused("another process uses its session", "in-use")

    sink = io.BytesIO()
    serve(make, io.BytesIO(), sink)
    assert written(sink) == [
        {"event": "refused", "code": "in-use", "reason": "another process uses its session"}
    ]


class Echo:
    stopped = False

    def call(self, name: str, words: dict[str, Any], body: bytes) -> Any:
        return [name, words["text"], body.decode()]

    def stop(self) -> None:
        self.stopped = True


def test_a_close_is_the_last_that_is_heard() -> None:
    echo, sink = Echo(), io.BytesIO()
    calls = [({"id": 1, "call": "close"}, b""), ({"id": 2, "call": "say", "text": "late"}, b"")]
    source = io.BytesIO(b"".join(frames.encode(*call) for call in calls))
    serve(lambda tell: echo, source, sink)
    assert written(sink) == [{"event": "hello"}, {"id": 1, "answer": None}]
    assert echo.stopped


def test_frames_come_through_as_they_are() -> None:
    sent = [({"a": "ü\u2028🎉"}, b""), ({"b": [1, None]}, bytes(range(256)))]
    source = io.BytesIO(b"".join(frames.encode(*frame) for frame in sent))
    assert [frames.read(source), frames.read(source), frames.read(source)] == [*sent, None]


@pytest.mark.parametrize("cut", [0, 3, 8, 12, 20])
def test_a_frame_that_is_cut_short_is_the_end(cut: int) -> None:
    whole = frames.encode({"id": 1}, b"body of it")
    assert frames.read(io.BytesIO(whole[:cut])) is None

    async def receive() -> frames.Frame | None:
        reader = asyncio.StreamReader()
        reader.feed_data(whole[:cut])
        reader.feed_eof()
        return await frames.receive(reader)

    assert asyncio.run(receive()) is None


@pytest.mark.parametrize(
    "bad", [b"\xff" * 8, b"\0\0\0\2\0\0\0\0[]", b"\0\0\0\1\0\0\0\0{", b"\0\0\0\0\xff\0\0\0"]
)
def test_what_is_no_frame_is_refused(bad: bytes) -> None:
    with pytest.raises(frames.BadFrame):
        frames.read(io.BytesIO(bad))
