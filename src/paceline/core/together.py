"""Limits held against what several accounts share: what of a plan none of them can take.

Pure. What an account has to itself is judged first, as in ``limits.py``. Then each delivery that is
nobody's is given to an account of its pool that may send it in its very minute; those offend that
no account can take. Nobody is bound by that: when the time comes, whoever can send first does.
Where what offends could go instead is in ``repairing.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date

from paceline.core.instants import Instant
from paceline.core.limits import CAPS, RULES, Board, Breach, Rule, in_time, monday, most_parts
from paceline.core.policy import Policy
from paceline.core.rehousing import Place
from paceline.core.takers import Common, Taker

PATIENCE = 5
"""How often a day it is tried in vain to make way for one by passing on another: then there are too
many, and it is not that the wrong ones were given to somebody."""
MOST_TRIED = 500
"""How many are looked at for it."""
MOST_PASSED_ON = 50
"""And how many of them at once, one for the other."""

_Group = tuple[int, date, Rule, str]
_Kind = tuple[tuple[int, ...], str, int]
"""Who may take it, what it is counted as, and how often: what is true of all that are alike."""
_Change = Callable[[Common], None]


class Crowd:
    """Accounts with what is booked on each alone and what they share, told apart into what may stay
    and what offends."""

    def __init__(
        self,
        places: Sequence[Place],
        shared: Iterable[Common],
        slack_us: int = 0,
        *,
        moving: bool = False,
    ) -> None:
        """``moving``: whether what offends is about to move, and what follows it with it."""
        commons = list(shared)
        parts = max(most_parts(place.booked) for place in places) if places else 1
        parts = max(parts, most_parts(common.one for common in commons))
        self.boards = {
            place.seat.account_id: Board(place.seat, place.booked, slack_us, moving=moving)
            for place in places
        }
        self._takers = {
            number: Taker(board, slack_us, parts) for number, board in self.boards.items()
        }
        self._able: dict[tuple[int, ...], list[int]] = {}
        self._lines: dict[tuple[int, ...], list[Taker]] = {}
        """By pool: its accounts, in the order in which they are asked."""
        self._full: dict[_Kind, tuple[Instant, Rule]] = {}
        """Until when no account of a pool has room in its day or week."""
        self._pools = {common.accounts for common in commons}
        self._linked: dict[tuple[int, ...], list[Taker]] = {}
        self._tried = 0
        self._done: list[tuple[_Change, Common]] = []
        """How to take back what was passed on so far."""
        self._in_vain: Counter[tuple[tuple[int, ...], Instant]] = Counter()
        self.offends: dict[int, Rule] = {}
        self.offending: list[Common] = []
        for common in sorted(map(self._placed, commons), key=_in_time):
            follows = moving and common.one.follows in self.offends
            rule = "step" if follows else self._give(common)
            if rule is not None:
                self.offends[common.one.key] = rule
                self.offending.append(common)

    def able(self, accounts: tuple[int, ...]) -> list[int]:
        """Those that may take what a pool shares. Where somebody would have to help all of them
        first, they are judged as if they were at work: that is no limit."""
        able = self._able.get(accounts)
        if able is None:
            found = [number for number in accounts if self._takers[number].from_at is not None]
            able = self._able[accounts] = found or list(accounts)
        return able

    def works_from(self, account_id: int) -> Instant:
        return self._takers[account_id].from_at or 0

    def book(self) -> None:
        """Let everybody keep what they were given, for whoever looks for slots beside it."""
        for taker in self._takers.values():
            taker.book()

    def breaches(self) -> dict[int, list[Breach]]:
        """What each run plans for its pool that no account of it can take; days are those of the
        first of them."""
        groups: dict[_Group, list[Common]] = {}
        for common in self.offending:
            one, rule = common.one, self.offends[common.one.key]
            place = self.boards[common.accounts[0]].place(one.at)
            day = monday(place) if rule == "weekly" else place.day
            group = (one.ask.run_id, day, rule, one.ask.counted_as)
            groups.setdefault(group, []).append(common)
        found: dict[int, list[Breach]] = {}
        for run_id, day, rule, action in sorted(groups):
            some = groups[run_id, day, rule, action]
            counted = self._counted(rule, day, action, some)
            keys = tuple(common.one.key for common in some)
            found.setdefault(run_id, []).append(Breach(rule, day, action, *counted, keys))
        return found

    def _counted(
        self, rule: Rule, day: date, action: str, some: Sequence[Common]
    ) -> tuple[int, int | None]:
        if rule not in CAPS:
            return len(some), None
        takers = self.able(some[0].accounts)
        known = [self.boards[number].planned(rule, day, action) for number in takers]
        caps = [cap for _, cap in known if cap is not None]
        count = sum(count for count, _ in known) + sum(common.one.ask.parts for common in some)
        return count, sum(caps) if len(caps) == len(known) else None

    # ------------------------------------------------------------------ who takes what

    def _placed(self, common: Common) -> Common:
        """What is due and waits will go when the first of them opens."""
        if not common.one.waits:
            return common
        placed = [taker.board.placed(common.one) for taker in self._line(common.accounts)]
        return common._replace(one=min(placed, key=in_time))

    def _line(self, accounts: tuple[int, ...]) -> list[Taker]:
        line = self._lines.get(accounts)
        if line is None:
            # Who has to keep the longest gaps first: time that goes by unused does not come back,
            # and what is left of a day's cap does no harm.
            takers = [self._takers[number] for number in self.able(accounts)]
            line = self._lines[accounts] = sorted(takers, key=lambda taker: -taker.least_us)
        return line

    def _give(self, common: Common) -> Rule | None:
        """Give it to whoever can take it; else the rule that is in the way of the one who comes
        nearest to it."""
        one, line = common.one, self._line(common.accounts)
        kind = (common.accounts, one.ask.counted_as, one.ask.parts)
        full = self._full.get(kind)
        if full is not None and one.at < full[0]:
            return full[1]
        rules: list[Rule] = []
        for number, taker in enumerate(line):
            rule = taker.shut_by(one)
            if rule is None:
                taker.take(common)
                _to_the_end(line, number)
                return None
            rules.append(rule)
        # What is passed on needs room in its day; of a week, that may be another one.
        if ("weekly" in rules or self._anybody_has_room(common)) and self._make_way(common):
            return None
        if all(rule in CAPS for rule in rules):
            opens = (taker.room_at(one.at, rule) for taker, rule in zip(line, rules, strict=True))
            self._full[kind] = min(opens), max(rules, key=RULES.index)
        return max(rules, key=RULES.index)

    def _make_way(self, common: Common) -> bool:
        """Let somebody take it who has taken something that others can take instead."""
        day_at = self.boards[common.accounts[0]].place(common.one.at).day_at
        tries = (common.accounts, day_at)
        if self._in_vain[tries] >= PATIENCE:
            return False
        self._tried = 0
        self._done.clear()
        made = self._swap(common, frozenset([common.one.key]))
        self._in_vain[tries] += not made
        return made

    def _anybody_has_room(self, common: Common) -> bool:
        """Whether anybody of its pool, or of those that share an account with it, has room in that
        day: else nothing can be passed on."""
        linked = self._linked.get(common.accounts)
        if linked is None:
            pools = [pool for pool in self._pools if not set(pool).isdisjoint(common.accounts)]
            numbers = sorted({number for pool in pools for number in self.able(pool)})
            linked = self._linked[common.accounts] = [self._takers[number] for number in numbers]
        return any(taker.has_room(common.one) for taker in linked)

    def _swap(self, common: Common, moving: frozenset[int]) -> bool:
        """Give it to whoever can take it, or could without something that others take instead.
        ``moving`` are those that are being passed on for it to come about."""
        line = self._line(common.accounts)
        for taker in line:
            if taker.shut_by(common.one) is None:
                self._do(taker.take, taker.leave, common)
                return True
        for taker in line:
            for some in taker.in_the_way(common.one):
                keys = moving.union(given.one.key for given in some)
                if len(keys) < len(moving) + len(some) or len(keys) > MOST_PASSED_ON:
                    continue
                self._tried += 1
                if self._tried > MOST_TRIED:
                    return False
                if self._passed_on(common, taker, some, keys):
                    return True
        return False

    def _passed_on(
        self, common: Common, taker: Taker, some: Sequence[Common], moving: frozenset[int]
    ) -> bool:
        """Let it take the place of these, if there is another one for each of them."""
        before = len(self._done)
        for given in some:
            self._do(taker.leave, taker.take, given)
        if taker.shut_by(common.one) is None:
            self._do(taker.take, taker.leave, common)
            if all(self._swap(given, moving) for given in some):
                return True
        while len(self._done) > before:
            undo, undone = self._done.pop()
            undo(undone)
        return False

    def _do(self, do: _Change, undo: _Change, common: Common) -> None:
        do(common)
        self._done.append((undo, common))


def _to_the_end(line: list[Taker], number: int) -> None:
    """Lanes take turns: of those that are alike, whoever has waited longest is first."""
    taker = line.pop(number)
    while number < len(line) and line[number].least_us == taker.least_us:
        number += 1
    line.insert(number, taker)


def text_of(breach: Breach, policy: Policy) -> str:
    """As people are told of what a pool can not take."""
    return _TEXTS.get(breach.rule) or breach.text(policy)


_TEXTS: Mapping[Rule, str] = {
    "gap": "closer together than the accounts of its pool may send",
    "rate": "faster than the accounts of its pool may send",
    "hours": "outside the business hours of all accounts of its pool",
}


def _in_time(common: Common) -> tuple[Instant, int]:
    return in_time(common.one)
