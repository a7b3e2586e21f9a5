"""The gate of a person's patience: how often they may be written to, whoever writes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.core.grammar import Frequency
from paceline.core.instants import Instant
from paceline.core.model import Ask
from paceline.core.usage import Usage


@dataclass(frozen=True, slots=True)
class FrequencyGate:
    """How often one person may be written to, whoever writes; a reply was asked for."""

    frequency: Frequency
    name: str = "frequency"
    final: bool = False

    def earliest(self, at: Instant, usage: Usage, ask: Ask) -> Instant:
        known, count, per_us = ask.contacted, self.frequency.count, self.frequency.per_us
        if ask.reply or len(known) < count:
            return at
        if known[-1] > at:
            at = _among(known, at, count, per_us)
        return at if known[-1] > at else max(at, known[-count] + per_us)

    def reason(self, at: Instant, usage: Usage, ask: Ask) -> str:
        by_now = bisect_right(ask.contacted, at)
        recent = ask.contacted[max(0, by_now - self.frequency.count) : by_now]
        if len(recent) < self.frequency.count or recent[0] + self.frequency.per_us <= at:
            return f"recipient is about to be contacted by others (at most {self.frequency})"
        return f"recipient was contacted already (at most {self.frequency})"


def _among(known: Sequence[Instant], at: Instant, count: int, per_us: int) -> Instant:
    """The first instant from ``at`` on at which there is room among those that are known, some of
    which are yet to come; if there is none between them, the last of them."""
    place = bisect_right(known, at)
    while place < len(known):
        # With so many before it, and the rest of one too many after it.
        for before in range(count + 1):
            first, last = place - before, place + count - before
            if first < 0 or last > len(known):
                continue
            begins_at = known[first] if before else at
            ends_at = known[last - 1] if before < count else at
            if ends_at - begins_at < per_us:
                break
        else:
            return at
        # What is behind us lies further back by and by; what is ahead has to be let past.
        at = known[place - count] + per_us if before == count else known[place]
        place = bisect_right(known, at)
    return at
