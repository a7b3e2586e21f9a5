"""The gate of signals: a campaign that waits, or people who were never written to before."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.core.holds import NO_HOLDS
from paceline.core.instants import Instant
from paceline.core.model import Ask
from paceline.core.usage import Usage


@dataclass(frozen=True, slots=True)
class SignalGate:
    """What a provider's answer holds back that is not the account as a whole.

    Replies are no first contact, but a campaign that waits has none of its messages sent.
    """

    name: str = "signal"
    final: bool = False

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        holds = usage.holds
        if holds is NO_HOLDS:
            return at
        if holds.runs:
            at = max(at, holds.run_until_at(ask.run_id))
        return at if ask.known or ask.reply else max(at, holds.newcomers_until_at)

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        holds = usage.holds
        run_until_at = holds.run_until_at(ask.run_id)
        new = not (ask.known or ask.reply) and holds.newcomers_until_at > max(at, run_until_at)
        if new:
            return f"nobody is written to for the first time: {holds.newcomers_reason}"
        return f"the campaign waits: {holds.runs[ask.run_id][1]}"
