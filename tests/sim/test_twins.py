"""The checkers bite: every promise has engines that break it, and each of them is caught.

The real engine passes exactly the seeds that its twin was played on, so what the checkers report
is what was broken, and not the weather.
"""

import inspect
import logging
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import structlog

from paceline.sim.checks import CHECKS
from paceline.sim.simulation import Verdict, play
from tests.sim.bid_twins import BID_TWINS
from tests.sim.campaign_twins import CAMPAIGN_TWINS
from tests.sim.defect_twins import DEFECT_TWINS
from tests.sim.guard_twins import GUARD_TWINS
from tests.sim.inbox_twins import INBOX_TWINS
from tests.sim.journal_twins import JOURNAL_TWINS
from tests.sim.lease_twins import LEASE_TWINS
from tests.sim.reminder_twins import REMINDER_TWINS
from tests.sim.rush_twins import RUSH_TWINS
from tests.sim.signal_twins import SIGNAL_TWINS
from tests.sim.talk_twins import TALK_TWINS
from tests.sim.twins import TWINS, Twin
from tests.sim.upload_twins import UPLOAD_TWINS

HONEST: dict[tuple[object, ...], Verdict] = {}
ALL = (
    *TWINS,
    *JOURNAL_TWINS,
    *CAMPAIGN_TWINS,
    *SIGNAL_TWINS,
    *REMINDER_TWINS,
    *INBOX_TWINS,
    *TALK_TWINS,
    *BID_TWINS,
    *RUSH_TWINS,
    *UPLOAD_TWINS,
    *DEFECT_TWINS,
    *GUARD_TWINS,
    *LEASE_TWINS,
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


def played(twin: Twin, seed: int, *, broken: bool) -> Verdict:
    with pytest.MonkeyPatch.context() as patch:
        if twin.provokes is not None:
            twin.provokes(patch)
        if broken:
            twin.breaks(patch)
        return play(seed, twin.world, twin.faults)


def honestly(twin: Twin, seed: int) -> Verdict:
    """As the real engine plays it: once for all twins that share a world and its hardships."""
    key = (id(twin.world), twin.provokes, twin.faults, seed)
    if key not in HONEST:
        HONEST[key] = played(twin, seed, broken=False)
    return HONEST[key]


@pytest.mark.parametrize("twin", ALL, ids=lambda twin: twin.name)
def test_a_broken_engine_is_caught_where_the_real_one_passes(twin: Twin) -> None:
    seeds = range(twin.first, twin.first + twin.within)
    caught_at = None
    for seed in seeds:
        verdict = played(twin, seed, broken=True)
        if any(violation.invariant == twin.promise for violation in verdict.violations):
            caught_at = seed
            break
    assert caught_at is not None, f"'{twin.name}' is not caught within {twin.within} seeds"
    for seed in range(twin.first, caught_at + 1):
        verdict = honestly(twin, seed)
        assert not verdict.violations, (seed, verdict.violations[0], verdict.excerpts[0])


def test_every_promise_has_an_engine_that_breaks_it() -> None:
    assert {twin.promise for twin in ALL} == set(CHECKS)


def test_every_broken_engine_is_played() -> None:
    """Whoever writes one and forgets to list it has shown nothing."""
    written = {
        f"{module.__name__}.{name}"
        for path in Path(__file__).parent.glob("*twins.py")
        if path.stem != "test_twins"
        for module in [import_module(f"tests.sim.{path.stem}")]
        for name, breaks in inspect.getmembers(module, inspect.isfunction)
        if breaks.__module__ == module.__name__ and breaks.__name__ == name
        if not name.startswith("_")
        if list(inspect.signature(breaks).parameters) == ["patch"]
    }
    listed = {f"{twin.breaks.__module__}.{twin.breaks.__name__}" for twin in ALL}
    assert written == listed
