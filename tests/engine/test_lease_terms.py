"""Whether a lease has lasted from an intent to its call, and whether that is worth a wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from paceline.core.instants import MILLISECOND, SECOND
from paceline.engine.leases import CERTAIN_US, LEASE_US, RENEW_EVERY_US, UNSAFE_TAIL_US
from paceline.engine.ports import LaneUnit, Lease
from tests.engine.desk import Desk, open_desk, run
from tests.engine.world import MONDAY_NINE

SAFE_US = LEASE_US - UNSAFE_TAIL_US


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(tmp_path) as opened:
        yield opened


def test_a_lease_that_ran_out_begins_a_new_term(desk: Desk) -> None:
    """In between anybody may have taken our lanes: what was intended before must not go out."""

    async def script() -> None:
        await desk.lease.join()
        first = desk.lease.term
        desk.clock.pass_by(RENEW_EVERY_US)
        await desk.lease.renew()
        assert desk.lease.term == first
        desk.clock.pass_by(CERTAIN_US - 1)
        assert not desk.lease.safe()
        await desk.lease.renew()
        assert desk.lease.safe()
        assert desk.lease.term == first, "late, but nobody can have taken anything"
        desk.clock.pass_by(CERTAIN_US)
        await desk.lease.renew()
        assert desk.lease.safe()
        assert desk.lease.term != first

    run(script)


@pytest.mark.parametrize("hand", ["at", "us"])
def test_either_clock_says_that_a_lease_may_have_run_out(desk: Desk, hand: str) -> None:
    """One may be set back, and the other stand still while the machine sleeps."""

    async def script() -> None:
        await desk.lease.join()
        first = desk.lease.term
        setattr(desk.clock, hand, getattr(desk.clock, hand) + CERTAIN_US)
        await desk.lease.renew()
        assert desk.lease.term != first

    run(script)


def test_a_late_renewal_is_waited_for_as_long_as_the_lease_lasts(desk: Desk) -> None:
    async def script() -> None:
        await desk.lease.join()
        desk.clock.pass_by(SAFE_US)
        await asyncio.gather(desk.lease.until_safe(0), desk.lease.renew())
        assert desk.lease.safe()
        desk.clock.pass_by(CERTAIN_US - MILLISECOND)
        await desk.lease.until_safe(0)
        assert not desk.lease.safe(), "nobody has renewed it, and the last moment has passed"
        desk.clock.pass_by(MILLISECOND)
        await desk.lease.until_safe(0)
        assert not desk.lease.safe()

    run(script)


def test_nothing_is_waited_for_where_the_lease_is_safe_but_the_instant(desk: Desk) -> None:
    async def script() -> None:
        await desk.lease.join()
        await desk.lease.until_safe(desk.clock.us + 3 * SECOND)
        assert desk.clock.at == MONDAY_NINE + 3 * SECOND

    run(script)


def test_what_counts_is_the_term_in_which_an_intent_has_its_turn(desk: Desk) -> None:
    """Behind a slow commit it may wait for longer than the lease lasts. The renewal overtakes it,
    and what is committed after that is committed under the lease that was renewed."""

    async def script() -> None:
        await desk.lease.join()
        first = desk.lease.term
        flight = SimpleNamespace(term=first)
        unit = LaneUnit(Lease(1, desk.lease.process_id, 1), 0)
        desk.clock.pass_by(CERTAIN_US)
        renewal = asyncio.ensure_future(desk.lease.renew())
        await asyncio.sleep(0)  # it is in line
        intent = desk.journal.submit(unit, begins=partial(desk.lease.note_term, flight))
        await asyncio.gather(intent, renewal)
        assert flight.term == desk.lease.term != first

    run(script)
