"""A campaign played before it is launched: an operator's own accounts, limits and audience.

The engine that would send it runs it in virtual time against a provider that always accepts, and a
second time with the busiest account banned halfway. Nothing is sent, and nothing is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paceline.core.instants import DAY, HOUR, Instant, iso
from paceline.core.model import Content, Part
from paceline.core.policy import Policy
from paceline.core.states import DeliveryState
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.ports import Account
from paceline.sim.checks import Evidence
from paceline.sim.checks.time import day_of
from paceline.sim.mailing import Mailing
from paceline.sim.simulation import Verdict, perform
from paceline.sim.worlds import Sender, World

LONGEST_US = 400 * DAY
"""No campaign is followed for longer."""

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


def forecast(
    spec: CampaignSpec,
    targets: int,
    accounts: Sequence[Account],
    *,
    seeds: range,
    start_at: Instant,
    zones: Sequence[str] = (),
    advance: Callable[[], None] = lambda: None,
) -> Forecast:
    """Play the campaign once per seed, and once more per seed with a death in it.

    ``zones`` are where its people live, one by one, for a campaign that goes by their hours.
    """
    shares = Counter(accounts[number % len(accounts)].name for number in range(targets))
    busiest = max(accounts, key=lambda account: shares[account.name]).name
    messages = 1 + len(spec.steps)
    after = max(1, shares[busiest] * messages // 2)
    mailing = _mailing(spec, targets, start_at, tuple(zones))
    played = [_played(seed, _world(mailing, accounts, start_at), advance) for seed in seeds]
    doomed = _world(mailing, accounts, start_at, dies=busiest, after=after)
    deaths = [_played(seed, doomed, advance) for seed in seeds]
    evidences = [evidence for _, evidence in played]
    return Forecast(
        campaign=spec.name,
        total=mailing.deliveries,
        sent=min(_sent(evidence) for evidence in evidences),
        done_at=_done(evidences),
        accounts=tuple(_of_account(account, evidences) for account in accounts),
        death=_death(busiest, after, deaths[-1][1]),
        violations=tuple(
            f"seed {verdict.seed}: {broken.invariant}: {broken.detail}"
            for verdict, _ in (*played, *deaths)
            for broken in verdict.violations
        ),
    )


def _played(seed: int, world: World, advance: Callable[[], None]) -> tuple[Verdict, Evidence]:
    result = perform(seed, world, "none")
    advance()
    return result


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
        poll_us=HOUR,
        operated=False,
        tended=False,
    )


def _plain(content: Content) -> tuple[Part, ...]:
    """Parts without variables and files: only their places in the pace count."""
    return tuple(Part("text", f"in place of {part.kind}") for part in content.parts)


def _sends(evidence: Evidence, account: str | None = None) -> list[Instant]:
    return [
        effect.at
        for held in evidence.accepted.values()
        for effect in held
        if account is None or effect.account == account
    ]


def _sent(evidence: Evidence) -> int:
    return sum(delivery.state is DeliveryState.SENT for delivery in evidence.deliveries)


def _done(evidences: Sequence[Evidence], account: str | None = None) -> Span | None:
    ends = [max(_sends(evidence, account), default=None) for evidence in evidences]
    known = [end for end in ends if end is not None]
    return (min(known), max(known)) if known else None


def _of_account(account: Account, evidences: Sequence[Evidence]) -> AccountForecast:
    policy = Policy.from_mapping(account.policy, where=account.name)
    days = [
        Counter(day_of(at, policy.day_zone) for at in _sends(evidence, account.name))
        for evidence in evidences
    ]
    last = evidences[-1]
    ours = [
        d
        for d in last.deliveries
        if d.account_id is not None and last.accounts[d.account_id] == account.name
    ]
    return AccountForecast(
        name=account.name,
        total=len(ours),
        sent=sum(d.state is DeliveryState.SENT for d in ours),
        done_at=_done(evidences, account.name),
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


def _death(account: str, after: int, evidence: Evidence) -> Death:
    others = [
        effect.at
        for held in evidence.accepted.values()
        for effect in held
        if effect.account != account
    ]
    sent = _sent(evidence)
    return Death(
        account=account,
        after=after,
        sent=sent,
        left=len(evidence.deliveries) - sent,
        done_at=max(others, default=None),
    )


def _span(span: Span | None) -> dict[str, str] | None:
    return None if span is None else {"earliest": iso(span[0]), "latest": iso(span[1])}
