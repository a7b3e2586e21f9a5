"""SMTP's case: a mailbox at a server whose answers are those of real ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from paceline.core.instants import Instant
from paceline.core.model import Part
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Driver, Message
from paceline.providers.mail.letters import key_in
from paceline.providers.smtp import SmtpProvider
from tests.providers import stage as stages
from tests.providers.conformance.case import Case, Loss, Seen
from tests.providers.mail.corpus import CORPUS
from tests.providers.smtp.fake import PASSWORD, FakeServer, Step, running
from tests.providers.smtp.stage import HASTY, PATIENT

T = TypeVar("T")

SAID = {
    f"{number} {said.answer[:9]}": said
    for number, said in enumerate(CORPUS)
    if said.to not in ("connect", "login")
}
"""What is said once an account is open. The rest is said when it is opened."""


class SmtpStage:
    def __init__(self, fake: FakeServer) -> None:
        self.fake = fake
        self.settings = fake.settings()
        self._clock = SystemClock()
        self.restart()

    def restart(self) -> None:
        self._patient = SmtpProvider(self._clock, timing=PATIENT)
        self._hasty = SmtpProvider(self._clock, timing=HASTY)

    @property
    def provider(self) -> SmtpProvider:
        return self._patient

    def now(self) -> Instant:
        return self._clock.now()

    def play(self, scene: Callable[[Driver], Awaitable[T]], *, hasty: bool = False) -> T:
        provider = self._hasty if hasty else self._patient

        async def whole() -> T:
            driver = await provider.open(stages.account("sales", **self.settings))
            try:
                return await scene(driver)
            finally:
                await driver.close()

        return asyncio.run(whole())

    def message(
        self, key: str = "home-7-0", text: str = "Hello", *, handle: str | None = None
    ) -> Message:
        media = None if handle is None else "a" * 64
        part = Part("text" if handle is None else "media", text, "A word", media=media)
        return Message(key, "anna@example.com", "email", part, handle)

    def answer(self, row: str) -> None:
        said = SAID[row]
        code, lines = said.answer[:3], said.answer[4:].split("\n")
        shown = [f"{code}-{line}" for line in lines[:-1]] + [f"{code} {lines[-1]}"]
        # Twice: a server that ends the conversation at once is called a second time.
        self.fake.script.extend([Step(said.to, "\n".join(shown))] * 2)

    def lose(self, loss: Loss) -> None:
        match loss.name:
            case "nobody there":
                self.fake.leave()
            case "reset while writing":
                self.fake.script.append(Step("midway", drops=True))
            case "hung up, taken" | "hung up, not taken":
                self.fake.script.append(Step("content", drops=True, takes=loss.takes))
            case "cut short, taken":
                self.fake.script.append(Step("content", "25", cuts=True, takes=True))
            case _:
                self.fake.script.append(Step("content", hangs=True, takes=loss.takes))

    def mute(self) -> None:
        """There is nothing that could be asked."""

    def sent(self) -> list[Seen]:
        return [
            Seen(one.recipient, one.text, next(iter(one.files), None), key_in(one.message_id))
            for one in self.fake.letters
        ]

    def uploads(self) -> int:
        """None: each file travels with its letter."""
        return 0

    def forget_uploads(self) -> None:
        self.restart()


@contextmanager
def _staged() -> Iterator[SmtpStage]:
    with running(FakeServer()) as fake:
        yield SmtpStage(fake)


CASES = [
    Case(
        "smtp",
        _staged,
        {row: said.kind for row, said in SAID.items()},
        secret=PASSWORD,
        actions=frozenset({"email"}),
    )
]
