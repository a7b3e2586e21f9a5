"""What the checkers look at: calls, effects, tables, and the orders that people gave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from paceline.core.instants import Instant
from paceline.core.policy import Policy
from paceline.core.states import DeliveryState
from paceline.engine.ports import Delivery, Run
from paceline.engine.ports.audit import IntentNote, TakingNote
from paceline.providers.sandbox.effects import Effect
from paceline.sim.attention import Table
from paceline.sim.chronicle import Page
from paceline.sim.correspondence import Correspondence
from paceline.sim.diary import Annals
from paceline.sim.minutes import Proceedings
from paceline.sim.operators import Release, Silence
from paceline.sim.phone import Rung
from paceline.sim.witness import Defect, Heard, Loaded, Look, Seen


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise: which, when, and in words; ``concerns`` are words of the trace."""

    invariant: str
    detail: str
    at: Instant
    concerns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """Everything there is to judge one world by, after its end."""

    calls: Sequence[Seen]
    effects: Sequence[Effect]
    deliveries: Sequence[Delivery]
    accounts: Mapping[int, str]
    """Their names."""
    runs: Mapping[int, Run]
    parts: Mapping[tuple[int, int], int]
    """How many parts a delivery of each run and step has; a direct message has one."""
    policies: Mapping[int, Policy]
    planned: int
    """How many deliveries people asked for."""
    suppressed_at: Mapping[str, Instant]
    silences: Sequence[Silence]
    ended_at: Instant
    came_to_rest: bool
    """Whether everything had come to its end when the world did."""
    intents: Sequence[IntentNote] = ()
    """In the order in which they were written, with what was in force just then."""
    takings: Sequence[TakingNote] = ()
    """Lanes that were taken from somebody."""
    heard: Sequence[Heard] = ()
    """Answers that asked for time."""
    loaded: Sequence[Loaded] = ()
    """Uploads of files."""
    defects: Sequence[Defect] = ()
    """Lanes that crashed."""
    started_at: Instant = 0
    """When the world began, and all its accounts with it."""
    waits: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """How long each later step of a run waits after the one before, as people wrote it."""
    spread_us: int = 0
    """How far apart any two clocks of the world ever were."""
    looks: Sequence[Look] = ()
    """The ledger as it grew from call to call, in worlds that are judged by it."""
    releases: Sequence[Release] = ()
    """When people let an account or a campaign go on."""
    calm_at: Instant = 0
    """When the bad weather was over."""
    pages: Sequence[Page] = ()
    """What every commit changed, in worlds that are judged by it."""
    tables: Sequence[Table] = ()
    """What people put into the table of signals."""
    rung: Sequence[Rung] = ()
    """What they were told."""
    annals: Annals | None = None
    """What was ordered and what became of it, in worlds with reminders."""
    post: Correspondence | None = None
    """What came back and what was made of it, in worlds with mail."""
    talks: Proceedings | None = None
    """What was said and what was made of it, in worlds in which people are conversed with."""

    @cached_property
    def by_account(self) -> dict[str, list[Seen]]:
        """The calls of each account, in their true order."""
        found: dict[str, list[Seen]] = defaultdict(list)
        for call in self.calls:
            found[call.account].append(call)
        return found

    @cached_property
    def accepted(self) -> dict[str, list[Effect]]:
        """What the provider holds, by key."""
        found: dict[str, list[Effect]] = defaultdict(list)
        for effect in self.effects:
            if effect.kind == "send" and effect.accepted:
                found[effect.key].append(effect)
        return found

    @cached_property
    def _taken(self) -> set[tuple[str, Instant]]:
        """The calls that led to something: by key, the last one before each effect."""
        made: dict[str, list[Instant]] = defaultdict(list)
        for call in self.calls:
            made[call.key].append(call.at)
        return {
            (key, max(at for at in made[key] if at <= effect.called_at))
            for key, held in self.accepted.items()
            for effect in held
        }

    def was_taken(self, call: Seen) -> bool:
        """Whether the provider took what this very call brought."""
        return (call.key, call.at) in self._taken

    @cached_property
    def by_id(self) -> dict[int, Delivery]:
        return {delivery.id: delivery for delivery in self.deliveries}

    @cached_property
    def may_come_twice(self) -> set[str]:
        """Keys whose every call was made for somebody who would rather send twice than not."""
        policies: dict[str, list[Policy | None]] = defaultdict(list)
        for call in self.calls:
            policies[call.key].append(self.policy_of(call))
        return {
            key
            for key, under in policies.items()
            if all(policy is not None and policy.on_unknown == "resend" for policy in under)
        }

    def policy_of(self, call: Seen) -> Policy | None:
        """The limits under which a call was made; None if nothing is written of it."""
        if call.facts is None or call.facts.policy_id is None:
            return None
        return self.policies[call.facts.policy_id]


OVER = frozenset(
    {
        DeliveryState.SENT,
        DeliveryState.FAILED,
        DeliveryState.BOUNCED,
        DeliveryState.SKIPPED,
        DeliveryState.CANCELLED,
    }
)
"""States in which nothing more will happen to a delivery."""


def words(call: Seen) -> tuple[str, ...]:
    """Where the trace speaks of the same."""
    return (str(call.delivery_id), call.account)


def lasting_us(before: Seen, after: Seen) -> int:
    """The time between two calls, by true time or by the caller's clock, whichever is longer.

    Nothing that only has a clock can know that it was set forward. Where it was, pace is judged by
    that clock; a clock set back may only make things slower.
    """
    return max(after.at - before.at, after.clock_at - before.clock_at)
