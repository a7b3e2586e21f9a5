"""A provider that wants no more of an account: nothing else goes, and no person lifts its ban."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.commands import accounts
from tests.engine.doubles import Act, Double
from tests.engine.scenes import THREE_PARTS
from tests.engine.world import World
from tests.engine.worlds import Worlds


def test_a_ban_outlives_a_pause_and_a_resume(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, ban_after=2, ban_for="30m")
        world.campaign(10)
        process = world.process()
        await world.until(lambda: world.account_now().state == "cooling_down", MINUTE)
        banned_at, calls = world.clock.now(), len(world.calls())
        world.write(lambda tx: accounts.pause(tx, "ann", world.clock.now()))
        world.write(lambda tx: accounts.resume(tx, "ann", world.clock.now()))
        await world.wait(10 * MINUTE)
        assert len(world.calls()) == calls
        await world.until(lambda: len(world.calls()) > calls, HOUR, SECOND)
        assert world.clock.now() - banned_at >= 30 * MINUTE - SECOND
        await process.stop()

    worlds.fresh().play(script)


@pytest.mark.parametrize(
    "answer",
    [
        Outcome(OutcomeKind.BANNED, "spam"),
        Outcome(OutcomeKind.BANNED, "spam", retry_after_us=24 * HOUR),
        Outcome(OutcomeKind.UNAUTHORISED, "wrong password"),
    ],
)
def test_nothing_more_of_other_messages_goes_after_the_account_was_refused(
    worlds: Worlds, answer: Outcome
) -> None:
    async def script(world: World) -> None:
        asked = 0

        async def send(real: Act, message: Any) -> Any:
            nonlocal asked
            asked += 1
            return answer if asked == 5 else await real(message)

        world.account(policy={"rate": "60/min burst 3", "concurrency": 3, "part_gap": "2s"})
        world.campaign(6, parts=THREE_PARTS)
        provider = Double(world.providers.get("sandbox"), send=send)
        process = world.process(providers=provider.registry())
        await world.until(lambda: asked == 5)
        await world.wait(10 * MINUTE)
        assert asked == 5
        assert world.counts() == {"ready": 6}, "half a message waits like a whole one"
        assert not process.supervisor._running, "nobody sits by the phone"
        await process.stop()

    worlds.fresh().play(script)
