"""The time of arrival: when what is left of a running campaign will be done, and what it waits for.

What is due next is laid out one by one, as lanes will send it. Of a campaign that is so large that
this would take long, the rest is taken to go on as that does: it was given its slots by a plan that
kept every limit, so all there is to know of it is how late it will be.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from paceline.core.durations import parse_duration
from paceline.core.instants import Instant
from paceline.core.model import Ask, Wait
from paceline.core.pacer import Pacer
from paceline.core.plan import Never, Slot, Want, lay_out
from paceline.core.states import DeliveryState, RunState
from paceline.engine.elsewhere import look_elsewhere
from paceline.engine.ground import Ground, as_they_stand, gather
from paceline.engine.ports import Campaign, Far, Tx
from paceline.engine.ports.pools import NOBODY

NEAR = 20_000
"""How many deliveries are laid out one by one."""
FEW = 20
"""So few say how far behind they are, but not whether it becomes worse."""
LITTLE = 0.05
"""A line that grows, or shrinks, by less of what comes in is taken to stay as it is."""
MOST = 0.99

Place = tuple[int, tuple[int, ...]]
"""A run, and the accounts that what waits there may go from."""


@dataclass(frozen=True, slots=True)
class Eta:
    """What is left of a campaign, and when it will be done."""

    left: int
    finish_at: Instant | None
    """None if nothing of it can go as things stand."""
    stuck: int
    """How many can not go, as things stand."""
    stuck_why: str
    next_at: Instant | None
    account: str
    """Which account will send next."""
    zone: str
    """Of that account."""
    waits_for: str
    """What that one waits for; empty if it may go now."""
    going_by: int | None = None
    """By how many of those that are due next it was reckoned; None if by all of them."""


def eta(tx: Tx, campaign: Campaign, now: Instant) -> Eta | None:
    """What is left of a running campaign; None where nothing moves or nothing is left."""
    ours = {run.id for run in tx.runs.of_campaign(campaign.id) if run.state is RunState.RUNNING}
    if not ours or tx.settings.stopped() is not None:
        return None
    ground = gather(tx, tx.waiting.accounts(ours), now, not_before=as_they_stand, most=NEAR)
    # Nobody goes around anybody any more: whoever comes first writes, and the others wait.
    others = look_elsewhere(tx, ground)
    seats, queues = [*ground.seats.values(), *others.seats], [*ground.queues, *others.queues]
    layout = others.besides(lay_out(seats, queues, now, random.Random(campaign.name)))
    near = _Near(
        ground,
        ours,
        [slot for slot in layout.slots if slot.run_id in ours],
        [never for never in layout.nevers if never.run_id in ours],
    )
    if ground.until_at is None:
        return near.eta() if near.wants else None
    return _beyond(tx, near, ours, ground.until_at)


class _Near:
    """What was laid out of one campaign."""

    def __init__(
        self, ground: Ground, ours: set[int], slots: Sequence[Slot], nevers: Sequence[Never]
    ) -> None:
        self.ground = ground
        self.slots = slots
        self.nevers = nevers
        self.places: dict[int, Place] = {}
        """By key, where each one waits."""
        self.wants: dict[int, Want] = {}
        for queue in ground.queues:
            if queue.run_id in ours:
                self.wants |= {want.key: want for want in queue.wants}
                place = (queue.run_id, queue.accounts)
                self.places |= dict.fromkeys((want.key for want in queue.wants), place)

    def eta(self) -> Eta:
        first, ground = self.slots[0] if self.slots else None, self.ground
        return Eta(
            left=len(self.wants),
            finish_at=max((slot.done_at for slot in self.slots), default=None),
            stuck=len(self.nevers),
            stuck_why=self.nevers[0].why if self.nevers else "",
            next_at=None if first is None else first.at,
            account="" if first is None else ground.names[first.account_id],
            zone="UTC" if first is None else ground.seats[first.account_id].policy.day_zone,
            waits_for="" if first is None else _why(ground, first, self.wants[first.key]),
        )

    def lines(self) -> dict[Place, _Sent]:
        """By place, what is laid out there and has an instant of its own; nothing where nothing
        goes."""
        found: defaultdict[Place, _Sent] = defaultdict(_Sent)
        for slot in self.slots:
            want = self.wants[slot.key]
            if want.follows is None:
                line = found[self.places[slot.key]]
                line.due.append(want.ask.not_before_at)
                line.at.append(slot.at)
        for line in found.values():
            line.due.sort()
        return found

    def held(self) -> dict[Place, str]:
        """By place, why nothing goes from there at all."""
        going = {self.places[slot.key] for slot in self.slots}
        places = ((self.places[never.key], never.why) for never in reversed(self.nevers))
        return {place: why for place, why in places if place not in going}


def _why(ground: Ground, first: Slot, want: Want) -> str:
    """What the next one waits for, in the pacer's own words.

    That it was planned for then is no reason, as long as there is a better one.
    """
    if first.at <= ground.now:
        return ""
    seat = ground.seats[first.account_id]
    pacer = Pacer(seat.policy, seat.standing)
    ask = want.ask._replace(known=first.account_id not in want.new_to)
    for wish in (ask._replace(not_before_at=0), ask):
        verdict = pacer.verdict(ground.now, seat.usage, wish)
        if isinstance(verdict, Wait):
            return verdict.why
    return "its turn among others on the account"


# ---------------------------------------------------------------------- the rest of a large one


@dataclass(slots=True)
class _Sent:
    """What is laid out at one place: when each is due, and when each goes, both in order."""

    due: list[Instant] = field(default_factory=list)
    at: list[Instant] = field(default_factory=list)


def _beyond(tx: Tx, near: _Near, ours: set[int], until_at: Instant) -> Eta | None:
    """The same for a campaign of which only the next were laid out."""
    rest = _Rest(tx, near, ours, until_at)
    if not rest.left:
        return None
    found = near.eta()
    if not near.slots and rest.going:
        found = rest.begins(found)
    ends = [found.finish_at, *rest.ends()]
    return replace(
        found,
        left=rest.left,
        finish_at=max((end_at for end_at in ends if end_at is not None), default=None),
        stuck=found.stuck + sum(lot.number for lot, _ in rest.stuck),
        stuck_why=found.stuck_why or next((why for _, why in rest.stuck), ""),
        going_by=len(near.wants) if rest.left > len(near.wants) else None,
    )


class _Rest:
    """What was not laid out of one campaign, by run and account."""

    def __init__(self, tx: Tx, near: _Near, ours: set[int], until_at: Instant) -> None:
        self._tx = tx
        self._ground = near.ground
        self._until_at = until_at
        self._waiting = {run_id: tx.runs.accounts(run_id) for run_id in ours}
        self.left = sum(
            counts[state]
            for run in self._waiting.values()
            for counts in run.values()
            for state in (DeliveryState.PLANNED, DeliveryState.READY)
        )
        self.stuck: list[tuple[Far, str]] = []
        """What can not go, and why."""
        self.going: list[tuple[Far, tuple[int, ...], _Sent]] = []
        far = tx.waiting.beyond(ours, until_at)
        pools = tx.waiting.pools({lot.run_id for lot in far if lot.account_id is None})
        lines, held = near.lines(), near.held()
        for lot in far:
            owners = pools.get(lot.run_id, ()) if lot.account_id is None else (lot.account_id,)
            place = (lot.run_id, owners)
            why = held.get(place) or ("" if place in lines else self._shut(owners))
            if why:
                self.stuck.append((lot, why))
            else:
                self.going.append((lot, owners, lines.get(place, _Sent())))

    def _shut(self, owners: tuple[int, ...]) -> str:
        """Why nothing goes from these accounts, where nothing is due there yet that would say so;
        empty if something does."""
        why = "nobody is left to send it"
        for account_id in owners:
            seat = self._ground.seats[account_id]
            verdict = Pacer(seat.policy, seat.standing).verdict(self._ground.now, seat.usage, Ask())
            if not isinstance(verdict, Wait) or verdict.until_at is not None:
                return ""
            why = verdict.why
        return why

    def begins(self, found: Eta) -> Eta:
        """The same, where the first of all is one that was not laid out."""
        lot, owners, _ = min(self.going, key=lambda entry: entry[0].first_at)
        return replace(
            found,
            next_at=lot.first_at,
            account=self._ground.names[owners[0]],
            zone=self._ground.seats[owners[0]].policy.day_zone,
            waits_for="scheduled for later",
        )

    def ends(self) -> Iterator[Instant]:
        for lot, _, line in self.going:
            counts = self._waiting[lot.run_id].get(lot.account_id or NOBODY, {})
            followers = counts.get(DeliveryState.PLANNED, 0)
            end_at = self._end(lot, line, followers)
            yield max(end_at, lot.last_at + self._steps_us(lot.run_id)) if followers else end_at

    def _end(self, lot: Far, line: _Sent, followers: int) -> Instant:
        """When the last one goes: with the last slot, or so much later as the line has grown.

        What the plan has due meanwhile is set against what goes meanwhile, by numbers and not by
        the clock, so that nights and weekends count for both.
        """
        total = len(line.due) + lot.number
        behind, growth, end_at = 0.0, 0.0, lot.last_at
        if line.at:
            marks = [line.at[len(line.at) * part // 4 - 1] for part in (1, 2, 3, 4)]
            due = [self._due_by(lot, line, at) for at in marks]
            lengths = [
                known - bisect_right(line.at, at) for known, at in zip(due, marks, strict=True)
            ]
            came = sum(due[2:]) - sum(due[:2])
            if len(line.at) >= FEW and came:
                growth = (sum(lengths[2:]) - sum(lengths[:2])) / came
            growth = 0.0 if abs(growth) < LITTLE else min(growth, MOST)
            behind = max(0.0, lengths[3] + growth * (total - due[3]))
            end_at = max(end_at, marks[3])
        first_at = line.due[0] if line.due else lot.first_at
        interval_us = (lot.last_at - first_at) / max(1, total - 1) / (1 - max(0.0, growth))
        return end_at + round((behind + followers) * interval_us)

    def _due_by(self, lot: Far, line: _Sent, at: Instant) -> int:
        further = 0
        if at > self._until_at:
            further = self._tx.waiting.due_between(lot, self._until_at, at)
        return bisect_right(line.due, at) + further

    def _steps_us(self, run_id: int) -> int:
        """How long after the first message the last one goes, to the same person."""
        campaign_id = self._ground.runs[run_id].campaign_id
        written = self._tx.campaigns.get(campaign_id).settings.get("steps", [])
        return sum(parse_duration(text) for text in written)
