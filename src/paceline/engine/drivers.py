"""An account's driver, opened when the first message needs it and not before.

A lane that only finds out that it has to wait, or whose account is suspended, must not log in
anywhere. Here too is what bounds every call of a driver: one that neither answers nor lets itself
be called off is left behind, so that no lane waits for it for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar, cast

import structlog

from paceline.core.errors import ProviderError
from paceline.core.instants import SECOND, Instant
from paceline.core.outcome import Outcome
from paceline.engine.lane_names import on_whose_behalf
from paceline.engine.ports import (
    Account,
    Capabilities,
    Driver,
    Forehanded,
    Found,
    Heard,
    Listening,
    Media,
    Message,
    Prompt,
    Provider,
    Providers,
    Resolver,
    Uploaded,
)

T = TypeVar("T")

CLEAN_UP_US = 5 * SECOND
"""How long a driver may take to tidy up after a call that was called off."""

CLOSE_WITHIN_US = 10 * SECOND
"""How long an account may take to close that was opened too late."""

Leave = Callable[[asyncio.Future[Any]], None]
"""Told of a call that is left behind."""

log = structlog.get_logger("paceline.driver")

_left_behind: set[asyncio.Future[Any]] = set()
"""Calls that did not end when they were told to. A loop holds its tasks only weakly, so whoever
starts one and walks away must keep it, or it may vanish in the middle of a write."""


class LazyDriver:
    """A driver that opens itself on first use; what it cannot open it raises."""

    def __init__(self, providers: Providers, account: Account) -> None:
        self._providers = providers
        self._provider: Provider = providers.get(account.provider)
        self._account = account
        self._driver: Driver | None = None
        self._prompt: Prompt | None = None
        """The same, where it can begin without waiting."""
        self._forehanded: Forehanded | None = None
        """The same, where it has something to do before."""
        self._opening = asyncio.Lock()

    @property
    def capabilities(self) -> Capabilities:
        """The open driver's own, else what its provider can do at most."""
        return self._driver.capabilities if self._driver else self._provider.capabilities

    def suits(self, account: Account) -> bool:
        """Whether it was made for the account as it is now."""
        made_for = self._account
        return (made_for.settings, made_for.address) == (account.settings, account.address)

    @property
    def is_open(self) -> bool:
        return self._driver is not None

    async def open(self) -> Driver:
        # Whoever sends and whoever listens may both be the first.
        async with self._opening:
            return self._driver or await self._open()

    async def _open(self) -> Driver:
        if self._driver is None:
            account = self._providers.unsealed(self._account)
            opening = _begun(self._provider.open(account))
            try:
                self._driver = await _apart(opening)
            except BaseException:
                # Perhaps it opens all the same, now or later, and nobody is there to use it.
                opening.add_done_callback(self._put_away)
                raise
            log.info("account opened", account=account.name, provider=account.provider)
            driver = self._driver
            # By name: to look through a protocol takes longer than many an account to open.
            self._prompt = cast("Prompt", driver) if hasattr(driver, "begin") else None
            ready = hasattr(driver, "make_ready")
            self._forehanded = cast("Forehanded", driver) if ready else None
        return self._driver

    def _put_away(self, opening: asyncio.Future[Driver]) -> None:
        """Close an account that was opened when nobody waited for it any more."""
        if opening.cancelled() or opening.exception() is not None:
            return
        log.warning("account was opened too late, closing it", account=self._account.name)
        closing = asyncio.ensure_future(self._close_late(opening.result()))
        _left_behind.add(closing)
        closing.add_done_callback(_left_behind.discard)

    async def _close_late(self, driver: Driver) -> None:
        try:
            await within_time(driver.close(), CLOSE_WITHIN_US)
        except Exception as error:
            log.warning("driver did not close", account=self._account.name, error=repr(error))

    @property
    def is_forehanded(self) -> bool:
        return self._forehanded is not None

    def make_ready(self, message: Message) -> None:
        """Have done what can be done before a call (``ports.Forehanded``)."""
        if self._forehanded is None:
            return
        try:
            self._forehanded.make_ready(message)
        except Exception as error:
            # Nobody is called yet. What is wrong with it will be so again then, and be told.
            log.debug("not made ready", account=self._account.name, error=repr(error))

    @property
    def is_prompt(self) -> bool:
        """Whether it is worth a try to ``begin``."""
        return self._prompt is not None

    def begin(self, message: Message) -> asyncio.Future[Outcome | None] | None:
        """A call that is under way, where that takes no waiting (``ports.Prompt``)."""
        if self._prompt is None:
            return None
        try:
            return self._prompt.begin(message)
        except asyncio.CancelledError:
            _refuse_own_cancellation()
            raise

    async def send(self, message: Message) -> Outcome:
        driver = self._driver or await self.open()
        try:
            return await driver.send(message)
        except asyncio.CancelledError:
            _refuse_own_cancellation()
            raise

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        return await _ours((await self.open()).upload(media, content))

    async def resolve(self, message: Message) -> str | Outcome:
        """Only for drivers whose capabilities say that they resolve."""
        return await _ours(cast("Resolver", await self.open()).resolve(message))

    async def find(self, message: Message, since_at: Instant) -> Found:
        return await _apart((await self.open()).find(message, since_at))

    async def listen(self) -> Heard:
        """Only for providers whose accounts listen."""
        return await cast("Listening", await self.open()).listen()

    async def confirm(self, mark: str) -> None:
        await cast("Listening", await self.open()).confirm(mark)

    async def close(self) -> None:
        driver, self._driver = self._driver, None
        self._prompt = self._forehanded = None
        if driver is not None:
            # Whoever closes bounds it (``within_time``), and by that has a task for it already.
            await _ours(driver.close())


async def within_time(
    call: Coroutine[Any, Any, T], timeout_us: int, leave: Leave | None = None
) -> T:
    """What a driver answers within so long; else it is called off, and that is a ``TimeoutError``.

    A driver that goes on cleaning up for more than a few seconds is left to itself. Whoever has to
    know of such calls is told of each as it is left.
    """
    loop = asyncio.get_running_loop()
    apart = loop.create_task(call, name=on_whose_behalf())
    # As ``asyncio.wait`` does it, which takes twice as long; and every message passes through here.
    waiter: asyncio.Future[None] = loop.create_future()
    wake = partial(_wake, waiter)
    timer = loop.call_later(timeout_us / SECOND, wake)
    apart.add_done_callback(wake)
    in_time = False
    try:
        await waiter
        in_time = apart.done()
    finally:
        timer.cancel()
        apart.remove_done_callback(wake)
        if not in_time or _has_failed(apart):
            await _see_to_its_end(apart, leave)
    if not apart.done() or (apart.cancelled() and not in_time):
        raise TimeoutError
    return answered(apart)


def _wake(waiter: asyncio.Future[None], _: object = None) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _has_failed(done: asyncio.Future[Any]) -> bool:
    return not done.cancelled() and done.exception() is not None


def _begun(call: Awaitable[T]) -> asyncio.Future[T]:
    begun: asyncio.Future[T] = asyncio.ensure_future(call)
    if isinstance(begun, asyncio.Task):
        begun.set_name(on_whose_behalf())
    return begun


async def _apart(call: Awaitable[T]) -> T:
    """The same without a limit of its own, for calls whose caller sets one by cancelling."""
    apart = _begun(call)
    waiter: asyncio.Future[None] = apart.get_loop().create_future()
    wake = partial(_wake, waiter)
    apart.add_done_callback(wake)
    try:
        await waiter
    finally:
        apart.remove_done_callback(wake)
        await _see_to_its_end(apart, None)
    return answered(apart)


def answered(apart: asyncio.Future[T]) -> T:
    """What a call that is done has come to."""
    if apart.cancelled():
        raise ProviderError("the driver broke off its own call")
    try:
        return apart.result()
    except asyncio.CancelledError:
        # Passed on by somebody who passes on whatever they catch: it is nobody's who is here.
        raise ProviderError("the driver broke off its own call") from None


async def _see_to_its_end(apart: asyncio.Future[Any], leave: Leave | None) -> None:
    """A call that goes on is called off. One that failed in the very moment in which whoever waits
    is told to stop has nobody left to see its error."""
    if not apart.done():
        await _call_off(apart, leave)
    elif is_leaving():
        note_end(apart)


def is_leaving() -> bool:
    """Whether whoever asks was told to stop."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0


async def _call_off(apart: asyncio.Future[Any], leave: Leave | None) -> None:
    """Tell a call to end, and wait a little; then keep it where it cannot get lost."""
    apart.cancel()
    apart.add_done_callback(note_end)
    try:
        await asyncio.wait({apart}, timeout=CLEAN_UP_US / SECOND)
    finally:
        if not apart.done():
            log.warning("driver does not end a call, leaving it behind")
            _left_behind.add(apart)
            apart.add_done_callback(_left_behind.discard)
            if leave is not None:
                leave(apart)


def note_end(apart: asyncio.Future[Any]) -> None:
    """Nobody waits for its answer any more, but an error must not go unseen."""
    if not apart.cancelled() and apart.exception() is not None:
        log.info("driver failed after it was called off", error=repr(apart.exception()))


async def _ours(call: Awaitable[T]) -> T:
    """What a driver answers, and a cancellation only where somebody asked for one.

    Libraries below a driver cancel parts of themselves. One that lets that escape would end the
    lane as if it had been told to, and nobody would start it again.
    """
    try:
        return await call
    except asyncio.CancelledError:
        _refuse_own_cancellation()
        raise


def _refuse_own_cancellation() -> None:
    """Whoever catches a cancellation that nobody asked for has a driver that failed."""
    current = asyncio.current_task()
    if current is not None and not current.cancelling():
        raise ProviderError("the driver broke off its own call") from None
