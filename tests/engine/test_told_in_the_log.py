"""What a lane says in the log of its provider's answers, and how loudly."""

from __future__ import annotations

from typing import Any

from structlog.testing import capture_logs

from paceline.engine.lookahead import NO_YES
from tests.engine.scenes import finish
from tests.engine.test_lookahead import NO, QUICKLY, TOO_FAST, answering, play
from tests.engine.world import World
from tests.engine.worlds import Worlds


def said(logs: list[Any], event: str) -> list[Any]:
    return [one for one in logs if one["event"] == event]


def test_a_throttle_is_warned_of(world: World) -> None:
    async def script(world: World) -> None:
        world.account(throttle_at=[2], retry_after="1m", reject_at=[3])
        world.campaign(3)
        await finish(world)

    with capture_logs() as logs:
        world.play(script)
    told = [(one["log_level"], one["outcome"]) for one in said(logs, "not sent")]
    assert told == [("warning", "throttled"), ("info", "rejected")]


def test_what_is_taken_back_for_a_moment_is_not_told_and_not_counted(worlds: Worlds) -> None:
    with capture_logs() as logs:
        play(worlds, answering(QUICKLY, QUICKLY, (5_000, NO), (5_000, TOO_FAST), then=QUICKLY))
    taken_back = [one for one in said(logs, "not sent") if one["reason"] == NO_YES]
    assert taken_back and {one["log_level"] for one in taken_back} == {"debug"}
    counted = said(logs, "batch done")
    assert sum(one.get("ready", 0) for one in counted) == 1, "the one that was throttled"
    assert sum(one.get("sent", 0) for one in counted) == 5


def test_an_account_that_was_opened_is_told(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(1)
        await finish(world)

    with capture_logs() as logs:
        world.play(script)
    (told,) = said(logs, "account opened")
    assert (told["account"], told["log_level"]) == ("ann", "info")
