"""The teller: sees to it that open alerts reach a person, once, from one process of the fleet.

An alert is told at least once. A process first writes down that it sets out to tell, so that no
other does; then it tells; then it writes down that it has. One that is killed in between leaves an
alert that another tells again after two minutes. The other way round, told at most once, a crash
could swallow the only word that a campaign has stopped, and hearing it twice harms nobody.

Trouble rarely comes alone. The first alert of a kind is told at once; whatever else is raised of
that kind within a minute after a notice is told together, in the next one. So an outage that stops
a thousand accounts rings a few times, and not a thousand.

Nothing here can harm sending: whatever fails is logged, and tried again later.
"""

from __future__ import annotations

import structlog

from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.engine import alerts
from paceline.engine.alerts import reasons_text
from paceline.engine.looking import Looker
from paceline.engine.notice import Notice, notice_of, notice_of_many, spans
from paceline.engine.ports import Alert, Clock, Journal, Notifier, OpenKind, Tx

LOOK_EVERY_US = 5 * SECOND
GATHER_US = MINUTE
"""How long after a notice of a kind the next one gathers what else is raised of it."""
AGAIN_US = HOUR
"""How long the same thing happens in silence before operators are told that it goes on."""
ABANDONED_US = 2 * MINUTE
"""A process that set out to tell longer ago has been killed."""
RETRY_US = MINUTE
LONGEST_RETRY_US = 30 * MINUTE

log = structlog.get_logger("paceline.alerts")


class Teller(Looker):
    """Runs beside the lanes; without a notifier an alert is told to the log alone."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        notifier: Notifier | None = None,
        *,
        again_us: int = AGAIN_US,
        look_every_us: int = LOOK_EVERY_US,
    ) -> None:
        super().__init__(clock, look_every_us, log, "alerts")
        self._journal = journal
        self._notifier = notifier
        self._again_us = again_us
        self._logged: dict[int, int] = {}
        """By alert, the count it was last logged with: a try that failed is no news."""
        self._failures = 0
        self._not_before_us = 0

    async def look(self) -> int:
        """Tell whatever there is to tell; how many alerts that were."""
        now, again_us = self._clock.now(), self._again_us
        kinds, untold = await self._journal.read(
            lambda tx: (
                tx.alerts.kinds(),
                tx.alerts.untold(now, again_us=again_us, abandoned_us=ABANDONED_US),
            )
        )
        left = {alert.id for alert in untold}
        self._logged = {one: count for one, count in self._logged.items() if one in left}
        if any(alerts.some_quiet(kind, now) for kind in kinds):
            await self._journal.write(lambda tx: alerts.clear_quiet(tx, now))
        told = 0
        for kind in kinds:
            group = [alert.id for alert in untold if alert.kind == kind.kind]
            waits = self._clock.monotonic_us() < self._not_before_us
            if group and not (waits or self._stopping or self._gathers(kind, now)):
                told += await self._tell(group)
        return told

    def _gathers(self, kind: OpenKind, now: Instant) -> bool:
        """Whether the last notice of this kind, whichever process sent it, is too fresh for
        another. What a wrong clock has written ahead of ours keeps nobody waiting."""
        if self._notifier is None:
            return False
        last = [at for at in (kind.told_at, kind.telling_at) if at is not None]
        return any(abs(now - at) < GATHER_US for at in last)

    async def _tell(self, alert_ids: list[int]) -> int:
        now = self._clock.now()
        ours, notice = await self._journal.write(
            lambda tx: self._set_out(tx, alert_ids, now), alone=True
        )
        if notice is None:
            return 0
        for alert in ours:
            self._write_down(alert)
        reached = await self._reach(notice, ours)
        # What happened while it was being told is news again, so the instant is that of before.
        told_at, numbers = now if reached else None, [alert.id for alert in ours]
        await self._journal.write(lambda tx: tx.alerts.told(numbers, told_at), alone=True)
        self._failures = 0 if reached else self._failures + 1
        if not reached:
            pause_us = min(RETRY_US << min(self._failures - 1, 10), LONGEST_RETRY_US)
            self._not_before_us = self._clock.monotonic_us() + pause_us
        return len(ours) if reached else 0

    def _set_out(
        self, tx: Tx, alert_ids: list[int], now: Instant
    ) -> tuple[list[Alert], Notice | None]:
        """Take these upon us, as far as no other process has, and put them in words."""
        ours = tx.alerts.set_out(alert_ids, now, again_us=self._again_us, abandoned_us=ABANDONED_US)
        if not ours:
            return ours, None
        return ours, notice_of(ours[0]) if len(ours) == 1 else notice_of_many(tx, ours)

    def _write_down(self, alert: Alert) -> None:
        """One line for every alert in any case, and one more whenever it is told again."""
        if self._logged.get(alert.id) == alert.count:
            return
        self._logged[alert.id] = alert.count
        log.warning(
            "alert",
            alert=alert.id,
            kind=alert.kind,
            text=alert.text,
            reasons=reasons_text(alert.reasons),
            count=alert.count,
        )

    async def _reach(self, notice: Notice, about: list[Alert]) -> bool:
        """Whether anybody was reached. Those at the other addresses are not told twice for the
        sake of one that does not answer; which one that is, is in the log."""
        if self._notifier is None:
            return True
        answers = await self._notifier.tell(notice.title, notice.text)
        for answer in answers:
            if not answer.ok:
                numbers, problem = spans(alert.id for alert in about), answer.problem
                log.warning("alert not told", alert=numbers, where=answer.where, problem=problem)
        return any(answer.ok for answer in answers)
