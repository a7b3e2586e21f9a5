"""The pacer: what the gates say together.

``verdict`` is the whole of Paceline's judgement about one message and one instant. Sending asks it
before every message, planning asks it in virtual time, and ``explain`` shows its working.
"""

from __future__ import annotations

from dataclasses import dataclass

from paceline.core.gates import DELIVERY_GATES, NEVER, Gate, account_gates
from paceline.core.instants import DAY, Instant
from paceline.core.model import Ask, Go, Refuse, Standing, Verdict, Wait
from paceline.core.policy import Policy
from paceline.core.usage import Usage

HORIZON_US = 400 * DAY
"""How far ahead gates are followed; what does not meet within it never meets."""

_PASSES = 1000
_GO = Go()


@dataclass(frozen=True, slots=True)
class GateView:
    """One line of the answer to "why not now?"."""

    gate: str
    opens_at: Instant | None
    """When this gate alone would open; ``None`` if no passing of time opens it."""
    open: bool
    why: str


class Pacer:
    """An account's gates, compiled from its policy and its standing."""

    __slots__ = ("_gates", "policy", "standing")

    def __init__(self, policy: Policy, standing: Standing) -> None:
        self.policy = policy
        self.standing = standing
        # The cheap, final gates come first: a delivery that can never go is not asked further.
        self._gates: tuple[Gate, ...] = (*DELIVERY_GATES, *account_gates(policy, standing))

    def verdict(self, now: Instant, usage: Usage, ask: Ask) -> Verdict:
        """Go, wait or refuse: the least instant at which every gate is open.

        Each gate is monotone, so walking from one gate's answer to the next and starting over
        until nobody moves ends at the least common opening, if there is one within the horizon.
        """
        at, binding = now, None
        for _ in range(_PASSES):
            before = at
            for gate in self._gates:
                opens_at = gate.earliest(at, usage, ask)
                if opens_at == at:
                    continue
                if opens_at >= NEVER:
                    return self._never(gate, now, at, usage, ask)
                at, binding = opens_at, gate
            if at == before:
                break
            if at - now > HORIZON_US:
                return Refuse("horizon", _never_meet(binding))
        else:
            return Refuse("horizon", _never_meet(binding))
        if binding is None:
            return _GO
        shut = self._binding(now, at, usage, ask) or binding
        return Wait(at, shut.name, shut.reason(now, usage, ask))

    def _never(self, gate: Gate, now: Instant, at: Instant, usage: Usage, ask: Ask) -> Verdict:
        if not gate.final:
            return Wait(None, gate.name, gate.reason(at, usage, ask))
        shuts_at = min((t for t in (ask.closes_at, ask.expires_at) if t is not None), default=now)
        if shuts_at <= now or gate.earliest(now, usage, ask) >= NEVER:
            return Refuse(gate.name, gate.reason(at, usage, ask))
        # The gate is still open, only every other one opens too late. A raised limit may yet
        # save the delivery, so it is given up when its time is over and not before.
        shut = self._binding(now, at, usage, ask) or gate
        why = shut.reason(now, usage, ask)
        return Wait(shuts_at, shut.name, f"{why}; its {gate.name} ends first")

    def _binding(self, now: Instant, at: Instant, usage: Usage, ask: Ask) -> Gate | None:
        """The gate that, alone and from now, opens last: the one people should be told of."""
        shut = [(g.earliest(now, usage, ask), g) for g in self._gates]
        waiting = [(opens_at, gate) for opens_at, gate in shut if opens_at > now]
        return max(waiting, key=lambda pair: pair[0])[1] if waiting else None

    def token_at(self, now: Instant, usage: Usage) -> Instant:
        """When the next part of a delivery that has started may go: a token is all it needs."""
        rate = self.policy.rate
        if rate is None:
            return now
        return max(now, usage.tat_at - (rate.burst - 1) * rate.interval_us)

    def explain(self, now: Instant, usage: Usage, ask: Ask) -> list[GateView]:
        """Every gate with its own earliest instant and reason, shut ones first."""
        views = [self._view(gate, now, usage, ask) for gate in self._gates]
        return sorted(views, key=lambda view: view.open)

    def _view(self, gate: Gate, now: Instant, usage: Usage, ask: Ask) -> GateView:
        opens_at = gate.earliest(now, usage, ask)
        if opens_at == now:
            return GateView(gate.name, now, True, "open")
        shut_for_good = opens_at >= NEVER
        return GateView(
            gate.name,
            None if shut_for_good else opens_at,
            False,
            gate.reason(now, usage, ask),
        )


def _never_meet(binding: Gate | None) -> str:
    name = binding.name if binding is not None else "gates"
    return f"no instant within {HORIZON_US // DAY} days suits every gate (last shut: {name})"
