"""Files that the provider drops before their time: uploaded again, and no message fails for it."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.instants import HOUR, SECOND
from paceline.core.model import Part
from paceline.core.outcome import Outcome, OutcomeKind
from tests.engine.doubles import Act, Double
from tests.engine.scenes import THREE_PARTS
from tests.engine.world import World
from tests.engine.worlds import Worlds


def picture(world: World) -> Part:
    media = world.write(lambda tx: tx.media.put("a.png", "image/png", b"x", world.clock.now()))
    return Part("media", "look", media=media.id)


def forgetful(code: str, after: int) -> Act:
    """Forgets its first upload once so many messages were sent with it."""
    handles: dict[str, int] = {}

    async def send(real: Act, message: Any) -> Any:
        handle = message.handle
        if handle is None:
            return await real(message)
        handles[handle] = handles.get(handle, 0) + 1
        if handle == next(iter(handles)) and handles[handle] > after:
            return Outcome(OutcomeKind.REJECTED, "no such media", code)
        return await real(message)

    return send


@pytest.mark.parametrize("code", ["media-expired", "media-unknown"])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_file_that_is_gone_is_uploaded_again(worlds: Worlds, code: str, concurrency: int) -> None:
    async def script(world: World) -> None:
        policy = {"rate": "600/min burst 10", "concurrency": concurrency}
        world.account(policy=policy, latency="500ms")
        world.campaign(40, parts=(picture(world),))
        provider = Double(world.providers.get("sandbox"), send=forgetful(code, 10))
        process = world.process(providers=provider.registry())
        await world.until_finished(within_us=HOUR)
        await process.stop()
        assert provider.called["upload"] == 2, "one more for all, not one for each refusal"
        assert provider.called["send"] <= 40 + concurrency
        (kept,) = world.read(lambda tx: tx.media.uploads())
        assert kept.handle == world.sends()[-1].part.handle

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 40}


def test_the_rest_of_a_message_goes_on_where_its_file_was_gone(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "600/min"})
        world.campaign(3, parts=(*THREE_PARTS, picture(world)))
        provider = Double(world.providers.get("sandbox"), send=forgetful("media-expired", 1))
        process = world.process(providers=provider.registry())
        await world.until_finished(within_us=HOUR)
        await process.stop()
        assert len(world.sends()) == 12

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 3}


def test_any_other_refusal_stays_one(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "600/min"})
        world.campaign(3, parts=(picture(world),))
        provider = Double(world.providers.get("sandbox"), send=forgetful("media-missing", 1))
        process = world.process(providers=provider.registry())
        await world.until_finished(within_us=HOUR)
        await process.stop()
        assert provider.called["upload"] == 1

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 1, "failed": 2}


# ---------------------------------------------------------------------- what it costs: nothing


def always_gone(code: str = "media-unknown") -> Act:
    async def send(real: Act, message: Any) -> Any:
        return Outcome(OutcomeKind.REJECTED, "no such media", code)

    return send


def test_no_rung_of_the_ladder_is_needed(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "600/min", "retry": "none"})
        world.campaign(5, parts=(picture(world),))
        provider = Double(world.providers.get("sandbox"), send=forgetful("media-expired", 2))
        process = world.process(providers=provider.registry())
        await world.until_finished(within_us=HOUR)
        await process.stop()
        assert provider.called["upload"] == 2
        assert [d.retries for d in world.read(lambda tx: tx.deliveries.page())] == [0] * 5

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 5}


def test_nor_is_one_lost_by_a_crash_that_forgets_that_the_file_was_gone(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "retry": "none"})
        world.campaign(3, parts=(picture(world),))
        provider = Double(world.providers.get("sandbox"), send=forgetful("media-expired", 1))
        first = world.process("one", providers=provider.registry())
        reads = "the file is uploaded again"
        await world.until(
            lambda: any(reads in d.reason for d in world.read(lambda tx: tx.deliveries.page())),
            HOUR,
            SECOND // 100,
        )
        await first.kill()
        (stored,) = world.read(lambda tx: tx.media.uploads())
        second = world.process("two", providers=provider.registry())
        await world.until_finished(within_us=HOUR)
        await second.stop()
        assert provider.called["send"] == 3 + 2, "the old handle was tried once more"
        assert stored.handle != world.sends()[-1].part.handle

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 3}


def test_a_file_that_is_gone_as_soon_as_it_is_there_is_refused_for_good(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "600/min"})
        world.campaign(3, parts=(picture(world),))
        provider = Double(world.providers.get("sandbox"), send=always_gone())
        process = world.process(providers=provider.registry())
        await world.until_finished(within_us=HOUR)
        await process.stop()
        assert (provider.called["send"], provider.called["upload"]) == (3, 3)

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"failed": 3}


def test_a_message_without_a_file_is_not_tried_again_for_one(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "600/min"})
        world.campaign(2)
        provider = Double(world.providers.get("sandbox"), send=always_gone())
        process = world.process(providers=provider.registry())
        await world.until_finished(within_us=HOUR)
        await process.stop()

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"failed": 2}


def test_an_old_handle_trips_no_breaker(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        policy = {
            "rate": "600/min burst 10",
            "concurrency": 4,
            "breaker": {"above": "10%", "samples": 5, "window": 10},
        }
        world.account(policy=policy, latency="500ms")
        world.campaign(12, parts=(picture(world),))
        provider = Double(world.providers.get("sandbox"), send=forgetful("media-expired", 4))
        process = world.process(providers=provider.registry())
        await world.until_finished(within_us=HOUR)
        await process.stop()
        assert provider.called["send"] > 13, "several were refused at once"

    world = worlds.fresh()
    world.play(script)
    assert world.counts_at_end == {"sent": 12}
