"""Answers belong to what was asked, however they come, and whatever else is not one ends it all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from paceline.providers.smtp.conversation import (
    LONGEST_ANSWER,
    LONGEST_LINE,
    USUAL,
    Answer,
    Conversation,
    Lost,
)


class Wire(asyncio.Transport):
    """A transport that goes nowhere."""

    def __init__(self, *, closing: bool = False) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closing = closing
        self.aborted = False
        self.protocol: asyncio.BaseProtocol | None = None

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True


def told(*chunks: bytes, asked: int) -> tuple[list[Answer], Lost | None, Wire]:
    """What so many questions are answered with when this comes, why no more, and over what."""

    async def scene() -> tuple[list[Answer], Lost | None, Wire]:
        wire = Wire()
        conversation = Conversation(wire)
        conversation.say(b"?", asked)
        for chunk in chunks:
            conversation.data_received(chunk)
        conversation.eof_received()
        answers: list[Answer] = []
        try:
            while True:
                answers.append(await conversation.answer())
        except Lost as error:
            return answers, error, wire

    return asyncio.run(scene())


THREE = b"250 2.1.0 ok\r\n250-2.1.5 one\r\n250-2.1.5 two\r\n250 2.1.5 three\r\n354\r\n"
ANSWERS = [
    Answer(250, "2.1.0 ok"),
    Answer(250, "2.1.5 one\n2.1.5 two\n2.1.5 three"),
    Answer(354, ""),
]


@given(st.lists(st.integers(0, len(THREE))))
def test_however_answers_are_cut_up_they_are_the_same(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(THREE)]
    chunks = [THREE[start:end] for start, end in pairwise(edges)]
    answers, error, _ = told(*chunks, asked=3)
    assert answers == ANSWERS
    assert str(error) == "the server hung up" and error is not None and not error.garbled


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"250\r\n", Answer(250, "")),
        (b"250 \r\n", Answer(250, "")),
        (b"250 ok\n", Answer(250, "ok")),
        (b"250ok\r\n", Answer(250, "ok")),
        (b"199 hm\r\n", Answer(199, "hm")),
        (b"999\r\n", Answer(999, "")),
        (b"550 b\xfccher\r\n", Answer(550, "b�cher")),
        (b"550 b\xc3\xbccher\r\n", Answer(550, "bücher")),
    ],
)
def test_what_an_answer_may_look_like(line: bytes, answer: Answer) -> None:
    answers, error, _ = told(line, asked=1)
    assert answers == [answer] and error is not None


@pytest.mark.parametrize(
    "line",
    [
        b"what?\r\n",
        b"\r\n",
        b"25\r\n",
        b"2500 ok\r\n",
        b" 250 ok\r\n",
        b"+25 ok\r\n",
        "２５０ ok\r\n".encode(),
        b"250-one\r\n550 two\r\n",
        b"250-one\r\nwhat?\r\n",
        b"250 " + b"x" * LONGEST_LINE + b"\r\n",
        b"250 " + b"x" * LONGEST_LINE,
        (b"250-" + b"x" * 1_000 + b"\r\n") * (LONGEST_ANSWER // 1_000 + 1),
    ],
)
def test_what_is_no_answer_ends_it(line: bytes) -> None:
    for chunks in ([b"250 ok\r\n" + line + b"250 later\r\n"], [b"250 ok\r\n" + line, b"250 x\r\n"]):
        answers, error, wire = told(*chunks, asked=3)
        assert answers == [Answer(250, "ok")], "what came before still counts"
        assert error is not None and error.garbled and len(str(error)) < 300
        assert wire.aborted


def test_a_line_that_has_no_end_is_not_waited_for() -> None:
    answers, error, wire = told(*[b"x" * 1_000] * 9, asked=1)
    assert not answers and wire.aborted
    assert error is not None and error.garbled


def test_a_long_answer_in_many_lines_is_one() -> None:
    lines = [b"250-" + b"x" * 1_000 + b"\r\n"] * 30 + [b"250 end\r\n"]
    (answer,), _, _ = told(*lines, asked=1)
    assert answer.text.count("\n") == 30
    answers, _, _ = told(*(lines * 3), asked=3)
    assert answers == [answer] * 3, "each has its own bound"


@pytest.mark.parametrize("rest", [b"421 4.4.2 idle too long\r\n", b"421-4.4.2 idle too long"])
@pytest.mark.parametrize("apart", [True, False])
def test_what_is_said_unasked_is_no_answer_but_the_reason(rest: bytes, apart: bool) -> None:
    came = [b"250 ok\r\n", rest] if apart else [b"250 ok\r\n" + rest]
    answers, error, wire = told(*came, asked=1)
    assert answers == [Answer(250, "ok")]
    assert "unasked" in str(error) and "4.4.2 idle too long" in str(error)
    assert error is not None and not error.garbled and wire.aborted


def test_nothing_is_asked_before_all_is_read() -> None:
    async def scene(come: bytes) -> list[bytes]:
        wire = Wire()
        conversation = Conversation(wire)
        conversation.say(b"one", 2)
        conversation.data_received(come)
        await conversation.answer()
        with pytest.raises(Lost, match="left unread"):
            conversation.say(b"two")
        assert wire.aborted
        return wire.written

    for come in (b"250 ok\r\n", b"250 ok\r\n250 ok\r\n"):
        assert asyncio.run(scene(come)) == [b"one"]


def test_whoever_waits_is_told_of_the_end() -> None:
    async def scene(end: str) -> str:
        conversation = Conversation(Wire())
        conversation.say(b"?")
        waiting = asyncio.ensure_future(conversation.answer())
        await asyncio.sleep(0)
        {
            "lost": lambda: conversation.connection_lost(ConnectionResetError(104, "reset")),
            "closed": lambda: conversation.connection_lost(None),
            "eof": conversation.eof_received,
            "ended": lambda: conversation.end("enough"),
        }[end]()
        assert not conversation.is_open
        with pytest.raises(Lost) as error:
            await waiting
        with pytest.raises(Lost, match=str(error.value)[:5]):
            conversation.say(b"?")
        return str(error.value)

    assert asyncio.run(scene("lost")) == "ConnectionResetError: [Errno 104] reset"
    assert asyncio.run(scene("closed")) == "the connection ended"
    assert asyncio.run(scene("eof")) == "the server hung up"
    assert asyncio.run(scene("ended")) == "enough"


def test_one_that_is_taken_over_too_late() -> None:
    async def scene() -> None:
        wire = Wire(closing=True)
        conversation = Conversation(wire)
        assert wire.protocol is conversation and not conversation.is_open
        with pytest.raises(Lost):
            conversation.say(b"?")
        assert wire.written == []

    asyncio.run(scene())


def test_leaving_says_goodbye_once() -> None:
    async def scene() -> None:
        wire = Wire()
        conversation = Conversation(wire)
        conversation.leave(b"QUIT\r\n")
        conversation.leave(b"QUIT\r\n")
        assert (wire.written, wire.aborted) == ([b"QUIT\r\n"], False)
        conversation.end("hung up")
        assert wire.aborted, "what has not gone out by then must not go out any more"

    asyncio.run(scene())


# ---------------------------------------------------------------------- how long is waited


LONG_S, SOON_S = 3_600.0, 0.02
"""More than a test takes, and less than anybody notices."""


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize(
    "allowed",
    [
        (SOON_S,),
        (LONG_S, SOON_S),
        (SOON_S / 4, SOON_S),
        (SOON_S, LONG_S, SOON_S),
    ],
    ids=["once", "sooner", "later", "sooner again"],
)
def test_what_is_allowed_last_counts(
    new_loop: Callable[[], asyncio.AbstractEventLoop], allowed: tuple[float, ...]
) -> None:
    async def scene() -> None:
        conversation = Conversation(Wire())
        for seconds in allowed[:-1]:
            conversation.allow(seconds)
            conversation.say(b"?")
            waiting = asyncio.ensure_future(conversation.answer())
            await asyncio.sleep(0)
            conversation.data_received(b"250 ok\r\n")
            assert await waiting == Answer(250, "ok")
        # Added up as the timer does it: a difference of two readings is off by a rounding.
        until_s = asyncio.get_running_loop().time() + allowed[-1]
        conversation.allow(allowed[-1])
        conversation.say(b"?", 2)
        conversation.data_received(b"250 ok\r\n")
        assert await conversation.answer() == Answer(250, "ok"), "what is there is not late"
        with pytest.raises(TimeoutError):
            await conversation.answer()
        with pytest.raises(TimeoutError):
            await conversation.answer()
        conversation.data_received(b"354 late\r\n")
        assert await conversation.answer() == Answer(354, "late")
        assert asyncio.get_running_loop().time() >= until_s

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(scene())


def test_one_timer_for_any_number_of_letters_and_none_when_it_is_over() -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        call_at = loop.call_at
        wound: list[asyncio.TimerHandle] = []

        def counted(at_s: float, ring: Callable[[], None]) -> asyncio.TimerHandle:
            wound.append(call_at(at_s, ring))
            return wound[-1]

        conversation = Conversation(Wire())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "call_at", counted)
            for seconds in (LONG_S, 2 * LONG_S) * 20:
                conversation.allow(seconds)
                conversation.say(b"?")
                waiting = asyncio.ensure_future(conversation.answer())
                await asyncio.sleep(0)
                conversation.data_received(b"250 ok\r\n")
                await waiting
        assert len(wound) == 1 and not wound[0].cancelled()
        conversation.end("enough")
        assert wound[0].cancelled(), "nobody is kept in memory for it"

    asyncio.run(scene())


@pytest.mark.parametrize("line", [b"250 ok\r\n", b"550 " + b"x" * USUAL + b"\r\n"])
def test_an_answer_is_the_same_however_often_it_comes(line: bytes) -> None:
    """What is remembered of an answer is not taken for a line of another."""
    expected = Answer(int(line[:3]), line[4:].strip().decode())
    answers, _, _ = told(line, line, asked=2)
    assert answers == [expected] * 2
    answers, error, _ = told(b"250-one\r\n" + line, asked=1)
    if expected.code == 250:
        assert answers == [Answer(250, f"one\n{expected.text}")]
    else:
        assert error is not None and error.garbled and not answers
