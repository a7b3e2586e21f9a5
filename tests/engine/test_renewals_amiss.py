"""A renewal of the lease that fails in a way nobody foresaw is tried again, and not at once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from paceline.core.errors import StoreBusy
from paceline.core.instants import SECOND, Instant
from paceline.engine.leases import ProcessLease
from paceline.engine.station import AMISS_PAUSE_US
from tests.engine.world import World
from tests.engine.worlds import Worlds

FAILURES = 50


def tries(patch: pytest.MonkeyPatch, failure: Callable[[], Exception]) -> list[Instant]:
    """When it was tried to renew: the first times it fails before anything is asked for."""
    found: list[Instant] = []
    renew = ProcessLease.renew

    async def amiss(self: ProcessLease) -> None:
        found.append(self._clock.now())
        if len(found) <= FAILURES:
            raise failure()
        await renew(self)

    patch.setattr(ProcessLease, "renew", amiss)
    return found


def test_a_defect_is_given_a_moment_each_time_and_the_process_is_well_again_after_it(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tries(monkeypatch, lambda: KeyError("nobody knows"))

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        process = world.process()
        await world.until(lambda: len(found) > FAILURES, every_us=SECOND)
        world.campaign(3)
        await world.until_finished(within_us=60 * SECOND)
        await process.stop()

    worlds.fresh().play(script)
    early = [later - earlier for earlier, later in pairwise(found)][:FAILURES]
    assert set(early) == {AMISS_PAUSE_US}


def test_after_a_failure_of_the_store_it_is_tried_again_when_it_always_was(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tries(monkeypatch, lambda: StoreBusy("somebody else holds the file"))

    async def script(world: World) -> None:
        process = world.process()
        await world.until(lambda: len(found) > FAILURES, every_us=SECOND)
        await process.stop()

    worlds.fresh().play(script)
    assert len(set(found[: FAILURES + 1])) == 1, "nothing had been asked for, so it is due"
