"""A campaign played before it is launched: an operator's own accounts, limits and audience.

It is launched as any other, and the engine that would send it runs it in virtual time against a
provider that always accepts; once more with the busiest account banned halfway. Nothing is sent,
and nothing is stored. How it is played is said in ``rehearsal.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from paceline.core.instants import Instant, iso
from paceline.core.policy import Policy
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.ports import Account
from paceline.sim.checks.time import day_of
from paceline.sim.many import spread
from paceline.sim.rehearsal import Play, Played, Seated, mailing_of, rehearse, world_of

WORTH_IT = 200
"""Messages from which on it is worth starting workers."""

LEFT_OUT = (
    "what these accounts have sent already and what other campaigns will have them send",
    "whom they have written to lately, and what providers and signals hold them back for now",
    "what the messages say: no file, template or variable is looked at",
)
"""What a forecast knows nothing of, for people to be told; ``paceline plan`` counts the first."""

BIDDEN = "the follow-up that whoever bids it is sent as well: nobody knows who will"
"""The same of a campaign that has one."""

Span = tuple[Instant, Instant]
"""The earliest and the latest instant over all seeds."""


@dataclass(frozen=True, slots=True)
class AccountForecast:
    name: str
    total: int
    sent: int
    done_at: Span | None
    most_per_day: int
    """Messages, as a plan counts them."""
    most_parts_per_day: int
    """The same in parts, which is what its limits count."""
    limits: tuple[str, ...]
    shut: str | None
    """Why it can send nothing unless somebody does something; None if it can."""

    def to_mapping(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "total": self.total,
            "sent": self.sent,
            "done_at": _span(self.done_at),
            "most_per_day": self.most_per_day,
            "most_parts_per_day": self.most_parts_per_day,
            "limits": list(self.limits),
            "shut": self.shut,
        }


@dataclass(frozen=True, slots=True)
class Death:
    """What happens when the account that sends most is banned halfway."""

    account: str
    after: int
    """How many messages it has sent by then."""
    sent: int
    left: int
    """Everything that is not sent: what waits, and what is given up."""
    waiting: int
    """What waits for the account to come back, and would have been sent but for the ban."""
    until: Instant | None
    """When the last of these is given up; None if some are never."""
    unsent: Mapping[str, int]
    """How many others are not sent, by the reason."""
    done_at: Instant | None
    """When those on other accounts are done; None if there are none."""

    def to_mapping(self) -> dict[str, Any]:
        return {
            "account": self.account,
            "after": self.after,
            "sent": self.sent,
            "left": self.left,
            "waiting": self.waiting,
            "until": _iso(self.until),
            "unsent": dict(self.unsent),
            "done_at": _iso(self.done_at),
        }


@dataclass(frozen=True, slots=True)
class Forecast:
    campaign: str
    plays: int
    """How often it was played, but for the ban."""
    total: int
    sent: int
    """In the play in which fewest were; what is said of messages is said of that."""
    most_sent: int
    unsent: Mapping[str, int]
    """How many are not sent, by the reason."""
    done_at: Span | None
    accounts: tuple[AccountForecast, ...]
    death: Death | None
    """None where nothing is sent at all: nobody can die halfway."""
    violations: tuple[str, ...]
    left_out: tuple[str, ...] = LEFT_OUT
    unreachable: Mapping[str, int] = field(default_factory=dict)
    """People of its audience who are no part of the total, by the reason."""

    def to_mapping(self) -> dict[str, Any]:
        return {
            "campaign": self.campaign,
            "plays": self.plays,
            "total": self.total,
            "sent": self.sent,
            "most_sent": self.most_sent,
            "unsent": dict(self.unsent),
            "unreachable": dict(self.unreachable),
            "done_at": _span(self.done_at),
            "accounts": [account.to_mapping() for account in self.accounts],
            "if_an_account_dies": None if self.death is None else self.death.to_mapping(),
            "violations": list(self.violations),
            "left_out": list(self.left_out),
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
    workers: int | None = None,
) -> Forecast:
    """Play the campaign once per seed, and once more, with the last of them, with a death in it.

    ``zones`` are where its people live, one by one, for a campaign that goes by their hours.
    """
    seats = tuple(Seated.of(account, spec, spec.start_at or start_at) for account in accounts)
    mailing = mailing_of(spec, targets, seats, start_at, tuple(zones))
    world = partial(world_of, mailing, seats, start_at)
    if mailing.deliveries < WORTH_IT:
        workers = 1
    played: list[Played] = []
    for found in spread(rehearse, [Play(seed, world(), seats) for seed in seeds], workers):
        advance()
        played.append(found)
    played.sort(key=lambda one: one.seed)
    model = played[-1]
    dead, died = None, _busiest(accounts, model)
    if died is not None:
        name, parts = died
        (dead,) = spread(rehearse, [Play(model.seed, world(name, parts), seats, name)], 1)
    advance()
    least = min(played, key=lambda one: one.sent)
    return Forecast(
        campaign=spec.name,
        plays=len(played),
        total=mailing.deliveries,
        sent=least.sent,
        most_sent=max(one.sent for one in played),
        unsent=_counted(least.unsent.values()),
        done_at=_done(played),
        accounts=tuple(
            _of_account(account, seat, played, least)
            for account, seat in zip(accounts, seats, strict=True)
        ),
        death=None if dead is None or died is None else _death(died[0], model, dead),
        violations=tuple(_violations(played, dead, died[0] if died else "")),
        left_out=LEFT_OUT if spec.follow_up is None else (*LEFT_OUT, BIDDEN),
    )


def _busiest(accounts: Sequence[Account], model: Played) -> tuple[str, int] | None:
    """Who sends most messages, and how many parts it has sent when half of them are out; None if
    nobody sends anything."""
    wholes = {account.name: model.calls_until(account.name) for account in accounts}
    name = max(wholes, key=lambda name: len(wholes[name]))
    whole = wholes[name]
    half = len(whole) // 2
    return (name, whole[half - 1] if half else 0) if whole else None


def _death(account: str, model: Played, dead: Played) -> Death:
    waiting = dead.waiting.keys() - model.unsent.keys()
    given_up = {one: model.unsent[one] for one in dead.waiting if one not in waiting}
    untils = [dead.waiting[one] for one in waiting]
    known = [until for until in untils if until is not None]
    return Death(
        account=account,
        after=dead.owned.get(account, (0, 0))[1],
        sent=dead.sent,
        left=dead.total - dead.sent,
        waiting=len(waiting),
        until=max(known) if known and len(known) == len(untils) else None,
        unsent=_counted([*dead.unsent.values(), *given_up.values()]),
        done_at=max((one.at for one in dead.sends if one.account != account), default=None),
    )


def _violations(played: Sequence[Played], dead: Played | None, died: str) -> Iterator[str]:
    for one in played:
        for broken in one.violations:
            yield f"seed {one.seed}: {broken}"
    if dead is not None:
        for broken in dead.violations:
            yield f"seed {dead.seed}, with {died} banned: {broken}"


def _counted(reasons: Iterable[str]) -> dict[str, int]:
    return dict(Counter(reasons).most_common())


def _done(played: Sequence[Played], account: str | None = None) -> Span | None:
    ends = [max(one.sends_of(account), default=None) for one in played]
    known = [end for end in ends if end is not None]
    return (min(known), max(known)) if known else None


def _of_account(
    account: Account, seat: Seated, played: Sequence[Played], least: Played
) -> AccountForecast:
    policy = Policy.from_mapping(account.policy, where=account.name)
    days = [one.per_day(account.name, partial(_day, zone=policy.day_zone)) for one in played]
    total, sent = least.owned.get(account.name, (0, 0))
    return AccountForecast(
        name=account.name,
        total=total,
        sent=sent,
        done_at=_done(played, account.name),
        most_per_day=max(messages for messages, _ in days),
        most_parts_per_day=max(parts for _, parts in days),
        limits=_limits(policy),
        shut=seat.shut,
    )


def _day(at: Instant, zone: str) -> object:
    return day_of(at, zone)


def _limits(policy: Policy) -> tuple[str, ...]:
    """What bounds the pace, as people write it."""
    written = policy.to_mapping()
    pace = ("rate", "spacing", "min_gap", "batch", "concurrency")
    named = (*pace, "daily", "weekly", "hours", "warmup", "per_recipient")
    return tuple(f"{key} {_words(written[key])}" for key in named if key in written)


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {action}" for action, count in value.items())
    return str(value)


def _span(span: Span | None) -> dict[str, str] | None:
    return None if span is None else {"earliest": iso(span[0]), "latest": iso(span[1])}


def _iso(at: Instant | None) -> str | None:
    return None if at is None else iso(at)
