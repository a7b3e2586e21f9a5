"""An account's own pace, as a lane reckons with it: when to wake for it, and how far ahead of it an
intent is written."""

from __future__ import annotations

from paceline.core.instants import Instant
from paceline.core.model import Ask, Wait
from paceline.core.pacer import PACE_GATES
from paceline.engine.context import LaneContext
from paceline.engine.crowd import Place
from paceline.engine.memory import LaneMemory
from paceline.engine.putting_off import plain
from paceline.engine.run_queue import RunQueue


class HeadStart:
    """What a lane gives an intent that has to be committed before its call can be made on the dot:
    about as long as commits take."""

    __slots__ = ("_lead", "_memory", "_place")

    def __init__(self, context: LaneContext, memory: LaneMemory) -> None:
        self._lead = context.lead
        self._place = Place(context.crowd)
        self._memory = memory

    def calls_at(self, verdict: Wait, needed: Ask, now: Instant) -> Instant | None:
        """When a call is to be made whose intent is written now, ahead of its time; None where it
        is too early for that.

        Only while the account's own pace is all that is waited for: a day or a window that has not
        begun may not be counted yet.
        """
        until_at, memory = verdict.until_at, self._memory
        if until_at is None or verdict.gate not in PACE_GATES or until_at - now > self._lead.us:
            return None
        calls_at = self._place.stepped_back(until_at)
        paced = memory.pacer.waits_for_pace_alone(now, calls_at, memory.usage, needed)
        return calls_at if paced else None

    def called(self, at: Instant | None) -> None:
        """The call was made, or not after all."""
        self._place.called(at)

    def wake_for(self, verdict: Wait, now: Instant) -> Instant | None:
        """When a lane looks again that was told to wait. One that is here ahead of the time, and
        may not begin yet, has nothing to do before."""
        until_at = verdict.until_at
        if until_at is None or verdict.gate not in PACE_GATES:
            return until_at
        ahead_at = self._ahead_of(until_at)
        return ahead_at if ahead_at > now else until_at

    def wake_for_next(self, queue: RunQueue) -> Instant | None:
        """When a lane looks again of which nothing is due: a lane that is woken before its pace
        lets the next delivery go would only go to sleep again. But never before that falls due,
        when there would be nothing to be written ahead yet."""
        opens_at, paced_at = self._opens_at(queue), queue.paced_at
        if opens_at is None or paced_at is None:
            return queue.next_due_at
        return max(paced_at, self._ahead_of(opens_at))

    def _ahead_of(self, opens_at: Instant) -> Instant:
        return self._place.stepped_back(opens_at) - self._lead.us

    def _opens_at(self, queue: RunQueue) -> Instant | None:
        """When the pace lets the next delivery of a run go, if that is what it will wait for when
        it falls due."""
        if queue.paced_at is None or queue.usual is None:
            return None
        memory = self._memory
        verdict = memory.pacer.verdict(queue.paced_at, memory.usage, plain(queue.usual))
        if isinstance(verdict, Wait) and verdict.gate in PACE_GATES:
            return verdict.until_at
        return None
