"""The wire between a simulated process and the sandbox: messages outlive whoever sent them.

What was put on the wire arrives, whether the caller waits, gives up or dies. The wire itself may
be cut, and the weather may strike the caller before, during and after a call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from paceline.core.errors import ProviderError
from paceline.core.instants import SECOND, Instant
from paceline.core.outcome import Outcome
from paceline.engine.ports import (
    Account,
    Capabilities,
    Driver,
    Found,
    Media,
    Message,
    Provider,
    Uploaded,
)
from paceline.sim.weather import Call

if TYPE_CHECKING:
    from paceline.sim.process import Process


class Wire:
    """A provider as one process reaches it."""

    def __init__(self, process: Process, provider: Provider) -> None:
        self._process = process
        self._provider = provider
        self.name = provider.name
        self.capabilities: Capabilities = provider.capabilities
        self.secrets = provider.secrets

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        return self._provider.capabilities_of(settings)

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return self._provider.check(settings)

    async def open(self, account: Account) -> Driver:
        process, around = self._process, self._process.around
        takes_us, works = around.weather.login()
        if takes_us:
            around.trace.note(process.name, "wire", f"logs {account.name} in for {takes_us} us")
            await asyncio.sleep(takes_us / SECOND)
        if not works:
            await process.pass_gate()
            raise ProviderError("the login failed")
        driver = await self._provider.open(account)
        await process.pass_gate()
        kind = PromptWireDriver if around.prompt else WireDriver
        return kind(self._process, account.name, driver)


class WireDriver:
    """One open account at the end of a wire."""

    def __init__(self, process: Process, account: str, driver: Driver) -> None:
        self._process = process
        self._account = account
        self._driver = driver
        self._out = 0
        """How many calls somebody waits for just now."""

    @property
    def capabilities(self) -> Capabilities:
        return self._driver.capabilities

    async def send(self, message: Message) -> Outcome:
        # No gate here: between the engine's last look and the wire nothing may intervene. A
        # machine that falls asleep just there is beyond what any sender can know.
        self._process.refuse_dead()
        fate = self._process.around.weather.call()
        self._address(message, fate)
        if fate is Call.STUBBORN:
            await self._dawdle(self._up_to(self._process.around.weather.climate.stubborn_us))
            return await self._answer(message, fate, self._put_on_the_wire(message, fate))
        self._out += 1
        try:
            return await self._answer(message, fate, self._put_on_the_wire(message, fate))
        finally:
            self._out -= 1

    def _address(self, message: Message, fate: Call) -> None:
        """All up to the wire itself."""
        process, around = self._process, self._process.around
        if fate is Call.CRASH_BEFORE:
            process.crash("before a call")
            raise asyncio.CancelledError
        around.witness.see_call(process, self._account, message, self._out)
        if fate is Call.RAISES:
            around.trace.note(process.name, "wire", f"fails before {message.key}")
            raise RuntimeError("the driver has a defect")

    def _put_on_the_wire(self, message: Message, fate: Call) -> asyncio.Task[Outcome]:
        process, around = self._process, self._process.around
        sending = asyncio.get_running_loop().create_task(
            self._driver.send(message), context=around.outside
        )
        if fate is Call.CRASH_DURING:
            process.crash("during a call")
            raise asyncio.CancelledError
        if fate is Call.STANDSTILL:
            process.stand_still(self._up_to(around.weather.climate.standstill_us))
        return sending

    async def _answer(
        self, message: Message, fate: Call, sending: asyncio.Task[Outcome]
    ) -> Outcome:
        process, around = self._process, self._process.around
        outcome = await asyncio.shield(sending)
        if fate is Call.CUT:
            around.trace.note(process.name, "wire", f"is cut after {message.key}")
            raise ConnectionResetError("the connection broke before the answer came")
        if fate is Call.CRASH_AFTER:
            process.crash("after a call")
            raise asyncio.CancelledError
        await process.pass_gate()
        if fate is not Call.STUBBORN:  # nobody waited for that one any more
            around.witness.see_answer(process, self._account, message, outcome)
        return outcome

    def _up_to(self, us: int) -> int:
        return self._process.around.weather.up_to(us)

    async def _dawdle(self, us: int) -> None:
        """As a driver in whose library nobody can be reached: it hears of no cancellation, only
        the end of its process ends it."""
        process, clock = self._process, self._process.around.clock
        until_at, stood_still = clock.now() + us, process.stood_still
        process.around.trace.note(process.name, "wire", f"hears nothing for {us} us")
        while clock.now() < until_at and process.alive:
            try:
                await asyncio.sleep((until_at - clock.now()) / SECOND)
            except asyncio.CancelledError:
                continue
        await process.pass_gate()
        if process.stood_still > stood_still:
            # Its machine was asleep and has lost its connections. If it had not, nobody else could
            # know that the call lives on, and no sender could do anything about it.
            raise ConnectionResetError("the connection was lost while the machine slept")

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        self._process.refuse_dead()
        self._process.around.witness.see_upload(self._process, self._account, media)
        answer = await self._driver.upload(media, content)
        await self._process.pass_gate()
        return answer

    async def find(self, message: Message, since_at: Instant) -> Found:
        self._process.refuse_dead()
        found = await self._driver.find(message, since_at)
        await self._process.pass_gate()
        return found

    async def close(self) -> None:
        # The far side keeps what it was sent.
        return


class PromptWireDriver(WireDriver):
    """The same, which can also begin without being waited for (``ports.Prompt``), as a driver does
    that has a connection open."""

    def begin(self, message: Message) -> asyncio.Future[Outcome | None] | None:
        process, loop = self._process, asyncio.get_running_loop()
        process.refuse_dead()
        fate = process.around.weather.call()
        if fate is Call.STUBBORN:
            return None  # nothing was done: this is for whoever can be left behind
        self._address(message, fate)
        sending = self._put_on_the_wire(message, fate)
        answer: asyncio.Future[Outcome | None] = loop.create_future()
        # The process's own, so that it ends with it; and nothing is heard of it then.
        hearing = loop.create_task(self._answer(message, fate, sending))
        hearing.add_done_callback(partial(_pass_on, answer))
        self._out += 1
        answer.add_done_callback(partial(self._over, hearing))
        return answer

    def _over(self, hearing: asyncio.Task[Outcome], answer: asyncio.Future[Outcome | None]) -> None:
        self._out -= 1
        if answer.cancelled():  # called off: nobody listens any more
            hearing.cancel()


def _pass_on(answer: asyncio.Future[Outcome | None], heard: asyncio.Task[Outcome]) -> None:
    if heard.cancelled():
        return
    error = heard.exception()
    if answer.done():  # it was called off
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(heard.result())
