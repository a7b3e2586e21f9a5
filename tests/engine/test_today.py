"""What an account has sent today, and what became of it, as people are shown it."""

from __future__ import annotations

import pytest

from paceline.core.instants import DAY, SECOND
from paceline.core.policy import Policy
from paceline.engine.queries import account_view
from paceline.engine.today import Today
from tests.engine.scenes import finish
from tests.engine.test_returns import PEOPLE, returned, take
from tests.engine.world import World


def today(world: World) -> Today:
    return world.read(lambda tx: account_view(tx, "ann", world.clock.now())).today


def test_what_arrived_what_came_back_and_what_failed(on_either: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "10s"}, bounce_at=[2], reject_at=[3], transient_at=[4])
        assert today(world) == Today(0, 0, 0, None)
        world.campaign(targets=PEOPLE[:10])
        await finish(world)
        take(world, returned("failed", world.sends()[0].key))
        shown = today(world)
        assert (shown.sent, shown.bounced, shown.failed) == (9, 2, 2)
        last_at = max(effect.at for effect in world.sends())
        assert shown.last_sent_at is not None and abs(shown.last_sent_at - last_at) < 5 * SECOND
        await world.wait(DAY)
        assert today(world) == Today(0, 0, 0, shown.last_sent_at)

    on_either.play(script)


@pytest.mark.parametrize(
    ("shown", "pause", "told"),
    [
        (Today(0, 0, 0, None), "5%", "0 sent, 0 bounced, 0 failed"),
        (
            Today(24, 4, 1, None),
            "5%",
            "24 sent, 4 bounced (16.7 %, pauses above 5 %), 1 failed",
        ),
        (
            Today(10, 1, 0, None),
            "5%",
            "10 sent, 1 bounced (10.0 %, pauses above 5 %, from 20 on), 0 failed",
        ),
        (Today(10, 1, 0, None), "off", "10 sent, 1 bounced (10.0 %), 0 failed"),
    ],
)
def test_it_is_told_in_one_line(shown: Today, pause: str, told: str) -> None:
    assert shown.told(Policy.from_mapping({"bounce_pause": pause})) == told
