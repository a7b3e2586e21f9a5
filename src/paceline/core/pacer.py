"""The pacer: what the gates say together.

``verdict`` is the whole of Paceline's judgement about one message and one instant. Sending asks it
before every message, planning asks it in virtual time, and ``explain`` shows its working.
"""

from __future__ import annotations

from dataclasses import dataclass

from paceline.core.calendar import day_start_of
from paceline.core.gates import (
    DELIVERY_GATES,
    NEVER,
    SENDING_STATES,
    STATE_GATES,
    Gate,
    account_gates,
)
from paceline.core.holds import NO_HOLDS
from paceline.core.instants import DAY, Instant
from paceline.core.model import Ask, Go, Refuse, Standing, Verdict, Wait
from paceline.core.policy import Policy
from paceline.core.usage import Usage

HORIZON_US = 400 * DAY
"""How far ahead gates are followed; what does not meet within it never meets."""

_PASSES = 20_000
"""Gates that open and shut every few minutes are followed for weeks; then we stop looking."""

HORIZON = "horizon"
"""Said to refuse a delivery where no instant suits every gate of its account."""

NOT_BEFORE = "not-before"
"""The gate of what is planned for later."""

PACE_GATES = frozenset({"rate", "spacing"})
"""Gates of an account's own pace."""

CAP_GATES = frozenset({"daily", "weekly"})
"""Gates that shut when an allowance is used up."""

OWN_GATES = frozenset({"recipient-hours", "frequency"})
"""Gates that concern one delivery only."""

_GO = Go()


@dataclass(frozen=True, slots=True)
class GateView:
    """One line of the answer to "why not now?"."""

    gate: str
    opens_at: Instant | None
    """When this gate alone would open; ``None`` if no passing of time opens it."""
    open: bool
    why: str


MOST_PACERS = 1_024
_PACERS: dict[tuple[int, Standing], Pacer] = {}
"""By the identity of the policy, which each holds on to, so that no other can have it."""


class Pacer:
    """An account's gates, compiled from its policy and its standing."""

    __slots__ = ("_caps", "_gates", "_limits", "_may_send", "policy", "standing")

    def __init__(self, policy: Policy, standing: Standing) -> None:
        self.policy = policy
        self.standing = standing
        # The cheap, final gates come first: a delivery that can never go is not asked further.
        account = account_gates(policy, standing)
        self._gates: tuple[Gate, ...] = (*DELIVERY_GATES, *account)
        self._limits = tuple([gate for gate in account if gate.name not in STATE_GATES])
        self._caps = tuple([gate for gate in account if gate.name in CAP_GATES])
        self._may_send = standing.state in SENDING_STATES

    def _to_ask(self, now: Instant, usage: Usage, ask: Ask) -> tuple[Gate, ...]:
        """The gates that may be shut now or later on. Most messages have no times of their own and
        most accounts are not held back, and then the policy's limits are all there is to ask: the
        others would answer "now" whenever they were asked, and every message asks twice."""
        free = (
            self._may_send
            and usage.holds is NO_HOLDS
            and usage.hold_until_at <= now
            and ask.not_before_at <= now
            and ask.closes_at is None
            and ask.opens_at is None
            and ask.window is None
            and ask.expires_at is None
            and ask.recipient_hours is None
            and not ask.suppressed
        )
        return self._limits if free else self._gates

    def verdict(self, now: Instant, usage: Usage, ask: Ask) -> Verdict:
        """Go, wait or refuse: the least instant at which every gate is open.

        Every gate is asked alone first. The one that opens last is the one to be told of, and no
        common opening can come before it.
        """
        at, last, gates = now, None, self._to_ask(now, usage, ask)
        for gate in gates:
            opens_at = gate.earliest(now, usage, ask)
            if opens_at > at:
                if opens_at >= NEVER:
                    return _shut_for_good(gate, now, usage, ask)
                at, last = opens_at, gate
        if last is None:
            return _GO
        return _meet(gates, last, now, at, usage, ask)

    def cap(self, now: Instant, usage: Usage, ask: Ask) -> Wait | None:
        """The cap that is used up, and when it begins anew; of two the one that does so last. A
        verdict says when everything is open, and that may be a weekend later."""
        at, last = now, None
        for gate in self._caps:
            opens_at = gate.earliest(now, usage, ask)
            if opens_at > at:
                at, last = opens_at, gate
        if last is None:
            return None
        until_at = _ends_at(ask) if at >= NEVER else at
        return Wait(until_at, last.name, last.reason(now, usage, ask))

    def told(self, now: Instant, usage: Usage, ask: Ask) -> Verdict:
        """The verdict for people: a cap that is used up is named first, and then whatever is shut
        when it begins anew."""
        verdict, cap = self.verdict(now, usage, ask), self.cap(now, usage, ask)
        if not isinstance(verdict, Wait) or verdict.until_at is None:
            return verdict
        if cap is None or cap.until_at is None or cap.until_at >= verdict.until_at:
            return verdict
        then = verdict
        if verdict.gate in CAP_GATES:
            later = self.verdict(cap.until_at, usage, ask)
            then = later if isinstance(later, Wait) else verdict
        if then.gate in CAP_GATES or then.gate == NOT_BEFORE:
            return verdict
        return Wait(verdict.until_at, cap.gate, f"{cap.why}, then {then.why}")

    def waits_alone(self, now: Instant, usage: Usage, ask: Ask, verdict: Wait) -> bool:
        """Whether the delivery waits longer than others would have to that want the same: it steps
        aside, and the next one is asked."""
        if verdict.gate in OWN_GATES:
            return True
        if verdict.until_at is None or not (ask.recipient_hours or ask.contacted or not ask.known):
            return False
        plain = ask._replace(recipient_hours=None, contacted=(), known=True)
        others = self.verdict(now, usage, plain)
        if isinstance(others, Go):
            return True
        return isinstance(others, Wait) and others.until_at != verdict.until_at

    def waits_for_pace_alone(self, now: Instant, until_at: Instant, usage: Usage, ask: Ask) -> bool:
        """Whether nothing but the account's own pace is shut now, and nothing at all by then, on
        the same day: only so may be counted now what goes then. A verdict names the gate that opens
        last, and others may be shut as well."""
        for gate in self._to_ask(now, usage, ask):
            if gate.name not in PACE_GATES and gate.earliest(now, usage, ask) > now:
                return False
            if gate.earliest(until_at, usage, ask) > until_at:
                return False
        policy = self.policy
        return not policy.capped or day_start_of(until_at, policy.day_zone) <= now

    def token_at(self, now: Instant, usage: Usage) -> Instant:
        """When the next part of a delivery that has started may go: a token is all it needs.

        Unless the provider holds the account back meanwhile: that binds parts as well.
        """
        at = max(now, usage.hold_until_at)
        rate = self.policy.rate
        if rate is None:
            return at
        return max(at, usage.tat_at - (rate.burst - 1) * rate.interval_us)

    def explain(self, now: Instant, usage: Usage, ask: Ask) -> list[GateView]:
        """Every gate with its own earliest instant and reason, shut ones first, and of these the
        caps."""
        views = [self._view(gate, now, usage, ask) for gate in self._gates]
        return sorted(views, key=lambda view: (view.open, view.gate not in CAP_GATES))

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


def pacer_of(policy: Policy, standing: Standing) -> Pacer:
    """The pacer of a policy, the same one for all that are alike: it holds nothing that changes,
    and every lane that begins asks for one."""
    known = _PACERS.get((id(policy), standing))
    if known is None or known.policy is not policy:
        if len(_PACERS) >= MOST_PACERS:
            _PACERS.clear()
        known = _PACERS[id(policy), standing] = Pacer(policy, standing)
    return known


def _meet(
    gates: tuple[Gate, ...], last: Gate, now: Instant, at: Instant, usage: Usage, ask: Ask
) -> Verdict:
    """The common opening from ``at`` on.

    Each gate is monotone, so walking from one gate's answer to the next and starting over
    until nobody moves ends at the least common opening, if there is one within the horizon.
    The horizon begins where the last gate opens: a long wait is no contradiction.
    """
    ends_at, moved = at + HORIZON_US, last
    # A night that begins within a gap is not the gap's: who costs most is told of. But a cap that
    # is used up is what people look for, and it costs them the rest of the day or week.
    longest_us = NEVER if last.name in CAP_GATES else at - now
    blamed, blamed_at = last, now
    for _ in range(_PASSES):
        before = at
        for gate in gates:
            opens_at = gate.earliest(at, usage, ask)
            if opens_at > at:
                if opens_at >= NEVER:
                    return _too_late(gate, last, now, at, usage, ask)
                if opens_at - at > longest_us:
                    longest_us, blamed, blamed_at = opens_at - at, gate, at
                at, moved = opens_at, gate
        if at == before:
            return Wait(at, blamed.name, blamed.reason(blamed_at, usage, ask))
        if at > ends_at:
            break
    days = HORIZON_US // DAY
    why = f"no instant within {days} days suits every gate (last shut: {moved.name})"
    return Refuse(HORIZON, why)


def _shut_for_good(gate: Gate, at: Instant, usage: Usage, ask: Ask) -> Verdict:
    """No passing of time opens the gate; but a delivery's own time may be over before somebody
    does, and then it is to be looked at again."""
    why = gate.reason(at, usage, ask)
    return Refuse(gate.name, why) if gate.final else Wait(_ends_at(ask), gate.name, why)


def _ends_at(ask: Ask) -> Instant | None:
    """When the delivery is given up, if ever."""
    ends = [ask.expires_at, None if ask.reply else ask.closes_at]
    return min((end_at for end_at in ends if end_at is not None), default=None)


def _too_late(gate: Gate, last: Gate, now: Instant, at: Instant, usage: Usage, ask: Ask) -> Verdict:
    """``gate`` is open now and shut for good by the time the others are open.

    A raised limit may yet save the delivery, so it is given up when its time is over and not
    before.
    """
    ends_at = _ends_at(ask)
    if not gate.final or ends_at is None:
        return _shut_for_good(gate, at, usage, ask)
    why = last.reason(now, usage, ask)
    return Wait(ends_at, last.name, f"{why}; its {gate.name} ends first")
