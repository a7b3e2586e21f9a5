"""The state machines, as data: who may become what, and on which event.

Every state change in the store names the state it expects; these tables say which changes may be
named at all. The diagrams in ``docs/states.md`` are generated from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from paceline.core.errors import IllegalTransition


class DeliveryState(StrEnum):
    PLANNED = "planned"
    READY = "ready"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    BOUNCED = "bounced"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"


class AccountState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    LIMIT_REACHED = "limit_reached"
    COOLING_DOWN = "cooling_down"
    SUSPENDED = "suspended"


class CampaignState(StrEnum):
    DRAFT = "draft"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class RunState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"
    MISSED = "missed"
    CANCELLED = "cancelled"


class TurnState(StrEnum):
    THINKING = "thinking"
    REPLYING = "replying"
    DONE = "done"
    HANDED = "handed"
    DISCARDED = "discarded"


S = TypeVar("S", bound=StrEnum)


@dataclass(frozen=True)
class Machine(Generic[S]):
    """One transition table: ``(state, event) -> state``."""

    name: str
    start: S
    table: Mapping[tuple[S, str], S]

    def next(self, state: S, event: str) -> S:
        """The state after ``event``; an event unknown to the state raises and changes nothing."""
        try:
            return self.table[state, event]
        except KeyError:
            known = sorted(name for at, name in self.table if at == state)
            possible = ", ".join(known) or "nothing"
            raise IllegalTransition(
                f"{self.name} is {state}: cannot {event} (possible: {possible})"
            ) from None

    def sources(self, event: str) -> tuple[S, ...]:
        """The states in which ``event`` is allowed: what a guarded write names."""
        return tuple(state for state, name in self.table if name == event)

    @property
    def resting(self) -> frozenset[S]:
        """States that no event leaves."""
        leaving = {state for state, _ in self.table}
        return frozenset(state for state in type(self.start) if state not in leaving)

    def diagram(self) -> str:
        """A Mermaid state diagram of the table, for the documentation."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.start}"]
        lines += [f"    {a} --> {b}: {event}" for (a, event), b in self.table.items()]
        lines += [f"    {state} --> [*]" for state in type(self.start) if state in self.resting]
        return "\n".join(lines)


D, A, C, R, T = DeliveryState, AccountState, CampaignState, RunState, TurnState

DELIVERY: Machine[DeliveryState] = Machine(
    "delivery",
    D.PLANNED,
    {
        (D.PLANNED, "release"): D.READY,
        (D.PLANNED, "skip"): D.SKIPPED,
        (D.PLANNED, "cancel"): D.CANCELLED,
        (D.READY, "intend"): D.SENDING,
        (D.READY, "skip"): D.SKIPPED,
        (D.READY, "fail"): D.FAILED,
        (D.READY, "cancel"): D.CANCELLED,
        (D.READY, "lose"): D.UNKNOWN,
        (D.READY, "arrive"): D.UNKNOWN,
        (D.SENDING, "accept"): D.SENT,
        (D.SENDING, "retry"): D.READY,
        (D.SENDING, "fail"): D.FAILED,
        (D.SENDING, "bounce"): D.BOUNCED,
        (D.SENDING, "lose"): D.UNKNOWN,
        (D.UNKNOWN, "accept"): D.SENT,
        (D.UNKNOWN, "retry"): D.READY,
        (D.UNKNOWN, "fail"): D.FAILED,
        (D.UNKNOWN, "bounce"): D.BOUNCED,
        (D.SENT, "bounce"): D.BOUNCED,
        (D.FAILED, "retry"): D.READY,
        (D.FAILED, "lose"): D.UNKNOWN,
    },
)

ACCOUNT: Machine[AccountState] = Machine(
    "account",
    A.ACTIVE,
    {
        (A.ACTIVE, "pause"): A.PAUSED,
        (A.ACTIVE, "reach_limit"): A.LIMIT_REACHED,
        (A.ACTIVE, "cool_down"): A.COOLING_DOWN,
        (A.ACTIVE, "suspend"): A.SUSPENDED,
        (A.LIMIT_REACHED, "reopen"): A.ACTIVE,
        (A.LIMIT_REACHED, "pause"): A.PAUSED,
        (A.LIMIT_REACHED, "cool_down"): A.COOLING_DOWN,
        (A.LIMIT_REACHED, "suspend"): A.SUSPENDED,
        (A.COOLING_DOWN, "reopen"): A.ACTIVE,
        (A.COOLING_DOWN, "pause"): A.PAUSED,
        (A.COOLING_DOWN, "cool_down"): A.COOLING_DOWN,
        (A.COOLING_DOWN, "suspend"): A.SUSPENDED,
        (A.PAUSED, "resume"): A.ACTIVE,
        (A.PAUSED, "suspend"): A.SUSPENDED,
        (A.LIMIT_REACHED, "resume"): A.ACTIVE,
        (A.COOLING_DOWN, "resume"): A.ACTIVE,
        (A.SUSPENDED, "resume"): A.ACTIVE,
    },
)

CAMPAIGN: Machine[CampaignState] = Machine(
    "campaign",
    C.DRAFT,
    {
        (C.DRAFT, "schedule"): C.SCHEDULED,
        (C.DRAFT, "launch"): C.RUNNING,
        (C.DRAFT, "cancel"): C.CANCELLED,
        (C.SCHEDULED, "launch"): C.RUNNING,
        (C.SCHEDULED, "pause"): C.PAUSED,
        (C.SCHEDULED, "cancel"): C.CANCELLED,
        (C.RUNNING, "pause"): C.PAUSED,
        (C.RUNNING, "finish"): C.FINISHED,
        (C.RUNNING, "cancel"): C.CANCELLED,
        (C.PAUSED, "resume"): C.RUNNING,
        (C.PAUSED, "finish"): C.FINISHED,
        (C.PAUSED, "cancel"): C.CANCELLED,
        (C.FINISHED, "retry"): C.RUNNING,
    },
)

RUN: Machine[RunState] = Machine(
    "run",
    R.WAITING,
    {
        (R.WAITING, "start"): R.RUNNING,
        (R.WAITING, "miss"): R.MISSED,
        (R.WAITING, "pause"): R.PAUSED,
        (R.WAITING, "cancel"): R.CANCELLED,
        (R.RUNNING, "pause"): R.PAUSED,
        (R.RUNNING, "finish_all"): R.SUCCESS,
        (R.RUNNING, "finish_some"): R.PARTIAL,
        (R.RUNNING, "finish_none"): R.FAILED,
        (R.RUNNING, "cancel"): R.CANCELLED,
        (R.PAUSED, "resume"): R.RUNNING,
        (R.PAUSED, "finish_all"): R.SUCCESS,
        (R.PAUSED, "finish_some"): R.PARTIAL,
        (R.PAUSED, "finish_none"): R.FAILED,
        (R.PAUSED, "cancel"): R.CANCELLED,
        (R.SUCCESS, "retry"): R.RUNNING,
        (R.PARTIAL, "retry"): R.RUNNING,
        (R.FAILED, "retry"): R.RUNNING,
    },
)

TURN: Machine[TurnState] = Machine(
    "turn",
    T.THINKING,
    {
        (T.THINKING, "reply"): T.REPLYING,
        (T.THINKING, "say_nothing"): T.DONE,
        (T.THINKING, "hand_over"): T.HANDED,
        (T.THINKING, "discard"): T.DISCARDED,
        (T.REPLYING, "finish"): T.DONE,
        (T.REPLYING, "hand_over"): T.HANDED,
    },
)

MACHINES: tuple[Machine[Any], ...] = (DELIVERY, ACCOUNT, CAMPAIGN, RUN, TURN)
