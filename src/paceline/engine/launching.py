"""Launching by plan, and laying out anew what waits when the ground has changed.

Working out a plan takes a while for a large campaign, so it is done on a snapshot and written down
afterwards. What happens in between does no harm: a plan only says when deliveries are due, and
every limit is asked again before each of them is sent.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

from paceline.core.instants import Instant
from paceline.core.plan import Slot
from paceline.engine import planning
from paceline.engine.commands import campaigns
from paceline.engine.commands.freezing import freeze
from paceline.engine.elsewhere import look_elsewhere
from paceline.engine.ground import AsTheyMight, gather
from paceline.engine.people import Unreachable
from paceline.engine.planning import RunPlan
from paceline.engine.ports import Campaign, Providers, Store

Minute = tuple[int, Instant]
"""A delivery, and when it is to go."""


class Launched(NamedTuple):
    campaign: Campaign
    plan: RunPlan
    unreachable: list[Unreachable]
    """Members of its audience who came since it was created, and have no address for it."""


def launch(store: Store, name: str, at: Instant, providers: Providers) -> Launched:
    """Freeze a campaign's audience, lay it out over its accounts, and let it go."""
    with store.write() as tx:
        unreachable = freeze(tx, name, providers, at)
    with store.read() as tx:
        (run,) = tx.runs.of_campaign(campaigns.launchable(tx, name).id)
        plan = planning.plan_run(tx, run.id, at)
    slots = [*plan.slots.values(), *(s for others in plan.others.values() for s in others.values())]
    with store.write() as tx:
        accounts = {slot.account_id for slot in slots} | set(tx.waiting.accounts([run.id]))
        tx.timetable.hold(accounts)
        campaign = campaigns.launch(tx, name, at)
        due, following = _apart(plan.slots.values(), plan.following)
        tx.timetable.plan(due)
        tx.timetable.expect(following)
        for others in plan.others.values():
            due, following = _apart(others.values(), plan.following)
            tx.timetable.share(due, f"shares its account with {name}")
            tx.timetable.expect(following)
    return Launched(campaign, plan, unreachable)


def lay_anew(store: Store, accounts: Iterable[int], at: Instant, reason: str) -> int:
    """Give everything that waits on these accounts, and was never tried, a new slot; how many
    have moved."""
    with store.read() as tx:
        ground = gather(tx, accounts, at, not_before=AsTheyMight(tx, at))
        seed = f"{reason}/{at}"
        promised = look_elsewhere(tx, ground).promised(seed)
        layout = planning.laid_out(ground, (), promised, seed=seed)
    by_hand = {run.id for run in ground.runs.values() if run.kind == "direct"}
    slots = [slot for slot in layout.slots if slot.run_id not in by_hand]
    due, following = _apart(slots, ground.following)
    with store.write() as tx:
        tx.timetable.hold(ground.seats)
        moved = tx.timetable.lay(due, reason)
        tx.timetable.expect(following)
        # Some are due earlier now, and a parked lane would sleep on.
        for account_id in sorted(ground.seats):
            tx.lanes.touch(account_id, at)
        return moved


def _apart(slots: Iterable[Slot], following: Container[int]) -> tuple[list[Minute], list[Minute]]:
    """What is due by itself, and what follows something that has to be sent before. By number,
    which is how rows lie on disk and how everybody locks them."""
    due: list[Minute] = []
    expected: list[Minute] = []
    for slot in slots:
        (expected if slot.key in following else due).append((slot.key, slot.at))
    return sorted(due), sorted(expected)
