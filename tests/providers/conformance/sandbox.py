"""The sandbox's cases: one that can prove everything, and one that remembers nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from paceline.core.instants import HOUR, Instant
from paceline.core.outcome import OutcomeKind as K
from paceline.engine.clock import LoopClock
from paceline.engine.ports import Driver, Message
from paceline.providers.sandbox import MemoryEffects, SandboxProvider
from paceline.sim.loop import run_virtual
from tests.providers import stage as stages
from tests.providers.conformance.case import CONTENT, Case, Loss, Seen

T = TypeVar("T")

ROWS = {
    "bounce": K.BOUNCED,
    "reject": K.REJECTED,
    "transient": K.TRANSIENT,
    "throttle": K.THROTTLED,
    "unavailable": K.UNAVAILABLE,
    "exhausted": K.EXHAUSTED,
    "ban": K.BANNED,
    "unauthorised": K.UNAUTHORISED,
    "timeout": K.UNKNOWN,
    "lost": K.UNKNOWN,
    "slow": K.ACCEPTED,
}


class SandboxStage:
    """What is to become of a message is chosen by its address."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = {"latency": "0s", "upload_latency": "0s", **settings}
        self._effects = MemoryEffects()
        self._start_at = stages.START
        self._target = "anna@example.com"
        self.restart()

    def restart(self) -> None:
        self.provider = SandboxProvider(LoopClock(self._start_at), self._effects)

    def now(self) -> Instant:
        return self._start_at

    def play(self, scene: Callable[[Driver], Awaitable[T]], *, hasty: bool = False) -> T:
        async def whole() -> T:
            driver = await self.provider.open(stages.account("sales", **self.settings))
            try:
                return await scene(driver)
            finally:
                await driver.close()

        return run_virtual(whole(), start_at=self._start_at)

    def message(
        self, key: str = "home-7-0", text: str = "Hello", *, handle: str | None = None
    ) -> Message:
        media = None if handle is None else "a" * 64
        return stages.message(key, self._target, text=text, handle=handle, media=media)

    def answer(self, row: str) -> None:
        self._target = f"{row}@example.com"

    def lose(self, loss: Loss) -> None:
        self.answer("timeout" if loss.takes else "lost")

    def mute(self) -> None:
        self.settings["find_lag"] = "1d"

    def sent(self) -> list[Seen]:
        return [
            Seen(one.target, "Hello", CONTENT if one.part.handle else None, one.key)
            for one in self._effects.all()
            if one.kind == "send" and one.accepted
        ]

    def uploads(self) -> int:
        return len([one for one in self._effects.all() if one.kind == "upload" and one.accepted])

    def forget_uploads(self) -> None:
        """Time passes until none is kept any more."""
        self._start_at += 2 * HOUR
        self.restart()


def _stage(**settings: Any) -> Callable[[], AbstractContextManager[SandboxStage]]:
    @contextmanager
    def staged() -> Iterator[SandboxStage]:
        yield SandboxStage(settings)

    return staged


LOSSES = frozenset({"silent, taken", "silent, not taken"})
ACTIONS = frozenset({"message", "email", "connection_request", "inmail", "reply"})

CASES = [
    Case(
        "sandbox",
        _stage(handle_expires="1h", groups="1..250", read_only_groups="7"),
        ROWS,
        LOSSES,
        group="120363000000000001@g.us",
        actions=ACTIONS,
    ),
    Case(
        "sandbox-forgetful",
        _stage(handle_expires="1h", finds=False),
        ROWS,
        LOSSES,
        group="120363000000000001@g.us",
        actions=ACTIONS,
    ),
]
