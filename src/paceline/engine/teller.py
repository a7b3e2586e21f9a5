"""The teller: sees to it that open alerts reach a person, once, from one process of the fleet.

An alert is told at least once. A process first writes down that it sets out to tell, so that no
other does; then it tells; then it writes down that it has. One that is killed in between leaves an
alert that another tells again after two minutes. The other way round, told at most once, a crash
could swallow the only word that a campaign has stopped, and hearing it twice harms nobody.

Nothing here can harm sending: whatever fails is logged, and tried again later.
"""

from __future__ import annotations

import asyncio

import structlog

from paceline.core.durations import print_duration
from paceline.core.errors import SchemaMismatch, StoreError
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.engine import alerts
from paceline.engine.alerts import reasons_text
from paceline.engine.ports import Alert, Clock, Journal, Notifier

LOOK_EVERY_US = 5 * SECOND
AGAIN_US = HOUR
"""How long the same thing happens in silence before operators are told that it goes on."""
ABANDONED_US = 2 * MINUTE
"""A process that set out to tell longer ago has been killed."""
RETRY_US = MINUTE
LONGEST_RETRY_US = 30 * MINUTE

log = structlog.get_logger("paceline.alerts")


def title_of(alert: Alert) -> str:
    what = "campaign" if alert.kind.startswith("campaign.") else "account"
    happened = alert.kind.partition(".")[2].replace("_", " ")
    return f"Paceline: {what} {happened}"


def text_of(alert: Alert) -> str:
    """All that is known, for whoever reads it on a phone."""
    lines = [alert.text]
    if alert.reasons:
        lines.append(f"Why: {reasons_text(alert.reasons)}")
    if alert.count > 1:
        lasting = print_duration((alert.last_at - alert.first_at) // SECOND * SECOND)
        lines.append(f"It has happened {alert.count} times within {lasting}.")
    lines.append(f"See: paceline alerts; when it is seen to: paceline alert clear {alert.id}")
    return "\n".join(lines)


class Teller:
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
        self._journal = journal
        self._clock = clock
        self._notifier = notifier
        self._again_us = again_us
        self._look_every_us = look_every_us
        self._logged: dict[int, int] = {}
        """By alert, the count it was last logged with: a try that failed is no news."""
        self._failures = 0
        self._not_before_us = 0
        self._signal = asyncio.Event()
        self._stopping = False

    def stop(self) -> None:
        """What is being told is told to its end; nothing new is begun."""
        self._stopping = True
        self._signal.set()

    async def run(self) -> None:
        while not self._stopping:
            try:
                await self.look()
            except SchemaMismatch:
                raise
            except StoreError as error:
                log.warning("alerts cannot be looked for", error=str(error))
            except Exception:
                # A defect of ours, and no reason to stop sending: the next look may do better.
                log.exception("looking for alerts failed")
            alarm = self._clock.alarm(self._clock.now() + self._look_every_us, self._signal.set)
            try:
                await self._signal.wait()
            finally:
                alarm.cancel()
            if not self._stopping:
                self._signal.clear()

    async def look(self) -> int:
        """Tell whatever there is to tell; how many alerts that were."""
        now, again_us = self._clock.now(), self._again_us
        opened, untold = await self._journal.read(
            lambda tx: (
                tx.alerts.list(),
                tx.alerts.untold(now, again_us=again_us, abandoned_us=ABANDONED_US),
            )
        )
        self._logged = {alert.id: self._logged.get(alert.id, 0) for alert in opened}
        if any(alerts.is_quiet(alert, now) for alert in opened):
            await self._journal.write(lambda tx: alerts.clear_quiet(tx, now))
        told = 0
        for alert in untold:
            waits = self._clock.monotonic_us() < self._not_before_us
            if not (waits or self._stopping):
                told += await self._tell(alert)
        return told

    async def _tell(self, alert: Alert) -> bool:
        now = self._clock.now()
        ours = await self._journal.write(
            lambda tx: tx.alerts.set_out(alert, now, abandoned_us=ABANDONED_US)
        )
        if not ours:
            return False
        self._log(alert)
        reached = await self._reach(alert)
        # What happened while it was being told is news again, so the instant is that of before.
        told_at = now if reached else None
        await self._journal.write(lambda tx: tx.alerts.told(alert.id, told_at))
        self._failures = 0 if reached else self._failures + 1
        if not reached:
            pause_us = min(RETRY_US << min(self._failures - 1, 10), LONGEST_RETRY_US)
            self._not_before_us = self._clock.monotonic_us() + pause_us
        return reached

    def _log(self, alert: Alert) -> None:
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

    async def _reach(self, alert: Alert) -> bool:
        """Whether anybody was reached. Those at the other addresses are not told twice for the
        sake of one that does not answer; which one that is, is in the log."""
        if self._notifier is None:
            return True
        answers = await self._notifier.tell(title_of(alert), text_of(alert))
        for answer in answers:
            if not answer.ok:
                problem = answer.problem
                log.warning("alert not told", alert=alert.id, where=answer.where, problem=problem)
        return any(answer.ok for answer in answers)
