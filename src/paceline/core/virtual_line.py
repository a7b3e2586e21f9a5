"""A line in virtual time: what waits in one run, and who of it is next.

The order is the one in which the store hands deliveries to a lane: what was begun first, then by
the instant at which each is due, and what has stepped aside where its new instant puts it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from paceline.core.instants import Instant
from paceline.core.model import Refuse, Wait
from paceline.core.slots import Never, Queue, Want

NOT_BEFORE = "not-before"
STEP = "step"
"""Said of what would have followed something that does not go."""


class Line:
    """A queue while it is being used up."""

    __slots__ = ("_began", "_followers", "_fresh", "_later", "_never", "_place", "held", "queue")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.held: Wait | None = None
        """Why a lane has left it, where nothing but somebody's help will bring it back."""
        self._followers = _followers(queue.wants)
        own = queue.wants
        if self._followers:
            following = {want.key for want in self._followers.values()}
            own = [want for want in own if want.key not in following]
        # The next one is the last. The sort keeps the order of those due at the same instant.
        due = sorted(own, key=_due)
        due.reverse()
        self._began = [want for want in due if want.begun]
        self._fresh = [want for want in due if not want.begun] if self._began else due
        self._later: list[tuple[Instant, int, Want, str]] = []
        self._place = 0
        self._never: list[Never] = []

    def first(self, now: Instant) -> Want | None:
        """The one that a lane would be given next; None if none is due."""
        began, fresh, later = self._began, self._fresh, self._later
        if began and began[-1].ask.not_before_at <= now:
            return began[-1]
        want = fresh[-1] if fresh else None
        due_at = later[0][0] if later else None
        if due_at is not None and due_at <= now and (want is None or due_at < _due(want)):
            return later[0][2]
        if want is None or want.ask.not_before_at > now:
            return None
        return want

    def next_due(self) -> tuple[Instant, str] | None:
        """When the next one falls due, and what it waits for until then."""
        due = [(wants[-1].ask.not_before_at, NOT_BEFORE) for wants in self._ends() if wants]
        if self._later:
            due.append((self._later[0][0], self._later[0][3]))
        return min(due, default=None)

    def _ends(self) -> tuple[list[Want], list[Want]]:
        return self._began, self._fresh

    def take(self, want: Want) -> None:
        """Take out what ``first`` has answered."""
        for wants in (self._fresh, self._began):
            if wants and wants[-1] is want:
                wants.pop()
                return
        heapq.heappop(self._later)

    def sent(self, key: int, at: Instant) -> None:
        """The last part of one has gone out: what follows it is due so long after."""
        if self._followers and (want := self._followers.pop(key, None)) is not None:
            self._put(want, at + want.after_us, NOT_BEFORE)

    def step_aside(self, want: Want, until_at: Instant, gate: str) -> None:
        self.take(want)
        self._put(want, until_at, gate)

    def _put(self, want: Want, due_at: Instant, gate: str) -> None:
        self._place += 1
        heapq.heappush(self._later, (due_at, self._place, want, gate))

    def give_up(self, want: Want, refused: Refuse) -> None:
        """Leave out what can never go; a closed window ends the whole rest."""
        if refused.gate != "window":
            self.take(want)
            self._leave_out([want], refused.gate, refused.why)
            return
        self._leave_out(self._left(), refused.gate, refused.why)
        for rest in (self._began, self._fresh, self._later):
            rest.clear()

    def end(self, gate: str, why: str) -> list[Never]:
        """Everything that was left out; what is left at the end of the plan is for this reason,
        unless there is a better one."""
        if self.held is not None:
            gate, why = self.held.gate, self.held.why
        self._leave_out(self._left(), gate, why)
        self._leave_out(self._followers.values(), STEP, "the message before it does not go")
        return self._never

    def _left(self) -> list[Want]:
        later = [want for _, _, want, _ in sorted(self._later)]
        return [*self._began[::-1], *self._fresh[::-1], *later]

    def _leave_out(self, wants: Iterable[Want], gate: str, why: str) -> None:
        run_id = self.queue.run_id
        self._never += [Never(run_id, want.key, gate, why) for want in wants]


def _followers(wants: Sequence[Want]) -> dict[int, Want]:
    """What waits for another one of the same queue, by the key of that one."""
    following = [want for want in wants if want.follows is not None]
    keys = {want.key for want in wants} if following else set()
    return {want.follows: want for want in following if want.follows in keys}


def _due(want: Want) -> Instant:
    return want.ask.not_before_at
