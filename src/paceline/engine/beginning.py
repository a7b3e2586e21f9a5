"""From when a call counts: it has begun, at the latest, when what it does at once is done.

Between our last look at the clock and a driver's first write lies hardly anything, but the machine
may give its processor to somebody else just then, and a gap that is reckoned from before would come
out too short. So whoever makes a call is told when the call first waits for something, or ends.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


@coroutine
def telling_when_begun(
    call: Coroutine[Any, Any, T], begun: Callable[[], None]
) -> Generator[Any, Any, T]:
    """What ``await call`` comes to; ``begun`` is called after its first step."""
    try:
        try:
            awaited = call.send(None)
        finally:
            begun()
        while True:
            try:
                answer = yield awaited
            except GeneratorExit:
                call.close()
                raise
            except BaseException as error:
                awaited = call.throw(error)
            else:
                awaited = call.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
