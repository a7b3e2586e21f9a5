"""A line in virtual time: what waits in one run, and who of it is next.

The order is the one in which the store hands deliveries to a lane: what was begun first, then by
the instant at which each is due, and what has stepped aside where its new instant puts it. Only
where a plan is about to choose those instants itself, the steps of a campaign take turns: by what
is due, the first messages of all would go before anything follows, and what was to come after three
days would come after weeks; the other way round, whoever is left at the end would wait for all.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

from paceline.core.instants import Instant
from paceline.core.model import Refuse, Wait
from paceline.core.slots import Never, Queue, Want

NOT_BEFORE = "not-before"
SIGNAL = "signal"
STEP = "step"
"""Said of what would have followed something that does not go."""

NOBODY = 0
"""No account: what is bound to nobody may be taken by whoever shares the line."""

_Kind = tuple[int, int, tuple[int, ...]]
"""Whose turn it is, which account alone may take it, and to which accounts it is a stranger."""
_PLAIN: _Kind = (0, NOBODY, ())


class Line:
    """A queue while it is being used up."""

    __slots__ = ("_bound", "_followers", "_lots", "_never", "_shared", "_took", "held", "queue")

    def __init__(self, queue: Queue, bound: Sequence[Queue] = ()) -> None:
        """``bound`` are the queues of those who share this one, with what of the same run each has
        to itself: whoever wrote the first message of a pool writes the next."""
        self.queue = queue
        self.held: Wait | None = None
        """Why a lane has left it, where nothing but somebody's help will bring it back."""
        self._shared = len(queue.accounts) > 1
        self._bound: dict[int, int] = {}
        wants = list(queue.wants)
        for theirs in bound:
            wants += theirs.wants
            if self._shared:
                owner = theirs.accounts[0]
                self._bound |= {want.key: owner for want in theirs.wants}
        self._followers = _followers(wants)
        if self._followers:
            following = {want.key for want in self._followers.values()}
            wants = [want for want in wants if want.key not in following]
        apart: dict[_Kind, list[Want]] = {_PLAIN: []}
        for want in wants:
            apart.setdefault(self._kind(want), []).append(want)
        # Nearly always there is but one.
        self._lots = {kind: _Lot(some) for kind, some in apart.items()}
        self._took: dict[int, int] = {}
        """When each step had its turn, counted in turns."""
        self._never: list[Never] = []

    def first(
        self, now: Instant, account_id: int = NOBODY, *, nobody_new: bool = False
    ) -> Want | None:
        """The one that this account's lane would be given next; None if none is due. An account
        that may write to ``nobody_new`` leaves strangers to the others."""
        if len(self._lots) == 1:
            return self._lots[_PLAIN].first(now)
        best: tuple[tuple[bool, int, Instant, int], Want] | None = None
        for turn, lot in self._open_to(account_id, nobody_new):
            want = lot.first(now)
            if want is None:
                continue
            begun, due_at = lot.place(want)
            place = (not begun, 0 if begun else self._took.get(turn, 0), due_at, want.key)
            if best is None or place < best[0]:
                best = place, want
        return None if best is None else best[1]

    def next_due(
        self, account_id: int = NOBODY, *, nobody_new: bool = False
    ) -> tuple[Instant, str] | None:
        """When the next one falls due, and what it waits for until then."""
        if len(self._lots) == 1:
            return self._lots[_PLAIN].next_due()
        due = (lot.next_due() for _, lot in self._open_to(account_id, nobody_new))
        return min((known for known in due if known is not None), default=None)

    def _open_to(self, account_id: int, nobody_new: bool) -> Iterator[tuple[int, _Lot]]:
        for (turn, owner, new_to), lot in self._lots.items():
            if owner in (NOBODY, account_id) and not (nobody_new and account_id in new_to):
                yield turn, lot

    def passed_by(self, account_id: int) -> bool:
        """Whether there is anybody in it to whom this account is not to write for the first time;
        of a line that several accounts share."""
        return any(lot for (_, _, new_to), lot in self._lots.items() if account_id in new_to)

    def is_anybodys(self, want: Want) -> bool:
        """Whether somebody else may take it instead."""
        return self._shared and want.key not in self._bound

    def take(self, want: Want) -> None:
        """Take out what ``first`` has answered."""
        self._lots[self._kind(want)].take(want)
        if self._followers or len(self._lots) > 1:
            self._took[want.turn] = 1 + max(self._took.values(), default=0)

    def sent(self, key: int, at: Instant, account_id: int = NOBODY) -> None:
        """The last part of one has gone out: what follows it goes from the same account, so long
        after, and not before the minute that it was given."""
        if self._followers and (want := self._followers.pop(key, None)) is not None:
            if self._shared:
                self._bound[want.key] = account_id
            # Whoever has got the first message knows who writes.
            due_at = max(at + want.after_us, _due(want))
            self._put(want._replace(new_to=()), due_at, NOT_BEFORE)

    def step_aside(self, want: Want, until_at: Instant, gate: str) -> None:
        self._lots[self._kind(want)].take(want)
        self._put(want, until_at, gate)

    def _put(self, want: Want, due_at: Instant, gate: str) -> None:
        kind = self._kind(want)
        if kind not in self._lots:
            self._lots[kind] = _Lot(())
        self._lots[kind].put(want, due_at, gate)

    def _kind(self, want: Want) -> _Kind:
        if not self._shared:
            # An account that has a run to itself meets everybody: its gate says who waits.
            return (want.turn, NOBODY, ()) if want.turn else _PLAIN
        # Those who share a run pass by whom they may not write to, so these lie apart.
        return want.turn, self._bound.get(want.key, NOBODY), want.new_to

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
    """Those of a line that the same accounts may take, in the same turn."""

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

    def place(self, first: Want) -> tuple[bool, Instant]:
        """What its first one goes by among those of the other lots: whether it was begun, and when
        it is due."""
        aside = self._later and self._later[0][2] is first
        return first.begun, self._later[0][0] if aside else _due(first)

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
