"""How often a person may be written to, by a clock that was set back: what was sent is ahead then,
and the gate must say what the guard of the intent says."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import DAY, MINUTE, SECOND
from paceline.core.model import Target
from paceline.engine.commands import accounts
from paceline.engine.outbox import Outbox
from tests.engine.scenes import delivery, to, until
from tests.engine.test_clock_steps import SetClock
from tests.engine.world import World
from tests.engine.worlds import Worlds


def test_whoever_was_written_to_by_a_clock_that_was_ahead_holds_up_nobody(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = []
    submit = Outbox.submit

    async def counted(self: Outbox, intent: Any, begins: Any = None) -> bool:
        passed = await submit(self, intent, begins)
        if intent is not None and not passed:
            refused.append(intent.delivery_id)
        return passed

    monkeypatch.setattr(Outbox, "submit", counted)

    async def script(world: World) -> None:
        slow = SetClock(world.clock)
        slow.off_us = -MINUTE
        for name in ("ann", "bob"):
            world.account(name, policy={"per_recipient": "1/20s", "spacing": "4s"})
        world.campaign(name="spring", targets=[Target("anna")])
        world.campaign(name="summer", on=("bob",), targets=[Target("anna"), Target("ben")])
        world.write(lambda tx: accounts.pause(tx, "bob", world.clock.now()))
        await world.wait(2 * MINUTE)
        process = world.process()
        await world.until(lambda: len(world.sends()) == 1)
        await process.stop()
        first_at = world.sends()[0].called_at
        world.write(lambda tx: accounts.resume(tx, "bob", world.clock.now()))
        process = world.process(clock=slow)
        await world.until(lambda: len(world.sends()) == 3)
        anna, ben, again = world.sends()
        assert [one.target for one in (anna, ben, again)] == ["anna", "ben", "anna"]
        assert ben.called_at - first_at < 8 * SECOND, "he waits for nobody else's rest"
        assert MINUTE < again.called_at - first_at < 2 * MINUTE, "by this clock not before"
        assert not refused, "and nothing was asked for in vain"
        await process.stop()

    worlds.fresh().play(script)


def test_what_is_found_by_a_clock_that_is_behind_was_not_sent_before_it_was_intended(
    worlds: Worlds,
) -> None:
    """How often its recipient is written to is counted from there."""

    async def script(world: World) -> None:
        slow = SetClock(world.clock)
        world.account(policy={"on_unknown": "hold"}, timeout_latency="2s")
        world.campaign(targets=to("timeout"))
        process = world.process()
        await until(world, lambda: world.counts().get("unknown") == 1)
        intended_at = world.sends()[0].called_at
        await process.stop()
        # By a clock that is a day behind, and so behind the intent.
        slow.off_us = -DAY
        world.write(lambda tx: tx.deliveries.postpone(1, slow.now(), "any time"))
        process = world.process(clock=slow)
        await until(world, lambda: world.counts().get("sent") == 1)
        assert (delivery(world, "timeout").sent_at or 0) >= intended_at - SECOND, "not a day before"
        await process.stop()

    worlds.fresh().play(script)
