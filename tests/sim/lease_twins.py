"""Broken twins of processes that quarrel over lanes, where the clocks of machines differ."""

from __future__ import annotations

import pytest

from paceline.store.lanes import Lanes, Processes
from tests.sim.small import RATE
from tests.sim.talk_twins import by_own_clock, clocks_differ
from tests.sim.twins import Twin


def lanes_are_taken_by_ones_own_clock(patch: pytest.MonkeyPatch) -> None:
    """Whoever renews a lease, and whoever finds it over, goes by the clock of the own machine."""
    for subject, names in ((Lanes, ("due", "take", "take_free")), (Processes, ("join", "renew"))):
        for name in names:
            patch.setattr(subject, name, by_own_clock(getattr(subject, name)))


LEASE_TWINS = (
    Twin(lanes_are_taken_by_ones_own_clock, "never by two", RATE, 8, provokes=clocks_differ),
)
