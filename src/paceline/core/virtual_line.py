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
SIGNAL = "signal"
STEP = "step"
"""Said of what would have followed something that does not go."""

NOBODY = 0
"""No account: whoever asks for a line's next one may take any of it."""


class Line:
    """A queue while it is being used up."""

    __slots__ = ("_followers", "_lots", "_never", "_plain", "held", "queue")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.held: Wait | None = None
        """Why a lane has left it, where nothing but somebody's help will bring it back."""
        self._followers = _followers(queue.wants)
        own = queue.wants
        if self._followers:
            following = {want.key for want in self._followers.values()}
            own = [want for want in own if want.key not in following]
        # Those who share a run pass by whom they may not write to, so these lie apart from the
        # others. An account that has a run to itself meets everybody: its gate says who waits.
        apart: dict[tuple[int, ...], list[Want]] = {(): []}
        if len(queue.accounts) > 1:
            apart |= {want.new_to: [] for want in queue.wants}
        if len(apart) > 1:
            for want in own:
                apart[want.new_to].append(want)
        else:
            apart[()] = list(own)
        self._lots = {new_to: _Lot(wants) for new_to, wants in apart.items()}
        # Nearly always this is the only one.
        self._plain = self._lots[()]
        self._never: list[Never] = []

    def first(self, now: Instant, but_for: int = NOBODY) -> Want | None:
        """The one that a lane would be given next; None if none is due. ``but_for`` is an account
        that may write to nobody new."""
        if len(self._lots) == 1:
            return self._plain.first(now)
        best: tuple[tuple[bool, Instant, int], Want] | None = None
        for new_to, lot in self._lots.items():
            want = None if but_for in new_to else lot.first(now)
            if want is not None and (best is None or lot.place(want) < best[0]):
                best = lot.place(want), want
        return None if best is None else best[1]

    def next_due(self, but_for: int = NOBODY) -> tuple[Instant, str] | None:
        """When the next one falls due, and what it waits for until then."""
        if len(self._lots) == 1:
            return self._plain.next_due()
        lots = [lot for new_to, lot in self._lots.items() if but_for not in new_to]
        due = (lot.next_due() for lot in lots)
        return min((known for known in due if known is not None), default=None)

    def passed_by(self, account_id: int) -> bool:
        """Whether there is anybody in it to whom this account is not to write for the first time;
        of a line that several accounts share."""
        return any(lot for new_to, lot in self._lots.items() if account_id in new_to)

    def take(self, want: Want) -> None:
        """Take out what ``first`` has answered."""
        self._lot_of(want).take(want)

    def sent(self, key: int, at: Instant) -> None:
        """The last part of one has gone out: what follows it is due so long after."""
        if self._followers and (want := self._followers.pop(key, None)) is not None:
            self._lot_of(want).put(want, at + want.after_us, NOT_BEFORE)

    def step_aside(self, want: Want, until_at: Instant, gate: str) -> None:
        lot = self._lot_of(want)
        lot.take(want)
        lot.put(want, until_at, gate)

    def _lot_of(self, want: Want) -> _Lot:
        return self._lots.get(want.new_to, self._plain)

    def give_up(self, want: Want, refused: Refuse) -> None:
        """Leave out what can never go; a closed window ends the whole rest."""
        if refused.gate != "window":
            self.take(want)
            self._leave_out([want], refused.gate, refused.why)
            return
        self._leave_out(self._left(), refused.gate, refused.why)
        for lot in self._lots.values():
            lot.clear()

    def end(self, gate: str, why: str) -> list[Never]:
        """Everything that was left out; what is left at the end of the plan is for this reason,
        unless there is a better one."""
        if self.held is not None:
            gate, why = self.held.gate, self.held.why
        self._leave_out(self._left(), gate, why)
        self._leave_out(self._followers.values(), STEP, "the message before it does not go")
        return self._never

    def _left(self) -> list[Want]:
        return [want for lot in self._lots.values() for want in lot.left()]

    def _leave_out(self, wants: Iterable[Want], gate: str, why: str) -> None:
        run_id = self.queue.run_id
        self._never += [Never(run_id, want.key, gate, why) for want in wants]


class _Lot:
    """Those of a line whom the same accounts may write to."""

    __slots__ = ("_began", "_fresh", "_later", "_place")

    def __init__(self, wants: Iterable[Want]) -> None:
        # The next one is the last. The sort keeps the order of those due at the same instant.
        due = sorted(wants, key=_due)
        due.reverse()
        self._began = [want for want in due if want.begun]
        self._fresh = [want for want in due if not want.begun] if self._began else due
        self._later: list[tuple[Instant, int, Want, str]] = []
        self._place = 0

    def __bool__(self) -> bool:
        return bool(self._began or self._fresh or self._later)

    def first(self, now: Instant) -> Want | None:
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

    def place(self, first: Want) -> tuple[bool, Instant, int]:
        """Where its first one stands among those of the other lots."""
        aside = self._later and self._later[0][2] is first
        return not first.begun, self._later[0][0] if aside else _due(first), first.key

    def next_due(self) -> tuple[Instant, str] | None:
        due = [(_due(wants[-1]), NOT_BEFORE) for wants in (self._began, self._fresh) if wants]
        if self._later:
            due.append((self._later[0][0], self._later[0][3]))
        return min(due, default=None)

    def take(self, want: Want) -> None:
        for wants in (self._fresh, self._began):
            if wants and wants[-1] is want:
                wants.pop()
                return
        heapq.heappop(self._later)

    def put(self, want: Want, due_at: Instant, gate: str) -> None:
        self._place += 1
        heapq.heappush(self._later, (due_at, self._place, want, gate))

    def left(self) -> list[Want]:
        later = [want for _, _, want, _ in sorted(self._later)]
        return [*self._began[::-1], *self._fresh[::-1], *later]

    def clear(self) -> None:
        for rest in (self._began, self._fresh, self._later):
            rest.clear()


def _followers(wants: Sequence[Want]) -> dict[int, Want]:
    """What waits for another one of the same queue, by the key of that one."""
    following = [want for want in wants if want.follows is not None]
    keys = {want.key for want in wants} if following else set()
    return {want.follows: want for want in following if want.follows in keys}


def _due(want: Want) -> Instant:
    return want.ask.not_before_at
