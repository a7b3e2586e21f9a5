"""What operators are told of. One open alert per key is the index's business, not a convention."""

from __future__ import annotations

import json
from builtins import list as list_of
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import func, or_, select, text, update

from paceline.core.instants import Instant
from paceline.engine.ports.alerts import Alert, NewAlert
from paceline.store.base import Subject, dump, storable
from paceline.store.schema import alerts, ledger

_OPEN = "cleared_at IS NULL"
_COLUMNS = tuple(
    alerts.c[name]
    for name in (
        "id",
        "key",
        "kind",
        "text",
        "reasons",
        "count",
        "first_at",
        "last_at",
        "told_at",
        "cleared_at",
        "account_id",
        "run_id",
    )
)


class Alerts(Subject):
    """Opened and counted in the transaction of their cause, told and cleared later."""

    def put(self, alert: NewAlert, at: Instant) -> None:
        words = {
            "text": storable(alert.text),
            "reasons": dump([[storable(reason), count] for reason, count in alert.reasons]),
        }
        insert = self._context.insert(alerts).values(
            key=alert.key,
            kind=alert.kind,
            count=1,
            first_at=at,
            last_at=at,
            account_id=alert.account_id,
            run_id=alert.run_id,
            **words,
        )
        self._connection.execute(
            insert.on_conflict_do_update(
                index_elements=["key"],
                index_where=text(_OPEN),
                set_={
                    "count": alerts.c.count + 1,
                    "last_at": insert.excluded.last_at,
                    "text": insert.excluded.text,
                    "reasons": insert.excluded.reasons,
                },
            )
        )

    def get(self, alert_id: int) -> Alert | None:
        statement = select(*_COLUMNS).where(alerts.c.id == alert_id)
        row = self._connection.execute(statement).first()
        return None if row is None else _alert(row)

    def list(self, *, with_cleared: bool = False, limit: int = 1000) -> list_of[Alert]:
        statement = select(*_COLUMNS).order_by(alerts.c.last_at.desc(), alerts.c.id.desc())
        if not with_cleared:
            statement = statement.where(text(_OPEN))
        return [_alert(row) for row in self._connection.execute(statement.limit(limit))]

    def clear(
        self,
        at: Instant,
        *,
        alert_id: int | None = None,
        account_id: int | None = None,
        run_id: int | None = None,
        kinds: Sequence[str] = (),
        quiet_since_at: Instant | None = None,
    ) -> int:
        statement = update(alerts).where(text(_OPEN)).values(cleared_at=at)
        for column, wanted in (
            (alerts.c.id, alert_id),
            (alerts.c.account_id, account_id),
            (alerts.c.run_id, run_id),
        ):
            if wanted is not None:
                statement = statement.where(column == wanted)
        if kinds:
            statement = statement.where(alerts.c.kind.in_(kinds))
        if quiet_since_at is not None:
            statement = statement.where(alerts.c.last_at <= quiet_since_at)
        return self._connection.execute(statement).rowcount

    def reasons(
        self,
        account_id: int,
        kinds: Collection[str],
        *,
        run_id: int | None = None,
        since_at: Instant = 0,
        latest: int = 10_000,
    ) -> list_of[tuple[str, int]]:
        inner = (
            select(ledger.c.outcome, ledger.c.reason)
            .where(
                ledger.c.account_id == account_id,
                ledger.c.intent_at >= since_at,
                ledger.c.kind == "outcome",
            )
            .order_by(ledger.c.intent_at.desc())
            .limit(latest)
        )
        if run_id is not None:
            inner = inner.where(ledger.c.run_id == run_id)
        found = inner.subquery()
        number = func.count()
        statement = (
            select(found.c.reason, found.c.outcome, number)
            .where(found.c.outcome.in_(sorted(kinds)))
            .group_by(found.c.reason, found.c.outcome)
            .order_by(number.desc(), found.c.reason)
        )
        rows_found = self._connection.execute(statement)
        return [(reason or outcome, count) for reason, outcome, count in rows_found]

    def untold(self, now: Instant, *, again_us: int, abandoned_us: int) -> list_of[Alert]:
        statement = (
            select(*_COLUMNS)
            .where(
                text(_OPEN),
                or_(
                    alerts.c.told_at.is_(None),
                    (alerts.c.last_at > alerts.c.told_at) & (alerts.c.told_at <= now - again_us),
                ),
                _nobody_tells(now, abandoned_us),
            )
            .order_by(alerts.c.id)
        )
        return [_alert(row) for row in self._connection.execute(statement)]

    def set_out(self, alert: Alert, now: Instant, *, abandoned_us: int) -> bool:
        statement = (
            update(alerts)
            .where(
                alerts.c.id == alert.id,
                text(_OPEN),
                alerts.c.told_at.is_not_distinct_from(alert.told_at),
                _nobody_tells(now, abandoned_us),
            )
            .values(telling_at=now)
        )
        return self._connection.execute(statement).rowcount == 1

    def told(self, alert_id: int, at: Instant | None) -> None:
        changes: dict[str, Instant | None] = {"telling_at": None}
        if at is not None:
            changes["told_at"] = at
        self._connection.execute(update(alerts).where(alerts.c.id == alert_id).values(**changes))


def _nobody_tells(now: Instant, abandoned_us: int) -> Any:
    telling_at = alerts.c.telling_at
    return or_(telling_at.is_(None), telling_at <= now - abandoned_us, telling_at > now)


def _alert(row: Any) -> Alert:
    values = list_of(row)
    values[4] = tuple((reason, count) for reason, count in json.loads(values[4]))
    return Alert(*values)
