"""What is said over a connection that is open: commands, and the answers to them, in step.

A library opens a connection, encrypts it and logs in. It asks one thing at a time and throws away
what it is told beyond that, so letters go over the connection when this has taken it over. Here
several things may be asked at once (PIPELINING, RFC 2920).

**No answer is taken for one to something else.** Servers answer in order, so an answer belongs to
the oldest question that has none yet. That holds as long as nothing else comes. So with the first
byte that comes while no answer is owed, and with the first line that is no answer, the conversation
is over for good; and nothing is asked before all is read that was answered. What came before the
end still counts.

**Who goes on when an answer comes** is a task that waits for it, as usual; or somebody who waits
for nothing else, and goes on within the very call that brings it (``follow``), so that a letter
takes no turn of the loop beyond what the network takes.

**How long is waited** is said once for all answers that follow. A timer of its own for every letter
would cost more than reading its answers, and nearly none ever rings; so there is one, which is only
moved when it would ring too late, and looks at what is allowed now when it rings.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Coroutine, Generator
from functools import lru_cache
from types import coroutine
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

LONGEST_LINE = 8_192
LONGEST_ANSWER = 4 * LONGEST_LINE
"""More bytes than these no server has to say; whoever goes on is not listened to."""
USUAL = 200
"""Answers with fewer bytes are remembered for a while: most are the same for every letter."""
SHOWN = 1_000

_LINE = re.compile(rb"([0-9]{3})(?![0-9])(-?)(.*)", re.DOTALL)


class Answer(NamedTuple):
    """What a server says to one command."""

    code: int
    text: str


@lru_cache(maxsize=256)
def _whole(line: bytes) -> Answer | None:
    """The answer that a line is by itself, as nearly every is; None where it may be something
    else."""
    code = line[:3]
    if line[3:4] != b" " or not code.isdigit():
        return None
    return Answer(int(code), line[4:].strip().decode(errors="replace"))


class Lost(Exception):
    """The conversation is over, and the answer that was waited for will not come."""

    def __init__(self, words: str, *, garbled: bool = False) -> None:
        super().__init__(words)
        self.garbled = garbled
        """Whether the server has said something that makes no sense, and not just gone."""


class Conversation(asyncio.Protocol):
    """One that goes on over a transport, from whoever had it before."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._heard = b""
        """What has come of a line that is not complete."""
        self._lines: list[bytes] = []
        """The lines before it of the same answer, with what they say only."""
        self._code = b""
        self._length = 0
        self._answers: deque[Answer] = deque()
        """Those that nobody has asked for yet."""
        self._owed = 0
        """How many are to come."""
        self._waiter: asyncio.Future[None] | None = None
        self._follower: Follower[Any] | None = None
        self._over = ""
        """Why the conversation is over; empty while it goes on."""
        self._garbled = False
        self._loop = asyncio.get_running_loop()
        self._until_s: float | None = None
        """By when the loop's clock an answer is to be there; None where it may take any time."""
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_s = 0.0
        """When it rings: then, or before."""
        transport.set_protocol(self)

    @property
    def is_open(self) -> bool:
        # Whoever had the connection before may have been told of its end, and nobody is told twice.
        return not (self._over or self._transport.is_closing())

    def allow(self, seconds: float) -> None:
        """From now on this is how long all that is waited for may take together; what is not there
        by then is a ``TimeoutError``."""
        self._until_s = self._loop.time() + seconds

    def say(self, words: bytes, answers: int = 1) -> None:
        """Write commands, or whatever else gets so many answers; ``Lost`` if nothing was written,
        because there is nobody to hear it, or because not all was read that was said before."""
        if self._owed or self._answers:
            self.end("an answer was left unread")
        if not self.is_open:
            raise self._loss()
        self._owed += answers
        self._transport.write(words)

    def heard(self) -> Answer | None:
        """The next answer, if it is there already, as most are that were asked for together."""
        return self._answers.popleft() if self._answers else None

    async def answer(self) -> Answer:
        """The next answer that is owed; ``Lost`` where there will be none, ``TimeoutError`` where
        there is none in time."""
        while not self._answers:
            if self._over:
                raise self._loss()
            if self._until_s is not None:
                self._mind(self._until_s)
            if self._follower is None:
                self._waiter = self._loop.create_future()
                try:
                    await self._waiter
                finally:
                    self._waiter = None
            else:
                await _called_again()
        return self._answers.popleft()

    def follow(self, steps: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Begin with what waits for nothing but answers, and go on with it as they come; what it
        ends with is the future's result. Who cancels that ends it at once."""
        follower = Follower(self, steps, loop=self._loop)
        self._follower = follower
        follower.go_on()
        return follower

    def followed(self) -> None:
        """Nobody follows it any more."""
        self._follower = None

    def leave(self, words: bytes = b"") -> None:
        """Say something last, and hang up when it is out."""
        if self.is_open:
            self._transport.write(words)
        self._transport.close()

    def end(self, why: str, *, garbled: bool = False) -> None:
        """Hang up at once: what is still waiting to be written must not go out any more."""
        if not self._over:
            self._stop(why, garbled=garbled)
            self._transport.abort()

    # ---------------------------------------------------------------------- what comes

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        heard = self._heard + data
        while self._owed:
            line, found, rest = heard.partition(b"\n")
            if not found:
                break
            heard = rest
            if not self._take(line):
                return
        if heard and not self._owed:
            self.end(f"the server said, unasked: {_shown(heard)}")
        elif len(heard) > LONGEST_LINE:
            self.end("the server said more than an answer may have", garbled=True)
        self._heard = heard
        if self._answers:
            self._wake()

    def eof_received(self) -> None:
        self.end("the server hung up")

    def connection_lost(self, exc: Exception | None) -> None:
        words = " ".join(str(exc).split()) if exc is not None else ""
        self._stop(f"{type(exc).__name__}: {words}" if words else "the connection ended")

    def _take(self, line: bytes) -> bool:
        """Add a line to the answer it belongs to; whether it was one."""
        if not self._lines and len(line) <= USUAL and (whole := _whole(line)):
            self._answers.append(whole)
            self._owed -= 1
            return True
        found = _LINE.fullmatch(line)
        self._length += len(line)
        if found is None or (self._lines and found[1] != self._code):
            self.end(f"the server said {_shown(line)!r}, which is no answer", garbled=True)
            return False
        if len(line) > LONGEST_LINE or self._length > LONGEST_ANSWER:
            self.end("the server said more than an answer may have", garbled=True)
            return False
        self._code = found[1]
        self._lines.append(found[3].strip())
        if not found[2]:
            text = b"\n".join(self._lines).decode(errors="replace")
            self._answers.append(Answer(int(self._code), text))
            self._owed -= 1
            self._lines, self._length = [], 0
        return True

    def _stop(self, why: str, *, garbled: bool = False) -> None:
        """Only the first reason counts."""
        if not self._over:
            self._over, self._garbled = why, garbled
            self._wake()
            self._silence()

    def _mind(self, until_s: float) -> None:
        """See to it that whoever waits is woken by then; ``TimeoutError`` where it is too late."""
        if self._loop.time() >= until_s:
            raise TimeoutError
        if self._alarm is None or self._alarm_s > until_s:
            self._silence()
            self._alarm_s = until_s
            self._alarm = self._loop.call_at(until_s, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        # Whoever waits looks at the time, and waits on if there is some left.
        self._wake()

    def _silence(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _wake(self) -> None:
        if self._follower is not None:
            self._follower.go_on()
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _loss(self) -> Lost:
        return Lost(self._over or "the connection ended", garbled=self._garbled)


class Follower(asyncio.Future[T]):
    """The steps of somebody who follows a conversation, one after the other."""

    __slots__ = ("_conversation", "_stepping", "_steps")

    def __init__(
        self,
        conversation: Conversation,
        steps: Coroutine[Any, Any, T],
        *,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(loop=loop)
        self._conversation = conversation
        self._steps = steps
        self._stepping = False

    def go_on(self) -> None:
        """Something has come, or will not come any more."""
        # What ends the conversation may be the step itself, and then it knows.
        if self._stepping or self.done():
            return
        self._stepping = True
        try:
            self._steps.send(None)
        except StopIteration as end:
            self._conversation.followed()
            self.set_result(end.value)
        except BaseException as error:
            self._conversation.followed()
            self.set_exception(error)
        finally:
            self._stepping = False

    def cancel(self, msg: Any | None = None) -> bool:
        if not super().cancel(msg):
            return False
        self._conversation.followed()
        self._steps.close()
        return True


@coroutine
def _called_again() -> Generator[None, None, None]:
    """Until somebody goes on with it."""
    yield


def _shown(raw: bytes) -> str:
    return " ".join(raw[:SHOWN].decode(errors="replace").split())
