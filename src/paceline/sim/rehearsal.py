"""One play of a campaign before its launch: the world that it is played in, and what it came to.

What several plays say together is worked out in ``forecast.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from paceline.core.instants import DAY, MINUTE, SECOND, Instant
from paceline.core.model import Ask, Content, Go, Part, Standing, Wait
from paceline.core.pacer import Pacer
from paceline.core.plan import LONGEST_US
from paceline.core.policy import Policy
from paceline.core.states import AccountState, DeliveryState
from paceline.core.usage import Usage
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.ports import Account, Delivery, Run
from paceline.providers.sandbox import Effect
from paceline.sim.checks import Evidence, Violation, limits
from paceline.sim.checks.evidence import OVER
from paceline.sim.mailing import Mailing
from paceline.sim.simulation import perform
from paceline.sim.worlds import Sender, World

QUICK_US = 10 * SECOND
"""How often is looked where lanes hear of something only then: of what is nobody's in a pool, of
what follows. By the minute, accounts that send every other minute would be late for that alone."""

TOO_LONG = f"no room for it within {LONGEST_US // (365 * DAY)} years"
"""Why something is not sent that no play was long enough for; a plan reaches as far."""

PEOPLE = "person"
"""What they are called: the sandbox takes some words for orders, and campaigns are called so."""


@dataclass(frozen=True, slots=True)
class Seated:
    """An account as it is now, and why it can send nothing of this unless somebody does something
    (None if it can)."""

    name: str
    policy: Mapping[str, object]
    standing: Standing
    shut: str | None

    @classmethod
    def of(cls, account: Account, spec: CampaignSpec, at: Instant) -> Seated:
        standing = Standing(
            account.state, account.state_until_at, account.state_reason, account.warm_since_at
        )
        ask = Ask(spec.action, len(spec.content.parts), window=spec.window)
        pacer = Pacer(Policy.from_mapping(account.policy, where=account.name), standing)
        verdict = pacer.verdict(at, Usage(), ask)
        able = isinstance(verdict, Go) or (isinstance(verdict, Wait) and verdict.until_at)
        return cls(account.name, account.policy, standing, None if able else _why(verdict))

    def why_not(self, ask: Ask, at: Instant) -> str:
        """Why it has not sent something, at the end of that: what a plan says of it, too."""
        pacer = Pacer(Policy.from_mapping(self.policy, where=self.name), self.standing)
        return _why(pacer.verdict(at, Usage(), ask))

    def sender(self, ban_after: int = 0) -> Sender:
        standing = self.standing
        if self.shut is not None:
            # Whatever shuts it, nobody waits for it.
            standing = replace(standing, state=AccountState.PAUSED, until_at=None)
        settings = {"ban_after": ban_after} if ban_after else {}
        return Sender(self.name, self.policy, settings=settings, standing=standing)


class Sent(NamedTuple):
    """A part that the provider took."""

    account: str
    at: Instant
    delivery: int
    part: int


class Play(NamedTuple):
    """What is to be played: under which seed, and who dies in it."""

    seed: int
    world: World
    seats: tuple[Seated, ...]
    dies: str | None = None


@dataclass(frozen=True, slots=True)
class Played:
    """What one play of the campaign came to."""

    seed: int
    sends: tuple[Sent, ...]
    """In the order in which the provider took them."""
    owned: Mapping[str, tuple[int, int]]
    """By account, how many deliveries were its own in the end, and how many of them sent."""
    total: int
    sent: int
    unsent: Mapping[int, str]
    """By delivery, why it is not sent, but for those that wait."""
    waiting: Mapping[int, Instant | None]
    """What the account that died has left, and until when that waits for it: some may be over by
    the end of the play, which says nothing about when it comes back."""
    violations: tuple[str, ...]

    def sends_of(self, account: str | None) -> list[Instant]:
        return [one.at for one in self.sends if account in (None, one.account)]

    def per_day(self, account: str, day: Callable[[Instant], object]) -> tuple[int, int]:
        """The most messages that it begins on a day, and the most parts that it sends on one."""
        own = [one for one in self.sends if one.account == account]
        messages = Counter(day(one.at) for one in own if one.part == 0)
        parts = Counter(day(one.at) for one in own)
        return max(messages.values(), default=0), max(parts.values(), default=0)

    def calls_until(self, account: str) -> list[int]:
        """For each message that it sent whole, how many parts it had sent by then."""
        own = [one.delivery for one in self.sends if one.account == account]
        last = {delivery: number for number, delivery in enumerate(own, start=1)}
        unsent = self.unsent.keys() | self.waiting.keys()
        return sorted(number for delivery, number in last.items() if delivery not in unsent)


def rehearse(play: Play) -> Played:
    """Play it, and say what became of every message."""
    verdict, evidence = perform(play.seed, play.world, "none")
    owned: dict[str, tuple[int, int]] = {}
    unsent: dict[int, str] = {}
    waiting: dict[int, Instant | None] = {}
    seats = {seat.name: seat for seat in play.seats}
    ends = _ends(evidence)
    for delivery in evidence.deliveries:
        sent, name = delivery.state is DeliveryState.SENT, _owner(delivery, evidence)
        if name is not None:
            total, held = owned.get(name, (0, 0))
            owned[name] = (total + 1, held + sent)
        if sent:
            continue
        if name is not None and name == play.dies:
            waiting[delivery.id] = ends[delivery.id]
            continue
        unsent[delivery.id] = _why_unsent(delivery, evidence, seats.get(name or ""), ends)
    broken = _violations(play, verdict.violations, evidence)
    return Played(
        seed=play.seed,
        sends=tuple(_sends(evidence.effects)),
        owned=owned,
        total=len(evidence.deliveries),
        sent=len(evidence.deliveries) - len(unsent) - len(waiting),
        unsent=unsent,
        waiting=waiting,
        violations=tuple(f"{one.invariant}: {one.detail}" for one in broken),
    )


def _sends(effects: Sequence[Effect]) -> Iterator[Sent]:
    for effect in effects:
        if effect.kind == "send" and effect.accepted:
            _, delivery, part = effect.key.rsplit("-", 2)
            yield Sent(effect.account, effect.at, int(delivery), int(part))


def _owner(delivery: Delivery, evidence: Evidence) -> str | None:
    return None if delivery.account_id is None else evidence.accounts[delivery.account_id]


def _ends(evidence: Evidence) -> dict[int, Instant | None]:
    """When each message is given up, if ever: its own time, its run's, and that of what it follows,
    as long as that waits itself."""
    ends: dict[int, Instant | None] = {}
    before: dict[tuple[int, str], Instant | None] = {}
    for one in sorted(evidence.deliveries, key=lambda one: one.step):
        end_at = _earliest(one.expires_at, evidence.runs[one.run_id].closes_at)
        if one.step > 1:
            end_at = _earliest(end_at, before.get((one.run_id, one.target)))
        ends[one.id] = end_at
        before[one.run_id, one.target] = None if one.state is DeliveryState.SENT else end_at
    return ends


def _earliest(*instants: Instant | None) -> Instant | None:
    return min((at for at in instants if at is not None), default=None)


def _why_unsent(
    delivery: Delivery,
    evidence: Evidence,
    seat: Seated | None,
    ends: Mapping[int, Instant | None],
) -> str:
    if delivery.state in OVER:
        return delivery.reason or delivery.state.value
    if seat is None or seat.shut is None:
        return TOO_LONG
    end_at = ends[delivery.id]
    if end_at is None:
        return seat.shut
    run: Run = evidence.runs[delivery.run_id]
    ask = Ask(delivery.action, expires_at=delivery.expires_at, closes_at=run.closes_at)
    return seat.why_not(ask, end_at)


def _why(verdict: object) -> str:
    return getattr(verdict, "why", "")


def _violations(play: Play, found: Sequence[Violation], evidence: Evidence) -> Iterator[Violation]:
    """What was broken. That a play was too short is told of what it left, and an account is as warm
    as it is: the checker takes it to be as old as the world."""
    warm = any("warmup" in seat.policy for seat in play.seats)
    for one in found:
        too_short = one.invariant == "never stuck" and not evidence.came_to_rest
        if not too_short and not (warm and one.invariant == "never over"):
            yield one
    for seat in play.seats if warm else ():
        calls, since_at = evidence.by_account[seat.name], seat.standing.warm_since_at
        yield from limits.over(replace(evidence, calls=calls, started_at=since_at))


# ---------------------------------------------------------------------- its world


def mailing_of(
    spec: CampaignSpec,
    targets: int,
    seats: Sequence[Seated],
    start_at: Instant,
    zones: tuple[str, ...],
) -> Mailing:
    """A pool leaves out whoever can send nothing; and what only one is left for is that one's own,
    so that it waits for that one should it die."""
    names, assignment = tuple(seat.name for seat in seats), spec.assignment
    if assignment == "pooled":
        names = tuple(seat.name for seat in seats if seat.shut is None) or names
        if len(names) == 1 or all(seat.shut is not None for seat in seats):
            assignment = "round_robin"
    return Mailing(
        spec.name,
        names,
        targets,
        parts=_plain(spec.content),
        action=spec.action,
        window=spec.window,
        at_close=spec.at_close,
        priority=spec.priority,
        launched_after_us=max(0, (spec.start_at or start_at) - start_at),
        audience=PEOPLE,
        recipient_hours=spec.recipient_hours,
        expire_after_us=spec.expire_after_us,
        assignment=assignment,
        steps=tuple(replace(step, content=Content(_plain(step.content))) for step in spec.steps),
        before_open=spec.before_open,
        spread_days=spec.spread_days,
        zone=spec.zone,
        zones=zones,
        planned=True,
    )


def world_of(
    mailing: Mailing,
    seats: Sequence[Seated],
    start_at: Instant,
    dies: str | None = None,
    after: int = 0,
) -> World:
    """``after`` so many parts whoever ``dies`` is banned; after none, it never comes to send."""
    if not after:
        seats = [replace(seat, shut="banned") if seat.name == dies else seat for seat in seats]
    return World(
        "forecast",
        start_at,
        lasts_us=0,
        calm_us=LONGEST_US,
        senders=tuple(seat.sender(after if seat.name == dies else 0) for seat in seats),
        mailings=(mailing,),
        processes=1,
        poll_us=QUICK_US if mailing.steps or mailing.assignment == "pooled" else MINUTE,
        rests=True,
        operated=False,
        tended=False,
    )


def _plain(content: Content) -> tuple[Part, ...]:
    """Parts without variables and files: only their places in the pace count."""
    return tuple(Part("text", f"in place of {part.kind}") for part in content.parts)
