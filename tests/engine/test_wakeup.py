"""A wake-up call for one sleeper."""

from __future__ import annotations

import asyncio

import pytest

from paceline.engine.wakeup import Wakeup


def test_it_wakes_whoever_sleeps_and_stays_set_until_it_is_cleared() -> None:
    async def script() -> None:
        wakeup = Wakeup()
        sleeper = asyncio.ensure_future(wakeup.wait())
        await asyncio.sleep(0)
        assert not sleeper.done()
        wakeup.set()
        wakeup.set()
        await sleeper
        assert wakeup.is_set()
        await wakeup.wait()
        wakeup.clear()
        assert not wakeup.is_set()
        again = asyncio.ensure_future(wakeup.wait())
        await asyncio.sleep(0)
        assert not again.done()
        wakeup.set()
        await again

    asyncio.run(script())


def test_a_sleeper_that_is_called_off_leaves_it_as_it_was() -> None:
    async def script() -> None:
        wakeup = Wakeup()
        sleeper = asyncio.ensure_future(wakeup.wait())
        await asyncio.sleep(0)
        sleeper.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeper
        wakeup.set()
        await wakeup.wait()

    asyncio.run(script())


def test_one_that_is_set_and_cleared_again_has_woken_its_sleeper_all_the_same() -> None:
    async def script() -> None:
        wakeup = Wakeup()
        sleeper = asyncio.ensure_future(wakeup.wait())
        await asyncio.sleep(0)
        wakeup.set()
        wakeup.clear()
        await sleeper

    asyncio.run(script())
