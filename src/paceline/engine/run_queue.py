"""One run's waiting deliveries on one account, read ahead in small pages: a claim is only a read,
and the guarded intent decides. Whose turn it is among several runs is said in ``agenda.py``.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.model import Ask, Content, Wait
from paceline.core.policy import Policy
from paceline.core.stubborn import place_in_line
from paceline.engine.pages import Page, contacted
from paceline.engine.pooling import LOOK_AGAIN_US, Claims
from paceline.engine.ports import Delivery, Journal, Run, Spot, Tx
from paceline.engine.turns import parsed_hours

PAGE = 8
"""Deliveries read ahead at first, and again by a lane that takes its time: they lie in memory."""
AT_FIRST = 2
"""Those that are read when a lane begins: many send one message and are parked."""
SLOW_US = MINUTE
"""Whoever waits so long after each has read anew what is to go next, by the time that it goes."""
LARGEST_PAGE = 64
STRETCH = 256
"""How many of those that are nobody's are passed by at a time, by who may write to nobody new."""
START: Spot = (-1, 0)
"""Before everything that waits."""
QUICK_US = 2 * SECOND
"""A page that is used up sooner is followed by a larger one."""


class RunQueue:
    """One run's waiting deliveries on one account, read ahead a page at a time."""

    def __init__(
        self,
        run: Run,
        account_id: int,
        policy: Policy,
        journal: Journal | None,
        claims: Claims | None = None,
    ) -> None:
        """``claims`` are what the lanes of this process are after, of deliveries that are nobody's;
        without them none of those are read."""
        self.run = run
        self._contents: dict[int, Content] = {}
        self.window = parsed_hours(run.window) if run.window else None
        self.served = 0
        self.set_out = False
        """Whether this lane has begun with it since it last looked around."""
        self.begun = False
        """Whether something of a firing was sent from here: it goes on before those that wait."""
        self.closing_checked = False
        """Whether the end of the run was looked for since the last delivery was settled here."""
        self._account_id = account_id
        self._frequency = policy.per_recipient
        self._journal = journal
        self._claims = claims if run.pooled else None
        # The next one is the last: a list takes a tenth of the room of what has two ends.
        self._page: list[Delivery] = []
        self._size = AT_FIRST
        self._usual_size = AT_FIRST if policy.least_gap_us >= SLOW_US else PAGE
        self._read_at: Instant = 0
        self._elsewhere = 0
        """How often the line had been left when it was read (``core/stubborn.py``)."""
        self.contacted: Mapping[str, tuple[Instant, ...]] = {}
        self._next_due_at: Instant | None = 0
        self._paced = False
        self._put_off: Wait | None = None
        self._put_off_as: Ask | None = None
        self._passed: Spot = START
        """Up to where only strangers wait, of those that are nobody's."""
        self._knowing = False
        """Whether only those were read last whom the account knows."""
        self._passing_by: Wait | None = None
        self.usual: Ask | None = None
        """What was asked for last: the others of a run mostly ask for the same."""
        self._usual_of: Delivery | None = None
        """For which delivery that was; None once it has gone, or more is known of its recipient."""
        self.shut_until_at: Instant = 0
        """Until when it was shut as what no longer fits was looked for last: that is done once."""
        self._expected: list[Instant] = []

    @property
    def next_due_at(self) -> Instant | None:
        """When the next delivery falls due, as far as is known here; ``None`` when none waits."""
        due = [self._page[-1].due_at if self._page else self._next_due_at, *self._expected[:1]]
        return min((due_at for due_at in due if due_at is not None), default=None)

    @property
    def expected_at(self) -> Instant | None:
        """When something that was tried before falls due; ``None`` where nothing is known of."""
        return self._expected[0] if self._expected else None

    @property
    def paced_at(self) -> Instant | None:
        """When something falls due that waits for the account's pace, if that comes next."""
        return self._next_due_at if self._paced and not self._page else None

    def expect(self, due_at: Instant) -> None:
        """A delivery of this run will fall due then: a retry, or the end of a doubt."""
        heapq.heappush(self._expected, due_at)
        self.closing_checked = False

    @property
    def first(self) -> Delivery | None:
        """The oldest due delivery that was read; ``None`` if none was due then."""
        return self._page[-1] if self._page else None

    @property
    def next_up(self) -> tuple[Delivery, Content] | None:
        """The same with what it says, where that is known without a look."""
        delivery = self.first
        if delivery is None or delivery.content is not None:
            return None
        content = self._contents.get(delivery.step)
        return None if content is None else (delivery, content)

    def pop(self) -> None:
        self._page.pop()
        self._usual_of = None

    def put_back(self, until_at: Instant) -> bool:
        """Let go of a delivery that is nobody's and cannot go from here before ``until_at``."""
        delivery = self.first
        if delivery is None or delivery.account_id is not None:
            return False
        self._page.clear()
        self._next_due_at, self._paced = until_at, False
        return True

    def pass_by(self) -> None:
        """Leave a stranger to the others of the pool. One that was taken for somebody we know when
        it was read is not read again, or that might go on for ever."""
        delivery = self.first
        if delivery is not None and delivery.due_at is not None and self._knowing:
            self._passed = max(self._passed, (delivery.due_at, delivery.id))
        self.forget()

    def put_off(self, verdict: Wait, ask: Ask) -> None:
        """Everything that was due was moved to where the verdict says, and waits for that."""
        self.forget()
        self._put_off, self._put_off_as = verdict, ask

    def waits_as(self, now: Instant) -> Ask | None:
        """What is asked for by that which is to be sent next, where that is known for certain: what
        falls due next may be a doubt."""
        if self._put_off and self.waits_for(now):
            return self._put_off_as
        if self._page:
            return self.usual if self._page[-1] is self._usual_of else None
        return self.usual if self._paced and not self._expected else None

    def waits_for(self, now: Instant) -> Wait | None:
        """What nothing of this run is due for the sake of; None if it is only not due yet."""
        verdict = self._put_off or self._passing_by
        # Whatever makes something due earlier has the whole agenda read anew; but for what was
        # tried before, and that changes nothing for the others.
        if verdict is None or verdict.until_at is None or verdict.until_at <= now:
            return None
        return verdict

    def forget(self) -> None:
        """Something changed outside: what was read ahead may be stale."""
        self._page.clear()
        self._next_due_at, self._paced = 0, False

    def must_read(self, now: Instant, elsewhere: int = 0) -> bool:
        """Whether ``read`` is due. Whatever the lane has settled must be in the store by then,
        or a retry that is not written yet would be taken for none at all.

        What was tried before goes ahead of what was not, so a retry that falls due is not left to
        wait until the page read ahead is used up.
        """
        if self._expected and self._expected[0] <= now:
            return True
        if elsewhere and elsewhere != self._elsewhere:
            return True
        return not self._page and self._next_due_at is not None and self._next_due_at <= now

    def asleep_until(self, now: Instant, elsewhere: int) -> Instant | None:
        """When something of it falls due next, where that is all there is to be known; None where
        somebody has to look."""
        due_at = self._next_due_at
        if due_at is None or due_at <= now or self._page:
            return None
        if self._put_off or self._passing_by or (self._paced and self.usual):
            return None
        if elsewhere and elsewhere != self._elsewhere:
            return None
        if not self._expected:
            return due_at
        return min(due_at, self._expected[0]) if self._expected[0] > now else None

    async def contacted_anew(self, delivery: Delivery, now: Instant) -> bool:
        """Whether somebody has written to this recipient since the page was read."""
        if self._frequency is None or self._journal is None:
            return False
        since_at = now - self._frequency.per_us
        found = await self._journal.read(lambda tx: contacted(tx, [delivery], since_at, now))
        target = delivery.target
        instants = found.get(target, ())
        if instants[-1:] == self.contacted.get(target, ())[-1:]:
            return False
        self.contacted = {**self.contacted, target: instants}
        self._usual_of = None
        return True

    async def read(self, now: Instant, nobody_new: Wait | None = None, elsewhere: int = 0) -> None:
        """Read the next page; ``nobody_new`` is until when, and why, the account writes to nobody
        it does not know. Such people may be known to others of a pool, and are left to them.
        ``elsewhere`` is how often it had to be left, where it is not gone on with as it stands."""
        assert self._journal is not None, "a queue without a journal only asks"
        quick = 0 <= now - self._read_at < QUICK_US
        self._size = LARGEST_PAGE if quick or elsewhere else self._usual_size
        self._elsewhere = elsewhere
        page = await self._journal.read(lambda tx: self.look(tx, now, nobody_new))
        self._knowing = nobody_new is not None
        if nobody_new is None:
            self._passed = START
        self._passing_by = None if self._passed == START else nobody_new
        while self._expected and (not page.rows or self._expected[0] <= now):
            heapq.heappop(self._expected)
        self.take(page._replace(rows=_from_elsewhere(page.rows, elsewhere)) if elsewhere else page)

    def take(self, page: Page) -> None:
        """Go on with what was read just now."""
        self._read_at = page.read_at
        self._page = page.rows[::-1]
        self._next_due_at = page.next_due_at
        self._paced = page.paced
        self.contacted = page.contacted

    def look(self, tx: Tx, now: Instant, nobody_new: Wait | None = None) -> Page:
        """The next page, as it is in the store."""
        own = rows = tx.path.due(self._account_id, self.run.id, now, self._size)
        if self._claims is not None and nobody_new is None:
            rows = self._ahead(tx, own)
        next_due_at: Instant | None = now
        paced = False
        if not rows or (self._claims is None and len(rows) < self._size):
            # Asked for along with all that is due: when that is sent, nobody need look again.
            after_at = now if rows else -1
            next_due_at, paced = tx.path.next_due(self._account_id, self.run.id, after_at)
        if not rows and self._claims is not None:
            if nobody_new is None:
                rows, next_due_at = self._pooled(tx, self._claims, now, next_due_at)
            else:
                rows, next_due_at = self._known(tx, self._claims, now, next_due_at, nobody_new)
        if own and not rows:
            # Others are about to take all that is nobody's.
            rows, next_due_at = own, now
        found: Mapping[str, tuple[Instant, ...]] = {}
        if rows and self._frequency is not None:
            since_at = now - self._frequency.per_us
            found = contacted(tx, rows, since_at, now)
        return Page(rows, next_due_at, found, now, paced and self._claims is None)

    def _ahead(self, tx: Tx, own: list[Delivery]) -> list[Delivery]:
        """What of its own an account of a pool takes before what is nobody's: what was tried
        before, and what is due no later. If all that follows went ahead, whoever has got no first
        message by then would wait until the very end."""
        pooled_at = tx.path.next_pooled_at(self.run.id) if own else None
        if pooled_at is None:
            return own
        return [row for row in own if row.attempts or (row.due_at or 0) <= pooled_at]

    def _pooled(
        self, tx: Tx, claims: Claims, now: Instant, own_at: Instant | None
    ) -> tuple[list[Delivery], Instant | None]:
        """One delivery of those that are nobody's, so that others need not wait for the rest."""
        free = tx.path.pooled(self.run.id, now, PAGE + len(claims))
        picked = claims.pick(free, self._account_id, now)
        if picked is not None:
            return [picked], now
        if free:
            return [], now + LOOK_AGAIN_US
        due = [at for at in (own_at, tx.path.next_pooled_at(self.run.id)) if at is not None]
        return [], min(due, default=None)

    def _known(
        self, tx: Tx, claims: Claims, now: Instant, own_at: Instant | None, nobody_new: Wait
    ) -> tuple[list[Delivery], Instant | None]:
        """The same of those whom the account knows: a stretch at a time, and each stretch once."""
        seen = tx.path.acquainted(self._account_id, self.run.id, self._passed, now, STRETCH)
        known = [one for one in seen if one.known]
        ahead = seen[: seen.index(known[0])] if known else seen
        if ahead:
            self._passed = (ahead[-1].due_at, ahead[-1].id)
        picked = claims.pick(known, self._account_id, now)
        if picked is not None:
            return [tx.path.one(picked.id)], now
        if known:
            return [], now + LOOK_AGAIN_US
        if len(seen) == STRETCH:
            return [], now
        later_at = tx.path.next_pooled_at(self.run.id, now)
        due = [own_at, later_at, nobody_new.until_at if self._passed != START else None]
        return [], min((at for at in due if at is not None), default=None)

    def content_of(self, delivery: Delivery) -> Content:
        if delivery.content is not None:
            return Content.from_list(delivery.content)
        content = self._contents.get(delivery.step)
        if content is None:
            if not self.run.content:
                raise LookupError(f"delivery {delivery.id} has no content, nor has its campaign")
            content = Content.from_list(self.run.content, delivery.step)
            self._contents[delivery.step] = content
        return content

    def ask(self, delivery: Delivery, content: Content) -> Ask:
        """The delivery as the gates see it. One that has to wait is asked for twice at least."""
        if self.usual is not None and delivery is self._usual_of:
            return self.usual
        run = self.run
        theirs = delivery.recipient_hours
        self.usual = Ask(
            delivery.action,
            len(content.parts) - delivery.parts_done,
            run.id,
            delivery.reply,
            delivery.due_at or 0,
            delivery.expires_at,
            delivery.suppressed,
            self.window,
            run.opens_at,
            run.closes_at,
            recipient_hours=parsed_hours(theirs) if theirs else None,
            contacted=self.contacted.get(delivery.target, ()) if self.contacted else (),
        )
        self._usual_of = delivery
        return self.usual


def _from_elsewhere(rows: list[Delivery], elsewhere: int) -> list[Delivery]:
    """The same, but for those that were never tried: they follow from another place on, and what
    was left behind comes last."""
    tried = [row for row in rows if row.attempts]
    fresh = [row for row in rows if not row.attempts]
    start = place_in_line(elsewhere, len(fresh))
    return tried + fresh[start:] + fresh[:start][::-1]
