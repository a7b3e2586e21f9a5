"""A plan as people and programs read it: when it ends, who sends what on which day, what binds.

Made from a layout; nothing is read or decided here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paceline.core.calendar import day_of
from paceline.core.durations import print_duration
from paceline.core.instants import Instant, iso
from paceline.core.plan import CONCURRENCY, STEP, Never, Seat, Slot
from paceline.core.policy import Policy

WORDS = {
    "daily": "daily cap",
    "weekly": "weekly cap",
    "rate": "rate limit",
    "spacing": "spacing",
    "batch": "batch pause",
    "hours": "business hours",
    "window": "the campaign's window",
    "status": "the account's state",
    "hold": "the provider's hold",
    "signal": "a signal's hold",
    "frequency": "the limit per recipient",
    "recipient-hours": "the recipients' hours",
    "not-before": "the start",
    CONCURRENCY: "the parts of each message",
}
"""What a gate is called in a sentence."""


@dataclass(frozen=True, slots=True)
class AccountPlan:
    """What one account does for the campaign."""

    account: str
    zone: str
    messages: int
    first_at: Instant | None
    last_at: Instant | None
    per_day: Mapping[str, int]
    """By date in the account's zone, only days on which something is sent."""

    def to_mapping(self) -> dict[str, Any]:
        return {
            "account": self.account,
            "zone": self.zone,
            "first": _iso(self.first_at),
            "last": _iso(self.last_at),
            "messages": self.messages,
            "per_day": dict(self.per_day),
        }


@dataclass(frozen=True, slots=True)
class Binding:
    """The gate but for which most messages would go out sooner."""

    gate: str
    share: float
    words: str

    def to_mapping(self) -> dict[str, Any]:
        return {"gate": self.gate, "share": round(self.share, 4), "words": self.words}


@dataclass(frozen=True, slots=True)
class Unreachable:
    target: str
    gate: str
    why: str

    def to_mapping(self) -> dict[str, Any]:
        return {"target": self.target, "gate": self.gate, "why": self.why}


@dataclass(frozen=True, slots=True)
class Moved:
    """Another campaign that is done later on these accounts because they are shared."""

    campaign: str
    from_at: Instant
    to_at: Instant

    def to_mapping(self) -> dict[str, Any]:
        return {"campaign": self.campaign, "from": iso(self.from_at), "to": iso(self.to_at)}


@dataclass(frozen=True, slots=True)
class Plan:
    """A campaign laid out, as if it were launched at ``start_at``."""

    campaign: str
    start_at: Instant
    finish_at: Instant | None
    """When the last part of the last message goes out; None if nothing can."""
    messages: int
    accounts: tuple[AccountPlan, ...]
    binding: Binding | None
    """None if nothing binds: everything may go at once."""
    unreachable: tuple[Unreachable, ...]
    others: tuple[Moved, ...] = ()
    latency_us: int = 0
    gates: Mapping[str, int] = field(default_factory=dict)
    """How many messages each gate binds."""

    def without(self, people: Iterable[tuple[str, str]]) -> Plan:
        """The same, with members of its audience who have no address for it, and why not."""
        nowhere = tuple(Unreachable(who, "address", why) for who, why in people)
        return replace(self, unreachable=(*self.unreachable, *nowhere))

    @property
    def zone(self) -> str:
        """The zone of its accounts, if they share one."""
        zones = {account.zone for account in self.accounts}
        return zones.pop() if len(zones) == 1 else "UTC"

    def to_mapping(self) -> dict[str, Any]:
        return {
            "campaign": self.campaign,
            "start": iso(self.start_at),
            "finish": _iso(self.finish_at),
            "messages": self.messages,
            "accounts": [account.to_mapping() for account in self.accounts],
            "binding": None if self.binding is None else self.binding.to_mapping(),
            "gates": dict(self.gates),
            "unreachable": [one.to_mapping() for one in self.unreachable],
            "unreachable_by": dict(Counter(one.why for one in self.unreachable)),
            "others": [moved.to_mapping() for moved in self.others],
            "assumes": {"latency": print_duration(self.latency_us), "failures": 0},
        }


def plan_of(
    campaign: str,
    start_at: Instant,
    slots: Sequence[Slot],
    nevers: Iterable[Never],
    *,
    seats: Sequence[tuple[Seat, str]],
    action: str,
    target_of: Callable[[int], str],
) -> Plan:
    """The plan of one campaign from its own slots; ``seats`` are those that it may use."""
    by_account: dict[int, list[Slot]] = {seat.account_id: [] for seat, _ in seats}
    for slot in slots:
        by_account.setdefault(slot.account_id, []).append(slot)
    gates = Counter(slot.bound_by for slot in slots if slot.bound_by)
    return Plan(
        campaign=campaign,
        start_at=start_at,
        finish_at=max((slot.done_at for slot in slots), default=None),
        messages=len(slots),
        accounts=tuple(
            _of_account(name, seat.policy, by_account[seat.account_id]) for seat, name in seats
        ),
        binding=_binding(gates, len(slots), [seat.policy for seat, _ in seats], action),
        unreachable=tuple(
            Unreachable(target_of(never.key), never.gate, never.why)
            for never in nevers
            if never.gate != STEP  # whoever is not reached by the first is named once
        ),
        gates=dict(gates.most_common()),
    )


def _of_account(name: str, policy: Policy, slots: Sequence[Slot]) -> AccountPlan:
    zone = policy.day_zone
    days = Counter(day_of(slot.at, zone) for slot in slots)
    return AccountPlan(
        account=name,
        zone=zone,
        messages=len(slots),
        first_at=slots[0].at if slots else None,
        last_at=slots[-1].at if slots else None,
        per_day={day.isoformat(): count for day, count in sorted(days.items())},
    )


def _binding(
    gates: Counter[str], messages: int, policies: Sequence[Policy], action: str
) -> Binding | None:
    if not gates:
        return None
    gate, count = gates.most_common(1)[0]
    share = count / messages
    binds = "bind" if gate in ("hours", CONCURRENCY, "recipient-hours") else "binds"
    words = f"{WORDS.get(gate, gate)} {binds} {_percent(share)} of messages"
    detail = _detail(gate, policies, action)
    return Binding(gate, share, f"{words}: {detail}" if detail else words)


def _percent(share: float) -> str:
    """Never all of them, nor none, where that is not so."""
    whole = round(100 * share)
    return f"{whole if share in (0, 1) else min(99, max(1, whole))} %"


def _detail(gate: str, policies: Sequence[Policy], action: str) -> str:
    """What the limit is, as the accounts have it."""
    said = [text for policy in policies if (text := _limit(gate, policy, action))]
    kinds = list(dict.fromkeys(said))
    if not kinds:
        return ""
    if len(kinds) > 1:
        few = "; ".join(kinds[:3])
        return f"{few}; …" if len(kinds) > 3 else few
    if len(policies) == 1:
        return kinds[0]
    where = "each" if len(said) == len(policies) else f"{len(said)}"
    return f"{kinds[0]} on {where} of {len(policies)} accounts"


def _limit(gate: str, policy: Policy, action: str) -> str:
    if gate == "daily":
        cap = policy.daily.get(action)
        capped = [] if cap is None else [f"{cap} a day"]
        return ", ".join([*capped, *([f"warm-up {policy.warmup}"] if policy.warmup else [])])
    if gate == "weekly":
        return f"{policy.weekly[action]} a week" if action in policy.weekly else ""
    if gate == "spacing":
        least = f", at least {print_duration(policy.min_gap_us)}" if policy.min_gap_us else ""
        return f"{policy.spacing}{least}" if policy.spacing else least.removeprefix(", ")
    if gate == CONCURRENCY:
        return f"{policy.concurrency} at a time"
    written = {
        "rate": policy.rate,
        "batch": policy.batch,
        "hours": policy.hours,
        "frequency": policy.per_recipient,
    }.get(gate)
    return "" if written is None else str(written)


def _iso(at: Instant | None) -> str | None:
    return None if at is None else iso(at)
