"""A campaign played before it is launched: an operator's own accounts, limits and audience.

It is launched as any other, and the engine that would send it runs it in virtual time against a
provider that always accepts; once more with the busiest account banned halfway. Nothing is sent,
and nothing is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paceline.core.instants import DAY, MINUTE, SECOND, Instant, iso
from paceline.core.model import Content, Part
from paceline.core.policy import Policy
from paceline.core.states import DeliveryState
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.ports import Account
from paceline.sim.checks.time import day_of
from paceline.sim.mailing import Mailing
from paceline.sim.many import spread
from paceline.sim.simulation import perform
from paceline.sim.worlds import Sender, World

LONGEST_US = 400 * DAY
"""No campaign is followed for longer."""

QUICK_US = 10 * SECOND
"""How often is looked where lanes hear of something only then: of what is nobody's in a pool, of
what follows. By the minute, accounts that send every other minute would be late for that alone."""

WORTH_IT = 200
"""Messages from which on it is worth starting workers."""

LEFT_OUT = (
    "what these accounts have sent already and what other campaigns will have them send",
    "what the messages say: no file, template or variable is looked at",
)
"""What a forecast knows nothing of, for people to be told; ``paceline plan`` counts the first."""

Span = tuple[Instant, Instant]
"""The earliest and the latest instant over all seeds."""


@dataclass(frozen=True, slots=True)
class AccountForecast:
    name: str
    total: int
    sent: int
    done_at: Span | None
    most_per_day: int
    limits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Death:
    """What happens when the account with most to do is banned halfway."""

    account: str
    after: int
    sent: int
    left: int
    done_at: Instant | None
    """When those on other accounts are done; None if there are none."""


@dataclass(frozen=True, slots=True)
class Forecast:
    campaign: str
    total: int
    sent: int
    done_at: Span | None
    accounts: tuple[AccountForecast, ...]
    death: Death
    violations: tuple[str, ...]

    def to_mapping(self) -> dict[str, Any]:
        return {
            "campaign": self.campaign,
            "total": self.total,
            "sent": self.sent,
            "done_at": _span(self.done_at),
            "accounts": [
                {
                    "name": account.name,
                    "total": account.total,
                    "sent": account.sent,
                    "done_at": _span(account.done_at),
                    "most_per_day": account.most_per_day,
                    "limits": list(account.limits),
                }
                for account in self.accounts
            ],
            "if_an_account_dies": {
                "account": self.death.account,
                "after": self.death.after,
                "sent": self.death.sent,
                "left": self.death.left,
                "done_at": None if self.death.done_at is None else iso(self.death.done_at),
            },
            "violations": list(self.violations),
            "left_out": list(LEFT_OUT),
        }


@dataclass(frozen=True, slots=True)
class Played:
    """What one play of the campaign came to."""

    seed: int
    sends: tuple[tuple[str, Instant], ...]
    """From which account, and when."""
    owned: Mapping[str, tuple[int, int]]
    """By account, how many deliveries were its own in the end, and how many of them sent."""
    total: int
    sent: int
    violations: tuple[str, ...]

    def sends_of(self, account: str | None) -> list[Instant]:
        return [at for name, at in self.sends if account in (None, name)]


def forecast(
    spec: CampaignSpec,
    targets: int,
    accounts: Sequence[Account],
    *,
    seeds: range,
    start_at: Instant,
    zones: Sequence[str] = (),
    advance: Callable[[], None] = lambda: None,
    workers: int | None = None,
) -> Forecast:
    """Play the campaign once per seed, and once more, with the last of them, with a death in it.

    ``zones`` are where its people live, one by one, for a campaign that goes by their hours.
    """
    shares = Counter(accounts[number % len(accounts)].name for number in range(targets))
    busiest = max(accounts, key=lambda account: shares[account.name]).name
    messages = 1 + len(spec.steps)
    after = max(1, shares[busiest] * messages // 2)
    mailing = _mailing(spec, targets, start_at, tuple(zones))
    doomed = _world(mailing, accounts, start_at, dies=busiest, after=after)
    plays = [(seed, _world(mailing, accounts, start_at)) for seed in seeds] + [(seeds[-1], doomed)]
    if mailing.deliveries < WORTH_IT:
        workers = 1
    played: list[Played] = []
    death: Played | None = None
    for dies, found in spread(_play, plays, workers):
        advance()
        if dies:
            death = found
        else:
            played.append(found)
    assert death is not None, "it was played"
    played.sort(key=lambda one: one.seed)
    return Forecast(
        campaign=spec.name,
        total=mailing.deliveries,
        sent=min(one.sent for one in played),
        done_at=_done(played),
        accounts=tuple(_of_account(account, played) for account in accounts),
        death=_death(busiest, after, death),
        violations=tuple(
            f"seed {one.seed}: {broken}" for one in (*played, death) for broken in one.violations
        ),
    )


def _play(part: tuple[int, World]) -> tuple[bool, Played]:
    """Whether somebody dies in it, and what it came to."""
    seed, world = part
    verdict, evidence = perform(seed, world, "none")
    owned: dict[str, tuple[int, int]] = {}
    for delivery in evidence.deliveries:
        if delivery.account_id is not None:
            total, sent = owned.get(name := evidence.accounts[delivery.account_id], (0, 0))
            owned[name] = (total + 1, sent + (delivery.state is DeliveryState.SENT))
    return any(sender.settings for sender in world.senders), Played(
        seed=seed,
        sends=tuple(
            (effect.account, effect.at) for held in evidence.accepted.values() for effect in held
        ),
        owned=owned,
        total=len(evidence.deliveries),
        sent=sum(sent for _, sent in owned.values()),
        violations=tuple(f"{broken.invariant}: {broken.detail}" for broken in verdict.violations),
    )


def _mailing(
    spec: CampaignSpec, targets: int, start_at: Instant, zones: tuple[str, ...]
) -> Mailing:
    return Mailing(
        spec.name,
        spec.accounts,
        targets,
        parts=_plain(spec.content),
        action=spec.action,
        window=spec.window,
        at_close=spec.at_close,
        priority=spec.priority,
        launched_after_us=max(0, (spec.start_at or start_at) - start_at),
        recipient_hours=spec.recipient_hours,
        expire_after_us=spec.expire_after_us,
        assignment=spec.assignment,
        steps=tuple(replace(step, content=Content(_plain(step.content))) for step in spec.steps),
        before_open=spec.before_open,
        spread_days=spec.spread_days,
        zone=spec.zone,
        zones=zones,
        planned=True,
    )


def _world(
    mailing: Mailing,
    accounts: Sequence[Account],
    start_at: Instant,
    dies: str | None = None,
    after: int = 0,
) -> World:
    senders = tuple(
        Sender(
            account.name,
            account.policy,
            settings={"ban_after": after} if account.name == dies else {},
        )
        for account in accounts
    )
    return World(
        "forecast",
        start_at,
        lasts_us=0,
        calm_us=LONGEST_US,
        senders=senders,
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


def _done(played: Sequence[Played], account: str | None = None) -> Span | None:
    ends = [max(one.sends_of(account), default=None) for one in played]
    known = [end for end in ends if end is not None]
    return (min(known), max(known)) if known else None


def _of_account(account: Account, played: Sequence[Played]) -> AccountForecast:
    policy = Policy.from_mapping(account.policy, where=account.name)
    days = [
        Counter(day_of(at, policy.day_zone) for at in one.sends_of(account.name)) for one in played
    ]
    total, sent = played[-1].owned.get(account.name, (0, 0))
    return AccountForecast(
        name=account.name,
        total=total,
        sent=sent,
        done_at=_done(played, account.name),
        most_per_day=max((max(day.values(), default=0) for day in days), default=0),
        limits=_limits(policy),
    )


def _limits(policy: Policy) -> tuple[str, ...]:
    """What bounds the pace, as people write it."""
    written = policy.to_mapping()
    named = ("rate", "spacing", "min_gap", "batch", "daily", "weekly", "hours", "warmup")
    return tuple(f"{key} {_words(written[key])}" for key in named if key in written)


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {action}" for action, count in value.items())
    return str(value)


def _death(account: str, after: int, played: Played) -> Death:
    others = [at for name, at in played.sends if name != account]
    return Death(
        account=account,
        after=after,
        sent=played.sent,
        left=played.total - played.sent,
        done_at=max(others, default=None),
    )


def _span(span: Span | None) -> dict[str, str] | None:
    return None if span is None else {"earliest": iso(span[0]), "latest": iso(span[1])}
